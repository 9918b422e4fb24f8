#include "injector/analysis/uniformity.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "injector/analysis/facts.h"

namespace slate::injector {
namespace {

using ptx::Instruction;
using ptx::Operand;
using ptx::Reference;

// Their result depends on nothing but their operands. Whatever is not here counts as different in
// every thread.
constexpr std::array<std::string_view, 59> kPure = {
    "abs",  "add",      "and",      "bfe",  "bfi",       "bfind", "bmsk",  "brev",     "clz",
    "cnot", "copysign", "cos",      "cvt",  "cvta",      "div",   "dp2a",  "dp4a",     "ex2",
    "fma",  "fns",      "isspacep", "lg2",  "lop3",      "mad",   "mad24", "max",      "min",
    "mov",  "mul",      "mul24",    "neg",  "not",       "or",    "popc",  "prmt",     "rcp",
    "rem",  "rsqrt",    "sad",      "selp", "set",       "setp",  "shf",   "shl",      "shr",
    "sin",  "slct",     "sqrt",     "sub",  "szext",     "tanh",  "testp", "vabsdiff", "vadd",
    "vmad", "vsub",     "xor",      "mapa", "getctarank"};

constexpr std::int64_t kMostOffset = 1 << 30;  // that a comparison of a place may have

/// What sets the carry flag is not: it has a second result, which addc and its like read.
bool is_pure(const Instruction& instruction) {
  return std::ranges::find(kPure, instruction.opcode) != kPure.end() && !instruction.has("cc");
}

constexpr std::array<std::string_view, 26> kNoResult = {"st",
                                                        "red",
                                                        "bra",
                                                        "brx",
                                                        "membar",
                                                        "fence",
                                                        "ret",
                                                        "exit",
                                                        "trap",
                                                        "brkpt",
                                                        "prefetch",
                                                        "prefetchu",
                                                        "cp",
                                                        "sust",
                                                        "sured",
                                                        "stmatrix",
                                                        "nanosleep",
                                                        "pmevent",
                                                        "griddepcontrol",
                                                        "setmaxnreg",
                                                        "discard",
                                                        "applypriority",
                                                        "tensormap",
                                                        "stackrestore",
                                                        "bar.warp",
                                                        "multimem"};

}  // namespace

Scope join(Scope a, Scope b) {
  if (a == Scope::kThread || b == Scope::kThread) return Scope::kThread;
  if (a == Scope::kWholeWarps || b == Scope::kWholeWarps) return Scope::kWholeWarps;
  if (a == Scope::kWarpRows || b == Scope::kWarpRows) return Scope::kWarpRows;
  return std::max(a, b);
}

bool only_computes(const Instruction& instruction) {
  return is_pure(instruction);
}

bool may_be_repeated(const Instruction& instruction) {
  if (only_computes(instruction)) return true;
  const auto& operands = instruction.operands;
  if (instruction.opcode != "ld" || instruction.has("volatile") || operands.size() != 2)
    return false;
  if (!instruction.has("param") && !instruction.has("const")) return false;
  // An address in a register may be anything where the others' conditions do not hold.
  const auto& parts = operands[1].parts;
  return !parts.empty() &&
         (parts[0].reference == Reference::kParameter || parts[0].reference == Reference::kGlobal);
}

bool has_result(const Instruction& instruction) {
  const std::string_view opcode = instruction.opcode;
  if (opcode == "bar" || opcode == "barrier") return instruction.has("red");
  // call (results), function, (arguments)
  if (opcode == "call") {
    return !instruction.operands.empty() && instruction.operands[0].kind == Operand::Kind::kList;
  }
  if (opcode == "wmma") return !instruction.has("store");
  if (opcode == "mbarrier") return !instruction.has("init") && !instruction.has("inval");
  return std::ranges::find(kNoResult, opcode) == kNoResult.end();
}

Uniformity::Uniformity(const ptx::Function& function, const ControlFlow& flow,
                       Surroundings surroundings)
    : function_(function),
      flow_(flow),
      surroundings_(surroundings),
      registers_(function.variables.size(), Scope::kBlock),
      definitions_(function.variables.size(), kNever),
      offsets_(function.variables.size(), 0),
      places_(function.variables.size(), Place::kUnknown),
      constants_(function.variables.size()),
      lane_masks_(function.variables.size(), false),
      uses_(function.variables.size()),
      apart_(flow.blocks().size(), Scope::kBlock),
      branches_(flow.blocks().size(), Scope::kBlock),
      way_(flow.blocks().size(), 0),
      one_way_(flow.blocks().size(), 0) {
  find_definitions();
  find_constants();
  find_places();
  find_lane_masks();
  find_uses();
  const auto count = static_cast<std::uint32_t>(function.instructions.size());
  for (bool changed = true; changed && flow.charge(count);) {
    changed = false;
    for (std::uint32_t i = 0; i < count; ++i) changed |= visit(i);
    for (std::uint32_t b = 0; b < flow.blocks().size(); ++b) changed |= spread(b);
  }
}

Scope Uniformity::of(const Operand& operand) const {
  using Kind = Operand::Kind;
  switch (operand.kind) {
    case Kind::kInteger:
    case Kind::kFloat:
    case Kind::kSink:
      return Scope::kBlock;
    case Kind::kSpecial: {
      constexpr std::array<std::string_view, 12> kShared = {
          "%ntid.x",   "%ntid.y",   "%ntid.z",   "%ctaid.x", "%ctaid.y",           "%ctaid.z",
          "%nctaid.x", "%nctaid.y", "%nctaid.z", "WARP_SZ",  "%dynamic_smem_size", "%gridid"};
      if (std::ranges::find(kShared, operand.text) != kShared.end()) return Scope::kBlock;
      return Scope::kThread;
    }
    case Kind::kSymbol:
      if (is_local(operand)) {
        // The address of local memory is the same for all threads, what is there is not.
        const bool is_memory = function_.variables[operand.index].space == ptx::Space::kLocal;
        return is_memory ? Scope::kThread : registers_[operand.index];
      }
      if (operand.reference == Reference::kParameter && surroundings_.parameters_vary)
        return Scope::kThread;
      // What a function returns is a register of its own; and nobody knows what an unknown name is.
      if (operand.reference == Reference::kReturn || operand.reference == Reference::kNone) {
        return Scope::kThread;
      }
      return Scope::kBlock;  // an address, or a parameter of the kernel
    default: {
      Scope all = Scope::kBlock;
      for (const Operand& part : operand.parts) all = join(all, of(part));
      return all;
    }
  }
}

std::vector<std::uint32_t> Uniformity::parting_branches() const {
  std::vector<std::uint32_t> found;
  for (std::uint32_t b = 0; b < branches_.size(); ++b) {
    if (branches_[b] == Scope::kThread) found.push_back(b);
  }
  return found;
}

bool Uniformity::is_lane_mask(const Operand& operand, std::uint32_t use) const {
  if (!is_local(operand) || !lane_masks_[operand.index]) return false;
  const std::uint32_t made = definitions_[operand.index];
  const std::uint32_t from = flow_.block_of(made);
  const std::uint32_t to = flow_.block_of(use);
  return from == to ? made < use : flow_.leads_once(from, to);
}

Scope Uniformity::inputs_of(const Instruction& instruction) const {
  Scope all = Scope::kBlock;
  for (std::size_t i = has_result(instruction) ? 1 : 0; i < instruction.operands.size(); ++i) {
    all = join(all, of(instruction.operands[i]));
  }
  return all;
}

/// For comparisons and shifts of the thread's place whose result is the same in a whole warp (`tid
/// < 64`, `tid >> 5`): under which condition.
std::optional<Scope> Uniformity::constant_per_warp(const Instruction& instruction) const {
  const auto& operands = instruction.operands;
  if (operands.size() != 3) return std::nullopt;
  const auto limit = constant(operands[2]);
  if (!limit) return std::nullopt;
  // `tid / 32 == 0` is written as tid + 31 <= 62, unsigned.
  const bool compares = instruction.opcode == "setp" && is_local(operands[1]);
  const Place place = compares ? places_[operands[1].index] : place_of(operands[1]);
  const std::int64_t offset = compares ? offsets_[operands[1].index] : 0;
  const auto scope = scope_of_warps(place);
  if (!scope) return std::nullopt;
  // Unsigned, tid - 10 < 22 means two limits, of which 10 parts a warp.
  if (offset < 0 && !divides_warp(offset)) return std::nullopt;
  if (offset >= kMostOffset) return std::nullopt;  // the sum may overflow
  const auto if_true = [&](bool same) { return same ? scope : std::nullopt; };
  // Only its last bits matter where it may have too many.
  const auto difference = static_cast<std::uint64_t>(*limit) - static_cast<std::uint64_t>(offset);
  const auto value = static_cast<std::int64_t>(difference);
  if (instruction.opcode == "shr") return if_true(value >= 5);
  if (instruction.opcode == "and") return if_true(divides_warp(value));
  // What follows counts on a number that is not negative.
  if (place == Place::kTiled) return std::nullopt;
  if (instruction.opcode == "div") return if_true(value > 0 && divides_warp(value));
  if (instruction.opcode != "setp" || instruction.modifiers.empty()) return std::nullopt;
  const std::string_view relation = instruction.modifiers[0];
  if (relation == "lt" || relation == "ge" || relation == "lo" || relation == "hs") {
    return if_true(divides_warp(value));
  }
  if (relation == "gt" || relation == "le" || relation == "hi" || relation == "ls") {
    return if_true(divides_warp(static_cast<std::int64_t>(difference + 1)));
  }
  return std::nullopt;
}

/// Under which condition a warp's threads have the same such number but for its last five bits.
std::optional<Scope> Uniformity::scope_of_warps(Place place) {
  switch (place) {
    case Place::kTidX:
    case Place::kRow:
    case Place::kTiled:
      return Scope::kWarpRows;
    case Place::kLine:
      return Scope::kWholeWarps;
    case Place::kRank:
      return Scope::kWarp;
    default:
      return std::nullopt;
  }
}

/// Threads that read one address together read one value: a write between their reads would be a
/// data race, unless something else than the barriers of the block gives threads an order. What
/// nobody writes while the kernel runs is the same for all in any case.
Scope Uniformity::loaded_by(const Instruction& load) const {
  if (load.has("local") || load.has("param::func") || may_race(load)) return Scope::kThread;
  if (load.has("param") || load.has("param::entry")) {
    const auto& parts = load.operands[1].parts;
    const bool own = !parts.empty() && parts[0].reference == Reference::kParameter;
    return own && !surroundings_.parameters_vary ? inputs_of(load) : Scope::kThread;
  }
  const bool is_written = !load.has("const") && !load.has("nc");
  return is_written && surroundings_.takes_turns ? Scope::kThread : inputs_of(load);
}

Scope Uniformity::result_of(const Instruction& instruction) const {
  const std::string_view opcode = instruction.opcode;
  const auto& operands = instruction.operands;
  if (const auto scope = constant_per_warp(instruction)) return *scope;
  if (is_pure(instruction)) return inputs_of(instruction);
  if (opcode == "ld" && operands.size() == 2) return loaded_by(instruction);
  if (is_block_barrier(instruction)) {
    // One that reduces; of some threads only, or where each names its own, there are several.
    const bool is_one = barrier_kind(instruction).whole_block && constant(operands[1]);
    return is_one ? Scope::kBlock : Scope::kThread;
  }
  if (opcode == "vote" || opcode == "redux") {
    return names_whole_warp(instruction) ? Scope::kWarp : Scope::kThread;
  }
  if (opcode == "shfl" && instruction.has("idx") && operands.size() >= 4) {
    // One lane's value for all: only with a width of the whole warp.
    const bool whole = constant(operands[3]) == 31;
    const Scope lane = of(operands[2]);
    if (whole && names_whole_warp(instruction) && lane != Scope::kThread) {
      return join(lane, Scope::kWarp);
    }
  }
  return Scope::kThread;
}

bool Uniformity::raise(const Operand& operand, Scope scope) {
  if (!is_local(operand)) return false;
  Scope& present = registers_[operand.index];
  const Scope joined = join(present, scope);
  if (joined == present) return false;
  present = joined;
  return true;
}

bool Uniformity::visit(std::uint32_t index) {
  const Instruction& instruction = function_.instructions[index];
  if (!has_result(instruction)) return false;
  Scope scope = result_of(instruction);
  if (instruction.guard) scope = join(scope, of(*instruction.guard));
  bool changed = false;
  for_each_result(instruction, [&](const Operand& result) { changed |= raise(result, scope); });
  return changed;
}

bool Uniformity::spread(std::uint32_t block) {
  const auto& code = flow_.blocks()[block];
  const Instruction& last = function_.instructions[code.end - 1];
  if (code.successors.size() + (code.exits ? 1 : 0) < 2) return false;
  // Two ways on: a guarded branch, a guarded way out, or a jump through a table.
  Scope scope = Scope::kBlock;
  if (last.guard && (last.opcode == "bra" || last.opcode == "brx" || leaves(last))) {
    scope = of(*last.guard);
  }
  if (last.opcode == "brx") scope = join(scope, inputs_of(last));
  if (scope == Scope::kBlock || join(scope, branches_[block]) == branches_[block]) return false;
  branches_[block] = join(scope, branches_[block]);
  const std::vector<std::uint32_t> influenced = flow_.influence_of(block);
  for (const std::uint32_t b : influenced) apart_[b] = join(apart_[b], scope);
  part_values(block, influenced, scope);
  return true;
}

void Uniformity::find_uses() {
  const auto add = [&](const Operand& operand, std::uint32_t block) {
    if (!is_local(operand)) return;
    auto& blocks = uses_[operand.index];
    if (blocks.empty() || blocks.back() != block) blocks.push_back(block);
  };
  for (std::uint32_t i = 0; i < function_.instructions.size(); ++i) {
    const Instruction& instruction = function_.instructions[i];
    const std::uint32_t block = flow_.block_of(i);
    if (instruction.guard) add(*instruction.guard, block);
    // A result is not a use, unless it is an address or the like.
    bool is_first = has_result(instruction);
    for (const Operand& operand : instruction.operands) {
      const bool is_result = is_first && operand.kind != Operand::Kind::kAddress;
      is_first = false;
      if (is_result) continue;
      add(operand, block);
      for_each_operand(operand.parts, [&](const Operand& part) { add(part, block); });
    }
  }
}

/// What is written between a parting and the meeting differs for those who read it after the
/// meeting, or where two of the ways have joined already.
void Uniformity::part_values(std::uint32_t branch, const std::vector<std::uint32_t>& influenced,
                             Scope scope) {
  ++parting_;
  for (const std::uint32_t b : influenced) one_way_[b] = parting_;
  for (const std::uint32_t successor : flow_.blocks()[branch].successors) {
    for (const std::uint32_t b : flow_.way_from(branch, successor)) {
      if (std::exchange(way_[b], parting_) == parting_) one_way_[b] = 0;
    }
  }
  for (const std::uint32_t b : influenced) {
    const ControlFlow::Block& code = flow_.blocks()[b];
    if (!flow_.charge(code.end - code.first)) return;
    for (std::uint32_t i = code.first; i < code.end; ++i) {
      const auto part = [&](const Operand& result) {
        if (!is_local(result)) return;
        if (join(registers_[result.index], scope) == registers_[result.index]) return;
        const auto& uses = uses_[result.index];
        flow_.charge(uses.size());
        const bool is_read =
            std::ranges::any_of(uses, [&](std::uint32_t use) { return one_way_[use] != parting_; });
        if (is_read) raise(result, scope);
      };
      for_each_result(function_.instructions[i], part);
    }
  }
}

}  // namespace slate::injector
