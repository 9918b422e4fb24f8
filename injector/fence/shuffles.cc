#include "injector/fence/shuffles.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string_view>
#include <unordered_map>

#include "injector/analysis/registers.h"
#include "injector/fence/member_text.h"
#include "injector/forms/ptx_template.h"

namespace slate::injector {
namespace {

using ptx::Instruction;
using ptx::Operand;

/// Operand 0 may be `d|p`: then the first of both.
bool is_checked(const Instruction& instruction) {
  return instruction.opcode == "shfl" && instruction.has("sync") &&
         instruction.operands.size() == 5 && instruction.operands[0].kind != Operand::Kind::kSink;
}

std::string text_of(const ptx::Module& module, ptx::Span span) {
  return module.text.substr(span.begin, span.end - span.begin);
}

/// Numbers that registers surely have, as straight code has moved them there.
class MovedNumbers {
 public:
  /// Requires: `registers`, the function's, outlives it.
  MovedNumbers(const ptx::Function& function, const Registers& registers)
      : registers_(registers), begins_(function.instructions.size() + 1, false) {
    for (const ptx::Label& label : function.labels) begins_[label.target] = true;
    for (const ptx::InnerScope& scope : function.scopes)
      begins_[scope.first] = begins_[scope.end] = true;
  }

  /// Goes past the next instruction.
  void pass(const Instruction& instruction) {
    if (begins_[next_++]) numbers_.clear();
    registers_.for_each_write(instruction, [&](std::uint32_t r) { numbers_.erase(r); });
    const bool is_move = instruction.opcode == "mov" && !instruction.guard &&
                         instruction.operands.size() == 2 &&
                         instruction.operands[1].kind == Operand::Kind::kInteger;
    const auto number = is_move ? registers_.of(instruction.operands[0]) : std::nullopt;
    if (number) numbers_[*number] = instruction.operands[1].integer;
  }
  /// Whether a way may come to the next instruction from elsewhere.
  bool is_joined() const { return begins_[next_]; }
  /// What the operand of the next instruction is, if it is below 32.
  std::optional<std::uint32_t> lane(const Operand& operand) const {
    if (operand.kind == Operand::Kind::kInteger) return below_32(operand.integer);
    const auto number = begins_[next_] ? std::nullopt : registers_.of(operand);
    const auto found = number ? numbers_.find(*number) : numbers_.end();
    return found == numbers_.end() ? std::nullopt : below_32(found->second);
  }

 private:
  static std::optional<std::uint32_t> below_32(std::int64_t number) {
    const bool is_below = number >= 0 && number < 32;
    return is_below ? std::optional(static_cast<std::uint32_t>(number)) : std::nullopt;
  }

