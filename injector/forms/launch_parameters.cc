#include "injector/forms/launch_parameters.h"

#include <bit>

namespace slate::injector {

/// With 2^(s-1) < d <= 2^s, magic = floor(2^(31+s) / d) + 1 is exact for dividends below 2^31: its
/// error against 2^(31+s) / d is at most 1, so that of the product is below 2^31 <= 2^(31+s) / d.
/// Granlund and Montgomery, "Division by invariant integers using multiplication" (1994),
/// section 4.
Divisor make_divisor(std::uint32_t value) {
  const auto bits = static_cast<std::uint32_t>(std::bit_width(value - 1));
  Divisor divisor;
  divisor.value = value;
  divisor.shift = 31 + bits;
  const std::uint64_t power = std::uint64_t{1} << divisor.shift;
  // Exact powers of two need no correction, and with one the magic number of 1 would not fit.
  divisor.magic = static_cast<std::uint32_t>(power / value + (power % value == 0 ? 0 : 1));
  return divisor;
}

std::uint32_t profile_sample(std::uint64_t blocks) {
  if (blocks * 3 <= kSampledBlocks * 4) return 0xffffffff;
  return static_cast<std::uint32_t>((kSampledBlocks << 32) / blocks);
}

}  // namespace slate::injector
