// Which workers are missing where a placement has grown, as the control block tells, on sim.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <numeric>
#include <string>
#include <vector>

#include "daemon/dispatch/form_module.h"
#include "daemon/dispatch/worker_launch.h"
#include "device/device.h"
#include "injector/ptx/module.h"

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

template <typename T>
T value(Result<T> result) {
  if (!result) throw std::runtime_error(result.error().message);
  if constexpr (!std::is_void_v<T>) return std::move(*result);
}

class WorkerRoomTest : public testing::Test {
 protected:
  static constexpr std::uint32_t kSms = 4, kRoom = 2;
  std::uint32_t blocks_ = 500;

  WorkerRoomTest() {
    const auto parsed = value(ptx::parse(kPtx));
    module_ = value(daemon::load_forms(*device_, *parsed, [this](std::string_view text) {
      return device_->load_module(device::ImageKind::kPtx, std::as_bytes(std::span(text)));
    }));
    launch_.spec.function =
        value(device_->find_function(module_.module, module_.find("wait_and_count")->worker));
    launch_.spec.grid = {blocks_};
    launch_.spec.block = {1};
    launch_.spec.arena = arena_;
    launch_.spec.parameters = std::as_bytes(std::span(&arena_.base, 1));
    launch_.parameter_offset =
        value(device_->function_info(launch_.spec.function)).parameters.back().offset;
    launch_.workers_per_sm = kRoom;
    launch_.task_sizes = daemon::TaskSizes{};
    value(device_->map(arena_));
    value(device_->fill(arena_.base, 0, 0, {8, 1}, stream_));
    wait(stream_);
  }
  ~WorkerRoomTest() override {
    queue_.reset();
    device_->unload_module(module_.module);
    device_->unmap(arena_);
    device_->unreserve(arena_);
    for (const auto stream : sides_) device_->destroy_stream(stream);
    for (const auto stream : {stream_, control_}) device_->destroy_stream(stream);
    memory_.reset();
  }

  daemon::WorkerTable allow(std::initializer_list<std::uint32_t> sms) const {
    daemon::WorkerTable table(kSms, 0);
    for (const std::uint32_t sm : sms) table[sm] = kRoom;
    return table;
  }
  void wait(device::Stream stream) {
    const auto event = value(device_->create_event(false));
    value(device_->record(event, stream));
    while (!value(device_->query(event))) {
      device_->wait_for_progress(std::chrono::milliseconds(1));
    }
    device_->destroy_event(event);
  }
  std::vector<std::uint32_t> words_at(device::Address address, std::uint64_t bytes) {
    std::vector<std::uint32_t> words(bytes / 4);
    value(device_->copy_to_host(words.data(), 0, address, 0, {bytes, 1}, control_));
    wait(control_);
    return words;
  }
  std::vector<std::uint32_t> control() {
    return words_at(queue_->control().base, queue_->control().bytes);
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
    value(queue_->launch(launch_, stream_, &table));
    ASSERT_TRUE(comes([&] { return present() == table; }));
    EXPECT_TRUE(comes([&] { return queue_->room_left(control()) == 0; }));
  }
  /// On a stream of their own: some may stay.
  void supplement(std::uint32_t workers) {
    sides_.push_back(value(device_->create_stream(0)));
    value(queue_->supplement(workers, sides_.back()));
  }
  void resize(const daemon::WorkerTable& table) { value(queue_->resize(table, control_)); }
  /// Lets all blocks end, and expects that each has run once.
  void finish() {
    const std::uint32_t one = 1;
    value(device_->copy_to_device(arena_.base, 0, &one, 0, {4, 1}, control_));
    wait(control_);
    wait(stream_);
    for (const auto side : sides_) wait(side);
    EXPECT_EQ(words_at(arena_.base, 8)[1], blocks_);
    EXPECT_EQ(signal(), queue_->expected_signal(injector::kFinished));
  }
  std::uint64_t signal() {
    std::uint64_t signal = 0;
    std::memcpy(&signal, words_at(queue_->signal_address(), 8).data(), 8);
    return signal;
  }

  using Clock = std::chrono::steady_clock;
  const std::unique_ptr<device::Device> device_ =
      value(device::open_device("sim:sms=4,memory=64M,max_kernel_seconds=60"));
  std::unique_ptr<daemon::ControlMemory> memory_ = value(daemon::ControlMemory::create(*device_));
  const device::Stream stream_ = value(device_->create_stream(0));
  const device::Stream control_ = value(device_->create_stream(0));
  const device::AddressRange arena_{value(device_->reserve(device_->granularity())),
                                    device_->granularity()};
  daemon::FormModule module_;
  daemon::FormLaunch launch_;
  std::vector<device::Stream> sides_;
  std::unique_ptr<daemon::WorkerQueue> queue_ =
      std::make_unique<daemon::WorkerQueue>(*device_, *memory_);
};

TEST_F(WorkerRoomTest, IsGainedByALargerTable) {
  start(allow({0}));
  resize(allow({0, 1, 2}));
  EXPECT_EQ(queue_->room_gained(), 2 * kRoom);
  resize(allow({2, 3}));
  EXPECT_EQ(queue_->room_gained(), kRoom);
  resize(daemon::WorkerTable(kSms, injector::kMostWorkers));
  EXPECT_EQ(queue_->room_gained(), 2 * kRoom) << "no more than fit";
  finish();
}

// Hardware puts a block where it likes: those that come to an SM without room leave, and are missed
// where there is.
TEST_F(WorkerRoomTest, IsLeftUntilAllWhoAreMissingHaveCome) {
  start(allow({0}));
  const auto table = allow({0, 3});
  resize(table);
  supplement(queue_->room_gained());
  std::uint32_t times = 1;
  EXPECT_TRUE(comes([&] {
    if (const std::uint32_t missing = queue_->room_left(control()); missing > 0) {
      supplement(missing * times++);
    }
    return present() == table;
  }));
  EXPECT_EQ(queue_->room_left(control()), 0U);
  finish();
}

TEST_F(WorkerRoomTest, IsOfNoUseWithoutTasks) {
  launch_.spec.grid = {blocks_ = kRoom};
  launch_.prefetch = false;
  const daemon::WorkerTable everywhere(kSms, kRoom);
  value(queue_->launch(launch_, stream_, &everywhere));
  const auto all_present = [&] {
    const auto workers = present();
    return std::accumulate(workers.begin(), workers.end(), 0U) == blocks_;
  };
  ASSERT_TRUE(comes(all_present));
  EXPECT_TRUE(comes([&] { return queue_->room_left(control()) == 0; }));
  finish();
}

// A worker that finds its launch closed leaves the count as it was, for those that resume().
TEST_F(WorkerRoomTest, IsNotTakenOfALaunchThatHasRetreated) {
  const daemon::WorkerTable nowhere = allow({}), table = allow({0, 2});
  value(queue_->launch(launch_, stream_, &nowhere));
  wait(stream_);
  EXPECT_EQ(signal(), queue_->expected_signal(injector::kRetreated));
  supplement(2 * kRoom * kSms);
  wait(sides_.back());
  resize(table);
  wait(control_);
  value(queue_->resume());
  EXPECT_TRUE(comes([&] { return present() == table; }));
  resize(daemon::WorkerTable(kSms, kRoom));
  supplement(queue_->room_gained());
  EXPECT_TRUE(comes([&] { return present() == daemon::WorkerTable(kSms, kRoom); }));
  finish();
}

}  // namespace
}  // namespace slate::test
