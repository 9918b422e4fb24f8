#include "injector/fence/accesses.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>

#include "injector/analysis/control_flow.h"
#include "injector/analysis/facts.h"
#include "injector/analysis/uniformity.h"
#include "injector/ptx/words.h"

namespace slate::injector {
namespace {

using ptx::Instruction;
using ptx::is_one_of;
using ptx::Operand;
using ptx::Reference;

constexpr std::uint32_t kMatrixAlignment = 16;  // of every row, as the widest load needs it
constexpr std::uint32_t kBulkAlignment = 16;    // of bulk copies
constexpr std::uint32_t kPriorityBytes = 128;   // of applypriority
constexpr std::uint32_t kMatrixRowBytes = 16;   // of ldmatrix and stmatrix, by lane
constexpr std::uint32_t kMostBarrier = 15;
constexpr std::uint32_t kMostThreads = 1024;
constexpr std::uint32_t kBarrierObjectBytes = 8;  // of mbarrier

/// They touch no memory that another thread could reach, besides those that only compute.
constexpr std::array<std::string_view, 43> kHarmless = {
    "activemask", "addc",   "bar",        "barrier",        "bra",       "createpolicy", "elect",
    "exit",       "fence",  "getctarank", "griddepcontrol", "istypep",   "madc",         "match",
    "membar",     "mma",    "movmatrix",  "nanosleep",      "pmevent",   "redux",        "ret",
    "setmaxnreg", "shfl",   "subc",       "vabsdiff2",      "vabsdiff4", "vadd2",        "vadd4",
    "vavrg2",     "vavrg4", "vmax",       "vmax2",          "vmax4",     "vmin",         "vmin2",
    "vmin4",      "vote",   "vset",       "vset2",          "vset4",     "vshl",         "vshr",
    "vsub2"};

bool is_register(const ptx::Function& function, const Operand& operand) {
  if (operand.kind != Operand::Kind::kSymbol || operand.component != 0) return false;
  const auto is_in = [&](const std::vector<ptx::Variable>& variables) {
    return variables[operand.index].space == ptx::Space::kReg;
  };
  if (operand.reference == Reference::kLocal) return is_in(function.variables);
  if (operand.reference == Reference::kParameter) return is_in(function.parameters);
  return false;
}

std::optional<MemorySpace> space_named(std::string_view word) {
  if (word == "global") return MemorySpace::kGlobal;
  if (is_one_of(word, {"shared", "shared::cta", "shared::cluster"})) return MemorySpace::kShared;
  if (word == "local") return MemorySpace::kLocal;
  if (word == "const") return MemorySpace::kConst;
  return std::nullopt;
}

/// The spaces in the opcode, in order; kGeneric if it names none.
std::vector<MemorySpace> spaces_of(const Instruction& instruction) {
  std::vector<MemorySpace> spaces;
  for (const std::string_view word : instruction.modifiers) {
    if (const auto space = space_named(word)) spaces.push_back(*space);
  }
  if (spaces.empty()) spaces.push_back(MemorySpace::kGeneric);
  return spaces;
}

std::uint32_t vector_of(const Instruction& instruction) {
  if (instruction.has("v2")) return 2;
  if (instruction.has("v4")) return 4;
  return instruction.has("v8") ? 8 : 1;
}

std::optional<std::uint32_t> number_of(const Operand& operand) {
  if (operand.kind != Operand::Kind::kInteger || operand.integer < 0 ||
      operand.integer > (1 << 30)) {
    return std::nullopt;
  }
  return static_cast<std::uint32_t>(operand.integer);
}

constexpr std::int64_t kMostOffset = std::int64_t{1} << 30;  // of an address from its register
constexpr std::uint64_t kMostBytes = 1 << 20;                // of one access

class EffectFinder {
 public:
  EffectFinder(const ptx::Module& module, const ptx::Function& function,
               const Instruction& instruction)
      : module_(module), function_(function), instruction_(instruction) {}

  InstructionEffect find() {
    const std::string_view opcode = instruction_.opcode;
    effect_.reads_warp = is_one_of(opcode, {"mma", "wmma", "ldmatrix", "stmatrix", "movmatrix"});
    if (is_one_of(opcode, {"ld", "ldu", "st", "atom", "red"})) {
      move();
    } else if (opcode == "cp") {
      copy();
    } else if (opcode == "mbarrier") {
      barrier_object();
    } else if (opcode == "wmma") {
      matrix();
    } else if (is_one_of(opcode, {"ldmatrix", "stmatrix"})) {
      matrix_rows();
    } else if (is_one_of(opcode, {"prefetch", "prefetchu", "applypriority", "discard"})) {
      hint();
    } else if (is_one_of(opcode, {"tex", "tld4", "txq", "suq", "suld", "sust", "sured"})) {
      texture();
    } else if (opcode == "trap") {
      effect_.end = function_.name.contains("assertfail") ? Violation::kAssert : Violation::kTrap;
    } else if (opcode == "brkpt") {
      effect_.end = Violation::kBreakpoint;
    } else if (opcode == "brx") {
      jump();
    } else if (opcode == "call") {
      call();
    } else if (is_block_barrier(instruction_)) {
      block_barrier();
    } else if (!is_harmless()) {
      refuse(fmt::format("has the instruction {}, which the fence does not know", opcode));
    }
    return std::move(effect_);
  }

