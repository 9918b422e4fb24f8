// Placement and turns of blocks: SMs, priorities, seeds and the time limit, seen through kernels.
#include <algorithm>
#include <set>

#include "tests/unit/sim_device/sim_fixture.h"

namespace slate::sim {
namespace {

class GpuTest : public SimFixture {
 protected:
  // The order in which 8 blocks of 4 warps drew 256 tickets.
  std::vector<std::uint32_t> trace(std::string_view settings) {
    open(settings);
    EXPECT_TRUE(launch(stream_, "order", {8, 1, 1}, {128, 1, 1}, word(0), word(1)));
    EXPECT_TRUE(finish(stream_));
    EXPECT_EQ(read<std::uint32_t>(word(0), 1)[0], 256u);
    return read<std::uint32_t>(word(1), 256);
  }

  std::vector<std::uint32_t> places(std::uint32_t blocks) {
    EXPECT_TRUE(launch(stream_, "where", {blocks, 1, 1}, {32, 1, 1}, word(0)));
    EXPECT_TRUE(finish(stream_));
    return read<std::uint32_t>(word(0), blocks);
  }
};

TEST_F(GpuTest, SameSeedGivesTheSameSchedule) {
  const auto first = trace("sms=3,memory=64M,seed=7,quantum=16");
  EXPECT_EQ(trace("sms=3,memory=64M,seed=7,quantum=16"), first);
}

TEST_F(GpuTest, OtherSeedsGiveOtherSchedules) {
  std::set<std::vector<std::uint32_t>> traces;
  for (int seed = 0; seed < 5; ++seed) {
    traces.insert(trace("sms=3,memory=64M,quantum=16,seed=" + std::to_string(seed)));
  }
  EXPECT_EQ(traces.size(), 5u);
}

TEST_F(GpuTest, OneThreadWithoutSeedIsReproducibleToo) {
  EXPECT_EQ(trace("sms=3,memory=64M,threads=1"), trace("sms=3,memory=64M,threads=1"));
}

TEST_F(GpuTest, BlocksSpreadOverAllSmsFirst) {
  open("sms=6,memory=64M,threads=2");
  auto sms = places(6);
  std::sort(sms.begin(), sms.end());
  EXPECT_EQ(sms, (std::vector<std::uint32_t>{0, 1, 2, 3, 4, 5}));
}

TEST_F(GpuTest, FullSmHoldsItsOccupancyAndTheNextKernelGetsWhatIsLeft) {
  open("sms=1,memory=64M,threads=1");
  // Two blocks of 1024 threads fill the SM: the third word stays 0 until one of them ends.
  ASSERT_TRUE(launch(stream_, "meet", {1, 1, 1}, {1024, 1, 1}, word(0), word(10)));
  const device::Stream second = *device_->create_stream(0);
  ASSERT_TRUE(launch(second, "meet", {1, 1, 1}, {1024, 1, 1}, word(1), word(11)));
  const device::Stream third = *device_->create_stream(0);
  ASSERT_TRUE(launch(third, "store", {1, 1, 1}, {32, 1, 1}, word(2), 1u));
  wait_for_word(word(0));
  wait_for_word(word(1));
  EXPECT_EQ(read<std::uint32_t>(word(2), 1)[0], 0u);
  write<std::uint32_t>(word(11), {1});
  EXPECT_TRUE(finish(second));
  EXPECT_TRUE(finish(third));
  EXPECT_EQ(read<std::uint32_t>(word(2), 1)[0], 1u);
  write<std::uint32_t>(word(10), {1});
  EXPECT_TRUE(finish(stream_));
}

TEST_F(GpuTest, SmallerPriorityGoesFirst) {
  open("sms=1,memory=64M,threads=1");
  // While the SM is full, a late kernel and then an urgent one queue up; both draw tickets when it
  // empties.
  ASSERT_TRUE(launch(stream_, "meet", {2, 1, 1}, {1024, 1, 1}, word(0), word(1)));
  const device::Stream late = *device_->create_stream(0);
  const device::Stream urgent = *device_->create_stream(-5);
  constexpr std::uint32_t kTickets = 2 * 32 * 8;  // of each
  const std::vector<std::uint32_t> unwritten(2 * kTickets, ~0u);
  write(word(10), unwritten);
  write(word(10 + 2 * kTickets), unwritten);
  ASSERT_TRUE(launch(late, "order", {2, 1, 1}, {1024, 1, 1}, word(2), word(10)));
  ASSERT_TRUE(launch(urgent, "order", {2, 1, 1}, {1024, 1, 1}, word(2), word(10 + 2 * kTickets)));
  write<std::uint32_t>(word(1), {1});
  EXPECT_TRUE(finish(late));
  EXPECT_TRUE(finish(urgent));
  EXPECT_EQ(read<std::uint32_t>(word(2), 1)[0], 2 * kTickets);
  EXPECT_EQ(read<std::uint32_t>(word(10), 1)[0], ~0u);
  EXPECT_NE(read<std::uint32_t>(word(10 + 2 * kTickets), 1)[0], ~0u);
}

TEST_F(GpuTest, APriorityBeyondTheGreatestIsTheGreatest) {
  open("sms=1,memory=64M,threads=1");
  const auto [least, greatest] = device_->stream_priorities();
  EXPECT_LT(greatest, least);
  ASSERT_TRUE(launch(stream_, "meet", {2, 1, 1}, {1024, 1, 1}, word(0), word(1)));
  const device::Stream first = *device_->create_stream(greatest);
  const device::Stream second = *device_->create_stream(greatest - 100);
  // Both are as urgent, so the earlier one runs first.
  ASSERT_TRUE(launch(first, "meet", {2, 1, 1}, {1024, 1, 1}, word(2), word(3)));
  ASSERT_TRUE(launch(second, "store", {1, 1, 1}, {1024, 1, 1}, word(4), 1u));
  write<std::uint32_t>(word(1), {1});
  wait_for_word(word(2));
  EXPECT_EQ(read<std::uint32_t>(word(4), 1)[0], 0u);
  write<std::uint32_t>(word(3), {1});
  EXPECT_TRUE(finish(second));
}

TEST_F(GpuTest, KernelBeyondItsTimeLimitFaults) {
  open("sms=2,memory=64M,max_kernel_seconds=0.05");
  ASSERT_TRUE(launch(stream_, "endless", {100, 1, 1}, {32, 1, 1}, word(0)));
  const auto finished = finish(stream_);
  ASSERT_FALSE(finished);
  EXPECT_EQ(finished.error().code, ErrorCode::kLaunchTimeout);
  EXPECT_NE(finished.error().message.find("endless"), std::string::npos);
}

TEST_F(GpuTest, ManyHostThreadsShareOneLaunch) {
  open("sms=32,memory=64M,threads=8");
  for (int i = 0; i < 20; ++i) {
    ASSERT_TRUE(launch(stream_, "count", {500, 1, 1}, {64, 1, 1}, word(0)));
  }
  ASSERT_TRUE(finish(stream_));
  EXPECT_EQ(read<std::uint32_t>(word(0), 1)[0], 20u * 500u * 64u);
}

}  // namespace
}  // namespace slate::sim
