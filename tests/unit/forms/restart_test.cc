// A launch that may be restarted (injector/analysis/restart.h) leaves the memory of an undisturbed
// run when it runs again from its beginning: after some of its blocks, and with anything in the
// places that it writes. On sim, for all kernels that every form is tried on.
#include "injector/analysis/restart.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "device/device.h"
#include "tests/unit/forms/kernel_cases.h"

namespace slate::test {
namespace {

constexpr int kSeeds = 4;

std::string restart_settings(int seed) {
  return "sim:sms=4,memory=256M,max_kernel_seconds=60,seed=" + std::to_string(seed);
}

/// What a run that was broken off and begun again leaves, against an undisturbed one.
struct Runs {
  injector::Restart restart;
  bool differs = false;  // in any run
};

Runs run_again(const TestKernel& test) {
  Runs runs;
  const std::string ptx = ptx_of(test);
  for (int seed = 1; seed <= kSeeds; ++seed) {
    auto device = device::open_device(restart_settings(seed));
    EXPECT_TRUE(device) << device.error().message;
    FormRunner runner(**device, ptx, 0);
    std::mt19937_64 random(seed);
    runs.restart = runner.may_restart(test.kernel);
    const Outcome native = runner.run_native(test.kernel);
    const std::string blocks =
        difference(runner.run_after_some_blocks(test.kernel, random), native);
    const std::string writes =
        difference(runner.run_after_some_writes(test.kernel, native, random), native);
    runs.differs |= !blocks.empty() || !writes.empty();
    if (!runs.restart.restartable()) continue;
    EXPECT_EQ(blocks, "") << "after some blocks, seed " << seed;
    EXPECT_EQ(writes, "") << "after some writes, seed " << seed;
  }
  return runs;
}

class RestartSimTest : public testing::TestWithParam<TestKernel> {};

TEST_P(RestartSimTest, ALaunchThatMayBeRestartedGivesTheSameResult) {
  RecordProperty("why_not", run_again(GetParam()).restart.why_not);
}

/// What no reach names is neither read nor written.
TEST_P(RestartSimTest, ALaunchReadsAndWritesOnlyWhatItReaches) {
  const KernelCase& kernel = GetParam().kernel;
  auto device = device::open_device(restart_settings(1));
  ASSERT_TRUE(device) << device.error().message;
  FormRunner runner(**device, ptx_of(GetParam()), 0);
  const auto places = runner.reach(kernel);
  if (!places) return RecordProperty("reach", "everything");
  const Outcome native = runner.run_native(kernel);
  std::mt19937_64 random(1);
  KernelCase disturbed = kernel;
  std::vector<std::vector<std::byte>> before;
  for (Argument& argument : disturbed.arguments) {
    if (!argument.is_buffer) continue;
    before.push_back(argument.bytes);
    if ((*places)[before.size() - 1].read) continue;
    for (std::byte& byte : argument.bytes) byte = static_cast<std::byte>(random());
  }
  const Outcome other = runner.run_native(disturbed);
  for (std::size_t i = 0; i < before.size(); ++i) {
    const bool is_same = native[i] == before[i];
    EXPECT_TRUE((*places)[i].written || is_same) << "writes buffer " << i;
    std::size_t wrong = 0;
    for (std::size_t at = 0; at < native[i].size(); ++at) {
      const bool is_known = (*places)[i].read || native[i][at] != before[i][at];
      wrong += is_known && other[i][at] != native[i][at] ? 1 : 0;
    }
    EXPECT_EQ(wrong, 0u) << "bytes of buffer " << i << " by what the launch does not read";
  }
}

INSTANTIATE_TEST_SUITE_P(Golden, RestartSimTest, testing::ValuesIn(golden_kernels()), name_of);
INSTANTIATE_TEST_SUITE_P(Programs, RestartSimTest, testing::ValuesIn(program_kernels()), name_of);

TestKernel program_kernel(std::string_view entry) {
  const auto all = program_kernels();
  const auto found = std::ranges::find_if(
      all, [&](const TestKernel& kernel) { return kernel.kernel.entry.contains(entry); });
  EXPECT_NE(found, all.end()) << entry;
  return *found;
}

TEST(RestartSimTest, SumsInPlaceDifferWhenTheyRunTwice) {
  for (const char* entry : {"add_offsets", "update_rows", "lud_internal"}) {
    const Runs runs = run_again(program_kernel(entry));
    EXPECT_TRUE(runs.restart.why_not.contains("reads parameter 0, which it writes"))
        << runs.restart.why_not;
    EXPECT_TRUE(runs.differs) << entry;
  }
}

TEST(RestartSimTest, ArgumentsDecideWhetherAKernelReadsWhatItWrites) {
  TestKernel kernel = program_kernel("vector_add");
  EXPECT_TRUE(run_again(kernel).restart.restartable());
  kernel.kernel.arguments[2].same_as = 0;
  const Runs in_place = run_again(kernel);
  EXPECT_TRUE(in_place.restart.why_not.contains("parameter 2")) << in_place.restart.why_not;
  EXPECT_TRUE(in_place.differs);
}

TEST(RestartSimTest, MostKernelsMayBeRestarted) {
  std::size_t restartable = 0;
  std::size_t all = 0;
  for (const auto& kernels : {golden_kernels(), program_kernels()}) {
    for (const TestKernel& test : kernels) {
      auto device = device::open_device(restart_settings(1));
      ASSERT_TRUE(device) << device.error().message;
      FormRunner runner(**device, ptx_of(test), 0);
      ++all;
      restartable += runner.may_restart(test.kernel).restartable() ? 1 : 0;
    }
  }
  EXPECT_GE(3 * restartable, 2 * all) << restartable << " of " << all;
}

}  // namespace
}  // namespace slate::test
