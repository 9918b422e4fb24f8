#include "injector/analysis/parameter_layout.h"

#include <algorithm>

namespace slate::injector {

ParameterLayout::ParameterLayout(const ptx::Function& kernel) {
  for (const ptx::Variable& parameter : kernel.parameters) {
    const std::uint64_t alignment = std::max(parameter.align, 1u);
    const std::uint64_t at = (bytes_ + alignment - 1) / alignment * alignment;
    offsets_.push_back(at);
    bytes_ = at + parameter.bytes;
  }
}

std::uint32_t ParameterLayout::parameter_at(std::uint64_t offset) const {
  const auto after = std::ranges::upper_bound(offsets_, offset);
  return static_cast<std::uint32_t>(std::max<std::ptrdiff_t>(after - offsets_.begin(), 1) - 1);
}

}  // namespace slate::injector
