#include "injector/analysis/computed_origin.h"

#include <optional>
#include <string_view>

#include "injector/analysis/register_accesses.h"
#include "injector/analysis/uniformity.h"
#include "injector/ptx/words.h"

namespace slate::injector {
namespace {

using ptx::Instruction;
using ptx::is_one_of;
using ptx::Operand;
using Origin = OriginTable::Id;

std::optional<std::int64_t> constant(const Operand& operand) {
  if (operand.kind != Operand::Kind::kInteger) return std::nullopt;
  return operand.integer;
}

class Computation {
 public:
  Computation(const FunctionFlow& flow, OriginTable& origins, const Instruction& instruction)
      : flow_(flow), origins_(origins), instruction_(instruction) {}

  Origin computed() const;

 private:
  Origin shifted() const;
  Origin converted() const;
  Origin multiplied() const;
  Origin added() const;
  Origin all_inputs() const;

  const FunctionFlow& flow_;
  OriginTable& origins_;
  const Instruction& instruction_;
};

Origin Computation::all_inputs() const {
  Origin all = OriginTable::kNumber;
  for (std::size_t i = 1; i < instruction_.operands.size(); ++i) {
    all = origins_.sum(all, flow_.value_of(instruction_.operands[i]).origin);
  }
  return all;
}

Origin Computation::computed() const {
  const std::string_view opcode = instruction_.opcode;
  const auto& operands = instruction_.operands;
  const std::uint32_t bytes = ptx::type_bytes(instruction_.type());
  const auto input = [&](std::size_t i) { return flow_.value_of(operands[i]).origin; };
  if (is_one_of(opcode, {"cvta", "shfl"}) && operands.size() >= 2) return input(1);
  if (is_one_of(opcode, {"selp", "slct"}) && operands.size() == 4) {
    return origins_.joined(input(1), input(2));
  }
  if (opcode == "alloca") return origins_.of({.kind = RootKind::kLocal});
  if (opcode == "cvt") return converted();
  if (is_float(instruction_.type()) && passes_on(instruction_)) return OriginTable::kNumber;
  if (is_one_of(opcode, {"add", "sub", "addc", "subc", "and", "or", "xor", "min", "max", "lop3",
                         "not", "neg", "abs"})) {
    return added();
  }
  if (is_one_of(opcode, {"mul", "mul24", "mad", "mad24", "madc", "fma", "div", "rem"})) {
    return multiplied();
  }
  if (is_one_of(opcode, {"shl", "shr"}) && operands.size() == 3) return shifted();
  if (is_one_of(opcode, {"setp",  "set",     "isspacep",  "testp",    "popc",         "clz",
                         "bfind", "fns",     "bmsk",      "vote",     "match",        "activemask",
                         "elect", "bar",     "barrier",   "mbarrier", "createpolicy", "txq",
                         "suq",   "istypep", "stacksave", "mma",      "wgmma"})) {
    return OriginTable::kNumber;
  }
  if (opcode == "wmma")
    return instruction_.has("load") ? OriginTable::kUnknownHalf : OriginTable::kNumber;
  if (only_computes(instruction_)) {
    const Origin all = origins_.blurred(all_inputs());
    // 32 bits may have come to be the upper ones.
    return bytes == 8 && origins_.has_halves(all) ? OriginTable::kUnknown : all;
  }
  return OriginTable::kUnknown;
}

Origin Computation::added() const {
  const auto& operands = instruction_.operands;
  const bool is_sum = is_one_of(instruction_.opcode, {"add", "sub"});
  if (is_sum && operands.size() == 3) {
    const auto by = constant(operands[2]);
    if (by && !may_be_address(operands[2])) {
      const Origin start = flow_.value_of(operands[1]).origin;
      return origins_.moved(start, instruction_.opcode == "add" ? *by : -*by);
    }
  }
  if (instruction_.opcode == "and" && operands.size() == 3 && constant(operands[2])) {
    const Origin start = flow_.value_of(operands[1]).origin;
    // Other constants leave a pointer where it is, or take its last bits.
    return constant(operands[2]) == 0xffffffff ? origins_.low(start)
                                               : origins_.sum(start, OriginTable::kNumber);
  }
  return all_inputs();
}

Origin Computation::multiplied() const {
  const auto& operands = instruction_.operands;
  Origin all = OriginTable::kNumber;
  for (std::size_t i = 1; i < operands.size(); ++i) {
    const Origin input = flow_.value_of(operands[i]).origin;
    all = origins_.sum(all, i < 3 ? origins_.scaled(input) : input);
  }
  return all;
}

Origin Computation::shifted() const {
  const Origin input = flow_.value_of(instruction_.operands[1]).origin;
  const auto by = constant(instruction_.operands[2]);
  const bool is_wide = ptx::type_bytes(instruction_.type()) == 8;
  if (origins_.is_number(input)) return input == OriginTable::kNone ? input : OriginTable::kNumber;
  if (instruction_.opcode == "shr") {
    return is_wide && by == 32 ? origins_.high(input) : origins_.blurred(input);
  }
  if (!is_wide || (by && *by < 32)) return origins_.scaled(input);
  if (by == 32) return origins_.raised(origins_.low(input));
  return OriginTable::kUnknown;
}

Origin Computation::converted() const {
  if (instruction_.operands.size() != 2) return OriginTable::kNumber;
  const ptx::Type to = instruction_.type(1);
  const ptx::Type from = instruction_.type(0);
  if (is_float(to) || is_float(from)) return OriginTable::kNumber;
  const Origin input = flow_.value_of(instruction_.operands[1]).origin;
  const std::uint32_t bytes = ptx::type_bytes(to);
  if (bytes < 4 || ptx::type_bytes(from) < 4)
    return input == OriginTable::kNone ? input : OriginTable::kNumber;
  return bytes == 4 && ptx::type_bytes(from) == 8 ? origins_.low(input) : input;
}

}  // namespace

Origin computed_origin(const FunctionFlow& flow, OriginTable& origins,
                       const Instruction& instruction) {
  return Computation(flow, origins, instruction).computed();
}

}  // namespace slate::injector
