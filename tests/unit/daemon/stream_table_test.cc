// StreamTable, StreamOrder and Retirement on a device whose streams the test steps by hand.
#include "daemon/engine/stream_table.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>

#include "daemon/engine/retirement.h"
#include "tests/unit/daemon/fake_device.h"

namespace slate::daemon {
namespace {

using namespace std::chrono_literals;

constexpr auto kLong = 60s;

class StreamTableTest : public testing::Test {
 protected:
  StreamTableTest()
      : module_(*device_.load_module(device::ImageKind::kPtx, image_)),
        completer_(std::make_unique<Completer>(device_)),
        table_(std::make_unique<StreamTable>(
            device_, *completer_, group_, [this](const Error& error) { fault_ = error.code; })) {}
  ~StreamTableTest() override {
    device_.hold(false);
    device_.release_spinning();
    EXPECT_TRUE(group_.wait_empty(kLong));
    table_->destroy_all();
    table_.reset();
    completer_.reset();
    device_.unload_module(module_);
    EXPECT_TRUE(device_.holds_nothing());
  }

  /// Submits a kernel as a session would. The name of its device stream in the trace.
  std::string work(std::uint64_t id, const char* kernel = "noop") {
    LogicalStream* const stream = *table_->find(id);
    const auto target = *table_->begin_work(*stream);
    const std::array<std::byte, 8> parameter{};
    EXPECT_TRUE(device_.launch(
        {.function = *device_.find_function(module_, kernel), .parameters = parameter}, target));
    table_->work_submitted(*stream, std::make_shared<const std::string>(kernel));
    if (pauses_) table_->watch_all();
    return std::string(kernel) + "@" + std::to_string(static_cast<std::uint64_t>(target));
  }
  void run_dry(device::Stream stream) {
    while (device_.step(stream)) {
    }
  }
  device::Stream device_stream(std::uint64_t id) { return (*table_->find(id))->device; }
  void wait_idle() { ASSERT_TRUE(group_.wait_empty(kLong)); }

