// WorkerQueue: what its launches wait for, on a device whose streams the test steps by hand. What
// workers do: tests/unit/forms.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "daemon/dispatch/worker_launch.h"
#include "tests/unit/daemon/fake_device.h"

namespace slate::daemon {
namespace {

class WorkerQueueTest : public testing::Test {
 protected:
  WorkerQueueTest()
      : memory_(*ControlMemory::create(device_)),
        stream_(*device_.create_stream(0)),
        control_(*device_.create_stream(0)) {
    device_.add_kernel("workers", {});
    launch_.spec.function = *device_.find_function({}, "workers");
    launch_.spec.grid = {100, 1, 1};
    launch_.spec.parameters = parameters_;
    launch_.parameter_offset = sizeof(parameters_);
  }
  ~WorkerQueueTest() override {
    device_.hold(false);
    queue_.reset();
    device_.destroy_stream(stream_);
    device_.destroy_stream(control_);
    memory_.reset();
  }
  void run_dry(device::Stream stream) {
    while (device_.step(stream)) {
    }
  }
  /// Workers withheld from the first SM, in the device's memory.
  std::uint32_t withheld() const {
    std::uint32_t word = 0;
    const device::Address at = queue_->control().base + injector::ControlBlock::kSmOffset;
    std::memcpy(&word, reinterpret_cast<const void*>(at), sizeof(word));
    return word >> 16;
  }
  /// Pieces of work so far that begin like this.
  std::size_t ran(const std::string& name) const {
    return static_cast<std::size_t>(std::ranges::count_if(
        device_.trace(), [&](const std::string& piece) { return piece.starts_with(name); }));
  }

