// StreamTable, StreamRows, StreamOrder and Retirement on a device whose streams the test steps by
// hand.
#include "daemon/engine/stream_table.h"

#include "daemon/engine/retirement.h"
#include "tests/unit/daemon/stream_fixture.h"

namespace slate::daemon {
namespace {

using namespace std::chrono_literals;

class StreamTableTest : public StreamFixture {
 protected:
  StreamTableTest()
      : table_(std::make_unique<StreamTable>(
            device_, *completer_, group_, [this](const Error& error) { fault_ = error.code; })) {}
  ~StreamTableTest() override {
    end_work();
    table_->destroy_all();
  }

  /// Submits a kernel as a session would. The name of its device stream in the trace.
  std::string work(std::uint64_t id, const char* kernel = "noop") {
    LogicalStream* const stream = *table_->find(id);
    const device::LaunchSpec spec = launch_of(kernel);
    const auto name = std::make_shared<const std::string>(kernel);
    if (GetParam()) {
      EXPECT_TRUE(table_->launch_in_row(*stream, spec, name));
    } else {
      EXPECT_TRUE(device_.launch(spec, *table_->begin_work(*stream)));
      table_->work_submitted(*stream, name);
    }
    if (pauses_) table_->watches().watch_all();
    return at_stream(kernel, stream->device);
  }
  device::Stream device_stream(std::uint64_t id) { return (*table_->find(id))->device; }

