#include "injector/fence/clearing.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <set>
#include <string_view>
#include <utility>

#include "injector/analysis/control_flow.h"
#include "injector/analysis/effort.h"
#include "injector/analysis/register_accesses.h"
#include "injector/analysis/registers.h"
#include "injector/fence/member_text.h"
#include "injector/forms/ptx_template.h"

namespace slate::injector {
namespace {

using ptx::Instruction;
using ptx::Operand;
using ptx::Reference;
using ptx::Space;
using ptx::Variable;

// Bytes of a local variable that are cleared without a loop.
constexpr std::uint64_t kUnrolled = 256;
// Stores that clear parameters of one function: the text of any author must not grow without bound.
constexpr std::uint64_t kMostStores = 1 << 14;

/// One store of zeros: ~fc has 32 of their bits, ~fz 64.
struct Store {
  std::uint64_t bytes;
  std::string_view type;
  std::string_view value;
};
constexpr Store kStores[] = {
    {16, "v2.b64", "{~fz, ~fz}"}, {8, "b64", "~fz"}, {4, "b32", "~fc"}, {1, "b8", "~fc"}};

/// The widest store that `align` allows and of which at least one fits.
const Store& store_for(std::uint64_t align, std::uint64_t bytes) {
  return *std::ranges::find_if(kStores, [&](const Store& each) {
    return each.bytes == 1 || (align % each.bytes == 0 && each.bytes <= bytes);
  });
}

/// Stores zeros at `name` from `first` to `end`.
std::string zeros(std::string_view space, std::string_view name, std::uint64_t align,
                  std::uint64_t first, std::uint64_t end) {
  std::string text;
  while (first < end) {
    const Store& store = store_for(std::gcd(align, first), end - first);
    text += fmt::format("\tst.{}.{} [{}+{}], {};\n", space, store.type, name, first,
                        expand(store.value));
    first += store.bytes;
  }
  return text;
}

/// The first place behind `place` in front of an instruction, its labels and its braces.
std::uint32_t beginning_behind(const ptx::Function& function, std::uint32_t place) {
  std::uint32_t first = 0;
  while (first + 1 < function.instructions.size() &&
         function.instructions[first].span.begin < place) {
    ++first;
  }
  std::uint32_t beginning = function.instructions[first].span.begin;
  const auto look_at = [&](std::uint32_t at, std::uint32_t target) {
    if (target == first && at >= place) beginning = std::min(beginning, at);
  };
  for (const ptx::Label& label : function.labels) look_at(label.span.begin, label.target);
  for (const ptx::InnerScope& scope : function.scopes) look_at(scope.span.begin, scope.first);
  return beginning;
}

/// Whether a form has made the name, which may stand behind % or $.
bool is_own_name(std::string_view name) {
  return name.find(kReservedPrefix) <= 1;
}

/// Whether the instruction names nothing of the program's.
bool is_own(const Instruction& instruction) {
  bool is_own = true;
  const auto look_at = [&](const Operand& operand) {
    is_own &= operand.kind != Operand::Kind::kSymbol || is_own_name(operand.text);
  };
  if (instruction.guard) look_at(*instruction.guard);
  for_each_operand(instruction.operands, look_at);
  return is_own;
}

class Clearer {
 public:
  Clearer(const ptx::Function& function, const Plan& plan)
      : function_(function), plan_(plan), entry_(entry_of(function)) {}

  Clearing make() {
    clear_registers();
    clear_locals();
    for (const Variable& variable : function_.returns) {
      if (variable.space == Space::kParam) add(zero_parameter(variable), false);
    }
    clear_arguments();
    place_late();
    return std::move(result_);
  }

 private:
  void add(const std::string& text, bool is_late) {
    add_to(is_late ? late_ : result_.beginning, text);
  }

  static void add_to(std::string& all, const std::string& text) {
    if (!text.empty() && all.empty()) all = zero_registers();
    all += text;
  }

