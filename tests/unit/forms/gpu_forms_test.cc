// Worker, slice and profile forms against the native one, bit for bit, on a GPU.
#include <gtest/gtest.h>

#include <algorithm>

#include "device/cuda/cuda_device.h"
#include "tests/unit/forms/kernel_cases.h"

namespace slate::test {
namespace {

constexpr int kRounds = 50;
constexpr std::uint32_t kScale = 100;  // grids that last long enough to be disturbed

class GpuFormsTest : public testing::TestWithParam<TestKernel> {
 protected:
  void SetUp() override {
    if (!cuda::driver_finds_a_gpu()) GTEST_SKIP() << "no GPU";
    auto opened = cuda::open_cuda_device(0);
    ASSERT_TRUE(opened) << opened.error().message;
    device_ = std::move(*opened);
  }

  /// The results are the kernel's, and a sample of its blocks says what all of them do.
  static void check_profile(FormRunner& runner, const KernelCase& kernel, const Outcome& native) {
    ASSERT_FALSE(runner.forms(kernel.entry).profile.empty());
    std::optional<injector::Work> all, sampled;
    EXPECT_EQ(difference(runner.run_profile(kernel, &all), native), "") << "profile";
    const std::uint32_t sample = injector::profile_sample(kernel.grid.count());
    EXPECT_EQ(difference(runner.run_profile(kernel, &sampled, sample), native), "") << "profile";
    ASSERT_TRUE(all);
    ASSERT_TRUE(sampled);
    // Those that wait for others do so for as long as it takes.
    if (!runner.forms(kernel.entry).analysis.independent_blocks) return;
    EXPECT_NEAR(sampled->instructions, all->instructions, 0.2 * all->instructions);
    std::printf("%s: %.6g FLOPs, %.6g bytes\n", kernel.name.c_str(), all->flops, all->bytes);
  }

  std::unique_ptr<device::Device> device_;
};

TEST_P(GpuFormsTest, EveryLegalFormGivesTheNativeResult) {
  const TestKernel test = widened(GetParam(), kScale);
  FormRunner plain(*device_, ptx_of(test), 0);
  FormRunner lean(*device_, ptx_of(test), kMostRegisters);
  const injector::KernelForms& forms = plain.forms(test.kernel.entry);
  const Outcome native = plain.run_native(test.kernel);
  check_profile(plain, test.kernel, native);
  for (int round = 1; round <= kRounds && !HasFailure(); ++round) {
    SCOPED_TRACE("round " + std::to_string(round));
    FormRunner& runner = round % 3 == 0 ? lean : plain;
    std::mt19937_64 random(round);
    EXPECT_EQ(difference(runner.run_slices(test.kernel, random), native), "") << "slices";
    if (forms.worker.empty()) continue;
    EXPECT_EQ(difference(runner.run_worker(test.kernel, random, {}), native), "") << "worker";
    const Disturbance all{.placements = true, .retreats = true, .supplements = true};
    EXPECT_EQ(difference(runner.run_worker(test.kernel, random, all), native), "") << "disturbed";
  }
  std::printf("%s: %llu retreats\n", test.kernel.name.c_str(),
              static_cast<unsigned long long>(plain.retreats() + lean.retreats()));
}

TEST(HugeGridTest, NearlyTwoToThe31BlocksGiveTheNativeResult) {
  if (!cuda::driver_finds_a_gpu()) GTEST_SKIP() << "no GPU";
  const auto device = cuda::open_cuda_device(0);
  ASSERT_TRUE(device) << device.error().message;
  std::vector<TestKernel> all = golden_kernels();
  const auto huge = std::ranges::find(all, "huge", &TestKernel::file);
  ASSERT_NE(huge, all.end());
  huge->kernel.grid = {65'538, 32'767, 1};
  ASSERT_TRUE(daemon::can_be_numbered(huge->kernel.grid));
  FormRunner runner(**device, ptx_of(*huge), 0);
  const Outcome native = runner.run_native(huge->kernel);
  std::mt19937_64 random(1);
  EXPECT_EQ(difference(runner.run_worker(huge->kernel, random, {}), native), "");
}

INSTANTIATE_TEST_SUITE_P(Golden, GpuFormsTest, testing::ValuesIn(golden_kernels()), name_of);
INSTANTIATE_TEST_SUITE_P(Programs, GpuFormsTest, testing::ValuesIn(program_kernels()), name_of);

}  // namespace
}  // namespace slate::test
