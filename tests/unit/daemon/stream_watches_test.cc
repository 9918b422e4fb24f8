// StreamWatches and StreamRows on a device whose streams the test steps by hand.
#include "daemon/engine/stream_watches.h"

#include "tests/unit/daemon/stream_fixture.h"

namespace slate::daemon {
namespace {

class StreamWatchesTest : public StreamFixture {
 protected:
  StreamWatchesTest()
      : watches_(*completer_, group_, rows_, [this](const Error& error) { fault_ = error.code; }),
        stream_(make_stream()) {}
  ~StreamWatchesTest() override {
    end_work();
    watches_.end();
    completer_.reset();
    for (const device::Stream stream : device_.streams()) device_.destroy_stream(stream);
  }

  std::shared_ptr<LogicalStream> make_stream() {
    auto stream = std::make_shared<LogicalStream>();
    stream->device = *device_.create_stream(0, device::kWholeDevice);
    return stream;
  }
  /// Submits a kernel as the table would. The name of its device stream in the trace.
  std::string work(LogicalStream& stream, const char* kernel = "noop") {
    const device::LaunchSpec spec = launch_of(kernel);
    if (GetParam()) {
      rows_.add(stream, spec);
    } else {
      EXPECT_TRUE(device_.launch(spec, stream.device));
    }
    watches_.work_submitted(stream, ++position_);
    if (stream.row.is_full()) {
      rows_.submit(stream);
      watches_.watch_now_and_then(stream);
    }
    return at_stream(kernel, stream.device);
  }
  std::string work(const char* kernel = "noop") { return work(*stream_, kernel); }
  void run_dry(const LogicalStream& stream) { StreamFixture::run_dry(stream.device); }
  void run_dry() { run_dry(*stream_); }

