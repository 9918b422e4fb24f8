// Partitions on a GPU.
#include <map>
#include <set>
#include <string>
#include <thread>
#include <utility>

#include "gpu_fixture.h"
#include "tests/unit/partitions.h"

namespace slate::cuda {
namespace {

using Sms = std::set<std::uint32_t>;

class GpuPartitionTest : public GpuTest {
 protected:
  void SetUp() override {
    GpuTest::SetUp();
    if (device_ == nullptr || testing::Test::HasFatalFailure()) return;
    const auto units = device_->partition_units();
    if (!units && units.error().code == ErrorCode::kNotSupported) {
      GTEST_SKIP() << units.error().message;
    }
    ASSERT_TRUE(units) << units.error().message;
    units_ = *units;
    for (const char* name : {"sm_of_block", "await", "late_store"}) kernel_[name] = kernel(name);
  }

  Sms sms_of_units(std::size_t first, std::size_t count) const {
    Sms sms;
    for (std::size_t i = first; i < first + count; ++i) {
      sms.insert(units_[i].begin(), units_[i].end());
    }
    return sms;
  }

  device::Partition partition(std::size_t first, std::size_t count) {
    return slate::test::make_partition(*device_, static_cast<std::uint32_t>(first),
                                       static_cast<std::uint32_t>(count));
  }

  device::Stream stream_on(device::Partition partition, int priority = 0) {
    return slate::test::make_stream(*device_, partition, priority);
  }

  void launch(const char* name, const Parameters& parameters, device::Stream stream,
              std::uint32_t blocks = 1, std::uint32_t threads = 1) {
    const auto launched = device_->launch({.function = kernel_.at(name),
                                           .grid = {blocks},
                                           .block = {threads},
                                           .parameters = parameters.bytes()},
                                          stream);
    ASSERT_TRUE(launched) << launched.error().message;
  }

  static constexpr std::uint32_t kBlocks = 8192;

  /// Where the blocks of a large launch on this stream ran.
  Sms sms_of(device::Stream stream) {
    Parameters parameters;
    parameters.add(arena_.base);
    launch("sm_of_block", parameters, stream, kBlocks, 128);
    finish(stream);
    const auto words = read<std::uint32_t>(arena_.base, kBlocks);
    return {words.begin(), words.end()};
  }