 private:
  bool is_harmless() const {
    const std::string_view opcode = instruction_.opcode;
    if (only_computes(instruction_)) return true;
    if (instruction_.has("cc"))
      return is_one_of(opcode, {"add", "addc", "sub", "subc", "mad", "madc"});
    // createpolicy only names its address.
    const bool is_known = std::ranges::find(kHarmless, opcode) != kHarmless.end();
    return is_known && (address(0) == nullptr || opcode == "createpolicy");
  }

  void refuse(std::string_view why) {
    effect_.accesses.clear();
    effect_.why_not = fmt::format("line {}: {}", instruction_.line, why);
  }

  const Operand* address(std::size_t nth) const {
    for (const Operand& operand : instruction_.operands) {
      if (operand.kind == Operand::Kind::kAddress && nth-- == 0) return &operand;
    }
    return nullptr;
  }

  /// Takes an access by the n-th operand in brackets.
  void add(std::size_t nth, Access access) {
    access.address = address(nth);
    if (!effect_.why_not.empty()) return;
    if (access.address == nullptr || access.address->parts.size() > 1) {
      return refuse("has an address that the fence cannot read");
    }
    const std::int64_t offset = access.address->integer;
    if (offset < -kMostOffset || offset > kMostOffset)
      return refuse("has an address that is too far from a register");
    if (access.amount != nullptr) {
      if (const auto number = number_of(*access.amount)) {
        const std::uint64_t more = std::uint64_t{*number} * access.scale;
        if (more > kMostBytes || (access.aligns_amount && more % access.align != 0))
          return refuse("has a size that the fence cannot read");
        access.bytes += static_cast<std::uint32_t>(more);
        access.amount = nullptr;
        if (access.bytes == 0) return;
      } else if (!is_register(function_, *access.amount) || !is_word(*access.amount)) {
        return refuse("has a size that the fence cannot read");
      }
    }
    effect_.accesses.push_back(access);
  }

  bool is_word(const Operand& operand) const {
    const bool is_local = operand.reference == Reference::kLocal;
    const auto& variable =
        is_local ? function_.variables[operand.index] : function_.parameters[operand.index];
    return ptx::type_bytes(variable.type) == 4;
  }

  void move() {
    const bool is_parameter = std::ranges::any_of(
        instruction_.modifiers, [](std::string_view word) { return word.starts_with("param"); });
    if (is_parameter) return parameter();
    if (instruction_.has("async") || instruction_.has("bulk")) {
      return refuse("has an asynchronous access, which the fence does not know");
    }
    const std::uint32_t bytes = ptx::type_bytes(instruction_.type()) * vector_of(instruction_);
    if (bytes == 0) return refuse("has an access of unknown size");
    const bool loads = instruction_.opcode == "ld" || instruction_.opcode == "ldu";
    add(0, {.space = spaces_of(instruction_).front(),
            .bytes = bytes,
            .align = bytes,
            .writes = !loads});
  }

  /// By name and within the parameter they need no check.
  void parameter() {
    const Operand* at = address(0);
    if (at == nullptr || at->parts.size() != 1) return refuse("reads a parameter by an address");
    const Operand& base = at->parts[0];
    const ptx::Variable* variable = nullptr;
    if (base.reference == Reference::kParameter) variable = &function_.parameters[base.index];
    if (base.reference == Reference::kReturn) variable = &function_.returns[base.index];
    if (base.reference == Reference::kLocal) variable = &function_.variables[base.index];
    if (variable == nullptr || variable->space != ptx::Space::kParam) {
      return refuse("accesses a parameter by an address in a register");
    }
    const std::uint64_t bytes = ptx::type_bytes(instruction_.type()) * vector_of(instruction_);
    const auto offset = static_cast<std::uint64_t>(at->integer);
    if (bytes == 0 || offset > variable->bytes || bytes > variable->bytes - offset) {
      refuse("accesses a parameter beyond its end");
    }
  }

