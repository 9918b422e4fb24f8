// Streams of the simulated device that wait for a word of memory.
#include <sys/mman.h>
#include <unistd.h>

#include "tests/unit/sim_device/sim_fixture.h"

namespace slate::sim {
namespace {

using Words = std::vector<std::uint64_t>;

class WaitValueTest : public SimFixture {
 protected:
  void SetUp() override {
    open("sms=4,memory=64M,threads=2");
    other_ = *device_->create_stream(0);
  }

  void reopen(const std::string& settings) {
    open(settings);
    other_ = *device_->create_stream(0);
  }

  /// The address of 64-bit word `i` of the arena.
  device::Address wide(std::uint64_t i) const { return arena_.base + 8 * i; }

  ErrorCode code_of_wait(device::Address address, device::Stream stream) {
    const auto waiting = device_->wait_value(stream, address, 1);
    return waiting ? ErrorCode::kNone : waiting.error().code;
  }

  device::Stream other_{};
};

TEST_F(WaitValueTest, LaterWorkWaitsForTheWordAndOtherStreamsDoNot) {
  ASSERT_TRUE(device_->wait_value(stream_, wide(0), 5));
  ASSERT_TRUE(launch(stream_, "store", {1, 1, 1}, {1, 1, 1}, wide(1), 9u));
  const device::Event event = *device_->create_event(false);
  ASSERT_TRUE(device_->record(event, stream_));
  ASSERT_TRUE(launch(other_, "count", {100, 1, 1}, {64, 1, 1}, wide(2)));
  ASSERT_TRUE(finish(other_));
  EXPECT_EQ(device_->query(event), false);
  EXPECT_EQ(read<std::uint64_t>(wide(0), 3), (Words{0, 0, 6400}));
  write<std::uint64_t>(wide(0), {5});
  EXPECT_TRUE(finish(stream_));
  EXPECT_EQ(read<std::uint64_t>(wide(1), 1)[0], 9u);
}

TEST_F(WaitValueTest, AWordThatHoldsTheValueHoldsNobodyUp) {
  ASSERT_TRUE(device_->wait_value(stream_, wide(0), 0));
  EXPECT_TRUE(finish(stream_));
}

TEST_F(WaitValueTest, TheHostOpensAWordOfSharedMemory) {
  constexpr std::uint64_t kBytes = 4096;
  const int fd = ::memfd_create("slate-test", MFD_CLOEXEC);
  ASSERT_EQ(::ftruncate(fd, kBytes), 0);
  const device::Address base = *device_->map_host(fd, kBytes, 0);
  ASSERT_TRUE(device_->wait_value(stream_, base + 8, 3));
  const device::Event event = *device_->create_watched_event();
  ASSERT_TRUE(device_->record(event, stream_));
  ASSERT_TRUE(device_->write_value(base + 8, 2));
  EXPECT_EQ(device_->query(event), false);
  ASSERT_TRUE(device_->write_value(base + 8, 3));
  EXPECT_TRUE(finish(stream_));
  device_->unmap_host({base, kBytes});
  ::close(fd);
}

TEST_F(WaitValueTest, AllEightBytesCount) {
  constexpr std::uint64_t kValue = 0x0000'0001'0000'0002;
  ASSERT_TRUE(device_->wait_value(stream_, wide(0), kValue));
  const device::Event event = *device_->create_event(false);
  ASSERT_TRUE(device_->record(event, stream_));
  write<std::uint64_t>(wide(0), {2});
  EXPECT_EQ(device_->query(event), false);
  write<std::uint64_t>(wide(0), {kValue});
  EXPECT_TRUE(finish(stream_));
}

// The kernel that stores the word goes on until what waits for the word has run.
TEST_F(WaitValueTest, AKernelsStoreReleasesWhileTheKernelRuns) {
  const auto meet_through_memory = [this](const std::string& settings) {
    reopen(settings);
    ASSERT_TRUE(device_->wait_value(other_, wide(0), 1));
    ASSERT_TRUE(launch(other_, "store", {1, 1, 1}, {1, 1, 1}, wide(1), 1u));
    ASSERT_TRUE(launch(stream_, "meet", {3, 1, 1}, {64, 1, 1}, wide(0), wide(1)));
    EXPECT_TRUE(finish(stream_)) << settings;
    EXPECT_TRUE(finish(other_)) << settings;
  };
  meet_through_memory("sms=4,memory=64M,threads=2");
  meet_through_memory("sms=1,memory=64M,threads=1");
  for (int seed = 0; seed < 40; ++seed) {
    meet_through_memory("sms=2,memory=64M,quantum=16,seed=" + std::to_string(seed));
  }
}

// The wait comes while the kernel that has stored the word is running already.
TEST_F(WaitValueTest, AWaitAfterTheStoreIsOver) {
  ASSERT_TRUE(launch(stream_, "meet", {1, 1, 1}, {1, 1, 1}, wide(0), wide(1)));
  wait_for_word(wide(0));
  ASSERT_TRUE(device_->wait_value(other_, wide(0), 1));
  ASSERT_TRUE(launch(other_, "store", {1, 1, 1}, {1, 1, 1}, wide(1), 1u));
  EXPECT_TRUE(finish(stream_));
}

TEST_F(WaitValueTest, TwoStreamsHandAWordToAndFro) {
  constexpr std::uint32_t kRounds = 50;
  const auto play = [this](const std::string& settings) {
    reopen(settings);
    Words values(2 * kRounds + 1);
    for (std::uint32_t i = 0; i < values.size(); ++i) values[i] = i;
    for (std::uint32_t i = 0; i < 2 * kRounds; ++i) {
      const device::Stream stream = i % 2 == 0 ? stream_ : other_;
      ASSERT_TRUE(device_->wait_value(stream, wide(0), i));
      if (i % 3 == 0) {
        ASSERT_TRUE(device_->copy_to_device(wide(0), 0, &values[i + 1], 0, {8, 1}, stream));
      } else {
        ASSERT_TRUE(launch(stream, "count", {1, 1, 1}, {1, 1, 1}, wide(0)));
      }
    }
    EXPECT_TRUE(finish(stream_));
    EXPECT_TRUE(finish(other_));
    EXPECT_EQ(read<std::uint64_t>(wide(0), 1)[0], 2 * kRounds) << settings;
  };
  play("sms=4,memory=64M,threads=2");
  for (int seed = 0; seed < 20; ++seed) play("sms=3,memory=64M,seed=" + std::to_string(seed));
}

TEST_F(WaitValueTest, ManyStreamsWaitForOneWord) {
  std::vector<device::Stream> streams;
  for (int i = 0; i < 20; ++i) {
    streams.push_back(*device_->create_stream(0));
    ASSERT_TRUE(device_->wait_value(streams.back(), wide(0), 1));
    ASSERT_TRUE(launch(streams.back(), "count", {1, 1, 1}, {1, 1, 1}, wide(1)));
  }
  ASSERT_TRUE(launch(stream_, "store", {1, 1, 1}, {1, 1, 1}, wide(0), 1u));
  for (const device::Stream stream : streams) EXPECT_TRUE(finish(stream));
  EXPECT_EQ(read<std::uint64_t>(wide(1), 1)[0], 20u);
}

TEST_F(WaitValueTest, CancelEndsTheWaitAndDropsTheRest) {
  ASSERT_TRUE(device_->wait_value(stream_, wide(0), 1));
  ASSERT_TRUE(launch(stream_, "store", {1, 1, 1}, {1, 1, 1}, wide(1), 1u));
  const device::Event event = *device_->create_event(false);
  ASSERT_TRUE(device_->record(event, stream_));
  ASSERT_TRUE(device_->wait(other_, event));
  ASSERT_TRUE(device_->cancel(stream_));
  EXPECT_FALSE(device_->query(event));
  EXPECT_TRUE(finish(other_));
  // The stream is good for more, and the word of the cancelled wait means nothing to it.
  ASSERT_TRUE(device_->wait_value(stream_, wide(2), 1));
  ASSERT_TRUE(launch(stream_, "store", {1, 1, 1}, {1, 1, 1}, wide(3), 1u));
  write<std::uint64_t>(wide(0), {1});
  EXPECT_EQ(read<std::uint64_t>(wide(1), 3), (Words{0, 0, 0}));
  write<std::uint64_t>(wide(2), {1});
  EXPECT_TRUE(finish(stream_));
  EXPECT_EQ(read<std::uint64_t>(wide(1), 3), (Words{0, 1, 1}));
}

TEST_F(WaitValueTest, ADestroyedStreamWaitsAndFinishesItsWork) {
  ASSERT_TRUE(device_->wait_value(other_, wide(0), 1));
  ASSERT_TRUE(launch(other_, "store", {1, 1, 1}, {1, 1, 1}, wide(1), 1u));
  device_->destroy_stream(other_);
  EXPECT_EQ(read<std::uint64_t>(wide(1), 1)[0], 0u);
  write<std::uint64_t>(wide(0), {1});
  wait_for_word(wide(1));
}

TEST_F(WaitValueTest, TheDeviceCanBeClosedWhileStreamsWait) {
  ASSERT_TRUE(device_->wait_value(stream_, wide(0), 1));
  ASSERT_TRUE(launch(stream_, "store", {1, 1, 1}, {1, 1, 1}, wide(1), 1u));
  ASSERT_TRUE(device_->wait_value(other_, wide(0), 1));
  device_->destroy_stream(other_);
  device_.reset();
}

TEST_F(WaitValueTest, AWordThatIsUnmappedFaultsTheStreamThatWaits) {
  const device::AddressRange range = make_arena();
  ASSERT_TRUE(device_->wait_value(stream_, range.base, 1));
  ASSERT_TRUE(device_->unmap(range));
  ASSERT_TRUE(device_->fill(wide(0), 0, 1, {8, 1}, other_));
  EXPECT_EQ(finish(stream_).error().code, ErrorCode::kIllegalAddress);
  EXPECT_TRUE(finish(other_));
}

TEST_F(WaitValueTest, WordsThatAreNoneAreInvalid) {
  for (const device::Address address : {wide(0) + 4, wide(0) + 1, arena_.base + arena_.bytes,
                                        device::Address{0}, device::Address{8}}) {
    EXPECT_EQ(code_of_wait(address, stream_), ErrorCode::kInvalidValue) << address;
  }
  EXPECT_EQ(code_of_wait(wide(0), device::Stream{999}), ErrorCode::kInvalidHandle);
  EXPECT_TRUE(finish(stream_));
}

}  // namespace
}  // namespace slate::sim