  std::vector<std::vector<std::uint32_t>> units_;
  std::map<std::string, device::Function> kernel_;
};

TEST_F(GpuPartitionTest, UnitsHoldEverySmOnce) {
  std::size_t total = 0;
  for (const auto& unit : units_) total += unit.size();
  EXPECT_EQ(total, static_cast<std::size_t>(sm_count(device_->info())));
  EXPECT_EQ(sms_of_units(0, units_.size()).size(), total);
  EXPECT_EQ(sms_of(stream_), sms_of_units(0, units_.size()));
}

TEST_F(GpuPartitionTest, BlocksFillTheSmsOfTheirPartitionAndNoOther) {
  const std::size_t half = units_.size() / 2;
  const std::pair<std::size_t, std::size_t> ranges[] = {{0, 1},
                                                        {0, half},
                                                        {half, units_.size() - half},
                                                        {1, 2},
                                                        {units_.size() - 1, 1},
                                                        {0, units_.size()}};
  for (const auto& [first, count] : ranges) {
    const device::Partition made = partition(first, count);
    const device::Stream stream = stream_on(made);
    EXPECT_EQ(sms_of(stream), sms_of_units(first, count)) << first << " " << count;
    device_->destroy_stream(stream);
    device_->destroy_partition(made);
  }
}

TEST_F(GpuPartitionTest, TwoPartitionsRunAtOnce) {
  const std::size_t half = units_.size() / 2;
  const device::Stream left = stream_on(partition(0, half));
  const device::Stream right = stream_on(partition(half, units_.size() - half));
  Parameters flag;
  flag.add(arena_.base);
  // Far more blocks than the left half holds; none of them ends before the right half has run.
  launch("await", flag, left, 100'000, 256);
  Parameters store;
  store.add(arena_.base).add(std::uint32_t{1}).add(kMillisecond);
  launch("late_store", store, right);
  finish(left);
  finish(right);
  device_->destroy_stream(left);
  device_->destroy_stream(right);
}

TEST_F(GpuPartitionTest, EventsAndCopiesCrossPartitions) {
  const device::Stream left = stream_on(partition(0, 1));
  const device::Stream right = stream_on(partition(1, 1));
  const device::Event event = device_->create_event(false).value();
  Parameters store;
  store.add(arena_.base).add(std::uint32_t{77}).add(50 * kMillisecond);
  launch("late_store", store, left);
  ASSERT_TRUE(device_->record(event, left));
  EXPECT_FALSE(device_->query(event).value());
  ASSERT_TRUE(device_->wait(right, event));
  ASSERT_TRUE(device_->wait(stream_, event));
  ASSERT_TRUE(device_->copy(Place::on_device(arena_.base + 256), Place::on_device(arena_.base),
                            {4, 1}, right));
  ASSERT_TRUE(device_->copy(Place::on_device(arena_.base + 512), Place::on_device(arena_.base),
                            {4, 1}, stream_));
  finish(right);
  finish(stream_);
  EXPECT_EQ(read<std::uint32_t>(arena_.base + 256, 1).front(), 77);
  EXPECT_EQ(read<std::uint32_t>(arena_.base + 512, 1).front(), 77);
  device_->destroy_event(event);
  device_->destroy_stream(left);
  device_->destroy_stream(right);
}

TEST_F(GpuPartitionTest, AnEventOnOneStreamDoesNotWaitForAnotherOfItsPartition) {
  const device::Partition made = partition(0, 2);
  const device::Stream waiting = stream_on(made);
  const device::Stream free = stream_on(made);
  Parameters flag;
  flag.add(arena_.base);
  launch("await", flag, waiting);
  finish(free);  // records an event and waits for it
  ASSERT_TRUE(device_->fill(arena_.base, 0, 1, {4, 1}, free));
  finish(waiting);
  device_->destroy_stream(waiting);
  device_->destroy_stream(free);
}

TEST_F(GpuPartitionTest, TimedEventsWorkOnAPartition) {
  const device::Stream stream = stream_on(partition(0, 1));
  expect_events_to_measure(stream);
  device_->destroy_stream(stream);
}

TEST_F(GpuPartitionTest, EveryPriorityHasItsStreams) {
  const auto [least, greatest] = device_->stream_priorities();
  ASSERT_LE(greatest, least);
  const device::Partition made = partition(0, 2);
  for (int priority = greatest - 1; priority <= least + 1; ++priority) {
    const device::Stream stream = stream_on(made, priority);
    EXPECT_EQ(sms_of(stream), sms_of_units(0, 2)) << priority;
    device_->destroy_stream(stream);
  }
}

TEST_F(GpuPartitionTest, WorkLeftOnADestroyedPartitionStillFinishes) {
  const device::Partition made = partition(0, 1);
  const device::Stream stream = stream_on(made);
  const device::Event event = device_->create_event(false).value();
  Parameters store;
  store.add(arena_.base).add(std::uint32_t{5}).add(50 * kMillisecond);
  launch("late_store", store, stream);
  ASSERT_TRUE(device_->record(event, stream));
  device_->destroy_stream(stream);
  device_->destroy_partition(made);
  ASSERT_TRUE(device_->wait(stream_, event));
  EXPECT_EQ(read<std::uint32_t>(arena_.base, 1).front(), 5);
  EXPECT_FALSE(device_->lost());
  device_->destroy_event(event);
}

TEST_F(GpuPartitionTest, ThreadsMakePartitionsAndStreamsAtOnce) {
  std::vector<std::thread> threads;
  for (std::uint32_t i = 0; i < 4; ++i) {
    threads.emplace_back([this, i] {
      for (std::uint32_t round = 0; round < 3; ++round) {
        const device::Partition made = partition(i, 1 + round);
        const device::Stream stream = stream_on(made);
        Parameters store;
        store.add(arena_.base + 64 * i).add(round + 1).add(kMillisecond);
        launch("late_store", store, stream);
        finish(stream);
        device_->destroy_stream(stream);
        device_->destroy_partition(made);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (std::uint32_t i = 0; i < 4; ++i) {
    EXPECT_EQ(read<std::uint32_t>(arena_.base + 64 * i, 1).front(), 3);
  }
}

TEST_F(GpuPartitionTest, UnitsThatThereAreNotAreInvalid) {
  const auto units = static_cast<std::uint32_t>(units_.size());
  for (const auto& [first, count] : {std::pair{0U, 0U}, {units, 1U}, {0U, units + 1}, {1U, ~0U}}) {
    const auto made = device_->create_partition(first, count);
    ASSERT_FALSE(made);
    EXPECT_EQ(made.error().code, ErrorCode::kInvalidValue);
  }
}

TEST_F(GpuPartitionTest, WatchedEventsOfItsStreamsAreReached) {
  const device::Partition part = partition(0, 1);
  const device::Stream stream = stream_on(part);
  const device::Event event = device_->create_watched_event().value();
  Parameters parameters;
  parameters.add(arena_.base).add(std::uint32_t{7}).add(20 * kMillisecond);
  for (int round = 0; round < 3; ++round) {
    launch("late_store", parameters, stream);
    const auto recorded = device_->record(event, stream);
    ASSERT_TRUE(recorded) << recorded.error().message;
    EXPECT_EQ(device_->query(event), false);
    while (!device_->query(event).value()) std::this_thread::yield();
    EXPECT_EQ(read<std::uint32_t>(arena_.base, 1).front(), 7);
    write<std::uint32_t>(arena_.base, {0});
  }
  device_->destroy_event(event);
  device_->destroy_stream(stream);
  device_->destroy_partition(part);
}

}  // namespace
}  // namespace slate::cuda
