// Worker, slice and profile forms against the native one, bit for bit, on sim with random
// schedules.
#include <gtest/gtest.h>

#include "device/device.h"
#include "tests/unit/forms/kernel_cases.h"

namespace slate::test {
namespace {

// Under a sanitizer each takes several times as long, and their number finds nothing new.
constexpr int kSchedules = SLATE_FORM_SCHEDULES;
constexpr int kProfileSchedules = 5;  // its blocks are the kernel's own

class SimFormsTest : public testing::TestWithParam<TestKernel> {
 protected:
  /// Calls `body` with a device and a runner of every schedule.
  template <typename Body>
  void on_every_schedule(Body body) {
    const std::string ptx = ptx_of(GetParam());
    for (int seed = 1; seed <= kSchedules && !HasFailure(); ++seed) {
      SCOPED_TRACE("seed " + std::to_string(seed));
      auto device = device::open_device(sim_settings(seed));
      ASSERT_TRUE(device) << device.error().message;
      FormRunner runner(**device, ptx, seed % 3 == 0 ? kMostRegisters : 0);
      std::mt19937_64 random(seed);
      seed_ = seed;
      body(runner, random);
    }
  }

  int seed_ = 0;  // of the schedule under way
};

TEST_P(SimFormsTest, EveryLegalFormGivesTheNativeResult) {
  const TestKernel& test = GetParam();
  Outcome native;
  on_every_schedule([&](FormRunner& runner, std::mt19937_64& random) {
    const Outcome present = runner.run_native(test.kernel);
    if (native.empty()) native = present;
    ASSERT_EQ(present, native) << "the kernel itself depends on the schedule";
    const injector::KernelForms& forms = runner.forms(test.kernel.entry);
    ASSERT_EQ(forms.worker.empty(), !test.has_worker) << forms.analysis.worker.why_not;
    ASSERT_FALSE(forms.slice.empty()) << forms.analysis.slice.why_not;
    EXPECT_EQ(difference(runner.run_slices(test.kernel, random), native), "") << "slices";
    if (seed_ <= kProfileSchedules) {
      EXPECT_EQ(difference(runner.run_profile(test.kernel), native), "") << "profile";
    }
    if (!test.has_worker) return;
    EXPECT_EQ(difference(runner.run_worker(test.kernel, random, {}), native), "") << "worker";
    const Disturbance all{.placements = true, .retreats = true, .supplements = true};
    EXPECT_EQ(difference(runner.run_worker(test.kernel, random, all), native), "")
        << "worker, disturbed";
  });
}

INSTANTIATE_TEST_SUITE_P(Golden, SimFormsTest, testing::ValuesIn(golden_kernels()), name_of);
INSTANTIATE_TEST_SUITE_P(Programs, SimFormsTest, testing::ValuesIn(program_kernels()), name_of);

}  // namespace
}  // namespace slate::test