  void copy() {
    if (instruction_.has("commit_group") || instruction_.has("wait_group") ||
        instruction_.has("wait_all")) {
      return;
    }
    if (instruction_.has("mbarrier") && instruction_.has("arrive")) return barrier_object();
    if (instruction_.has("tensor")) return refuse("copies by a tensor map");
    if (instruction_.has("multicast::cluster")) return refuse("copies to several blocks");
    if (instruction_.has("prefetch")) return hint();
    const auto spaces = spaces_of(instruction_);
    if (!instruction_.has("async") || spaces.size() != 2 || instruction_.operands.size() < 3) {
      return refuse("has a copy that the fence does not know");
    }
    instruction_.has("bulk") ? bulk_copy(spaces) : small_copy(spaces);
  }

  void bulk_copy(const std::vector<MemorySpace>& spaces) {
    if (instruction_.has("ignore_oob")) return refuse("has a copy that the fence does not know");
    Access access{
        .align = kBulkAlignment, .amount = &instruction_.operands[2], .aligns_amount = true};
    access.space = spaces[1];
    add(1, access);
    access.space = spaces[0];
    access.writes = true;
    add(0, access);
    if (address(2) != nullptr) {
      add(2, {.space = MemorySpace::kShared,
              .bytes = kBarrierObjectBytes,
              .align = kBarrierObjectBytes,
              .writes = true});
    }
  }

  /// With a size of the source in a register: it may be less, and none at all.
  void small_copy(const std::vector<MemorySpace>& spaces) {
    const auto& operands = instruction_.operands;
    const auto size = number_of(operands[2]);
    if (!size || *size == 0 || *size > 16) return refuse("has a copy of unknown size");
    add(0, {.space = spaces[0], .bytes = *size, .align = *size, .writes = true});
    Access source{.space = spaces[1], .bytes = *size, .align = *size};
    const bool is_less = operands.size() > 3 && !instruction_.has("L2::cache_hint");
    if (operands.size() > 3 && instruction_.has("L2::cache_hint") && operands.size() != 4) {
      return refuse("has a copy that the fence does not know");
    }
    if (is_less) {
      const Operand& amount = operands[3];
      const bool is_predicate = amount.reference == Reference::kLocal &&
                                function_.variables[amount.index].type == ptx::Type::kPred;
      if (is_predicate) return refuse("has a copy that may ignore its source");
      source.bytes = 0;
      source.amount = &amount;
      source.most = *size;
    }
    add(1, source);
  }

  void barrier_object() {
    if (instruction_.has("pending_count")) return;
    const bool is_remote = instruction_.has("remote") || spaces_of(instruction_).size() > 1;
    if (is_remote) return refuse("has a barrier in another block");
    add(0, {.space = spaces_of(instruction_).front(),
            .bytes = kBarrierObjectBytes,
            .align = kBarrierObjectBytes,
            .writes = true});
  }

  void matrix() {
    const bool loads = instruction_.has("load");
    if (!loads && !instruction_.has("store")) return;  // wmma.mma
    std::uint32_t m = 0, n = 0, k = 0;
    for (const std::string_view word : instruction_.modifiers) read_shape(word, m, n, k);
    const bool is_a = instruction_.has("a"), is_b = instruction_.has("b");
    const std::uint32_t across = is_b ? k : m;
    const std::uint32_t along = is_a ? k : n;
    const bool by_rows = instruction_.has("row");
    const std::uint32_t lines = by_rows ? across : along;
    const std::uint32_t line = by_rows ? along : across;
    const std::uint32_t bits = element_bits();
    if (lines == 0 || line == 0 || bits == 0) return refuse("has a matrix of unknown shape");
    if (bits < 8) return refuse("has a matrix of bits, which the fence does not know");
    Access access{.space = spaces_of(instruction_).front(),
                  .bytes = line * bits / 8,
                  .align = kMatrixAlignment,
                  .writes = !loads,
                  .scale = (lines - 1) * bits / 8,
                  .aligns_amount = true};
    const std::size_t place = 2;  // of the stride: result or address, then the other one
    if (instruction_.operands.size() > place) {
      access.amount = &instruction_.operands[place];
    } else {
      access.bytes *= lines;
    }
    add(0, access);
  }

  static void read_shape(std::string_view word, std::uint32_t& m, std::uint32_t& n,
                         std::uint32_t& k) {
    std::uint32_t found[3] = {};
    std::size_t at = 0;
    for (const char letter : std::string_view("mnk")) {
      std::uint32_t& size = found[at++];
      if (!word.starts_with(letter)) return;
      const auto end = std::from_chars(word.data() + 1, word.data() + word.size(), size);
      if (end.ec != std::errc()) return;
      word.remove_prefix(static_cast<std::size_t>(end.ptr - word.data()));
    }
    if (!word.empty()) return;
    m = found[0];
    n = found[1];
    k = found[2];
  }

  std::uint32_t element_bits() const {
    for (const std::string_view word : instruction_.modifiers) {
      if (is_one_of(word, {"s4", "u4"})) return 4;
      if (word == "b1") return 1;
    }
    return 8 * ptx::type_bytes(instruction_.type());
  }

