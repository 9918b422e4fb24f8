// Streams, events, faults and cancellation of the simulated device, by kernels that wait for one
// another.
#include "tests/unit/sim_device/sim_fixture.h"

namespace slate::sim {
namespace {

class StreamsTest : public SimFixture {
 protected:
  void SetUp() override { open("sms=4,memory=64M,threads=2"); }

  device::Event recorded(device::Stream stream, bool timing = false) {
    const device::Event event = *device_->create_event(timing);
    EXPECT_TRUE(device_->record(event, stream));
    return event;
  }

  void let_two_kernels_meet() {
    const device::Stream other = *device_->create_stream(0);
    ASSERT_TRUE(launch(stream_, "meet", {1, 1, 1}, {32, 1, 1}, word(0), word(1)));
    ASSERT_TRUE(launch(other, "meet", {1, 1, 1}, {32, 1, 1}, word(1), word(0)));
    EXPECT_TRUE(finish(stream_));
    EXPECT_TRUE(finish(other));
  }
};

TEST_F(StreamsTest, KernelsOfTwoStreamsRunAtTheSameTime) {
  let_two_kernels_meet();
}

TEST_F(StreamsTest, KernelsOnOneSmThatWaitForOneAnotherBothProgress) {
  open("sms=1,memory=64M,threads=1");
  let_two_kernels_meet();
}

TEST_F(StreamsTest, KernelsThatWaitForOneAnotherProgressInRandomOrderToo) {
  open("sms=2,memory=64M,seed=3");
  let_two_kernels_meet();
}

TEST_F(StreamsTest, WorkOnOneStreamRunsInOrder) {
  const std::vector<std::uint32_t> values{5, 6};
  ASSERT_TRUE(device_->fill(word(0), 0, 1, {4, 1}, stream_));
  ASSERT_TRUE(
      device_->copy(Place::on_device(word(1)), Place::on_host(values.data()), {4, 1}, stream_));
  ASSERT_TRUE(launch(stream_, "count", {10, 1, 1}, {100, 1, 1}, word(1)));
  ASSERT_TRUE(launch(stream_, "load", {1, 1, 1}, {1, 1, 1}, word(1), word(2)));
  ASSERT_TRUE(device_->copy(Place::on_device(word(3)), Place::on_device(word(2)), {4, 1}, stream_));
  ASSERT_TRUE(launch(stream_, "count", {1, 1, 1}, {1, 1, 1}, word(3)));
  EXPECT_TRUE(finish(stream_));
  EXPECT_EQ(read<std::uint32_t>(word(0), 4),
            (std::vector<std::uint32_t>{0x01010101, 1005, 1005, 1006}));
}

TEST_F(StreamsTest, WaitHoldsAStreamUntilTheEventOfAnother) {
  const device::Stream other = *device_->create_stream(0);
  ASSERT_TRUE(launch(stream_, "meet", {1, 1, 1}, {1, 1, 1}, word(0), word(1)));
  ASSERT_TRUE(launch(stream_, "store", {1, 1, 1}, {1, 1, 1}, word(2), 77u));
  const device::Event event = recorded(stream_);
  ASSERT_TRUE(device_->wait(other, event));
  ASSERT_TRUE(launch(other, "load", {1, 1, 1}, {1, 1, 1}, word(2), word(3)));
  const device::Event last = recorded(other);
  wait_for_word(word(0));
  EXPECT_EQ(device_->query(event), false);
  EXPECT_EQ(device_->query(last), false);
  write<std::uint32_t>(word(1), {1});
  EXPECT_TRUE(finish(other));
  EXPECT_EQ(read<std::uint32_t>(word(3), 1)[0], 77u);
}

TEST_F(StreamsTest, WaitMeansTheRecordBeforeItNotALaterOne) {
  const device::Stream other = *device_->create_stream(0);
  const device::Event event = recorded(stream_);
  ASSERT_TRUE(device_->wait(other, event));
  ASSERT_TRUE(launch(stream_, "endless", {1, 1, 1}, {1, 1, 1}, word(0)));
  ASSERT_TRUE(device_->record(event, stream_));
  EXPECT_TRUE(finish(other));
  EXPECT_EQ(device_->query(event), false);
}

TEST_F(StreamsTest, EventNeverRecordedIsReachedAndHoldsNobody) {
  const device::Event event = *device_->create_event(false);
  EXPECT_EQ(device_->query(event), true);
  ASSERT_TRUE(device_->wait(stream_, event));
  EXPECT_TRUE(finish(stream_));
}

TEST_F(StreamsTest, ElapsedTimeIsThatBetweenTheMarks) {
  const device::Event start = recorded(stream_, true);
  ASSERT_TRUE(launch(stream_, "count", {64, 1, 1}, {256, 1, 1}, word(0)));
  const device::Event stop = recorded(stream_, true);
  ASSERT_TRUE(finish(stream_));
  const auto forward = device_->elapsed_ms(start, stop);
  const auto backward = device_->elapsed_ms(stop, start);
  ASSERT_TRUE(forward && backward);
  EXPECT_GT(*forward, 0);
  EXPECT_EQ(*forward, -*backward);
}

TEST_F(StreamsTest, ElapsedTimeNeedsTimedAndReachedEvents) {
  const device::Event timed = recorded(stream_, true);
  const device::Event untimed = recorded(stream_, false);
  const device::Event fresh = *device_->create_event(true);
  ASSERT_TRUE(launch(stream_, "endless", {1, 1, 1}, {1, 1, 1}, word(0)));
  const device::Event unreached = recorded(stream_, true);
  EXPECT_EQ(device_->elapsed_ms(timed, untimed).error().code, ErrorCode::kInvalidHandle);
  EXPECT_EQ(device_->elapsed_ms(timed, fresh).error().code, ErrorCode::kInvalidHandle);
  EXPECT_EQ(device_->elapsed_ms(timed, unreached).error().code, ErrorCode::kInvalidValue);
}

TEST_F(StreamsTest, FaultEndsItsStreamAndNoOther) {
  const device::Stream other = *device_->create_stream(0);
  ASSERT_TRUE(launch(other, "meet", {1, 1, 1}, {32, 1, 1}, word(0), word(1)));
  const device::Event before = recorded(stream_);
  ASSERT_TRUE(launch(stream_, "store", {100, 1, 1}, {32, 1, 1}, std::uint64_t{0}, 1u));
  const device::Event after = recorded(stream_);
  ASSERT_TRUE(launch(stream_, "store", {1, 1, 1}, {1, 1, 1}, word(2), 9u));
  const auto finished = finish(stream_);
  ASSERT_FALSE(finished);
  EXPECT_EQ(finished.error().code, ErrorCode::kIllegalAddress);
  EXPECT_NE(finished.error().message.find("store"), std::string::npos) << finished.error().message;
  EXPECT_EQ(device_->query(before), true);
  EXPECT_EQ(device_->query(after).error().code, ErrorCode::kIllegalAddress);
  EXPECT_FALSE(device_->lost());
  const device::Stream third = *device_->create_stream(0);
  ASSERT_TRUE(launch(third, "store", {1, 1, 1}, {1, 1, 1}, word(1), 1u));
  EXPECT_TRUE(finish(third));
  EXPECT_TRUE(finish(other));
  EXPECT_EQ(read<std::uint32_t>(word(2), 1)[0], 0u);
}

TEST_F(StreamsTest, FaultedStreamStaysFaulted) {
  ASSERT_TRUE(launch(stream_, "store", {1, 1, 1}, {1, 1, 1}, std::uint64_t{0}, 1u));
  ASSERT_FALSE(finish(stream_));
  ASSERT_TRUE(launch(stream_, "store", {1, 1, 1}, {1, 1, 1}, word(0), 1u));
  EXPECT_EQ(finish(stream_).error().code, ErrorCode::kIllegalAddress);
  EXPECT_EQ(read<std::uint32_t>(word(0), 1)[0], 0u);
}

TEST_F(StreamsTest, FaultEndsTheOtherBlocksOfItsKernel) {
  // Block 0 waits for a word that nobody writes; block 1 strays from the arena.
  const device::Address last = arena_.base + arena_.bytes - 4;
  ASSERT_TRUE(launch(stream_, "endless_or_stray", {8, 1, 1}, {32, 1, 1}, last));
  EXPECT_EQ(finish(stream_).error().code, ErrorCode::kIllegalAddress);
}

TEST_F(StreamsTest, StreamThatWaitsForAFaultedOneGoesOn) {
  const device::Stream other = *device_->create_stream(0);
  ASSERT_TRUE(launch(stream_, "store", {1, 1, 1}, {1, 1, 1}, std::uint64_t{0}, 1u));
  ASSERT_TRUE(device_->wait(other, recorded(stream_)));
  ASSERT_TRUE(launch(other, "store", {1, 1, 1}, {1, 1, 1}, word(0), 3u));
  EXPECT_TRUE(finish(other));
  EXPECT_EQ(read<std::uint32_t>(word(0), 1)[0], 3u);
}

TEST_F(StreamsTest, CancelEndsAnEndlessKernelAndDropsTheRest) {
  ASSERT_TRUE(launch(stream_, "endless", {1000, 1, 1}, {256, 1, 1}, word(0)));
  ASSERT_TRUE(launch(stream_, "store", {1, 1, 1}, {1, 1, 1}, word(1), 1u));
  const device::Event event = recorded(stream_);
  wait_for_word(word(0));
  ASSERT_TRUE(device_->cancel(stream_));
  EXPECT_FALSE(device_->query(event));
  EXPECT_TRUE(finish(stream_));
  device_->destroy_stream(stream_);
  EXPECT_EQ(read<std::uint32_t>(word(1), 1)[0], 0u);
  EXPECT_EQ(device_->record(event, stream_).error().code, ErrorCode::kInvalidHandle);
}

TEST_F(StreamsTest, CancelReachesAKernelThatFoundNoRoom) {
  const device::Stream other = *device_->create_stream(0);
  ASSERT_TRUE(launch(stream_, "endless", {1000, 1, 1}, {256, 1, 1}, word(0)));
  ASSERT_TRUE(launch(other, "store", {1, 1, 1}, {1, 1, 1}, word(1), 1u));
  ASSERT_TRUE(device_->cancel(other));
  ASSERT_TRUE(device_->cancel(other));
  EXPECT_TRUE(finish(other));
  EXPECT_EQ(read<std::uint32_t>(word(1), 1)[0], 0u);
}

TEST_F(StreamsTest, CancelledStreamCanBeUsedAgain) {
  ASSERT_TRUE(launch(stream_, "endless", {1, 1, 1}, {1, 1, 1}, word(0)));
  ASSERT_TRUE(device_->cancel(stream_));
  ASSERT_TRUE(launch(stream_, "store", {1, 1, 1}, {1, 1, 1}, word(1), 4u));
  EXPECT_TRUE(finish(stream_));
  EXPECT_EQ(read<std::uint32_t>(word(1), 1)[0], 4u);
}

TEST_F(StreamsTest, CancelReleasesThoseWhoWait) {
  const device::Stream other = *device_->create_stream(0);
  ASSERT_TRUE(launch(stream_, "endless", {1, 1, 1}, {1, 1, 1}, word(0)));
  ASSERT_TRUE(device_->wait(other, recorded(stream_)));
  ASSERT_TRUE(launch(other, "store", {1, 1, 1}, {1, 1, 1}, word(1), 4u));
  ASSERT_TRUE(device_->cancel(stream_));
  EXPECT_TRUE(finish(other));
  EXPECT_EQ(read<std::uint32_t>(word(1), 1)[0], 4u);
}

TEST_F(StreamsTest, DestroyedStreamStillFinishesItsWork) {
  const device::Stream other = *device_->create_stream(0);
  ASSERT_TRUE(launch(other, "meet", {1, 1, 1}, {1, 1, 1}, word(0), word(1)));
  ASSERT_TRUE(launch(other, "store", {1, 1, 1}, {1, 1, 1}, word(2), 8u));
  device_->destroy_stream(other);
  write<std::uint32_t>(word(1), {1});
  wait_for_word(word(2));
}

TEST_F(StreamsTest, DeviceCanBeClosedWithUnfinishedWork) {
  const device::Stream other = *device_->create_stream(0);
  ASSERT_TRUE(launch(stream_, "endless", {1000, 1, 1}, {256, 1, 1}, word(0)));
  const device::Event event = recorded(stream_);
  ASSERT_TRUE(device_->wait(other, event));
  ASSERT_TRUE(launch(other, "endless", {1000, 1, 1}, {256, 1, 1}, word(0)));
  recorded(other);
  device_->destroy_stream(other);
  device_.reset();
}

TEST_F(StreamsTest, HandlesOfNothingAreInvalid) {
  const device::Stream no_stream{999};
  const device::Event no_event{999};
  const device::Event event = *device_->create_event(false);
  EXPECT_EQ(device_->cancel(no_stream).error().code, ErrorCode::kInvalidHandle);
  EXPECT_EQ(device_->record(event, no_stream).error().code, ErrorCode::kInvalidHandle);
  EXPECT_EQ(device_->record(no_event, stream_).error().code, ErrorCode::kInvalidHandle);
  EXPECT_EQ(device_->wait(stream_, no_event).error().code, ErrorCode::kInvalidHandle);
  EXPECT_EQ(device_->wait(no_stream, event).error().code, ErrorCode::kInvalidHandle);
  EXPECT_EQ(device_->query(no_event).error().code, ErrorCode::kInvalidHandle);
  EXPECT_EQ(device_->fill(word(0), 0, 1, {4, 1}, no_stream).error().code,
            ErrorCode::kInvalidHandle);
  EXPECT_EQ(launch(no_stream, "count", {1, 1, 1}, {1, 1, 1}, word(0)).error().code,
            ErrorCode::kInvalidHandle);
}

TEST_F(StreamsTest, ProgressWakesTheWaiterWhenAnEventIsReached) {
  device_->wait_for_progress(std::chrono::microseconds(0));
  ASSERT_TRUE(device_->fill(word(0), 0, 1, {4, 1}, stream_));
  const device::Event event = recorded(stream_);
  // Returns after ten minutes if nobody wakes it, which the test's time limit does not allow.
  device_->wait_for_progress(std::chrono::minutes(10));
  EXPECT_EQ(device_->query(event), true);
}

}  // namespace
}  // namespace slate::sim
