// What a launch of a bounded copy passes behind the kernel's own parameters.
#include <gtest/gtest.h>

#include <cstring>

#include "injector/fence/access_bounds.h"

namespace slate::injector {
namespace {

constexpr std::uint64_t kExtent = 0x7f0000000000, kMost = 1000;
constexpr std::uint64_t kExtentBytes = 4 * kMost + kFenceSlack;

/// The limits of a kernel with one pointer and a number of 32 bits.
std::vector<std::uint32_t> passed(std::uint64_t pointer, std::vector<PassedLimit> limits,
                                  std::uint64_t bytes = kExtentBytes) {
  struct {
    std::uint64_t pointer;
    std::uint32_t number;
  } const parameters{pointer, 77};
  const auto given = std::as_bytes(std::span(&parameters, 1)).first(12);
  std::vector<std::byte> buffer;
  const auto all = passed_parameters({.at = 12, .limits = std::move(limits)},
                                     {.parameters = given, .low = kExtent, .bytes = bytes}, buffer);
  EXPECT_EQ(std::memcmp(all.data(), given.data(), given.size()), 0);
  std::vector<std::uint32_t> values((all.size() - 12) / sizeof(std::uint32_t));
  std::memcpy(values.data(), all.data() + 12, all.size() - 12);
  return values;
}

std::uint32_t passed_one(std::uint64_t pointer, PassedLimit limit,
                         std::uint64_t bytes = kExtentBytes) {
  return passed(pointer, {std::move(limit)}, bytes).at(0);
}

TEST(PassedLimitsTest, ElementsUpToTheEndOfTheExtentCount) {
  EXPECT_EQ(passed_one(kExtent, {.shift = 2}), kMost);
  EXPECT_EQ(passed_one(kExtent + 40, {.shift = 2}), kMost - 10);
  EXPECT_EQ(passed_one(kExtent, {.offset = 40, .shift = 2}), kMost - 10);
  EXPECT_EQ(passed_one(kExtent + 40, {.offset = -40, .shift = 2}), kMost);
  EXPECT_EQ(passed_one(kExtent, {.shift = 0}), 4 * kMost);
  EXPECT_EQ(passed_one(kExtent + 4 * kMost - 1, {.shift = 0}), 1u);
}

TEST(PassedLimitsTest, APointerThatLeadsElsewhereHasNone) {
  for (const std::uint64_t pointer : {kExtent - 1, kExtent + 4 * kMost, kExtent + kExtentBytes,
                                      std::uint64_t{0}, ~std::uint64_t{0}}) {
    EXPECT_EQ(passed_one(pointer, {.shift = 0}), 0u) << pointer;
  }
  EXPECT_EQ(passed_one(kExtent, {.offset = -1, .shift = 0}), 0u);
  EXPECT_EQ(passed_one(~std::uint64_t{0}, {.offset = 2, .shift = 0}), 0u) << "a sum that wraps";
  EXPECT_EQ(passed_one(kExtent, {.shift = 0}, kFenceSlack), 0u) << "an extent that is all slack";
  EXPECT_EQ(passed_one(kExtent, {.shift = 0}, 0), 0u);
  EXPECT_EQ(passed_one(kExtent, {.parameter = 8, .shift = 0}), 0u) << "not all of it is passed";
}

TEST(PassedLimitsTest, AMisalignedPointerHasNone) {
  EXPECT_EQ(passed_one(kExtent + 8, {.shift = 2, .mask = 7}), kMost - 2);
  EXPECT_EQ(passed_one(kExtent + 4, {.shift = 2, .mask = 7}), 0u);
}

TEST(PassedLimitsTest, TheyFitIn32Bits) {
  constexpr std::uint64_t kMany = std::uint64_t{1} << 40;
  EXPECT_EQ(passed_one(kExtent, {.shift = 2}, kMany), ~std::uint32_t{0});
  EXPECT_EQ(passed_one(kExtent, {.shift = 2, .is_signed = true}, kMany), kMostSigned);
  EXPECT_EQ(passed_one(kExtent, {.shift = 2, .is_signed = true}), kMost);
  EXPECT_EQ(passed_one(kExtent, {.shift = 1000}), 0u);
}

TEST(PassedLimitsTest, TheLeastOfSeveralIsOfEarlierOnes) {
  const std::vector<PassedLimit> limits{
      {.shift = 2}, {.offset = 400, .shift = 2}, {.least_of = {0, 1}}, {.least_of = {2, 4}}};
  EXPECT_EQ(passed(kExtent, limits),
            (std::vector<std::uint32_t>{kMost, kMost - 100, kMost - 100, 0}));
}

TEST(PassedLimitsTest, WithoutLimitsTheParametersStayWhereTheyAre) {
  const std::vector<std::byte> given(12);
  std::vector<std::byte> buffer;
  EXPECT_EQ(passed_parameters({}, {.parameters = given}, buffer).data(), given.data());
}

}  // namespace
}  // namespace slate::injector
