// FenceFormsTest: all forms of a kernel behind a fence against the native form without one, bit for
// bit, on sim with random schedules.
#pragma once

#include <gtest/gtest.h>

#include <random>
#include <string>

#include "device/device.h"
#include "tests/unit/forms/kernel_cases.h"

namespace slate::test {

class FenceFormsTest : public testing::TestWithParam<TestKernel> {
 protected:
  void run(int seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const KernelCase& kernel = GetParam().kernel;
    auto device = device::open_device(sim_settings(seed));
    ASSERT_TRUE(device) << device.error().message;
    const std::string ptx = ptx_of(GetParam());
    if (plain_.empty()) plain_ = FormRunner(**device, ptx, 0).run_native(kernel);
    FormRunner runner(**device, ptx, seed % 3 == 0 ? kMostRegisters : 0, true,
                      seed % 2 == 1 ? &kernel : nullptr);
    for (const injector::FenceVerdict& entry : runner.fenced().entries)
      EXPECT_EQ(entry.why_not, "") << entry.name;
    std::mt19937_64 random(static_cast<std::uint64_t>(seed));
    EXPECT_EQ(difference(runner.run_native(kernel), plain_), "") << "native";
    if (const auto bounded = runner.run_bounded(kernel)) {
      EXPECT_EQ(difference(*bounded, plain_), "") << "bounded";
    }
    EXPECT_EQ(difference(runner.run_slices(kernel, random), plain_), "") << "slices";
    EXPECT_EQ(difference(runner.run_profile(kernel), plain_), "") << "profile";
    if (GetParam().has_worker) {
      EXPECT_EQ(difference(runner.run_worker(kernel, random, {}), plain_), "") << "worker";
      const Disturbance all{.placements = true, .retreats = true, .supplements = true};
      EXPECT_EQ(difference(runner.run_worker(kernel, random, all), plain_), "") << "disturbed";
    }
    const injector::FenceRecord record = runner.take_record();
    EXPECT_EQ(record.state, injector::FenceRecord::kFree)
        << "line " << record.line << ", kind " << record.kind << ", address " << std::hex
        << record.address;
    runner.run_bounded_tightly(kernel);
  }

  Outcome plain_;
};

}  // namespace slate::test
