#include "injector/analysis/registers.h"

namespace slate::injector {

using ptx::Operand;
using ptx::Reference;

Registers::Registers(const ptx::Function& function) {
  add(function.variables, variables_);
  add(function.returns, returns_);
}

void Registers::add(const std::vector<ptx::Variable>& variables, std::vector<Range>& ranges) {
  ranges.reserve(variables.size());
  for (const ptx::Variable& variable : variables) {
    const std::uint32_t width = variable.space == ptx::Space::kReg ? variable.vector : 0;
    ranges.push_back({count_, width});
    names_.insert(names_.end(), width, variable.name);
    types_.insert(types_.end(), width, variable.type);
    count_ += width;
  }
}

Registers::Range Registers::range_of(const Operand& operand) const {
  if (operand.kind != Operand::Kind::kSymbol) return {};
  Range range;
  if (operand.reference == Reference::kLocal) range = variables_[operand.index];
  if (operand.reference == Reference::kReturn) range = returns_[operand.index];
  if (range.count < 2 || operand.component == 0) return range;
  constexpr std::string_view kComponents = "xyzw";
  const std::size_t component = kComponents.find(operand.component);
  if (component >= range.count) return range;
  return {range.first + static_cast<std::uint32_t>(component), 1};
}

std::optional<std::uint32_t> Registers::of(const Operand& operand) const {
  const Range range = range_of(operand);
  return range.count == 1 ? std::optional(range.first) : std::nullopt;
}

}  // namespace slate::injector