  bool pauses_ = true;  // the session's thread, after every piece of work
  std::unique_ptr<StreamTable> table_;
};

TEST_P(StreamTableTest, AStreamCostsNothingBeforeItsFirstWork) {
  ASSERT_TRUE(table_->create(1, true, 0));
  EXPECT_TRUE(device_.streams().empty());
  EXPECT_TRUE(*table_->query(**table_->find(1)));
}

TEST_P(StreamTableTest, IdsAreNewAndNotZero) {
  ASSERT_TRUE(table_->create(1, true, 0));
  EXPECT_EQ(table_->create(1, true, 0).error().code, ErrorCode::kProtocol);
  EXPECT_EQ(table_->create(0, true, 0).error().code, ErrorCode::kProtocol);
  EXPECT_EQ(table_->find(2).error().code, ErrorCode::kInvalidHandle);
  EXPECT_EQ(table_->destroy(2).error().code, ErrorCode::kInvalidHandle);
}

TEST_P(StreamTableTest, StreamsAreLimited) {
  for (std::uint64_t id = 1; id <= StreamTable::kMostStreams; ++id) {
    ASSERT_TRUE(table_->create(id, true, 0));
  }
  EXPECT_EQ(table_->create(1'000'000, true, 0).error().code, ErrorCode::kLimit);
}

TEST_P(StreamTableTest, DefaultStreamWaitsForEarlierWorkOfBlockingStreams) {
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

TEST_P(StreamTableTest, BlockingStreamWaitsForEarlierWorkOfTheDefaultStream) {
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

TEST_P(StreamTableTest, DefaultStreamDoesNotWaitForLaterWork) {
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

TEST_P(StreamTableTest, NonBlockingStreamIsIndependentOfTheDefaultStream) {
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

TEST_P(StreamTableTest, BlockingStreamsAreIndependentOfOneAnother) {
  ASSERT_TRUE(table_->create(1, true, 0));
  ASSERT_TRUE(table_->create(2, true, 0));
  device_.hold(true);
  work(1);
  const auto second = work(2);
  run_dry(device_stream(2));
  EXPECT_EQ(device_.trace(), std::vector{second});
}

TEST_P(StreamTableTest, ADestroyedStreamKeepsItsPlaceInTheOrder) {
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

TEST_P(StreamTableTest, ADestroyedIdleStreamIsGivenBack) {
  ASSERT_TRUE(table_->create(1, true, 0));
  work(1);
  wait_idle();
  ASSERT_TRUE(table_->destroy(1));
  EXPECT_TRUE(device_.streams().empty());
  EXPECT_EQ(table_->launches(), 1u);
}

TEST_P(StreamTableTest, ADestroyedStreamStaysWhileWorkersAddedLateAreToCome) {
  ASSERT_TRUE(table_->create(1, true, 0));
  work(1);
  wait_idle();
  WorkerLane::Side* const side = *table_->idle_side((*table_->find(1))->lane);
  device_.hold(true);
  ASSERT_TRUE(device_.record(side->end->get(), side->stream));
  ASSERT_TRUE(table_->destroy(1));
  EXPECT_EQ(device_.streams().size(), 2u);
  device_.hold(false);
  ASSERT_TRUE(table_->create(2, true, 0));  // which looks again
  EXPECT_TRUE(device_.streams().empty());
}

TEST_P(StreamTableTest, ProgressIsSeenWithoutAnybodyAsking) {
  ASSERT_TRUE(table_->create(1, true, 0));
  for (int i = 0; i < 100; ++i) work(1);
  wait_idle();
  EXPECT_FALSE((*table_->find(1))->busy());
  EXPECT_EQ(table_->launches(), 100u);
  EXPECT_EQ(table_->launches_running(), 0u);
  EXPECT_TRUE(table_->unfinished(nullptr).empty());
}

TEST_P(StreamTableTest, WaitingForTheDefaultStreamMeansTheBlockingOnesToo) {
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

TEST_P(StreamTableTest, RunningKernelsAreNamed) {
  work(0, "spin");
  EXPECT_EQ(table_->running_kernels(), std::vector<std::string>{"spin"});
  EXPECT_EQ(table_->launches_running(), 1u);
}

TEST_P(StreamTableTest, AKernelWithoutAFenceCountsUntilItIsDone) {
  ASSERT_TRUE(table_->create(1, false, 0));
  work(1);
  wait_idle();
  device_.hold(true);
  work(1);
  EXPECT_FALSE(table_->runs_unfenced()) << "both have one";
  (*table_->find(1))->expect_unfenced();
  work(1);
  work(1);
  EXPECT_TRUE(table_->runs_unfenced());
  device_.hold(false);
  wait_idle();
  EXPECT_FALSE(table_->runs_unfenced());
}

TEST_P(StreamTableTest, CancelEndsWhatRuns) {
  work(0, "spin");
  EXPECT_TRUE(table_->cancel_all());
  table_->watch_ends();
  wait_idle();
}

TEST_P(StreamTableTest, WorkOfOneStreamRunsInItsOrder) {
  pauses_ = false;
  ASSERT_TRUE(table_->create(1, false, 0));
  std::vector<std::string> expected;
  for (int i = 0; i < 3; ++i) {
    for (int j = 0; j < 1 + 2 * i; ++j) expected.push_back(work(1));
    const auto target = *table_->begin_work(**table_->find(1));
    EXPECT_TRUE(device_.copy(Place::on_device(0), Place::on_device(0), {1, 0}, target));
    table_->work_submitted(**table_->find(1));
    expected.push_back("on_device@" + std::to_string(static_cast<std::uint64_t>(target)));
  }
  table_->watches().watch_all();
  wait_idle();
  EXPECT_EQ(device_.trace(), expected);
}

TEST_P(StreamTableTest, ARetirementWaitsForAllPresentWorkOnly) {
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

TEST_P(StreamTableTest, ASecondStepWaitsForWorkThatBeganBeforeTheFirst) {
  std::atomic<int> wakes{0};
  Retirement retirement(*table_, *completer_, group_, [&] { ++wakes; });
  ASSERT_TRUE(table_->create(1, false, 0));
  std::string steps;
  const auto retire = [&] {
    return retirement.in_two_steps([&] { steps += "first "; }, [&] { steps += "then "; });
  };
  ASSERT_TRUE(retire());
  EXPECT_EQ(steps, "first then ") << "nothing was running";
  EXPECT_FALSE(retirement.can_go_on());
  work(0, "spin");
  ASSERT_TRUE(retire());
  EXPECT_EQ(steps, "first then ");
  device_.release_spinning();
  wait_idle();
  EXPECT_EQ(steps, "first then first ");
  EXPECT_EQ(wakes, 1);
  device_.hold(true);
  work(1);  // as if it had begun in between
  EXPECT_TRUE(retirement.can_go_on());
  ASSERT_TRUE(retirement.go_on());
  EXPECT_FALSE(group_.wait_empty(0ms));
  EXPECT_EQ(steps, "first then first ");
  device_.hold(false);
  wait_idle();
  EXPECT_EQ(steps, "first then first then ");
  EXPECT_FALSE(retirement.can_go_on());
}

TEST_P(StreamTableTest, ARetirementIsDroppedWhenItsWorkWasCancelled) {
  Retirement retirement(*table_, *completer_, group_);
  std::atomic<bool> retired{false};
  work(0, "spin");
  ASSERT_TRUE(retirement.after_present_work([&] { retired = true; }));
  table_->cancel_all();
  wait_idle();
  EXPECT_FALSE(retired);
}

INSTANTIATE_TEST_SUITE_P(Submitted, StreamTableTest, testing::Bool(), [](const auto& name) {
  return std::string(name.param ? "InRows" : "AtOnce");
});

/// What is in a row and what is not yet.
class LaunchRowTest : public StreamTableTest {
 protected:
  LaunchRowTest() {
    pauses_ = false;
    EXPECT_TRUE(table_->create(1, false, 0));
    EXPECT_TRUE(table_->create(2, false, 0));
    EXPECT_TRUE(table_->create(3, true, 0));
  }
  std::size_t launched() const { return device_.trace().size(); }
};

TEST_P(LaunchRowTest, AFullRowIsSubmitted) {
  for (std::size_t i = 1; i < LaunchRow::kMost; ++i) work(1);
  EXPECT_EQ(launched(), 0);
  work(1);
  EXPECT_EQ(launched(), LaunchRow::kMost);
}

TEST_P(LaunchRowTest, StreamsThatDoNotWaitForOneAnotherKeepTheirRows) {
  for (const std::uint64_t id : {1, 2, 1, 2, 3}) work(id);
  EXPECT_EQ(launched(), 0);
  EXPECT_TRUE(table_->begin_work(**table_->find(2)));
  EXPECT_EQ(launched(), 2);
  EXPECT_TRUE(table_->begin_work(**table_->find(0)));
  EXPECT_EQ(launched(), 5);
}

TEST_P(LaunchRowTest, WhatIsWaitedForIsSubmitted) {
  work(1);
  EXPECT_TRUE(table_->query(**table_->find(1)));
  EXPECT_EQ(launched(), 1);
  work(2);
  EXPECT_EQ(table_->unfinished(nullptr).size(), 2);
  EXPECT_EQ(launched(), 2);
  work(3);
  EXPECT_TRUE(table_->destroy(3));
  EXPECT_EQ(launched(), 3);
  work(0);
  table_->watches().watch_all();
  EXPECT_EQ(launched(), 4);
}

TEST_P(LaunchRowTest, ARefusalIsReportedAndKeepsNothingBack) {
  std::vector<ErrorCode> refusals;
  table_->report_refusals([&](const Error& error) { refusals.push_back(error.code); });
  work(1);
  LogicalStream* const stream = *table_->find(1);
  const device::LaunchSpec wrong{.function = *device_.find_function(module_, "noop"),
                                 .block = {2048, 1, 1}};
  EXPECT_TRUE(table_->launch_in_row(*stream, wrong, std::make_shared<const std::string>("noop")));
  work(1);
  table_->watches().watch_all();
  EXPECT_EQ(launched(), 2);
  EXPECT_EQ(refusals, std::vector{ErrorCode::kInvalidConfiguration});
  EXPECT_EQ(fault_.load(), ErrorCode::kNone);
}

INSTANTIATE_TEST_SUITE_P(Submitted, LaunchRowTest, testing::Values(true),
                         [](const auto&) { return std::string("InRows"); });

}  // namespace
}  // namespace slate::daemon