  const Registers& registers_;
  std::vector<bool> begins_;  // by instruction: as is_joined()
  std::uint32_t next_ = 0;
  std::unordered_map<std::uint32_t, std::int64_t> numbers_;  // by register
};

/// Of a shuffle by a number among all lanes of the warp: sets ~fq as source_takes_part(). Empty: it
/// is another one. ~flanes: lanes that take part.
std::string simple_source(const Instruction& shuffle, const MovedNumbers& numbers) {
  const auto number = numbers.lane(shuffle.operands[2]);
  const auto last = numbers.lane(shuffle.operands[3]);
  if (!number || !last || *last != (shuffle.has("up") ? 0u : 31u)) return {};
  // Lanes beyond the end read their own register. All lanes in one shift, the same for each shuffle
  // in a row: bit n is the lane n behind this one, or from the top in front of it.
  constexpr std::uint32_t kTop = std::uint32_t{1} << 31;
  std::string code;
  if (shuffle.has("down")) {
    code = filled(
        "mov.u32 ~fb, %laneid;\n\tshf.r.wrap.b32 ~fd, ~flanes, -1, ~fb;\n"
        "\tand.b32 ~fd, ~fd, {};\n",
        1u << *number);
  } else if (shuffle.has("up")) {
    code = filled(
        "mov.u32 ~fb, %laneid;\n\txor.b32 ~fb, ~fb, 31;\n\tshf.l.wrap.b32 ~fd, -1, ~flanes, ~fb;\n"
        "\tand.b32 ~fd, ~fd, {};\n",
        kTop >> *number);
  } else if (shuffle.has("bfly")) {
    code = filled(
        "mov.u32 ~fb, %laneid;\n\txor.b32 ~fd, ~fb, {};\n\tshr.u32 ~fd, ~flanes, ~fd;\n"
        "\tand.b32 ~fd, ~fd, 1;\n",
        *number);
  } else {
    code = filled("and.b32 ~fd, ~flanes, {};\n", 1u << *number);
  }
  return code + expand("\tsetp.ne.u32 ~fq, ~fd, 0;\n\t");
}

/// Leaves in ~fq whether the lane that the shuffle reads takes part in it. ~flanes: those that do.
/// The formulas are those of the PTX ISA, `shfl.sync`.
std::string source_takes_part(const ptx::Module& module, const Instruction& shuffle,
                              const MovedNumbers& numbers) {
  const auto operand = [&](std::size_t i) { return text_of(module, shuffle.operands[i].span); };
  // ~fb: this lane, ~fd: what the mode adds, ~fi: the last lane, ~fv: the first lane of its
  // segment, ~fn: bits within a segment.
  if (std::string simple = simple_source(shuffle, numbers); !simple.empty()) return simple;
  std::string code = filled(
      "mov.u32 ~fb, %laneid;\n\tmov.u32 ~fd, {0};\n\tand.b32 ~fd, ~fd, 31;\n\tmov.u32 ~fi, {1};\n"
      "\tshr.u32 ~fn, ~fi, 8;\n\tand.b32 ~fn, ~fn, 31;\n\tand.b32 ~fv, ~fb, ~fn;\n"
      "\tnot.b32 ~fn, ~fn;\n\tand.b32 ~fi, ~fi, 31;\n\tand.b32 ~fi, ~fi, ~fn;\n"
      "\tor.b32 ~fi, ~fi, ~fv;\n",
      operand(2), operand(3));
  if (shuffle.has("up")) {
    code += filled("\tsub.s32 ~fd, ~fb, ~fd;\n\tsetp.ge.s32 ~fq, ~fd, ~fi;\n");
  } else if (shuffle.has("down")) {
    code += filled("\tadd.s32 ~fd, ~fb, ~fd;\n\tsetp.le.s32 ~fq, ~fd, ~fi;\n");
  } else if (shuffle.has("bfly")) {
    code += filled("\txor.b32 ~fd, ~fb, ~fd;\n\tsetp.le.s32 ~fq, ~fd, ~fi;\n");
  } else {
    code +=
        filled("\tand.b32 ~fd, ~fd, ~fn;\n\tor.b32 ~fd, ~fd, ~fv;\n\tsetp.le.s32 ~fq, ~fd, ~fi;\n");
  }
  // Beyond the segment a lane reads its own register.
  return code + filled(
                    "\tselp.b32 ~fd, ~fd, ~fb, ~fq;\n\tshr.u32 ~fd, ~flanes, ~fd;\n"
                    "\tand.b32 ~fd, ~fd, 1;\n\tsetp.ne.u32 ~fq, ~fd, 0;\n\t");
}

/// Which lanes of a warp take part in a shuffle: the same as in the one before, as long as no lane
/// can come, go or end in between.
class Ballot {
 public:
  /// `registers`, `plan`: the function's. Requires: the first two arguments outlive it.
  Ballot(const ptx::Module& module, const Registers& registers, const ptx::Function& function,
         const Plan& plan)
      : module_(module), registers_(registers), ends_(function.instructions.size(), false) {
    for (const Site& site : plan.sites) ends_[site.at] = true;
    for (const Wait& wait : plan.waits) ends_[wait.at] = true;
  }