  static std::string zero_registers() { return expand("\tmov.b32 ~fc, 0;\n\tmov.b64 ~fz, 0;\n"); }

  std::string zero_parameter(const Variable& variable) {
    const std::uint64_t align = std::max(1U, variable.align);
    stores_ += variable.bytes / std::min<std::uint64_t>(align, 16) + 1;
    if (stores_ > kMostStores) {
      refuse(fmt::format("line {}: has more parameters than can be cleared", variable.line));
      return {};
    }
    return zeros("param", variable.name, align, 0, variable.bytes);
  }

  void refuse(std::string why) {
    if (result_.why_not.empty()) result_.why_not = std::move(why);
  }

  /// Whether it is declared behind the function's beginning, as all of a program's names are in a
  /// form.
  bool is_late(const Variable& variable) {
    if (variable.span.end <= entry_) return false;
    late_from_ = std::max(late_from_, variable.span.end);
    return true;
  }

  /// Where the program's own code begins in a form, for each block that the form carries out.
  void place_late() {
    if (late_.empty()) return;
    for (const Instruction& instruction : function_.instructions) {
      if (instruction.span.begin >= late_from_) break;
      if (is_own(instruction)) continue;
      return refuse(fmt::format(
          "line {}: behind it stand declarations of what may be read before it is written",
          instruction.line));
    }
    result_.edits.push_back(
        ptx::insert_at(beginning_behind(function_, late_from_), "\n" + late_ + "\t"));
  }

  /// All registers that are live at the beginning.
  void clear_registers() {
    Effort effort = Effort::for_text(function_.span.end - function_.span.begin);
    const Registers registers(function_);
    const ControlFlow flow(function_);
    const RegisterAccesses accesses(function_, flow, registers);
    RegisterLiveness liveness(flow, accesses, effort);
    std::uint32_t number = 0;
    for (const auto* variables : {&function_.variables, &function_.returns}) {
      for (const Variable& variable : *variables) {
        if (variable.space != Space::kReg) continue;
        for (std::uint32_t i = 0; i < variable.vector; ++i, ++number) {
          if (!liveness.is_live_at_beginning(number)) continue;
          clear_register(variable, i, variables == &function_.variables);
        }
      }
    }
    if (liveness.is_live_at_beginning(accesses.carry()))
      add(expand("\tadd.cc.u32 ~fc, ~fc, 0;\n"), false);
  }

  static std::string zero_of(std::string_view name, ptx::Type type) {
    if (type == ptx::Type::kPred) return fmt::format("\tmov.pred {}, 0;\n", name);
    const std::uint32_t bytes = ptx::type_bytes(type);
    if (bytes == 1) return filled("\tcvt.u8.u32 {}, ~fc;\n", name);
    if (bytes == 16) return filled("\tmov.b128 {}, {{~fz, ~fz}};\n", name);
    return fmt::format("\tmov.b{} {}, 0;\n", 8 * bytes, name);
  }

  void clear_register(const Variable& variable, std::uint32_t component, bool is_inside) {
    std::string name(variable.name);
    if (variable.vector > 1) name.append({'.', "xyzw"[component]});
    const std::string text = zero_of(name, variable.type);
    if (is_inside && is_in_braces(variable)) {
      result_.edits.push_back(ptx::insert_at(variable.span.end, "\n" + zero_registers() + text));
    } else {
      add(text, is_inside && is_late(variable));
    }
  }

  /// Whether it is declared in inner braces. What it holds where they begin is not defined.
  bool is_in_braces(const Variable& variable) const {
    return std::ranges::any_of(function_.scopes, [&](const ptx::InnerScope& scope) {
      return scope.span.begin <= variable.span.begin && variable.span.end <= scope.span.end;
    });
  }

