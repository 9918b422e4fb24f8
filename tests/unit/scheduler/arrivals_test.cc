// An hour of random arrivals under each policy: nobody waits for ever.
#include <gtest/gtest.h>

#include <algorithm>

#include "scheduler/policies.h"
#include "tests/unit/scheduler/scene.h"

namespace slate::scheduler::test {
namespace {

class ArrivalsTest : public testing::TestWithParam<std::string_view> {};

TEST_P(ArrivalsTest, InAnHourEveryLaunchStartsWithinABoundedTime) {
  Scene scene(GetParam(), {}, h200(), 11);
  scene.sim.progress_every_ms = 5;
  // About 70 % of the device, twelve programs, kernels of 0.1 to 300 ms.
  ModelKernel stubborn = kernel("MM");  // one that nobody can stop, 15 ms
  stubborn.worker_legal = false;
  for (int i = 0; i < 12; ++i) {
    const ModelKernel& k = i == 2 ? stubborn : kernels()[static_cast<std::size_t>(i) % 7];
    const double scale = i == 9 ? 20 : 1 + i % 3;
    scene.sim.add(
        {.kernels = {&k}, .arrivals_ms = std::max(30.0, k.native_ms * scale * 8), .scale = scale});
  }
  scene.sim.run_until(3'600'000);
  std::uint64_t started = 0;
  for (std::size_t i = 0; i < 12; ++i) {
    const Outcome& outcome = scene.sim.outcome(i);
    started += outcome.started;
    EXPECT_LT(outcome.longest_wait_ms, 1500) << i;
    EXPECT_LT(outcome.launched - outcome.ended, 30U) << i;
  }
  EXPECT_GT(started, 100'000U);
}

INSTANTIATE_TEST_SUITE_P(Policies, ArrivalsTest, testing::ValuesIn(policy_names()),
                         [](const auto& which) { return std::string(which.param); });

}  // namespace
}  // namespace slate::scheduler::test
