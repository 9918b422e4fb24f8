// Sizes: arithmetic without surprises at 0, and how people write them. Thread: any.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string_view>

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

/// "123456", "512M", "2G", "0": bytes, or a number and K, M, G or T. Nullopt for anything else, and
/// for what 64 bits do not hold.
std::optional<std::uint64_t> parse_bytes(std::string_view text);

}  // namespace slate
