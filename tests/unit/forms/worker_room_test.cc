// Which workers are missing where a placement has grown, as the control block tells, on sim.
#include <gtest/gtest.h>

#include <chrono>
#include <numeric>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "bench/form_module.h"
#include "daemon/dispatch/worker_launch.h"
#include "injector/ptx/module.h"
#include "tests/unit/sim_device/sim_fixture.h"

namespace slate::test {
namespace {

using injector::ControlBlock;

// Each block waits until the first word is set and adds one to the second.
constexpr const char* kPtx = R"(.version 7.8
.target sm_70
.address_size 64
.visible .entry wait_and_count(.param .u64 words)
{
  .reg .pred %p;
  .reg .b32 %r<3>;
  .reg .b64 %d<2>;
  ld.param.u64 %d1, [words];
again:
  ld.volatile.global.u32 %r1, [%d1];
  setp.eq.u32 %p, %r1, 0;
  @%p bra again;
  red.global.add.u32 [%d1+4], 1;
  ret;
}
)";

/// Workers that dawdle before they join, and before they close a launch, so that much happens
/// meanwhile.
std::string slow(std::string_view text) {
  std::string result(text);
  for (const std::string before : {"atom.global.add.u64 %__slate_x, [%__slate_control+128], 0xff",
                                   "atom.global.cas.b64 %__slate_y, [%__slate_control+128]"}) {
    std::size_t places = 0;
    for (std::size_t at = 0; (at = result.find(before, at)) != std::string::npos; ++places) {
      const std::string label = "$slow_" + std::to_string(at);
      const std::string loop = "mov.u32 %__slate_q, 400;\n" + label +
                               ":\n\tsub.u32 %__slate_q, %__slate_q, 1;\n"
                               "\tsetp.ne.u32 %__slate_p, %__slate_q, 0;\n\t@%__slate_p bra " +
                               label + ";\n\t";
      result.insert(at, loop);
      at += loop.size() + before.size();
    }
    if (places == 0) throw std::logic_error("not in a worker: " + before);
  }
  return result;
}

class WorkerRoomTest : public sim::SimFixture {
 protected:
  static constexpr std::uint32_t kSms = 4, kRoom = 2;
  std::uint32_t blocks_ = 500;

  explicit WorkerRoomTest(bool is_slow = false) : is_slow_(is_slow) {}
  void SetUp() override {
    open("sms=4,memory=64M,seed=1,quantum=7,max_kernel_seconds=60");
    const auto forms = bench::load_with_forms(
        *device_, kPtx, [&](std::string text) { return is_slow_ ? slow(text) : text; });
    ASSERT_TRUE(forms) << forms.error().message;
    module_ = forms->module;
    launch_.spec.function = function(forms->find("wait_and_count")->worker);
    launch_.spec.grid = {blocks_};
    launch_.spec.block = {1};
    launch_.spec.arena = arena_;
    launch_.spec.parameters = std::as_bytes(std::span(&arena_.base, 1));
    launch_.parameter_offset =
        device_->function_info(launch_.spec.function)->parameters.back().offset;
    launch_.workers_per_sm = kRoom;
    launch_.task_sizes = daemon::TaskSizes{};
    control_ = *device_->create_stream(0);
    memory_ = *daemon::ControlMemory::create(*device_);
    queue_ = std::make_unique<daemon::WorkerQueue>(*device_, *memory_);
  }

  daemon::WorkerTable allow(std::initializer_list<std::uint32_t> sms) const {
    daemon::WorkerTable table(kSms, 0);
    for (const std::uint32_t sm : sms) table[sm] = kRoom;
    return table;
  }
  std::vector<std::uint32_t> control() {
    return read<std::uint32_t>(queue_->control().base, queue_->control().bytes / 4);
  }
  std::vector<std::uint32_t> present() {
    const auto words = control();
    std::vector<std::uint32_t> workers;
    for (std::uint32_t sm = 0; sm < kSms; ++sm) {
      workers.push_back(injector::workers_present(words[ControlBlock::kSmOffset / 4 + sm]));
    }
    return workers;
  }
  /// True if it came true before long.
  template <typename Condition>
  bool comes(Condition condition) {
    for (const auto limit = Clock::now() + std::chrono::seconds(20); Clock::now() < limit;) {
      if (condition()) return true;
    }
    return false;
  }
  void start(const daemon::WorkerTable& table) {
    ASSERT_TRUE(queue_->launch(launch_, stream_, &table));
    fill(table);
  }
  /// On a stream of their own: some may stay.
  void supplement(std::uint32_t workers) {
    sides_.push_back(*device_->create_stream(0));
    ASSERT_TRUE(queue_->supplement(workers, sides_.back()));
  }
  /// Adds workers, ever more as some may come to other SMs, until all are there.
  void fill(const daemon::WorkerTable& table) {
    std::uint32_t times = 1;
    EXPECT_TRUE(comes([&] {
      const std::uint32_t missing = queue_->room_left(control());
      if (missing > 0) supplement(missing * times++);
      return present() == table;
    }));
  }
  void resize(const daemon::WorkerTable& table) { ASSERT_TRUE(queue_->resize(table, control_)); }
  /// Blocks wait no longer.
  void let_go() { write<std::uint32_t>(arena_.base, {1}); }
  /// Lets all blocks end, and expects that each has run once.
  void let_all_end() {
    let_go();
    ASSERT_TRUE(finish(stream_));
    for (const auto side : sides_) ASSERT_TRUE(finish(side));
    EXPECT_EQ(read<std::uint32_t>(word(1), 1)[0], blocks_);
    EXPECT_EQ(signal(), queue_->expected_signal(injector::kFinished));
  }
  std::uint64_t signal() { return read<std::uint64_t>(queue_->signal_address(), 1)[0]; }