  /// Text that sets ~flanes for a shuffle, in the lanes of the guard `where`; empty: it is set.
  std::string before(const Instruction& shuffle, std::string_view where) {
    const std::string mask = text_of(module_, shuffle.operands[4].span);
    if (where.empty() && mask == mask_) return {};
    mask_ = where.empty() ? mask : std::string();
    return filled("mov.pred ~fp, 1;\n\t{}vote.sync.ballot.b32 ~flanes, ~fp, {};\n\t", where, mask);
  }
  /// To be called in front of each instruction, and behind it.
  void come(std::uint32_t at, bool is_joined) {
    if (is_joined || ends_[at]) mask_.clear();
  }
  void pass(const Instruction& instruction) {
    const bool keeps_lanes = only_computes(instruction) || is_checked(instruction);
    if (!keeps_lanes) mask_.clear();
    registers_.for_each_write(instruction, [this](std::uint32_t r) {
      if (registers_.name(r) == mask_) mask_.clear();
    });
  }
  void forget() { mask_.clear(); }

 private:
  const ptx::Module& module_;
  const Registers& registers_;
  std::vector<bool> ends_;  // by instruction: whether the fence may end a lane in front of it
  std::string mask_;        // of the lanes in ~flanes; empty: not known
};

std::string clear_result(const Instruction& shuffle) {
  const Operand& result = shuffle.operands[0];
  const Operand& value = result.kind == Operand::Kind::kPair ? result.parts[0] : result;
  if (value.kind == Operand::Kind::kSink) return {};
  return filled("\n\t@!~fq mov.b32 {}, 0;", register_text(value));
}

}  // namespace

ShuffleEdits make_shuffles_safe(const ptx::Module& module, const ptx::Function& function,
                                const Plan& plan, Meetings& meetings) {
  ShuffleEdits result;
  if (std::ranges::none_of(function.instructions, is_checked)) return result;
  result.registers = expand("\t.reg .b32 ~flanes;\n");
  const auto insert = [&](std::uint32_t at, std::string text) {
    result.edits.push_back(ptx::insert_at(at, std::move(text)));
  };
  const Registers registers(function);
  MovedNumbers numbers(function, registers);
  Ballot ballot(module, registers, function, plan);
  const auto look_at = [&](std::uint32_t i) {
    const Instruction& shuffle = function.instructions[i];
    if (!is_checked(shuffle)) return;
    if (meetings.is_complete(i)) {
      ballot.forget();
      if (plan.has_whole_warps) return;
      insert(shuffle.span.begin,
             filled("@~fwhole bra.uni $fplain{};\n\t", i) + ballot.before(shuffle, "") +
                 source_takes_part(module, shuffle, numbers) + text_of(module, shuffle.span) +
                 clear_result(shuffle) + filled("\n\tbra.uni $fbehind{0};\n$fplain{0}:\n\t", i));
      insert(shuffle.span.end, filled("\n$fbehind{}:", i));
      result.needs_whole_warps = true;
      ballot.forget();
      return;
    }
    const std::string guard = shuffle.guard ? std::string(shuffle.guard->negated ? "@!" : "@") +
                                                  register_text(*shuffle.guard) + " "
                                            : "";
    std::string others;  // keep what their register has
    if (shuffle.guard) {
      others = filled("{}{} mov.pred ~fq, 1;\n\t", shuffle.guard->negated ? "@" : "@!",
                      register_text(*shuffle.guard));
    }
    insert(shuffle.span.begin,
           ballot.before(shuffle, guard) + source_takes_part(module, shuffle, numbers) + others);
    insert(shuffle.span.end, clear_result(shuffle));
  };
  for (std::uint32_t i = 0; i < function.instructions.size(); ++i) {
    ballot.come(i, numbers.is_joined());
    look_at(i);
    ballot.pass(function.instructions[i]);
    numbers.pass(function.instructions[i]);
  }
  return result;
}

}  // namespace slate::injector
