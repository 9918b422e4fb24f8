// Partitions of the simulated device: which SMs blocks get, beside which others, under many seeds.
#include "tests/unit/partitions.h"

#include <algorithm>
#include <set>

#include "tests/unit/sim_device/sim_fixture.h"

namespace slate::sim {
namespace {

using Sms = std::set<std::uint32_t>;

class PartitionTest : public SimFixture {
 protected:
  device::Partition partition(std::uint32_t first_unit, std::uint32_t unit_count) {
    return slate::test::make_partition(*device_, first_unit, unit_count);
  }

  device::Stream stream_on(device::Partition partition, int priority = 0) {
    return slate::test::make_stream(*device_, partition, priority);
  }

  Sms read_sms(std::uint64_t first_word, std::uint32_t count) {
    const auto words = read<std::uint32_t>(word(first_word), count);
    return {words.begin(), words.end()};
  }

  static std::string seeded(const std::string& settings, int seed) {
    return settings + ",memory=64M,quantum=16,seed=" + std::to_string(seed);
  }
};

bool is_inside(const Sms& inner, const Sms& outer) {
  return std::ranges::includes(outer, inner);
}

TEST_F(PartitionTest, UnitsHoldEverySmOnce) {
  const auto units_of = [this](std::string_view settings) {
    open(settings);
    return *device_->partition_units();
  };
  using Units = std::vector<std::vector<std::uint32_t>>;
  EXPECT_EQ(units_of("sms=3,memory=64M"), (Units{{0}, {1}, {2}}));
  EXPECT_EQ(units_of("sms=6,unit=3,memory=64M"), (Units{{0, 1, 2}, {3, 4, 5}}));
  EXPECT_EQ(units_of("sms=5,unit=2,memory=64M"), (Units{{0, 1}, {2, 3}, {4}}));
  EXPECT_EQ(units_of("sms=2,unit=8,memory=64M"), (Units{{0, 1}}));
}

TEST_F(PartitionTest, BlocksFillAllSmsOfTheirPartitionAndNoOther) {
  open("sms=8,unit=2,memory=64M,threads=2");
  const device::Stream stream = stream_on(partition(1, 2));
  ASSERT_TRUE(launch(stream, "where", {400, 1, 1}, {32, 1, 1}, word(0)));
  ASSERT_TRUE(finish(stream));
  EXPECT_EQ(read_sms(0, 400), (Sms{2, 3, 4, 5}));
}

TEST_F(PartitionTest, BlocksStayInTheirPartitionUnderEverySeed) {
  for (int seed = 0; seed < 60; ++seed) {
    open(seeded("sms=8,unit=2", seed));
    const device::Stream left = stream_on(partition(0, 2));
    const device::Stream right = stream_on(partition(2, 2));
    const device::Stream middle = stream_on(partition(1, 2), -1);
    ASSERT_TRUE(launch(left, "where", {50, 1, 1}, {256, 1, 1}, word(0)));
    ASSERT_TRUE(launch(stream_, "where", {50, 1, 1}, {256, 1, 1}, word(50)));
    ASSERT_TRUE(launch(right, "where", {50, 1, 1}, {256, 1, 1}, word(100)));
    ASSERT_TRUE(launch(middle, "where", {50, 1, 1}, {256, 1, 1}, word(150)));
    for (const device::Stream each : {left, stream_, right, middle}) ASSERT_TRUE(finish(each));
    EXPECT_TRUE(is_inside(read_sms(0, 50), {0, 1, 2, 3})) << seed;
    EXPECT_TRUE(is_inside(read_sms(100, 50), {4, 5, 6, 7})) << seed;
    EXPECT_TRUE(is_inside(read_sms(150, 50), {2, 3, 4, 5})) << seed;
    EXPECT_TRUE(is_inside(read_sms(50, 50), {0, 1, 2, 3, 4, 5, 6, 7})) << seed;
  }
}

TEST_F(PartitionTest, AFullPartitionDoesNotHoldUpAnother) {
  for (int seed = 0; seed < 20; ++seed) {
    open(seeded("sms=2", seed));
    const device::Stream left = stream_on(partition(0, 1));
    const device::Stream right = stream_on(partition(1, 1));
    // Two of the ten blocks fill the left SM, and all wait for the kernel on the right one.
    ASSERT_TRUE(launch(left, "meet", {10, 1, 1}, {1024, 1, 1}, word(0), word(1)));
    ASSERT_TRUE(launch(right, "meet", {1, 1, 1}, {1024, 1, 1}, word(1), word(0)));
    EXPECT_TRUE(finish(left));
    EXPECT_TRUE(finish(right));
  }
}

TEST_F(PartitionTest, WholeDeviceWorkRunsBesideAFullPartition) {
  open("sms=4,unit=2,memory=64M,threads=2");
  const device::Stream left = stream_on(partition(0, 1));
  ASSERT_TRUE(launch(left, "endless", {100, 1, 1}, {1024, 1, 1}, word(0)));
  wait_for_word(word(0));
  ASSERT_TRUE(launch(stream_, "where", {100, 1, 1}, {32, 1, 1}, word(1)));
  EXPECT_TRUE(finish(stream_));
  EXPECT_EQ(read_sms(1, 100), (Sms{2, 3}));
  ASSERT_TRUE(device_->cancel(left));
}

TEST_F(PartitionTest, AKernelLargerThanItsPartitionFinishes) {
  open("sms=4,memory=64M,threads=2");
  const device::Stream stream = stream_on(partition(3, 1));
  ASSERT_TRUE(launch(stream, "count", {2000, 1, 1}, {512, 1, 1}, word(0)));
  EXPECT_TRUE(finish(stream));
  EXPECT_EQ(read<std::uint32_t>(word(0), 1)[0], 2000u * 512u);
}

TEST_F(PartitionTest, OverlappingPartitionsShareTheirSms) {
  for (int seed = 0; seed < 20; ++seed) {
    open(seeded("sms=3", seed));
    const device::Stream left = stream_on(partition(0, 2));
    const device::Stream right = stream_on(partition(1, 2));
    const device::Stream common = stream_on(partition(1, 1));
    const device::Stream again = stream_on(partition(1, 1));
    ASSERT_TRUE(launch(common, "meet", {1, 1, 1}, {1024, 1, 1}, word(0), word(1)));
    ASSERT_TRUE(launch(again, "meet", {1, 1, 1}, {1024, 1, 1}, word(1), word(0)));
    ASSERT_TRUE(launch(left, "where", {30, 1, 1}, {512, 1, 1}, word(10)));
    ASSERT_TRUE(launch(right, "where", {30, 1, 1}, {512, 1, 1}, word(40)));
    for (const device::Stream each : {common, again, left, right}) EXPECT_TRUE(finish(each));
    EXPECT_TRUE(is_inside(read_sms(10, 30), {0, 1})) << seed;
    EXPECT_TRUE(is_inside(read_sms(40, 30), {1, 2})) << seed;
  }
}

TEST_F(PartitionTest, EventsAndCopiesCrossPartitions) {
  open("sms=4,unit=2,memory=64M,threads=2");
  const device::Stream left = stream_on(partition(0, 1));
  const device::Stream right = stream_on(partition(1, 1));
  const device::Event event = *device_->create_event(false);
  ASSERT_TRUE(launch(left, "meet", {1, 1, 1}, {1, 1, 1}, word(0), word(1)));
  ASSERT_TRUE(launch(left, "store", {1, 1, 1}, {1, 1, 1}, word(2), 77u));
  ASSERT_TRUE(device_->record(event, left));
  ASSERT_TRUE(device_->wait(right, event));
  ASSERT_TRUE(launch(right, "load", {1, 1, 1}, {1, 1, 1}, word(2), word(3)));
  ASSERT_TRUE(device_->copy(Place::on_device(word(4)), Place::on_device(word(3)), {4, 1}, right));
  write<std::uint32_t>(word(1), {1});
  EXPECT_TRUE(finish(right));
  EXPECT_EQ(read<std::uint32_t>(word(4), 1)[0], 77u);
}

TEST_F(PartitionTest, APartitionIsMadeAgainAfterItWasDestroyed) {
  open("sms=4,memory=64M,threads=2");
  for (std::uint32_t round = 0; round < 20; ++round) {
    const device::Partition made = partition(round % 4, 1);
    const device::Stream stream = stream_on(made);
    ASSERT_TRUE(launch(stream, "where", {8, 1, 1}, {32, 1, 1}, word(0)));
    ASSERT_TRUE(finish(stream));
    EXPECT_EQ(read_sms(0, 8), Sms{round % 4});
    device_->destroy_stream(stream);
    device_->destroy_partition(made);
    EXPECT_EQ(device_->create_stream(0, made).error().code, ErrorCode::kInvalidHandle);
  }
}

TEST_F(PartitionTest, WorkLeftOnADestroyedPartitionStillFinishesThere) {
  open("sms=4,memory=64M,threads=2");
  const device::Partition made = partition(2, 1);
  const device::Stream stream = stream_on(made);
  ASSERT_TRUE(launch(stream, "meet", {1, 1, 1}, {32, 1, 1}, word(0), word(1)));
  ASSERT_TRUE(launch(stream, "where", {1, 1, 1}, {32, 1, 1}, word(2)));
  device_->destroy_stream(stream);
  device_->destroy_partition(made);
  write<std::uint32_t>(word(1), {1});
  wait_for_word(word(2));
  EXPECT_EQ(read_sms(2, 1), Sms{2});
}

TEST_F(PartitionTest, APartitionThatIsDestroyedBeforeItsStreamsIsABug) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto destroy_early = [this] {
    open("sms=4,memory=64M,threads=2");
    const device::Partition made = partition(0, 1);
    stream_on(made);
    device_->destroy_partition(made);
  };
  EXPECT_DEATH(destroy_early(), "broken invariant");
}

TEST_F(PartitionTest, UnitsThatThereAreNotAreInvalid) {
  open("sms=7,unit=2,memory=64M,threads=2");
  const auto code = [this](std::uint32_t first, std::uint32_t count) {
    const auto made = device_->create_partition(first, count);
    return made ? ErrorCode::kNone : made.error().code;
  };
  EXPECT_EQ(code(0, 4), ErrorCode::kNone);
  EXPECT_EQ(code(3, 1), ErrorCode::kNone);
  for (const auto& [first, count] :
       {std::pair{0u, 0u}, {4u, 1u}, {3u, 2u}, {0u, 5u}, {1u, ~0u}, {~0u, 1u}, {~0u, ~0u}}) {
    EXPECT_EQ(code(first, count), ErrorCode::kInvalidValue) << first << " " << count;
  }
  EXPECT_EQ(device_->create_stream(0, device::Partition{99}).error().code,
            ErrorCode::kInvalidHandle);
}

}  // namespace
}  // namespace slate::sim
