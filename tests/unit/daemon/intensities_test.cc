// What kernels compute and how many bytes they ask for becomes known by one counted launch each,
// and `table` chooses by it. On sim.
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <set>
#include <thread>

#include "daemon/engine/executor.h"
#include "tests/unit/daemon/session_client.h"

namespace slate::daemon {
namespace {

using namespace std::chrono_literals;

// compute: every thread does `rounds` fused multiply-adds; the very first stores its result.
// memory: every thread loads 16 bytes `rounds` times.
constexpr std::string_view kIntensitiesModule = R"(
.version 7.0
.target sm_70
.address_size 64

.visible .entry compute(.param .u64 words, .param .u32 rounds, .param .u32 unused)
{
  .reg .pred %p<3>;
  .reg .b32 %r<8>;
  .reg .f32 %f<4>;
  .reg .b64 %d<4>;
  ld.param.u64 %d1, [words];
  ld.param.u32 %r2, [rounds];
  mov.f32 %f1, 0f3F800000;
again:
  fma.rn.f32 %f1, %f1, %f1, %f1;
  sub.u32 %r2, %r2, 1;
  setp.gt.s32 %p2, %r2, 0;
  @%p2 bra again;
  mov.u32 %r3, %tid.x;
  mov.u32 %r4, %ctaid.x;
  or.b32 %r3, %r3, %r4;
  setp.ne.u32 %p1, %r3, 0;
  @%p1 bra done;
  st.global.f32 [%d1], %f1;
done:
  ret;
}

.visible .entry memory(.param .u64 words, .param .u32 rounds, .param .u32 unused)
{
  .reg .pred %p<3>;
  .reg .b32 %r<12>;
  .reg .b64 %d<4>;
  ld.param.u64 %d1, [words];
  ld.param.u32 %r2, [rounds];
again:
  ld.global.v4.u32 {%r5, %r6, %r7, %r8}, [%d1];
  sub.u32 %r2, %r2, 1;
  setp.gt.s32 %p2, %r2, 0;
  @%p2 bra again;
  ret;
}
)";

constexpr std::uint32_t kThreads = SessionClient::kThreads;
constexpr std::uint32_t kBlocks = 64;
constexpr std::uint32_t kRounds = 20;

struct AddParameters {
  std::uint64_t words;
  std::uint32_t rounds;
  std::uint32_t unused = 0;
};

/// A session that launches one of the kernels, and the client's end of its channel.
class Program : public SessionClient {
 public:
  Program(device::Device& device, Compiler& compiler, Executor& executor, Completer& completer,
          std::uint64_t id, std::string_view kernel)
      : SessionClient(device, compiler, executor, completer, id) {
    load(kIntensitiesModule, kernel);
    address_ = allocate(1 << 20);
  }

  void launch(std::uint32_t blocks = kBlocks, std::uint32_t rounds = kRounds) {
    SessionClient::launch(0, blocks, AddParameters{.words = address_, .rounds = rounds});
  }
  void synchronize() {
    SessionClient::synchronize();
    ASSERT_EQ(channel->take_async_error().code, ErrorCode::kNone);
  }

 private:
  std::uint64_t address_ = 0;
};

/// One of slate's policies, and what it decided.
class WatchedPolicy : public scheduler::Policy {
 public:
  WatchedPolicy(std::unique_ptr<scheduler::Policy> policy, std::atomic<int>& coruns)
      : policy_(std::move(policy)), coruns_(coruns) {}

  std::string_view name() const override { return policy_->name(); }
  void decide(const scheduler::View& view, scheduler::Decisions& decisions) override {
    policy_->decide(view, decisions);
    if (decisions.reason == "corun" && !decisions.start.empty()) ++coruns_;
  }
  void finished(const scheduler::Completion& completion) override { policy_->finished(completion); }
  void progressed(const scheduler::Progress& progress) override { policy_->progressed(progress); }
  void session_ended(scheduler::SessionId session) override { policy_->session_ended(session); }

