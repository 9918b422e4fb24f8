// Arithmetic on sizes without surprises at 0. Thread: any.
#pragma once

#include <algorithm>
#include <cstdint>

namespace slate {

/// The least multiple of `multiple` that is not below `value`. Requires: `multiple` > 0, and that
/// the result fits.
constexpr std::uint64_t round_up(std::uint64_t value, std::uint64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

/// `more` - `less`, or 0 where `less` is larger.
constexpr std::uint64_t difference(std::uint64_t more, std::uint64_t less) {
  return more - std::min(more, less);
}

}  // namespace slate