  void clear_locals() {
    if (!plan_.local_use) return;
    const std::uint32_t place = *plan_.local_use;
    std::string at_use;
    for (const Variable& variable : function_.variables) {
      if (variable.space != Space::kLocal) continue;
      std::string& early = place == 0 ? result_.beginning : at_use;
      clear_local(is_late(variable) ? late_ : early, variable);
    }
    if (at_use.empty()) return;
    result_.edits.push_back(
        ptx::insert_at(function_.instructions[place].span.begin, "\n" + at_use + "\t"));
  }

  void clear_local(std::string& all, const Variable& variable) {
    const std::uint64_t align = std::max(1U, variable.align);
    const Store& store = store_for(align, variable.bytes);
    std::uint64_t looped = 0;
    if (variable.bytes > kUnrolled) {
      looped = variable.bytes - variable.bytes % store.bytes;
      add_to(all,
             filled("\tmov.u64 ~fa, {0};\n\tadd.u64 ~fl, ~fa, {1};\n$fzero{2}:\n"
                    "\tst.local.{3} [~fa], {4};\n\tadd.u64 ~fa, ~fa, {5};\n"
                    "\tsetp.lt.u64 ~fp, ~fa, ~fl;\n\t@~fp bra $fzero{2};\n",
                    variable.name, looped, loops_, store.type, expand(store.value), store.bytes));
      ++loops_;
    }
    add_to(all, zeros("local", variable.name, align, looped, variable.bytes));
  }

  /// Those that a call may pass without that a store has written all of them: one that surely comes
  /// in front of the call, as no label stands between the two.
  void clear_arguments() {
    std::set<std::uint32_t> labelled, written, open;  // instructions; indices of variables
    for (const ptx::Label& label : function_.labels) labelled.insert(label.target);
    for (std::uint32_t i = 0; i < function_.instructions.size(); ++i) {
      const Instruction& instruction = function_.instructions[i];
      if (labelled.contains(i)) written.clear();
      if (instruction.opcode == "call") {
        for (const std::uint32_t index : passed_by(instruction)) {
          if (!written.contains(index)) open.insert(index);
        }
        written.clear();
      } else if (const auto index = written_whole_by(instruction)) {
        written.insert(*index);
      }
    }
    for (const std::uint32_t index : open) {
      const Variable& variable = function_.variables[index];
      result_.edits.push_back(
          ptx::insert_at(variable.span.end, "\n" + zero_registers() + zero_parameter(variable)));
    }
  }

  /// The arguments of a call.
  std::vector<std::uint32_t> passed_by(const Instruction& call) const {
    std::vector<std::uint32_t> passed;
    bool is_behind_name = false;
    for (const Operand& operand : call.operands) {
      if (operand.kind != Operand::Kind::kList) is_behind_name = true;
      if (operand.kind != Operand::Kind::kList || !is_behind_name) continue;
      for (const Operand& part : operand.parts) {
        if (is_parameter(part)) passed.push_back(part.index);
      }
    }
    return passed;
  }

  /// The argument of which the instruction always writes all.
  std::optional<std::uint32_t> written_whole_by(const Instruction& instruction) const {
    if (instruction.opcode != "st" || !instruction.has("param") || instruction.guard)
      return std::nullopt;
    const Operand& address = instruction.operands[0];
    if (address.parts.empty() || address.integer != 0 || !is_parameter(address.parts[0]))
      return std::nullopt;
    const std::uint32_t index = address.parts[0].index;
    const std::uint64_t width = instruction.has("v4") ? 4 : instruction.has("v2") ? 2 : 1;
    const bool is_whole =
        width * ptx::type_bytes(instruction.type()) == function_.variables[index].bytes;
    return is_whole ? std::optional(index) : std::nullopt;
  }

  bool is_parameter(const Operand& operand) const {
    return operand.reference == Reference::kLocal &&
           function_.variables[operand.index].space == Space::kParam;
  }

