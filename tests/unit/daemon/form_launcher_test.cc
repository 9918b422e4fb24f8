// Which launches may take a worker form, and of two of them the one with two copies of the shared
// memory, unless they cost workers.
#include "daemon/engine/form_launcher.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "tests/unit/daemon/fake_device.h"

namespace slate::daemon {
namespace {

constexpr std::uint32_t kShared = 8 << 10;

class FormLauncherTest : public testing::Test {
 protected:
  FormLauncherTest() {
    device_.add_kernel("k", {.static_shared_bytes = kShared});
    device_.add_kernel("overlapping", {.static_shared_bytes = 2 * kShared});
    device_.add_kernel("compact", {.static_shared_bytes = kShared});
    forms_.name = "k";
    forms_.worker = "overlapping";
    forms_.compact_worker = "compact";
    kernel_.function = *device_.find_function({}, "k");
    kernel_.name = std::make_shared<const std::string>("k");
    kernel_.forms = &forms_;
    stream_ = *device_.create_stream(0, device::kWholeDevice);
  }
  ~FormLauncherTest() override { device_.destroy_stream(stream_); }

  /// The form that a launch with blocks of so many threads takes, if the worker's is wished.
  injector::Form launch(std::uint32_t threads, std::uint32_t most_per_sm = 0,
                        std::optional<device::Event> after = {}) {
    WorkerQueue queue(device_, *service_.control_memory());
    std::vector<std::byte> parameters(8);
    device::LaunchSpec spec;
    spec.function = kernel_.function;
    spec.grid = {1000, 1, 1};
    spec.block = {threads, 1, 1};
    spec.parameters = parameters;
    LaunchTarget target;
    target.stream = stream_;
    target.sms = 4;
    target.most_per_sm = most_per_sm;
    target.queue = &queue;
    target.after = after;
    const auto form =
        launch_in_form(device_, service_, kernel_, spec, injector::Form::kWorker, target);
    EXPECT_TRUE(form) << form.error().message;
    return *form;
  }
  /// And its function.
  std::string taken(std::uint32_t threads, std::uint32_t most_per_sm = 0) {
    EXPECT_EQ(launch(threads, most_per_sm), injector::Form::kWorker);
    const std::string last = device_.trace().back();
    return last.substr(0, last.find('@'));
  }

  /// Whether the launch may take the worker form.
  bool may_be_worker(device::Dim3 grid, device::Dim3 block) {
    device::LaunchSpec spec;
    spec.function = kernel_.function;
    spec.grid = grid;
    spec.block = block;
    forms_.analysis.independent_blocks = true;
    return shape_of(device_, service_, kernel_, spec).worker;
  }

