#include "injector/analysis/mentions.h"

#include "injector/analysis/facts.h"
#include "injector/analysis/uniformity.h"

namespace slate::injector {

Mentions::Mentions(const ptx::Function& function) {
  for (std::uint32_t i = 0; i < function.instructions.size(); ++i) {
    const auto mention = [&](const ptx::Operand& operand) {
      if (operand.kind != ptx::Operand::Kind::kSymbol) return;
      ranges_.try_emplace(operand.text, i, i).first->second.last = i;
    };
    const ptx::Instruction& instruction = function.instructions[i];
    if (instruction.guard) mention(*instruction.guard);
    for_each_operand(instruction.operands, mention);
  }
}

bool Mentions::stay_within(const ptx::Instruction& instruction, std::uint32_t first,
                           std::uint32_t end) const {
  bool within = true;
  for_each_result(instruction, [&](const ptx::Operand& result) {
    const auto range = ranges_.find(result.text);
    within &= range != ranges_.end() && range->second.first >= first && range->second.last < end;
  });
  return within;
}

bool Mentions::begin_at(const ptx::Operand& operand, std::uint32_t instruction) const {
  const auto range = ranges_.find(operand.text);
  return range != ranges_.end() && range->second.first == instruction;
}

}  // namespace slate::injector