  using Clock = std::chrono::steady_clock;
  const bool is_slow_;
  device::Stream control_{};
  std::vector<device::Stream> sides_;
  daemon::FormLaunch launch_;
  std::unique_ptr<daemon::ControlMemory> memory_;
  std::unique_ptr<daemon::WorkerQueue> queue_;
};

TEST_F(WorkerRoomTest, IsGainedByALargerTable) {
  start(allow({0}));
  resize(allow({0, 1, 2}));
  EXPECT_EQ(queue_->room_gained(), 2 * kRoom);
  resize(allow({2, 3}));
  EXPECT_EQ(queue_->room_gained(), kRoom);
  resize(daemon::WorkerTable(kSms, injector::kMostWorkers));
  EXPECT_EQ(queue_->room_gained(), 2 * kRoom) << "no more than fit";
  let_all_end();
}

// Hardware puts a block where it likes: those that come to an SM without room leave, and are missed
// where there is.
TEST_F(WorkerRoomTest, IsLeftUntilAllWhoAreMissingHaveCome) {
  start(allow({0}));
  const auto table = allow({0, 3});
  resize(table);
  supplement(queue_->room_gained());
  fill(table);
  EXPECT_EQ(queue_->room_left(control()), 0U);
  let_all_end();
}

TEST_F(WorkerRoomTest, IsOfNoUseWithoutTasks) {
  launch_.spec.grid = {blocks_ = kRoom};
  launch_.prefetch = false;
  const daemon::WorkerTable everywhere(kSms, kRoom);
  ASSERT_TRUE(queue_->launch(launch_, stream_, &everywhere));
  const auto all_present = [&] {
    const auto workers = present();
    return std::accumulate(workers.begin(), workers.end(), 0U) == blocks_;
  };
  ASSERT_TRUE(comes(all_present));
  EXPECT_TRUE(comes([&] { return queue_->room_left(control()) == 0; }));
  let_all_end();
}

// A worker that finds its launch closed leaves the count as it was, for those that resume().
TEST_F(WorkerRoomTest, IsNotTakenOfALaunchThatHasRetreated) {
  const daemon::WorkerTable nowhere = allow({}), table = allow({0, 2});
  ASSERT_TRUE(queue_->launch(launch_, stream_, &nowhere));
  ASSERT_TRUE(finish(stream_));
  EXPECT_EQ(signal(), queue_->expected_signal(injector::kRetreated));
  supplement(2 * kRoom * kSms);
  ASSERT_TRUE(finish(sides_.back()));
  resize(table);
  ASSERT_TRUE(finish(control_));
  ASSERT_TRUE(queue_->resume());
  fill(table);
  const daemon::WorkerTable everywhere(kSms, kRoom);
  resize(everywhere);
  fill(everywhere);
  let_all_end();
}

class SlowRoomTest : public WorkerRoomTest {
 protected:
  SlowRoomTest() : WorkerRoomTest(true) {}
};

// Workers that join at any time, also while the last ones leave and when all is over: every block
// runs once, every launch ends, and the count of ends is right for the next one.
TEST_F(SlowRoomTest, IsTakenAtAnyTime) {
  let_go();
  launch_.spec.grid = {blocks_ = 6};
  const daemon::WorkerTable everywhere(kSms, kRoom), nowhere(kSms, 0);
  std::minstd_rand random(1);
  const auto pause = [&] { std::this_thread::sleep_for(std::chrono::microseconds(random() % 30)); };
  constexpr std::uint32_t kLaunches = 300;
  std::uint32_t retreats = 0;
  for (int i = 0; i < 4; ++i) sides_.push_back(*device_->create_stream(0));
  for (std::uint32_t launch = 1; launch <= kLaunches; ++launch) {
    ASSERT_TRUE(queue_->launch(launch_, stream_, random() % 2 == 0 ? &nowhere : &everywhere));
    for (auto i = random() % 6; i > 0; --i) {
      pause();
      ASSERT_TRUE(queue_->supplement(8, sides_[random() % sides_.size()]));
    }
    for (;;) {
      ASSERT_TRUE(finish(stream_));
      for (const auto side : sides_) ASSERT_TRUE(finish(side));
      if (signal() != queue_->expected_signal(injector::kRetreated)) break;
      ++retreats;
      resize(everywhere);
      ASSERT_TRUE(finish(control_));
      ASSERT_TRUE(queue_->resume());
      ASSERT_TRUE(queue_->supplement(1 + random() % 8, sides_.front()));
    }
    ASSERT_EQ(signal(), queue_->expected_signal(injector::kFinished)) << "launch " << launch;
    ASSERT_EQ(read<std::uint32_t>(word(1), 1)[0], launch * blocks_);
    const auto words = control();
    ASSERT_EQ(words[ControlBlock::kStateOffset / 4 + 1], 0U) << "launch " << launch;
  }
  EXPECT_GT(retreats, 0U);
}

}  // namespace
}  // namespace slate::test