 private:
  const std::unique_ptr<scheduler::Policy> policy_;
  std::atomic<int>& coruns_;
};

DeviceInfo gpu(int major, int minor, int sms, int clock_mhz, int memory_mhz, int bus_bits) {
  DeviceInfo info{};
  info.attributes[kSmCountAttribute] = sms;
  info.attributes[13] = clock_mhz * 1000;
  info.attributes[36] = memory_mhz * 1000;
  info.attributes[37] = bus_bits;
  info.attributes[75] = major;
  info.attributes[76] = minor;
  return info;
}

TEST(PeaksTest, AreThoseOfTheDataSheets) {
  const DeviceInfo h200 = gpu(9, 0, 132, 1980, 3201, 6144);
  EXPECT_NEAR(peak_gflops(h200), 67'000, 200);
  EXPECT_NEAR(peak_gbytes(h200), 4'900, 50);
  const DeviceInfo a100 = gpu(8, 0, 108, 1410, 1215, 5120);
  EXPECT_NEAR(peak_gflops(a100), 19'500, 50);
  EXPECT_NEAR(peak_gbytes(a100), 1'555, 5);
  const DeviceInfo titan_xp = gpu(6, 1, 30, 1582, 5705, 384);
  EXPECT_NEAR(peak_gflops(titan_xp), 12'150, 20);
  EXPECT_NEAR(peak_gbytes(titan_xp), 547.7, 1);
  EXPECT_EQ(peak_gflops(DeviceInfo{}), 0);
  EXPECT_EQ(peak_gbytes(DeviceInfo{}), 0);
}

TEST(PeaksTest, TheConfigurationReplacesThoseOfTheDevice) {
  const auto device = std::move(*device::open_device("sim:sms=2,memory=64M"));
  const Partitions own(*device, {});
  EXPECT_EQ(own.machine().peak_gflops, peak_gflops(device->info()));
  EXPECT_GT(own.machine().peak_gbytes, 0);
  scheduler::Settings settings;
  settings.peak_gflops = 12;
  settings.peak_gbytes = 34;
  const Partitions set(*device, settings);
  EXPECT_EQ(set.machine().peak_gflops, 12);
  EXPECT_EQ(set.machine().peak_gbytes, 34);
}

class IntensitiesTest : public testing::Test {
 protected:
  void start(const std::string& policy, scheduler::Settings settings = {}, bool profiles = true) {
    // Under a sanitizer no kernel is a short one.
    settings.native_try = scheduler::Milliseconds(10'000);
    device_ = std::move(*device::open_device("sim:sms=4,memory=256M"));
    compiler_ = std::make_unique<Compiler>(*device_, nullptr);
    completer_ = std::make_unique<Completer>(*device_);
    maker_ = std::make_unique<FormMaker>(
        *compiler_, FormMaker::Settings{.profiles = profiles, .at_once = true});
    forms_ = std::make_unique<FormService>(*device_, FormChoice::kAuto, profiles, maker_.get());
    trace_ = std::make_unique<Trace>(0);
    const PolicyMaker inner = policy_maker(policy, settings);
    executor_ = std::make_unique<Executor>(
        *device_, *forms_, *completer_, *trace_,
        [&](const scheduler::Machine& machine, scheduler::ProfileTable& profiles_of) {
          return std::make_unique<WatchedPolicy>(inner(machine, profiles_of), coruns_);
        },
        settings);
  }
  std::unique_ptr<Program> run(std::string_view kernel) {
    return std::make_unique<Program>(*device_, *compiler_, *executor_, *completer_, next_++,
                                     kernel);
  }
  std::uint64_t counted() const { return forms_->launches(injector::Form::kProfile); }
  /// Of that grid; of any if it is 0.
  scheduler::KernelProfile row(const std::string& kernel, std::uint64_t blocks = 0) {
    scheduler::KernelProfile found;
    executor_->with_profiles([&](scheduler::ProfileTable& table) {
      for (scheduler::KernelId id = 0; id < table.size(); ++id) {
        const scheduler::KernelProfile& one = table.kernel(id);
        if (one.key.name == kernel && (blocks == 0 || one.blocks == blocks)) found = one;
      }
    });
    return found;
  }

  std::string said(const std::string& kernel) {
    const scheduler::KernelProfile profile = row(kernel);
    return kernel + ": " + std::to_string(profile.best_alone().ms) + " ms, " +
           std::to_string(profile.flops) + " FLOPs, " + std::to_string(profile.bytes) + " bytes\n";
  }

  /// Two programs launch at the same time until both kernels are counted and `enough()`, or for
  /// half a minute. The first one is there first.
  template <typename Enough>
  void run_both(const std::string& first, const std::string& second, Enough enough) {
    const auto limit = std::chrono::steady_clock::now() + 30s;
    std::atomic<bool> over{false};
    std::atomic<bool> begun{false};
    const auto work = [&](const std::string& kernel, bool is_first) {
      const auto program = run_locked(kernel);
      while (!is_first && !begun) std::this_thread::sleep_for(1ms);
      while (!over) {
        for (int i = 0; i < 8; ++i) program->launch();
        program->synchronize();
        begun = true;
        const bool known = row(first).flops >= 0 && row(second).flops >= 0;
        if ((known && enough()) || std::chrono::steady_clock::now() > limit) over = true;
      }
    };
    std::thread other([&] { work(second, false); });
    work(first, true);
    other.join();
  }
  std::unique_ptr<Program> run_locked(const std::string& kernel) {
    const std::lock_guard lock(mutex_);
    return run(kernel);
  }

  std::unique_ptr<device::Device> device_;
  std::unique_ptr<Compiler> compiler_;
  std::unique_ptr<Completer> completer_;
  std::unique_ptr<FormMaker> maker_;
  std::unique_ptr<FormService> forms_;
  std::unique_ptr<Trace> trace_;
  std::atomic<int> coruns_{0};
  std::unique_ptr<Executor> executor_;
  std::mutex mutex_;
  std::uint64_t next_ = 1;
};

TEST_F(IntensitiesTest, OneLaunchOfAKernelIsCountedAfterTheFirstFew) {
  start("fifo");
  auto program = run("compute");
  for (int i = 0; i < 3; ++i) {
    program->launch();
    program->synchronize();
  }
  EXPECT_EQ(counted(), 0u);
  EXPECT_LT(row("compute").flops, 0);
  for (int i = 0; i < 10; ++i) {
    program->launch();
    program->synchronize();
  }
  program.reset();  // which waits until the executor has seen all ends
  EXPECT_EQ(counted(), 1u);
  const scheduler::KernelProfile profile = row("compute");
  EXPECT_EQ(profile.flops, 2.0 * kRounds * kThreads * kBlocks);
  EXPECT_EQ(profile.bytes, 4.0);
  EXPECT_GT(profile.instructions, 4.0 * kRounds * kThreads * kBlocks);
  std::uint32_t samples = 0;
  for (const scheduler::TimeEstimate& time : profile.alone) samples += time.samples;
  EXPECT_EQ(samples, 12u) << "the counted launch's time says nothing of the kernel's";
}

TEST_F(IntensitiesTest, AnotherGridOfAKernelIsCountedForItself) {
  start("fifo");
  for (const std::uint32_t blocks : {kBlocks, 5 * kBlocks}) {
    const auto program = run("memory");
    for (int i = 0; i < 8; ++i) {
      program->launch(blocks);
      program->synchronize();
    }
  }
  for (const std::uint32_t blocks : {kBlocks, 5 * kBlocks}) {
    EXPECT_NEAR(row("memory", blocks).bytes, 16.0 * kRounds * kThreads * blocks, blocks);
  }
  EXPECT_EQ(counted(), 2u);
}

TEST_F(IntensitiesTest, WhatWasForgottenIsCountedAgainHoweverOften) {
  start("fifo");
  auto program = run("compute");
  for (int round = 0; round < ProfiledLaunches::kMostTries + 2; ++round) {
    for (int i = 0; i < 8; ++i) {
      program->launch();
      program->synchronize();
    }
    EXPECT_GE(row("compute").flops, 0) << round;
    executor_->with_profiles([](scheduler::ProfileTable& table) { table.clear(); });
  }
}

TEST_F(IntensitiesTest, NothingIsCountedUnlessItIsWanted) {
  start("fifo", {}, false);
  const auto program = run("compute");
  for (int i = 0; i < 10; ++i) program->launch();
  program->synchronize();
  EXPECT_EQ(counted(), 0u);
  EXPECT_LT(row("compute").flops, 0);
}

TEST_F(IntensitiesTest, AClientThatLeavesInTheMiddleDoesNotKeepOthersFromBeingCounted) {
  start("fifo");
  for (int i = 0; i < 3; ++i) {
    const auto leaver = run("memory");
    for (int j = 0; j < 6; ++j) leaver->launch(kBlocks, 50 * kRounds);
  }
  auto program = run("compute");
  for (int i = 0; i < 8; ++i) {
    program->launch();
    program->synchronize();
  }
  program.reset();
  EXPECT_GE(row("compute").flops, 0);
}

/// Peaks so low that whoever computes, computes much; and memory's between what the two kernels
/// ask for, far from both.
scheduler::Settings low_peaks() {
  scheduler::Settings settings;
  settings.peak_gflops = 1e-6;
  settings.peak_gbytes = 5e-3;
  settings.linger = scheduler::Milliseconds(2000);
  return settings;
}

TEST_F(IntensitiesTest, TableHasAMemoryBoundProgramRunBesideAComputeBoundOne) {
  start("table", low_peaks());
  run_both("compute", "memory", [&] { return coruns_ > 0; });
  EXPECT_GT(coruns_, 0) << said("compute") << said("memory");
}

TEST_F(IntensitiesTest, TableHasTwoComputeBoundProgramsTakeTurns) {
  start("table", low_peaks());
  std::atomic<int> more{0};
  run_both("compute", "compute", [&] { return ++more > 10; });
  EXPECT_GT(more, 10);
  EXPECT_EQ(coruns_, 0);
}

}  // namespace
}  // namespace slate::daemon