  FakeDevice device_;
  std::unique_ptr<ControlMemory> memory_;
  const device::Stream stream_, control_;
  const std::array<std::byte, 8> parameters_{};
  FormLaunch launch_;
  std::unique_ptr<WorkerQueue> queue_ = std::make_unique<WorkerQueue>(device_, *memory_);
  const WorkerTable table_ = WorkerTable(memory_->sm_count(), 1);
};

TEST_F(WorkerQueueTest, ASessionHasNoMoreControlBlocksThanItLeavesTheOthers) {
  ControlMemory::Share greedy, modest;
  std::vector<device::Address> taken;
  while (const auto block = memory_->take(greedy)) taken.push_back(*block);
  EXPECT_FALSE(memory_->has_slot_for(greedy));
  std::size_t others = 0;
  std::vector<device::Address> theirs;
  for (ControlMemory::Share share; const auto block = memory_->take(share); share = {}) {
    theirs.push_back(*block);
    ++others;
  }
  EXPECT_GE(others, taken.size());
  EXPECT_LE(others, taken.size() + 1);
  EXPECT_FALSE(memory_->has_slot_for(modest));
  memory_->give_back(taken.back(), greedy);
  taken.pop_back();
  EXPECT_TRUE(memory_->has_slot_for(modest));
  EXPECT_EQ(memory_->take(greedy).error().code, ErrorCode::kLimit);
  for (const device::Address block : taken) memory_->give_back(block, greedy);
  const auto block = memory_->take(modest);
  EXPECT_TRUE(block);
}

TEST_F(WorkerQueueTest, ALaunchComesBehindTheTablesOfTheOneBefore) {
  device_.hold(true);
  ASSERT_TRUE(queue_->launch(launch_, stream_, &table_));
  ASSERT_TRUE(queue_->resize(table_, control_));
  ASSERT_TRUE(queue_->resize(table_, control_));
  ASSERT_TRUE(queue_->launch(launch_, stream_, &table_));
  run_dry(stream_);
  EXPECT_EQ(ran("workers"), 1u);
  run_dry(control_);
  run_dry(stream_);
  EXPECT_EQ(ran("workers"), 2u);
}

TEST_F(WorkerQueueTest, AResizeComesBehindTheTableThatItsLaunchBeganWith) {
  const WorkerTable nowhere(memory_->sm_count(), 0);
  device_.hold(true);
  launch_.control = control_;
  ASSERT_TRUE(queue_->launch(launch_, stream_, &nowhere));
  ASSERT_TRUE(queue_->resize(table_, control_));
  run_dry(control_);
  run_dry(stream_);
  EXPECT_EQ(ran("workers"), 1u);
  EXPECT_EQ(withheld(), injector::kMostWorkers - 1);
}

TEST_F(WorkerQueueTest, WhatALaunchThatMayBeResizedReadsIsThereBeforeIt) {
  device_.hold(true);
  launch_.control = control_;
  ASSERT_TRUE(queue_->launch(launch_, stream_, &table_));
  run_dry(stream_);
  EXPECT_EQ(ran("workers"), 0u);
  run_dry(control_);
  run_dry(stream_);
  EXPECT_EQ(ran("workers"), 1u);
}

TEST_F(WorkerQueueTest, TablesUnderWayAreKnown) {
  ASSERT_TRUE(queue_->launch(launch_, stream_));
  EXPECT_TRUE(queue_->tables_copied());
  device_.hold(true);
  ASSERT_TRUE(queue_->resize(table_, control_));
  EXPECT_FALSE(queue_->tables_copied());
  run_dry(control_);
  EXPECT_TRUE(queue_->tables_copied());
}

TEST_F(WorkerQueueTest, WorkersAreAddedBehindTheTableThatMakesRoomForThem) {
  const device::Stream side = *device_.create_stream(0);
  ASSERT_TRUE(queue_->launch(launch_, stream_, &table_));
  device_.hold(true);
  ASSERT_TRUE(queue_->resize(table_, control_));
  ASSERT_TRUE(queue_->supplement(1, side));
  run_dry(side);
  EXPECT_EQ(ran("workers"), 1u);
  run_dry(control_);
  run_dry(side);
  EXPECT_EQ(ran("workers"), 2u);
  device_.destroy_stream(side);
}

/// With a dispatch kernel in the place of workers.
class DispatchQueueTest : public WorkerQueueTest {
 protected:
  DispatchQueueTest() {
    queue_.reset();
    memory_ = *ControlMemory::create(device_, true);
    queue_ = std::make_unique<WorkerQueue>(device_, *memory_);
    device_.add_kernel("dispatch", {});
    launch_.dispatch = *device_.find_function({}, "dispatch");
  }
  /// Of the device's memory, which the test may look at.
  DispatchState state() const {
    DispatchState state;
    const device::Address at = queue_->control().base + queue_->control().bytes;
    std::memcpy(&state, reinterpret_cast<const void*>(at), sizeof(state));
    return state;
  }
  DispatchProgress progress() {
    std::vector<std::uint32_t> words(queue_->watched_bytes() / 4);
    std::memcpy(words.data(), reinterpret_cast<const void*>(queue_->control().base),
                queue_->watched_bytes());
    return queue_->dispatch_progress(words);
  }
};

TEST_F(DispatchQueueTest, TheDispatchKernelIsLaunchedInThePlaceOfWorkers) {
  ASSERT_TRUE(queue_->launch(launch_, stream_, &table_));
  EXPECT_TRUE(queue_->by_device());
  EXPECT_EQ(ran("dispatch"), 1u);
  EXPECT_EQ(ran("workers"), 0u);
  EXPECT_EQ(state().workers, 4u);
  EXPECT_EQ(state().stop, 0u);
  EXPECT_TRUE(progress().begun);
  EXPECT_FALSE(progress().nobody);
}

TEST_F(DispatchQueueTest, AKernelWithoutADispatchKernelIsTheHosts) {
  launch_.dispatch = {};
  ASSERT_TRUE(queue_->launch(launch_, stream_, &table_));
  EXPECT_FALSE(queue_->by_device());
  EXPECT_EQ(ran("workers"), 1u);
}

TEST_F(DispatchQueueTest, MoreParametersThanAStateHoldsAreTheHosts) {
  const std::vector<std::byte> many(DispatchState::kMostParameterBytes);
  launch_.spec.parameters = many;
  launch_.parameter_offset = DispatchState::kMostParameterBytes - 8;
  ASSERT_TRUE(queue_->launch(launch_, stream_, &table_));
  EXPECT_FALSE(queue_->by_device());
}

TEST_F(DispatchQueueTest, ALaunchThatBeginsOffTheDeviceIsStoppedFromTheStart) {
  const WorkerTable nowhere(memory_->sm_count(), 0);
  ASSERT_TRUE(queue_->launch(launch_, stream_, &nowhere));
  EXPECT_EQ(state().stop, 1u);
}

// Or else a dispatch kernel could wait at an empty table, and be waited for.
TEST_F(DispatchQueueTest, ALaunchThatIsTakenOffBeforeItsBeginStaysOff) {
  const WorkerTable nowhere(memory_->sm_count(), 0);
  launch_.control = control_;
  for (int between = 0; between < 8; ++between) {
    ASSERT_TRUE(queue_->launch(launch_, stream_, &table_));
    run_dry(stream_);
    device_.hold(true);
    ASSERT_TRUE(queue_->launch(launch_, stream_, &table_));
    ASSERT_TRUE(queue_->resize(nowhere, control_));
    ASSERT_TRUE(queue_->stop(control_));
    for (int i = 0; i < between; ++i) device_.step(stream_);
    run_dry(control_);
    run_dry(stream_);
    EXPECT_EQ(withheld(), injector::kMostWorkers) << between;
    EXPECT_EQ(state().stop, 1u) << between;
    device_.hold(false);
  }
}

TEST_F(DispatchQueueTest, AStopThatIsToldBehindAnotherStartIsNotTakenBack) {
  ASSERT_TRUE(queue_->launch(launch_, stream_, &table_));
  ASSERT_TRUE(queue_->stop(control_));
  device_.hold(true);
  ASSERT_TRUE(queue_->dispatch_again(control_));
  ASSERT_TRUE(queue_->stop(control_));
  run_dry(stream_);
  EXPECT_EQ(ran("dispatch"), 1u) << "before its state was cleared";
  run_dry(control_);
  run_dry(stream_);
  EXPECT_EQ(ran("dispatch"), 2u);
  EXPECT_EQ(state().stop, 1u);
}

TEST_F(DispatchQueueTest, WhatIsLeftOfAnotherLaunchSaysNothing) {
  ASSERT_TRUE(queue_->launch(launch_, stream_, &table_));
  device_.hold(true);
  ASSERT_TRUE(queue_->launch(launch_, stream_, &table_));
  EXPECT_FALSE(progress().begun);
}

}  // namespace
}  // namespace slate::daemon