  FakeDevice device_;
  FormService service_{device_, FormChoice::kWorker};
  injector::KernelForms forms_;
  FunctionRecord kernel_;
  device::Stream stream_{};
};

TEST_F(FormLauncherTest, BlocksOfManyThreadsOverlap) {
  EXPECT_EQ(taken(256), "overlapping");
  EXPECT_EQ(taken(1024), "overlapping");
}

TEST_F(FormLauncherTest, BlocksOfFewThreadsDoNotWhereThatCostsWorkers) {
  EXPECT_EQ(taken(64), "compact");
  EXPECT_EQ(taken(256), "overlapping") << "each shape is asked for by itself";
}

TEST_F(FormLauncherTest, AQuotaOfWorkersMayLeaveRoomForTwoCopies) {
  EXPECT_EQ(taken(64, 4), "overlapping");
  EXPECT_EQ(taken(64, 20), "compact");
}

TEST_F(FormLauncherTest, WithoutACompactFormThereIsNoChoice) {
  forms_.compact_worker.clear();
  EXPECT_EQ(taken(64), "overlapping");
}

TEST_F(FormLauncherTest, WhatTheDeviceDoesNotHaveIsNotTaken) {
  forms_.worker = "nosuch";
  EXPECT_EQ(taken(256), "compact");
}

TEST_F(FormLauncherTest, WhatWasRefusedOnceIsNotWishedAgain) {
  // Else its time as a worker would be waited for, for ever.
  forms_.worker = "missing";
  forms_.compact_worker.clear();
  EXPECT_TRUE(may_be_worker({1000, 1, 1}, {256, 1, 1}));
  EXPECT_EQ(launch(256), injector::Form::kNative);
  EXPECT_FALSE(may_be_worker({1000, 1, 1}, {256, 1, 1}));
  EXPECT_TRUE(may_be_worker({1000, 1, 1}, {128, 1, 1})) << "smaller blocks may have room";
}

TEST_F(FormLauncherTest, WhatRunsNativelyAfterAllWaitsForTheWorkBeforeItToo) {
  forms_.worker = "missing";
  forms_.compact_worker.clear();
  const device::Stream earlier = *device_.create_stream(0, device::kWholeDevice);
  const device::Event over = *device_.create_event(false);
  device_.hold(true);
  ASSERT_TRUE(device_.record(over, earlier));
  EXPECT_EQ(launch(256, 0, over), injector::Form::kNative);
  while (device_.step(stream_)) {
  }
  EXPECT_TRUE(device_.trace().empty());
  while (device_.step(earlier)) {
  }
  while (device_.step(stream_)) {
  }
  EXPECT_EQ(device_.trace().size(), 1u);
  device_.hold(false);
  device_.destroy_event(over);
  device_.destroy_stream(earlier);
}

TEST_F(FormLauncherTest, WhatCannotBeNumberedRunsNatively) {
  EXPECT_TRUE(may_be_worker({2147483647, 1, 1}, {256, 1, 1}));
  EXPECT_FALSE(may_be_worker({2147483647, 2, 1}, {256, 1, 1}));
  EXPECT_FALSE(may_be_worker({2147483647, 65535, 65535}, {256, 1, 1}));
}

TEST_F(FormLauncherTest, GridsAndBlocksHaveTheDevicesLimits) {
  const auto within = [this](device::Dim3 grid, device::Dim3 block) {
    device::LaunchSpec spec;
    spec.grid = grid;
    spec.block = block;
    return is_within_limits(device_.info(), spec);
  };
  EXPECT_TRUE(within({2147483647, 65535, 65535}, {1024, 1, 1}));
  EXPECT_TRUE(within({1, 1, 1}, {4, 4, 64}));
  EXPECT_FALSE(within({2147483648, 1, 1}, {1, 1, 1}));
  EXPECT_FALSE(within({1, 65536, 1}, {1, 1, 1}));
  EXPECT_FALSE(within({1, 1, 65536}, {1, 1, 1}));
  EXPECT_FALSE(within({1, 1, 1}, {1, 1, 65}));
  EXPECT_FALSE(within({1, 1, 1}, {33, 32, 1}));
  EXPECT_FALSE(within({1, 1, 1}, {1u << 31, 1u << 31, 4}));
}

TEST_F(FormLauncherTest, WarpsMustNotSpanRowsWhereTheAnalysisCountsOnIt) {
  EXPECT_TRUE(may_be_worker({9, 1, 1}, {20, 5, 1}));
  forms_.analysis.needs_whole_rows = true;
  EXPECT_FALSE(may_be_worker({9, 1, 1}, {20, 5, 1}));
  EXPECT_TRUE(may_be_worker({9, 1, 1}, {100, 1, 1}));
  EXPECT_TRUE(may_be_worker({9, 1, 1}, {64, 5, 1}));
}

TEST_F(FormLauncherTest, BlocksMustBeWholeWarpsWhereTheAnalysisCountsOnIt) {
  forms_.analysis.needs_whole_warps = true;
  EXPECT_FALSE(may_be_worker({9, 1, 1}, {100, 1, 1}));
  EXPECT_FALSE(may_be_worker({9, 1, 1}, {20, 5, 1}));
  EXPECT_TRUE(may_be_worker({9, 1, 1}, {64, 5, 1}));
  EXPECT_TRUE(may_be_worker({(1u << 21) - 1, 1, 1}, {1024, 1, 1}));
  EXPECT_FALSE(may_be_worker({1u << 21, 1, 1}, {1024, 1, 1})) << "2^31 threads";
}

}  // namespace
}  // namespace slate::daemon