  bool pauses_ = true;  // the session's thread, after every piece of work
  const std::array<std::byte, 1> image_{std::byte{'x'}};
  FakeDevice device_;
  device::Module module_;
  Completer::Group group_;
  std::atomic<ErrorCode> fault_{ErrorCode::kNone};
  std::unique_ptr<Completer> completer_;
  std::unique_ptr<StreamTable> table_;
};

TEST_F(StreamTableTest, AStreamCostsNothingBeforeItsFirstWork) {
  ASSERT_TRUE(table_->create(1, true, 0));
  EXPECT_TRUE(device_.streams().empty());
  EXPECT_TRUE(*table_->query(**table_->find(1)));
}

TEST_F(StreamTableTest, IdsAreNewAndNotZero) {
  ASSERT_TRUE(table_->create(1, true, 0));
  EXPECT_EQ(table_->create(1, true, 0).error().code, ErrorCode::kProtocol);
  EXPECT_EQ(table_->create(0, true, 0).error().code, ErrorCode::kProtocol);
  EXPECT_EQ(table_->find(2).error().code, ErrorCode::kInvalidHandle);
  EXPECT_EQ(table_->destroy(2).error().code, ErrorCode::kInvalidHandle);
}

TEST_F(StreamTableTest, StreamsAreLimited) {
  for (std::uint64_t id = 1; id <= StreamTable::kMostStreams; ++id) {
    ASSERT_TRUE(table_->create(id, true, 0));
  }
  EXPECT_EQ(table_->create(1'000'000, true, 0).error().code, ErrorCode::kLimit);
}

TEST_F(StreamTableTest, DefaultStreamWaitsForEarlierWorkOfBlockingStreams) {
  ASSERT_TRUE(table_->create(1, true, 0));
  device_.hold(true);
  const auto first = work(1);
  const auto second = work(0);
  run_dry(device_stream(0));
  EXPECT_TRUE(device_.trace().empty());
  run_dry(device_stream(1));
  run_dry(device_stream(0));
  EXPECT_EQ(device_.trace(), (std::vector{first, second}));
}

TEST_F(StreamTableTest, BlockingStreamWaitsForEarlierWorkOfTheDefaultStream) {
  ASSERT_TRUE(table_->create(1, true, 0));
  device_.hold(true);
  const auto first = work(0);
  const auto second = work(1);
  run_dry(device_stream(1));
  EXPECT_TRUE(device_.trace().empty());
  run_dry(device_stream(0));
  run_dry(device_stream(1));
  EXPECT_EQ(device_.trace(), (std::vector{first, second}));
}

TEST_F(StreamTableTest, DefaultStreamDoesNotWaitForLaterWork) {
  ASSERT_TRUE(table_->create(1, true, 0));
  device_.hold(true);
  const auto first = work(0);
  work(1);
  const auto second = work(0);
  run_dry(device_stream(0));
  EXPECT_EQ(device_.trace(), std::vector{first})
      << "the second default work must wait for stream 1";
  run_dry(device_stream(1));
  run_dry(device_stream(0));
  EXPECT_EQ(device_.trace().back(), second);
  EXPECT_EQ(device_.trace().size(), 3u);
}

TEST_F(StreamTableTest, NonBlockingStreamIsIndependentOfTheDefaultStream) {
  ASSERT_TRUE(table_->create(1, false, 0));
  device_.hold(true);
  work(0);
  const auto own = work(1);
  run_dry(device_stream(1));
  EXPECT_EQ(device_.trace(), std::vector{own});
  work(0);
  run_dry(device_stream(0));
  EXPECT_EQ(device_.trace().size(), 3u);
}

TEST_F(StreamTableTest, BlockingStreamsAreIndependentOfOneAnother) {
  ASSERT_TRUE(table_->create(1, true, 0));
  ASSERT_TRUE(table_->create(2, true, 0));
  device_.hold(true);
  work(1);
  const auto second = work(2);
  run_dry(device_stream(2));
  EXPECT_EQ(device_.trace(), std::vector{second});
}

TEST_F(StreamTableTest, ADestroyedStreamKeepsItsPlaceInTheOrder) {
  ASSERT_TRUE(table_->create(1, true, 0));
  device_.hold(true);
  const auto first = work(1);
  const auto stream = device_stream(1);
  ASSERT_TRUE(table_->destroy(1));
  const auto second = work(0);
  run_dry(device_stream(0));
  EXPECT_TRUE(device_.trace().empty());
  run_dry(stream);
  run_dry(device_stream(0));
  EXPECT_EQ(device_.trace(), (std::vector{first, second}));
}

TEST_F(StreamTableTest, ADestroyedIdleStreamIsGivenBack) {
  ASSERT_TRUE(table_->create(1, true, 0));
  work(1);
  wait_idle();
  ASSERT_TRUE(table_->destroy(1));
  EXPECT_TRUE(device_.streams().empty());
  EXPECT_EQ(table_->launches(), 1u);
}

TEST_F(StreamTableTest, ProgressIsSeenWithoutAnybodyAsking) {
  ASSERT_TRUE(table_->create(1, true, 0));
  for (int i = 0; i < 100; ++i) work(1);
  wait_idle();
  EXPECT_FALSE((*table_->find(1))->busy());
  EXPECT_EQ(table_->launches(), 100u);
  EXPECT_EQ(table_->launches_running(), 0u);
  EXPECT_TRUE(table_->unfinished(nullptr).empty());
}

TEST_F(StreamTableTest, WaitingForTheDefaultStreamMeansTheBlockingOnesToo) {
  ASSERT_TRUE(table_->create(1, true, 0));
  ASSERT_TRUE(table_->create(2, false, 0));
  device_.hold(true);
  work(1);
  work(2);
  EXPECT_EQ(table_->unfinished(*table_->find(0)), std::vector{*table_->find(1)});
  EXPECT_EQ(table_->unfinished(*table_->find(2)), std::vector{*table_->find(2)});
  EXPECT_EQ(table_->unfinished(nullptr).size(), 2u);
  EXPECT_FALSE(*table_->query(**table_->find(1)));
}

TEST_F(StreamTableTest, RunningKernelsAreNamed) {
  work(0, "spin");
  EXPECT_EQ(table_->running_kernels(), std::vector<std::string>{"spin"});
  EXPECT_EQ(table_->launches_running(), 1u);
}

TEST_F(StreamTableTest, ProgressIsSeenWhileTheSessionGoesOnSubmitting) {
  device_.hold(true);
  pauses_ = false;
  for (int i = 0; i < 100; ++i) work(0);
  run_dry(device_stream(0));
  wait_idle();
  const LogicalStream& stream = **table_->find(0);
  EXPECT_GE(stream.completed.load(), 50u);
  EXPECT_TRUE(stream.busy());
  table_->watch_all();
  run_dry(device_stream(0));
  wait_idle();
  EXPECT_FALSE(stream.busy());
}

TEST_F(StreamTableTest, AWatchCallsWhenWhatIsBeforeItIsDone) {
  device_.hold(true);
  work(0);
  std::atomic<bool> called = false;
  LogicalStream& stream = **table_->find(0);
  ASSERT_TRUE(table_->watch(stream, [&](const Result<void>& outcome) {
    EXPECT_TRUE(outcome);
    EXPECT_FALSE(stream.busy());
    called = true;
  }));
  EXPECT_FALSE(called);
  run_dry(device_stream(0));
  wait_idle();
  EXPECT_TRUE(called);
}

TEST_F(StreamTableTest, AFaultIsReportedWithoutAnybodyAsking) {
  work(0, "fault");
  wait_idle();
  EXPECT_EQ(fault_.load(), ErrorCode::kIllegalAddress);
}

TEST_F(StreamTableTest, CancelEndsWhatRuns) {
  work(0, "spin");
  EXPECT_TRUE(table_->cancel_all());
  table_->watch_ends();
  wait_idle();
}

TEST_F(StreamTableTest, ARetirementWaitsForAllPresentWorkOnly) {
  Retirement retirement(*table_, *completer_, group_);
  ASSERT_TRUE(table_->create(1, true, 0));
  std::atomic<int> retired{0};
  ASSERT_TRUE(retirement.after_present_work([&] { ++retired; }));
  EXPECT_EQ(retired, 1) << "nothing was running";
  work(1, "spin");
  ASSERT_TRUE(retirement.after_present_work([&] { ++retired; }));
  ASSERT_TRUE(retirement.after_present_work([&] { ++retired; }));
  EXPECT_FALSE(group_.wait_empty(0ms));
  EXPECT_EQ(retired, 1);
  device_.release_spinning();
  wait_idle();
  EXPECT_EQ(retired, 3);
}

TEST_F(StreamTableTest, ARetirementIsDroppedWhenItsWorkWasCancelled) {
  Retirement retirement(*table_, *completer_, group_);
  std::atomic<bool> retired{false};
  work(0, "spin");
  ASSERT_TRUE(retirement.after_present_work([&] { retired = true; }));
  table_->cancel_all();
  wait_idle();
  EXPECT_FALSE(retired);
}

}  // namespace
}  // namespace slate::daemon
