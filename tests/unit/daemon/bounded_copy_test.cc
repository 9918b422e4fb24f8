// When a launch takes a fenced kernel's copy without checks.
#include "daemon/engine/bounded_copy.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>

namespace slate::daemon {
namespace {

constexpr std::uint64_t kLow = 1 << 20;

/// A thread of a row writes its byte behind the pointer in the parameters.
injector::AccessBounds bytes_of_threads() {
  using injector::BoundOp;
  return {
      .steps = {{},
                {.op = BoundOp::kParameter, .value = 0},
                {.op = BoundOp::kThreads, .value = 0},
                {.op = BoundOp::kIndex, .a = 2},
                {.op = BoundOp::kAdd, .a = 1, .b = 3},
                {.op = BoundOp::kShared}},
      .claims = {
          {.step = 4, .bytes = 1},
          {.kind = injector::BoundClaim::Kind::kInVariable, .step = 5, .bytes = 1, .limit = 65}}};
}

class BoundedCopyTest : public testing::Test {
 protected:
  bool serves(std::uint64_t pointer, std::uint32_t threads, std::uint64_t bytes = 100,
              std::uint32_t shared_bytes = 64) {
    const std::array<std::uint64_t, 1> parameters = {pointer};
    return copy_.serves({.parameters = std::as_bytes(std::span(parameters)),
                         .block = {threads, 1, 1},
                         .shared_bytes = shared_bytes,
                         .low = kLow,
                         .bytes = bytes});
  }

  BoundedCopy copy_{device::Function{1}, bytes_of_threads()};
};

TEST_F(BoundedCopyTest, ServesALaunchThatKeepsToItsBounds) {
  EXPECT_TRUE(serves(kLow, 100));
  EXPECT_FALSE(serves(kLow, 101));
  EXPECT_FALSE(serves(kLow + 1, 100));
  EXPECT_FALSE(serves(kLow - 1, 1));
}

TEST_F(BoundedCopyTest, RemembersNoAnswerForAnotherLaunch) {
  EXPECT_TRUE(serves(kLow, 100));
  EXPECT_TRUE(serves(kLow, 100));
  EXPECT_FALSE(serves(kLow, 100, 99)) << "another extent";
  EXPECT_FALSE(serves(kLow, 101)) << "another block";
  EXPECT_FALSE(serves(kLow + 1, 100)) << "other parameters";
  EXPECT_FALSE(serves(kLow, 100, 100, 65)) << "other shared memory";
  EXPECT_TRUE(serves(kLow, 100));
}

TEST_F(BoundedCopyTest, AnswersTheSameHoweverManyLaunchesCameBetween) {
  for (int round = 0; round < 3; ++round) {
    for (std::uint64_t i = 0; i < 5'000; ++i)
      ASSERT_EQ(serves(kLow + i, 10), i <= 90) << "launch " << i << " of round " << round;
  }
}

TEST(BoundedCopyLimitsTest, ArePassedBehindTheLaunchsOwnParameters) {
  BoundedCopy copy(device::Function{1},
                   {.steps = {}, .claims = {}, .passed = {.at = 8, .limits = {{.shift = 2}}}});
  for (const std::uint64_t elements : {1000u, 10u}) {
    const std::array<std::uint64_t, 1> pointer = {kLow};
    const auto all = copy.parameters({.parameters = std::as_bytes(std::span(pointer)),
                                      .low = kLow,
                                      .bytes = 4 * elements + injector::kFenceSlack});
    ASSERT_EQ(all.size(), 12u);
    std::uint32_t limit = 0;
    std::memcpy(&limit, &all[8], sizeof(limit));
    EXPECT_EQ(limit, elements);
  }
}

}  // namespace
}  // namespace slate::daemon