  StreamRows rows_{device_};
  StreamWatches watches_;
  const std::shared_ptr<LogicalStream> stream_;
  std::uint64_t position_ = 0;
};

TEST_P(StreamWatchesTest, WorkBehindAWatchThatIsNotReachedIsSubmittedAndWatchedLater) {
  device_.hold(true);
  const auto first = work();
  watches_.watch_all(StreamWatches::Watched::kDue);
  EXPECT_EQ(device_.records(), 1U);
  const auto second = work();
  const auto third = work();
  watches_.watch_all(StreamWatches::Watched::kDue);
  EXPECT_EQ(device_.records(), 1U);
  run_dry();
  EXPECT_EQ(device_.trace(), (std::vector{first, second, third}));
  wait_idle();
  EXPECT_TRUE(stream_->busy());
  watches_.watch_all(StreamWatches::Watched::kDue);
  EXPECT_EQ(device_.records(), 2U);
  run_dry();
  wait_idle();
  EXPECT_FALSE(stream_->busy());
}

TEST_P(StreamWatchesTest, ProgressIsSeenWhileTheSessionGoesOnSubmitting) {
  device_.hold(true);
  for (int i = 0; i < 100; ++i) work();
  run_dry();
  wait_idle();
  EXPECT_GE(stream_->completed.load(), 50u);
  EXPECT_TRUE(stream_->busy());
  watches_.watch_all();
  run_dry();
  wait_idle();
  EXPECT_FALSE(stream_->busy());
}

TEST_P(StreamWatchesTest, AStreamWithALaunchInALaneIsNotWatched) {
  stream_->active_lanes = 1;
  for (int i = 0; i < 100; ++i) work();
  watches_.watch_all();
  EXPECT_EQ(device_.records(), 0U);
  stream_->active_lanes = 0;
  watches_.watch_all();
  EXPECT_EQ(device_.records(), 1U);
  wait_idle();
  EXPECT_FALSE(stream_->busy());
}

TEST_P(StreamWatchesTest, ProgressIsPublishedUpToTheLastWatch) {
  std::atomic<std::uint64_t> published = 0;
  stream_->progress = 7;
  watches_.publish([&](const LogicalStream& stream, std::uint64_t position) {
    EXPECT_EQ(stream.progress, 7u);
    published = position;
  });
  device_.hold(true);
  work();
  watches_.watch_all();
  work();
  watches_.end_command(*stream_, 5);
  EXPECT_EQ(published, 0u) << "its work is not done";
  rows_.submit_all();
  run_dry();
  wait_idle();
  EXPECT_EQ(published, 1u);
  watches_.watch_all();
  run_dry();
  wait_idle();
  EXPECT_EQ(published, 5u) << "an idle stream has passed its last command";
  watches_.end_command(*stream_, 6);
  EXPECT_EQ(published, 6u);
}

TEST_P(StreamWatchesTest, AWatchCallsWhenWhatIsBeforeItIsDone) {
  device_.hold(true);
  work();
  std::atomic<bool> called = false;
  ASSERT_TRUE(watches_.watch(*stream_, [&](const Result<void>& outcome) {
    EXPECT_TRUE(outcome);
    EXPECT_FALSE(stream_->busy());
    called = true;
  }));
  EXPECT_FALSE(called);
  run_dry();
  wait_idle();
  EXPECT_TRUE(called);
}

TEST_P(StreamWatchesTest, AWatchThatFailsKeepsWhatItsCallbackOwns) {
  work();
  device_.refuse_records(true);
  auto owned = std::make_shared<bool>(false);
  const std::weak_ptr<bool> kept = owned;
  EXPECT_FALSE(watches_.watch(*stream_, [owned](const Result<void>&) { *owned = true; }));
  device_.refuse_records(false);
  owned.reset();
  {
    const auto alive = kept.lock();
    ASSERT_NE(alive, nullptr) << "the work goes on, and may use it";
    EXPECT_FALSE(*alive) << "the callback is not called";
  }
  EXPECT_EQ(stream_->watches.load(), 0u);
  watches_.end();
  EXPECT_TRUE(kept.expired());
}

TEST_P(StreamWatchesTest, ALaterWatchIsTheNextOne) {
  device_.hold(true);
  std::atomic<int> called = 0;
  const auto call = [&](const Result<void>& outcome) {
    EXPECT_TRUE(outcome);
    ++called;
  };
  work();
  watches_.watch_later(*stream_, call);
  work();
  watches_.watch_later(*stream_, call);
  EXPECT_EQ(group_.outstanding(), 0u);
  watches_.watch_all();
  EXPECT_EQ(group_.outstanding(), 1u);
  EXPECT_EQ(called, 0);
  run_dry();
  wait_idle();
  EXPECT_EQ(called, 2);
}

TEST_P(StreamWatchesTest, ALaterWatchComesAfterSoMany) {
  std::atomic<std::size_t> called = 0;
  for (std::size_t i = 0; i < StreamWatches::kMostLater; ++i) {
    EXPECT_EQ(group_.outstanding(), 0u);
    work();
    watches_.watch_later(*stream_, [&](const Result<void>&) { ++called; });
  }
  wait_idle();
  EXPECT_EQ(called, StreamWatches::kMostLater);
}

TEST_P(StreamWatchesTest, WatchesThatWerePutOffDoNotWaitForLaterWork) {
  device_.hold(true);
  const auto other = make_stream();
  std::atomic<int> called = 0;
  for (LogicalStream* const stream : {stream_.get(), other.get()}) {
    work(*stream);
    watches_.watch_later(*stream, [&](const Result<void>&) { ++called; });
  }
  watches_.watch_put_off();
  EXPECT_EQ(group_.outstanding(), 2u);
  watches_.watch_put_off();
  EXPECT_EQ(group_.outstanding(), 2u) << "there is nothing more to watch";
  run_dry();
  run_dry(*other);
  work("spin");
  wait_idle();
  EXPECT_EQ(called, 2);
  device_.release_spinning();
  watches_.watch_all();
  run_dry();
  wait_idle();
}

// Its device stream is reached at once, and the client would take the lane's kernel for done.
TEST_P(StreamWatchesTest, WatchesThatWerePutOffWaitForALaunchInALane) {
  std::atomic<std::size_t> called = 0;
  const auto call_later = [&] {
    watches_.watch_later(*stream_, [&](const Result<void>&) { ++called; });
  };
  work();
  call_later();
  stream_->active_lanes = 1;
  watches_.work_submitted(*stream_, ++position_);
  watches_.watch_put_off();
  for (std::size_t i = 0; i < StreamWatches::kMostLater; ++i) call_later();
  wait_idle();
  EXPECT_TRUE(stream_->busy());
  EXPECT_EQ(called, 0u);
  stream_->active_lanes = 0;
  watches_.watch_put_off();
  wait_idle();
  EXPECT_FALSE(stream_->busy());
  EXPECT_EQ(called, StreamWatches::kMostLater + 1);
}

TEST_P(StreamWatchesTest, ALaterWatchComesAtOnceBehindWhatWasJustWatched) {
  std::atomic<bool> called = false;
  for (bool watched = false; !watched; watched = stream_->unwatched == 0) work();
  watches_.watch_later(*stream_, [&](const Result<void>&) { called = true; });
  wait_idle();
  EXPECT_TRUE(called);
}

TEST_P(StreamWatchesTest, AFaultIsReportedWithoutAnybodyAsking) {
  work("fault");
  watches_.watch_all();
  wait_idle();
  EXPECT_EQ(fault_.load(), ErrorCode::kIllegalAddress);
}

INSTANTIATE_TEST_SUITE_P(Submitted, StreamWatchesTest, testing::Bool(), [](const auto& name) {
  return std::string(name.param ? "InRows" : "AtOnce");
});

}  // namespace
}  // namespace slate::daemon
