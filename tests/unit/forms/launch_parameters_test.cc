#include "injector/forms/launch_parameters.h"

#include <gtest/gtest.h>

#include <random>

namespace slate::injector {
namespace {

constexpr std::uint32_t kMost = (1u << 31) - 1;

std::uint32_t quotient(const Divisor& divisor, std::uint32_t dividend) {
  return static_cast<std::uint32_t>((std::uint64_t{dividend} * divisor.magic) >> divisor.shift);
}

void check(std::uint32_t value, std::uint32_t dividend) {
  ASSERT_EQ(quotient(make_divisor(value), dividend), dividend / value)
      << dividend << " / " << value;
}

TEST(DivisorTest, SmallDivisorsAreExactForDividendsAroundTheirMultiples) {
  for (std::uint32_t value = 1; value < 3000; ++value) {
    const std::uint32_t last = kMost / value * value;
    for (const std::uint32_t dividend : {0u, value - 1, value, value + 1, last - 1, last, kMost}) {
      check(value, std::min(dividend, kMost));
    }
  }
}

TEST(DivisorTest, PowersOfTwoAndTheirNeighboursAreExact) {
  for (std::uint32_t power = 1; power < 31; ++power) {
    for (const std::uint32_t value : {(1u << power) - 1, 1u << power, (1u << power) + 1}) {
      for (std::uint32_t k = 0; k < 31; ++k) {
        for (const std::uint32_t dividend : {(1u << k) - 1, 1u << k, (1u << k) + 1})
          check(value, dividend);
      }
      check(value, kMost);
      check(value, kMost - 1);
    }
  }
}

TEST(DivisorTest, AnyPairBelowTheLimitIsExact) {
  std::mt19937 random(1);
  const auto any = [&] {
    return static_cast<std::uint32_t>((random() & kMost) >> (random() % 31));
  };
  for (int i = 0; i < 2'000'000; ++i) {
    const std::uint32_t value = std::max(1u, any());
    check(value, any());
  }
}

}  // namespace
}  // namespace slate::injector