  const ptx::Function& function_;
  const Plan& plan_;
  const std::uint32_t entry_;
  std::uint32_t loops_ = 0;
  std::uint64_t stores_ = 0;     // stores to parameters, about
  std::string late_;             // as Clearing::beginning, of what is declared later
  std::uint32_t late_from_ = 0;  // end of its last declaration
  Clearing result_;
};

}  // namespace

Clearing clearing_for(const ptx::Function& function, const Plan& plan) {
  return function.instructions.empty() ? Clearing() : Clearer(function, plan).make();
}

std::uint32_t entry_of(const ptx::Function& function) {
  return beginning_behind(function, 0);
}

bool may_read_shared(const Plan& plan) {
  return std::ranges::any_of(plan.effects, [](const InstructionEffect& effect) {
    return std::ranges::any_of(effect.accesses, [](const Access& access) {
      const auto& parts = access.address->parts;
      const std::string_view base = parts.empty() ? std::string_view() : parts[0].text;
      const bool is_own = is_own_name(base) && base != kCopies && base != kCopyRegister;
      return !is_own &&
             (access.space == MemorySpace::kShared || access.space == MemorySpace::kGeneric);
    });
  });
}

std::string clear_shared_text(std::uint32_t reserved, bool may_be_none) {
  const std::string total = expand(kTotalShared);
  std::string text;
  if (may_be_none)
    text = filled("\tsetp.le.u32 ~fp, {}, {};\n\t@~fp bra $fshared;\n", total, reserved);
  // ~fv: the thread's number. A quarter as many threads as there are pieces of 16 bytes are enough:
  // each instruction of the others would cost more than a round of these.
  text += filled(
      "\tmov.u32 ~fb, %tid.x;\n\tmov.u32 ~fd, %tid.y;\n\tmov.u32 ~fc, %tid.z;\n"
      "\tmov.u32 ~fi, %ntid.y;\n\tmov.u32 ~fn, %ntid.x;\n"
      "\tmad.lo.u32 ~fd, ~fc, ~fi, ~fd;\n\tmad.lo.u32 ~fv, ~fd, ~fn, ~fb;\n"
      "\tshl.b32 ~fd, ~fv, 6;\n\tsetp.ge.u32 ~fp, ~fd, {0};\n\t@~fp bra $fcleared;\n",
      total);
  // ~fw: how many threads clear, ~fb: the thread's next address, ~fn: bytes of one round, ~fd:
  // beginning of the present round, ~fi: end of what is cleared by 16 bytes. The last ones are
  // cleared one by one.
  text += filled(
      "\tmov.u32 ~fw, %ntid.z;\n\tmul.lo.u32 ~fw, ~fw, ~fi;\n\tmul.lo.u32 ~fw, ~fw, ~fn;\n"
      "\tadd.u32 ~fn, {0}, 63;\n\tshr.u32 ~fn, ~fn, 6;\n\tmin.u32 ~fw, ~fw, ~fn;\n"
      "\tshl.b32 ~fn, ~fw, 4;\n\tmov.u32 ~fd, {1};\n\tshl.b32 ~fb, ~fv, 4;\n"
      "\tadd.u32 ~fb, ~fb, ~fd;\n\tand.b32 ~fi, {0}, -16;\n"
      "\tmov.b64 ~fz, 0;\n\tmov.b32 ~fc, 0;\n"
      "\tbra.uni $ftest;\n"
      "$fround:\n"
      "\tsetp.lt.u32 ~fq, ~fb, ~fi;\n\t@~fq st.shared.v2.b64 [~fb], {{~fz, ~fz}};\n"
      "\tadd.u32 ~fb, ~fb, ~fn;\n\tadd.u32 ~fd, ~fd, ~fn;\n"
      "$ftest:\n"
      "\tsetp.lt.u32 ~fp, ~fd, ~fi;\n\t@~fp bra.uni $fround;\n"
      "\tadd.u32 ~fb, ~fi, ~fv;\n\tmov.u32 ~fd, ~fi;\n\tbra.uni $frest;\n"
      "$fbyte:\n"
      "\tsetp.lt.u32 ~fq, ~fb, {0};\n\t@~fq st.shared.b8 [~fb], ~fc;\n"
      "\tadd.u32 ~fb, ~fb, ~fw;\n\tadd.u32 ~fd, ~fd, ~fw;\n"
      "$frest:\n"
      "\tsetp.lt.u32 ~fp, ~fd, {0};\n\t@~fp bra.uni $fbyte;\n"
      "$fcleared:\n"
      "\tbar.sync 0;\n",
      total, reserved);
  return may_be_none ? text + expand("$fshared:\n") : text;
}

namespace {

/// Leaves the thread's number in ~fv.
std::string thread_number(const ThreadStep::Index& block) {
  if (block[1] == 1 && block[2] == 1) return filled("\tmov.u32 ~fv, %tid.x;\n");
  std::string row = filled("\tmov.u32 ~fd, %tid.y;\n");
  if (block[2] != 1)
    row += filled("\tmov.u32 ~fc, %tid.z;\n\tmad.lo.u32 ~fd, ~fc, {}, ~fd;\n", block[1]);
  return row + filled("\tmov.u32 ~fb, %tid.x;\n\tmad.lo.u32 ~fv, ~fd, {}, ~fb;\n", block[0]);
}

/// Requires: ~fv is the thread's number; ~fc and ~fz are 0.
std::string clear_part(const SharedClearing::Part& part, std::uint64_t threads) {
  const Store& store = *std::ranges::find(kStores, part.piece, &Store::bytes);
  const std::uint64_t pieces = (part.end - part.first) / part.piece;
  std::string text = filled("\tmov.u32 ~fb, {};\n\tmad.lo.u32 ~fb, ~fv, {}, ~fb;\n",
                            part.variable->name, part.piece);
  for (std::uint64_t first = 0; first < pieces; first += threads) {
    const bool is_for_all = pieces - first >= threads;
    if (!is_for_all) text += filled("\tsetp.lt.u32 ~fp, ~fv, {};\n", pieces - first);
    text += filled("\t{}st.shared.{} [~fb+{}], {};\n", expand(is_for_all ? "" : "@~fp "),
                   store.type, part.first + first * part.piece, expand(store.value));
  }
  return text;
}

}  // namespace

std::string clear_shared_text(const SharedClearing& clearing, std::uint32_t reserved) {
  const std::string total = expand(kTotalShared);
  const std::uint64_t end = reserved + clearing.expected.value_or(0);
  const bool has_rest = clearing.expected && *clearing.expected % kSharedUnit != 0;
  std::string parts;
  if (!clearing.parts.empty() || has_rest) {
    parts = thread_number(clearing.block) + expand("\tmov.b64 ~fz, 0;\n\tmov.b32 ~fc, 0;\n");
    for (const SharedClearing::Part& part : clearing.parts)
      parts += clear_part(part, clearing.threads);
    if (has_rest) {
      parts += filled(
          "\tmad.lo.u32 ~fb, ~fv, 4, {0};\n\tsetp.lt.u32 ~fp, ~fb, {1};\n"
          "\t@~fp st.shared.b32 [~fb], ~fc;\n",
          end, total);
    }
    // A thread that ends does not come to the barrier that shows others what it has stored.
    if (clearing.may_end_first) parts += "\tfence.acq_rel.cta;\n";
  }
  if (!clearing.expected) return parts;
  return filled("\tsub.u32 ~fd, {}, {};\n\tsetp.lt.u32 ~fp, ~fd, {};\n\t@~fp bra.uni $fknown;\n",
                total, end, kSharedUnit) +
         clear_shared_text(reserved, false) +
         filled("\tbra.uni $fready;\n$fknown:\n{}$fready:\n", parts);
}

}  // namespace slate::injector
