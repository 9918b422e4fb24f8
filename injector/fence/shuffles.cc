#include "injector/fence/shuffles.h"

#include <algorithm>
#include <cstdint>
#include <string_view>

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

/// Leaves in ~fq whether the lane that the shuffle reads takes part in it, in all lanes of the
/// guard `where`. The formulas are those of the PTX ISA, `shfl.sync`.
std::string source_takes_part(const ptx::Module& module, const Instruction& shuffle,
                              std::string_view where) {
  const auto operand = [&](std::size_t i) { return text_of(module, shuffle.operands[i].span); };
  // ~fc: lanes that take part, ~fb: this lane, ~fd: what the mode adds, ~fi: the last lane, ~fv:
  // the first lane of its segment, ~fn: bits within a segment.
  std::string code = filled(
      "mov.pred ~fp, 1;\n\t{0}vote.sync.ballot.b32 ~fc, ~fp, {1};\n\tmov.u32 ~fb, %laneid;\n"
      "\tmov.u32 ~fd, {2};\n\tand.b32 ~fd, ~fd, 31;\n\tmov.u32 ~fi, {3};\n"
      "\tshr.u32 ~fn, ~fi, 8;\n\tand.b32 ~fn, ~fn, 31;\n\tand.b32 ~fv, ~fb, ~fn;\n"
      "\tnot.b32 ~fn, ~fn;\n\tand.b32 ~fi, ~fi, 31;\n\tand.b32 ~fi, ~fi, ~fn;\n"
      "\tor.b32 ~fi, ~fi, ~fv;\n",
      where, operand(4), operand(2), operand(3));
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
  for (std::uint32_t i = 0; i < function.instructions.size(); ++i) {
    const Instruction& shuffle = function.instructions[i];
    if (!is_checked(shuffle)) continue;
    if (meetings.are_all_together(i)) {
      insert(shuffle.span.begin, filled("@~fwhole bra.uni $fplain{};\n\t", i) +
                                     source_takes_part(module, shuffle, "") +
                                     text_of(module, shuffle.span) + clear_result(shuffle) +
                                     filled("\n\tbra.uni $fbehind{0};\n$fplain{0}:\n\t", i));
      insert(shuffle.span.end, filled("\n$fbehind{}:", i));
      result.registers = expand("\t.reg .pred ~fwhole;\n");
      continue;
    }
    const std::string guard = shuffle.guard ? std::string(shuffle.guard->negated ? "@!" : "@") +
                                                  register_text(*shuffle.guard) + " "
                                            : "";
    std::string others;  // keep what their register has
    if (shuffle.guard) {
      others = filled("{}{} mov.pred ~fq, 1;\n\t", shuffle.guard->negated ? "@" : "@!",
                      register_text(*shuffle.guard));
    }
    insert(shuffle.span.begin, source_takes_part(module, shuffle, guard) + others);
    insert(shuffle.span.end, clear_result(shuffle));
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