  void matrix_rows() {
    const std::uint32_t rows = instruction_.has("x4") ? 32 : instruction_.has("x2") ? 16 : 8;
    const bool loads = instruction_.opcode == "ldmatrix";
    add(0, {.space = spaces_of(instruction_).front(),
            .bytes = kMatrixRowBytes,
            .align = kMatrixRowBytes,
            .writes = !loads,
            .lanes = rows});
  }

  void hint() {
    const auto space = spaces_of(instruction_).front();
    effect_.is_hint = space == MemorySpace::kGlobal || space == MemorySpace::kGeneric;
    // What is in memory then may be what was there before it was cleared for this session.
    effect_.is_dropped = instruction_.opcode == "discard";
    if (!effect_.is_hint || effect_.is_dropped) return;
    const bool is_large = instruction_.opcode == "applypriority";
    Access access{.space = space,
                  .bytes = is_large ? kPriorityBytes : 1,
                  .align = is_large ? kPriorityBytes : 1};
    if (instruction_.opcode == "cp") {
      if (instruction_.operands.size() < 2) return refuse("has a hint of unknown size");
      access.amount = &instruction_.operands[1];
      access.bytes = 0;
      access.align = kBulkAlignment;
    }
    add(0, access);
  }

  void texture() {
    const Operand* at = address(0);
    if (at == nullptr || at->parts.empty() || at->parts.size() > 2) {
      return refuse("reads a texture in a way that the fence does not know");
    }
    if (at->parts.size() == 2 && at->parts[1].kind == Operand::Kind::kSymbol &&
        at->parts[0].kind != Operand::Kind::kVector && instruction_.opcode.starts_with("t") &&
        !is_register(function_, at->parts[1])) {
      return refuse("reads a texture with a sampler of its own");
    }
    if (!is_register(function_, at->parts[0]))
      return refuse("reads a texture or surface by its name");
    effect_.handle = &at->parts[0];
    effect_.traps_outside =
        instruction_.has("trap") || (is_one_of(instruction_.opcode, {"suld", "sust", "sured"}) &&
                                     !instruction_.has("clamp") && !instruction_.has("zero"));
    const bool is_written_out = instruction_.has("trap");
    if (effect_.traps_outside && !is_written_out) refuse("has a surface access without a mode");
  }

  void jump() {
    if (stray_branch(function_) != nullptr || instruction_.operands.size() != 2) {
      return refuse("jumps to a name that is no label of its function");
    }
    effect_.jumps_by_index = true;
  }

  void block_barrier() {
    const auto& operands = instruction_.operands;
    const bool reduces = instruction_.has("red");
    const std::size_t first = reduces ? 1 : 0;
    const std::size_t end = operands.size() - (reduces ? 1 : 0);
    if (operands.size() < 1 + 2 * first || end - first > 2) {
      return refuse("has a barrier that the fence does not know");
    }
    const auto look_at = [&](const Operand& operand, std::uint32_t unit, std::uint32_t most,
                             const Operand*& checked) {
      const auto number = number_of(operand);
      if (number && *number % unit == 0 && *number <= most) return;
      if (number || !is_register(function_, operand))
        return refuse("has a barrier that there cannot be");
      checked = &operand;
    };
    look_at(operands[first], 1, kMostBarrier, effect_.barrier);
    if (end - first == 2) look_at(operands[first + 1], 32, kMostThreads, effect_.barrier_threads);
  }

  void call() {
    const auto target =
        std::ranges::find(instruction_.operands, Operand::Kind::kSymbol, &Operand::kind);
    if (target == instruction_.operands.end() || target->reference != Reference::kFunction) {
      return refuse("calls a function by its address");
    }
    const ptx::Function& callee = module_.functions[target->index];
    const bool has_body = module_.find_function(callee.name) != nullptr &&
                          module_.find_function(callee.name)->has_body;
    effect_.calls = has_body;
    if (has_body) return;
    if (callee.name == "__assertfail") {
      effect_.end = Violation::kAssert;
      return;
    }
    refuse(fmt::format("calls {}, which is not in the module", callee.name));
  }

  const ptx::Module& module_;
  const ptx::Function& function_;
  const Instruction& instruction_;
  InstructionEffect effect_;
};

}  // namespace

bool takes_parameter_address(const ptx::Function& function) {
  return std::ranges::any_of(function.instructions, [](const ptx::Instruction& instruction) {
    return instruction.opcode == "cvta" && instruction.has("param");
  });
}

InstructionEffect effect_of(const ptx::Module& module, const ptx::Function& function,
                            const Instruction& instruction) {
  return EffectFinder(module, function, instruction).find();
}

}  // namespace slate::injector
