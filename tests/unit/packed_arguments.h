// Kernel arguments as launches take them: for the tests that launch kernels on a device.
#pragma once

#include <cstddef>
#include <vector>

namespace slate::test {

/// The arguments at their natural alignment, as nvcc packs them.
template <typename... Args>
std::vector<std::byte> packed_arguments(const Args&... args) {
  std::vector<std::byte> packed;
  const auto append = [&packed](const auto& value) {
    packed.resize((packed.size() + sizeof value - 1) / sizeof value * sizeof value);
    const auto* bytes = reinterpret_cast<const std::byte*>(&value);
    packed.insert(packed.end(), bytes, bytes + sizeof value);
  };
  (append(args), ...);
  return packed;
}

}  // namespace slate::test
