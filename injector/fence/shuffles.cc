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
  /// Requires: the function outlives it.
  explicit MovedNumbers(const ptx::Function& function)
      : registers_(function), begins_(function.instructions.size() + 1, false) {
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

  const Registers registers_;
  std::vector<bool> begins_;  // by instruction: whether a way may come there from elsewhere
  std::uint32_t next_ = 0;
  std::unordered_map<std::uint32_t, std::int64_t> numbers_;  // by register
};

/// Of a shuffle by a number among all lanes of the warp: sets ~fq as source_takes_part(). Empty: it
/// is another one. ~fc: lanes that take part.
std::string simple_source(const Instruction& shuffle, const MovedNumbers& numbers) {
  const auto number = numbers.lane(shuffle.operands[2]);
  const auto last = numbers.lane(shuffle.operands[3]);
  if (!number || !last || *last != (shuffle.has("up") ? 0u : 31u)) return {};
  constexpr std::uint32_t kAll = ~std::uint32_t{0};
  // By shifts of all lanes at once. Lanes beyond the end read their own register.
  std::string code;
  if (shuffle.has("down")) {
    code = filled("\tshr.u32 ~fd, ~fc, {};\n\tor.b32 ~fd, ~fd, {};\n", *number, ~(kAll >> *number));
  } else if (shuffle.has("up")) {
    code = filled("\tshl.b32 ~fd, ~fc, {};\n\tor.b32 ~fd, ~fd, {};\n", *number, ~(kAll << *number));
  } else if (shuffle.has("bfly")) {
    return filled(
        "\tmov.u32 ~fb, %laneid;\n\txor.b32 ~fd, ~fb, {};\n\tshr.u32 ~fd, ~fc, ~fd;\n"
        "\tand.b32 ~fd, ~fd, 1;\n\tsetp.ne.u32 ~fq, ~fd, 0;\n\t",
        *number);
  } else {
    return filled("\tand.b32 ~fd, ~fc, {};\n\tsetp.ne.u32 ~fq, ~fd, 0;\n\t", 1u << *number);
  }
  return code + filled(
                    "\tmov.u32 ~fb, %laneid;\n\tmov.u32 ~fi, 1;\n\tshl.b32 ~fi, ~fi, ~fb;\n"
                    "\tand.b32 ~fd, ~fd, ~fi;\n\tsetp.ne.u32 ~fq, ~fd, 0;\n\t");
}

/// Leaves in ~fq whether the lane that the shuffle reads takes part in it, in all lanes of the
/// guard `where`. The formulas are those of the PTX ISA, `shfl.sync`.
std::string source_takes_part(const ptx::Module& module, const Instruction& shuffle,
                              const MovedNumbers& numbers, std::string_view where) {
  const auto operand = [&](std::size_t i) { return text_of(module, shuffle.operands[i].span); };
  // ~fc: lanes that take part, ~fb: this lane, ~fd: what the mode adds, ~fi: the last lane, ~fv:
  // the first lane of its segment, ~fn: bits within a segment.
  std::string code =
      filled("mov.pred ~fp, 1;\n\t{}vote.sync.ballot.b32 ~fc, ~fp, {};\n", where, operand(4));
  if (const std::string simple = simple_source(shuffle, numbers); !simple.empty())
    return code + simple;
  code += filled(
      "\tmov.u32 ~fb, %laneid;\n\tmov.u32 ~fd, {0};\n\tand.b32 ~fd, ~fd, 31;\n\tmov.u32 ~fi, {1};\n"
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
                    "\tselp.b32 ~fd, ~fd, ~fb, ~fq;\n\tshr.u32 ~fd, ~fc, ~fd;\n"
                    "\tand.b32 ~fd, ~fd, 1;\n\tsetp.ne.u32 ~fq, ~fd, 0;\n\t");
}

std::string clear_result(const Instruction& shuffle) {
  const Operand& result = shuffle.operands[0];
  const Operand& value = result.kind == Operand::Kind::kPair ? result.parts[0] : result;
  if (value.kind == Operand::Kind::kSink) return {};
  return filled("\n\t@!~fq mov.b32 {}, 0;", register_text(value));
}

}  // namespace

ShuffleEdits make_shuffles_safe(const ptx::Module& module, const ptx::Function& function,
                                Meetings& meetings) {
  ShuffleEdits result;
  const auto insert = [&](std::uint32_t at, std::string text) {
    result.edits.push_back(ptx::insert_at(at, std::move(text)));
  };
  MovedNumbers numbers(function);
  const auto look_at = [&](std::uint32_t i) {
    const Instruction& shuffle = function.instructions[i];
    if (!is_checked(shuffle)) return;
    if (meetings.are_all_together(i)) {
      insert(shuffle.span.begin, filled("@~fwhole bra.uni $fplain{};\n\t", i) +
                                     source_takes_part(module, shuffle, numbers, "") +
                                     text_of(module, shuffle.span) + clear_result(shuffle) +
                                     filled("\n\tbra.uni $fbehind{0};\n$fplain{0}:\n\t", i));
      insert(shuffle.span.end, filled("\n$fbehind{}:", i));
      result.registers = expand("\t.reg .pred ~fwhole;\n");
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
    insert(shuffle.span.begin, source_takes_part(module, shuffle, numbers, guard) + others);
    insert(shuffle.span.end, clear_result(shuffle));
  };
  for (std::uint32_t i = 0; i < function.instructions.size(); ++i) {
    look_at(i);
    numbers.pass(function.instructions[i]);
  }
  if (!result.registers.empty()) {
    result.beginning = expand(
        "\tmov.u32 ~fb, %ntid.x;\n\tmov.u32 ~fc, %ntid.y;\n\tmul.lo.u32 ~fb, ~fb, ~fc;\n"
        "\tmov.u32 ~fc, %ntid.z;\n\tmul.lo.u32 ~fb, ~fb, ~fc;\n\tand.b32 ~fb, ~fb, 31;\n"
        "\tsetp.eq.u32 ~fwhole, ~fb, 0;\n");
  }
  return result;
}

}  // namespace slate::injector
