// Executor: whatever a policy decides (forms, placements, resizes, retreats, turns), every block of
// every launch runs exactly once and streams keep their order. On sim, with policies that decide at
// random, and with each of slate's own. Resizing as told: executor_resize_test.cc.
#include "daemon/engine/executor.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <random>
#include <thread>

#include "tests/unit/daemon/executor_fixture.h"
#include "tests/unit/daemon/fake_device.h"

namespace slate::daemon {
namespace {

using scheduler::Form;
using namespace std::chrono_literals;

// sim is twenty times slower under a sanitizer.
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr int kLaunches = 10;
#else
constexpr int kLaunches = 40;
#endif

/// Starts at once, anywhere, in any form; changes its mind all the time.
class RandomPolicy : public scheduler::Policy {
 public:
  RandomPolicy(const scheduler::Machine& machine, unsigned seed)
      : machine_(machine), random_(seed) {}

  std::string_view name() const override { return "random"; }
  void decide(const scheduler::View& view, scheduler::Decisions& decisions) override {
    for (const scheduler::SessionView& session : view.sessions) {
      if (session.running.resizable && random_() % 20 == 0) {
        const bool away = random_() % 3 == 0;
        decisions.resize.push_back({session.id, away ? scheduler::Placement{} : somewhere(true)});
        ++resizes;
      }
      if (!session.waiting || session.running.launches > 3) continue;
      Form form = Form::kNative;
      if (session.waiting->worker_legal && random_() % 3 != 0) form = Form::kWorker;
      const scheduler::WaitingLaunch& launch = *session.waiting;
      if (launch.blocks_started > 0) {
        EXPECT_LT(launch.blocks_started, launch.blocks);
        ++later_slices;
      }
      if (launch.slice_legal && random_() % 5 == 0) form = Form::kSlice;
      if (launch.blocks_started > 0) form = Form::kSlice;
      const std::uint64_t left = launch.blocks - launch.blocks_started;
      decisions.start.push_back({.session = session.id,
                                 .form = form,
                                 .placement = somewhere(form == Form::kWorker),
                                 .slice_blocks = random_() % 4 == 0 ? 0 : 1 + random_() % left,
                                 .task_size = static_cast<std::uint32_t>(random_() % 4),
                                 .prefetch = random_() % 2 == 0,
                                 .alone = random_() % 4 == 0,
                                 .tag = random_()});
    }
    decisions.again = view.now + 300us;
    decisions.reason = "random";
  }
  void finished(const scheduler::Completion& completion) override {
    EXPECT_GE(completion.launches, 1u);
    EXPECT_GE(completion.device_time.count(), 0);
    EXPECT_GT(completion.part, 0);
    EXPECT_LE(completion.part, 1);
  }
  void progressed(const scheduler::Progress& progress) override {
    EXPECT_LE(progress.blocks_done, progress.blocks);
    ++progresses;
  }

  std::atomic<int> resizes{0}, progresses{0}, later_slices{0};

 private:
  scheduler::Placement somewhere(bool quota) {
    if (random_() % 4 == 0) return machine_.whole();
    scheduler::Placement placement;
    placement.first = static_cast<std::uint32_t>(random_() % machine_.units);
    placement.count =
        1 + static_cast<std::uint32_t>(random_() % (machine_.units - placement.first));
    if (quota && random_() % 3 == 0) placement.blocks_per_sm = 1;
    return placement;
  }

  const scheduler::Machine machine_;
  std::mt19937 random_;
};

class RandomExecutorTest : public ExecutorTest, public testing::WithParamInterface<unsigned> {};

TEST_P(RandomExecutorTest, EveryBlockRunsOnceAndInOrderWhateverIsDecided) {
  const unsigned seed = GetParam();
  RandomPolicy* policy = nullptr;
  start("sim:sms=7,unit=" + std::to_string(1 + seed % 3) + ",seed=" + std::to_string(seed),
        [&](const scheduler::Machine& machine, scheduler::ProfileTable&) {
          auto made = std::make_unique<RandomPolicy>(machine, seed);
          policy = made.get();
          return made;
        });
  auto one = connect(), other = connect(), third = connect();
  std::thread beside([&] { work(*other, seed + 1000, kLaunches); });
  std::thread also([&] { work(*third, seed + 2000, kLaunches); });
  work(*one, seed, kLaunches);
  beside.join();
  also.join();
  if (kLaunches >= 40) {
    EXPECT_GT(policy->resizes.load(), 0);
    EXPECT_GT(policy->later_slices.load(), 0);
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomExecutorTest, testing::Range(1u, 7u));

/// Starts a slice of every launch as soon as nothing of its session runs.
class SlicingPolicy : public scheduler::Policy {
 public:
  explicit SlicingPolicy(const scheduler::Machine& machine) : machine_(machine) {}

  static constexpr std::uint64_t kSlice = 32;  // blocks

  std::string_view name() const override { return "slicing"; }
  void decide(const scheduler::View& view, scheduler::Decisions& decisions) override {
    for (const scheduler::SessionView& session : view.sessions) {
      if (!session.waiting || session.running.launches > 0) continue;
      EXPECT_TRUE(session.waiting->slice_legal);
      decisions.start.push_back({.session = session.id,
                                 .form = Form::kSlice,
                                 .placement = machine_.whole(),
                                 .slice_blocks = kSlice});
    }
  }
  void finished(const scheduler::Completion&) override {}

 private:
  const scheduler::Machine machine_;
};

TEST_F(ExecutorTest, ALaunchInSlicesIsDoneWhenItsLastSliceIs) {
  start_with<SlicingPolicy>(std::move(*device::open_device("sim:sms=4")));
  auto client = connect();
  client->load();
  constexpr std::uint32_t kStream = 7, kProgress = 3, kBlocks = 4 * SlicingPolicy::kSlice;
  ASSERT_TRUE(client->channel->post(
      ipc::CommandType::kStreamCreate,
      ipc::bytes_of(ipc::StreamCreate{kStream, ipc::kStreamNonBlocking, 0, kProgress, 0})));
  const std::uint64_t address = client->allocate(kBlocks * 4);
  client->fill(0, address, kBlocks * 4);
  client->synchronize();
  for (std::uint32_t wanted = 1; wanted < 100; wanted = 3 * wanted + 1) {
    ipc::PlaceNote note;
    const Parameters parameters{address, 1, 2000};
    ASSERT_TRUE(client->channel->post(
        ipc::CommandType::kLaunch,
        ipc::bytes_of(ipc::Launch{
            1, kStream, {kBlocks, 1, 1}, {Client::kThreads, 1, 1}, 0, sizeof(parameters)}),
        ipc::bytes_of(parameters), &note));
    while (!client->channel->completed(kProgress, note.position)) std::this_thread::yield();
    // The copy is on another stream, and does not wait for the launch.
    EXPECT_EQ(client->read(address, kBlocks), std::vector<std::uint32_t>(kBlocks, wanted));
  }
}

/// Starts everything natively, and knows its time well.
class KnowingPolicy : public scheduler::Policy {
 public:
  KnowingPolicy(const scheduler::Machine& machine, scheduler::ProfileTable& profiles)
      : machine_(machine), profiles_(profiles) {}

  std::string_view name() const override { return "knowing"; }
  void decide(const scheduler::View& view, scheduler::Decisions& decisions) override {
    for (const scheduler::SessionView& session : view.sessions) {
      if (!session.waiting) continue;
      profiles_.kernel(session.waiting->kernel).alone[0] = {.ms = kMs, .samples = 1000};
      scheduler::Placement placement = machine_.whole();
      placement.ahead = ahead;
      decisions.start.push_back(
          {.session = session.id, .placement = placement, .repeats = repeats, .sampled = repeats});
      ++starts;
    }
  }
  void finished(const scheduler::Completion&) override {}

  static constexpr double kMs = 0.001;
  std::atomic<int> starts{0};
  std::atomic<bool> repeats{false}, ahead{false};  // in all starts

 private:
  const scheduler::Machine machine_;
  scheduler::ProfileTable& profiles_;
};

/// And counts what ends.
class CountingPolicy : public KnowingPolicy {
 public:
  using KnowingPolicy::KnowingPolicy;
  void finished(const scheduler::Completion& completion) override {
    ended += static_cast<int>(completion.launches);
    if (!completion.timed) untimed += static_cast<int>(completion.launches);
    if (completion.timed && completion.mixed) ++timed_mixed;
    if (completion.resized) ++unmeasured;
    EXPECT_NEAR(completion.alone.count(), kMs, 1e-9);  // of one launch, whatever it is
  }

  std::atomic<int> ended{0}, untimed{0};  // launches
  std::atomic<int> timed_mixed{0};        // batches
  std::atomic<int> unmeasured{0};         // likewise
};

TEST_F(ExecutorTest, WhatIsKnownIsNotAskedAgain) {
  CountingPolicy* policy = nullptr;
  start("sim:sms=4", [&](const scheduler::Machine& machine, scheduler::ProfileTable& profiles) {
    auto made = std::make_unique<CountingPolicy>(machine, profiles);
    policy = made.get();
    return made;
  });
  constexpr int kRepeated = 100;
  auto client = connect();
  client->load();
  const std::uint64_t address = client->allocate(640 * 4);
  client->fill(0, address, 640 * 4);
  std::uint32_t wanted = 0;
  std::array<std::uint32_t, 2> blocks{64, 64};
  // The first one begins, decided or not, when the others are already there, so that nothing ends
  // the batch.
  const auto starts_of = [&] {
    const int before = policy->starts;
    executor_->with_profiles([&](scheduler::ProfileTable&) {
      for (std::size_t i = 0; i < kRepeated; ++i) {
        client->launch(0, blocks[i % 2], Parameters{address, 1, 1});
        wanted = 3 * wanted + 1;
      }
    });
    client->synchronize();
    return policy->starts - before;
  };
  EXPECT_EQ(starts_of(), 1);
  EXPECT_EQ(starts_of(), 0);
  // Who is alone asks at a few of many batches only.
  const int asked = policy->starts;
  constexpr int kSingle = 100;
  for (int i = 0; i < kSingle; ++i) {
    client->launch(0, 64, Parameters{address, 1, 1});
    client->synchronize();
    wanted = 3 * wanted + 1;
  }
  EXPECT_GE(policy->starts, asked + 2);
  EXPECT_LE(policy->starts, asked + 4);
  // Nor when grids of two sizes, two kernels to the policy, take turns.
  blocks = {64, 640};
  EXPECT_LE(starts_of(), 4);
  EXPECT_LE(starts_of(), 2);
  blocks = {64, 64};
  auto other = connect();
  EXPECT_EQ(starts_of(), kRepeated);
  policy->repeats = true;
  EXPECT_EQ(starts_of(), 1);
  // Beside others, too, a sample is timed; the policy is told of all of them.
  const int untimed = policy->untimed;
  for (int i = 0; i < 8; ++i) starts_of();
  EXPECT_GT(policy->untimed, untimed);
  EXPECT_LT(policy->untimed, untimed + 8 * kRepeated);
  // A sample that has both kernels in it says how the program as a whole gets on.
  EXPECT_EQ(policy->timed_mixed, 0);
  blocks = {64, 640};
  int rounds = 0;
  for (; rounds < 100 && policy->timed_mixed == 0; ++rounds) starts_of();
  EXPECT_GT(policy->timed_mixed, 0);
  EXPECT_EQ(policy->ended, (14 + rounds) * kRepeated + kSingle);
  for (const std::uint32_t word : client->read(address, 64)) ASSERT_EQ(word, wanted);
}

TEST_F(ExecutorTest, WhatBeginsWithoutADecisionIsSeenToRun) {
  auto made = std::make_unique<FakeDevice>();
  FakeDevice& fake = *made;
  CountingPolicy* policy = nullptr;
  start(std::move(made), [&](const scheduler::Machine& machine, scheduler::ProfileTable& profiles) {
    auto counting = std::make_unique<CountingPolicy>(machine, profiles);
    policy = counting.get();
    return counting;
  });
  auto client = connect();
  client->SessionClient::load("not read", "noop");
  for (int i = 0; i < 2; ++i) {
    client->launch(0, 1, std::uint64_t{0});
    client->synchronize();
  }
  const int asked = policy->starts;
  fake.hold(true);
  client->launch(0, 1, std::uint64_t{0});
  const auto becomes = [&](bool running) {
    for (int i = 0; i < 10'000; ++i) {
      if ((executor_->status(1)->kernel == "noop") == running) return true;
      std::this_thread::sleep_for(1ms);
    }
    return false;
  };
  EXPECT_TRUE(becomes(true));
  EXPECT_EQ(policy->starts, asked);
  fake.hold(false);
  client->synchronize();
  EXPECT_TRUE(becomes(false));
}

TEST_F(ExecutorTest, KernelsThatShareSmsWantTheSamePartOfThemAsSharedMemory) {
  auto made = std::make_unique<FakeDevice>();
  FakeDevice& fake = *made;
  KnowingPolicy* policy = nullptr;
  start(std::move(made), [&](const scheduler::Machine& machine, scheduler::ProfileTable& profiles) {
    auto knowing = std::make_unique<KnowingPolicy>(machine, profiles);
    policy = knowing.get();
    return knowing;
  });
  policy->repeats = true;
  auto client = connect();
  client->SessionClient::load("not read", "noop");
  // Of launches in a row, all but the first need no decision.
  const auto newest_of_a_row = [&] {
    const int before = fake.launches();
    executor_->with_profiles([&](scheduler::ProfileTable&) {
      for (int i = 0; i < 4; ++i) client->launch(0, 1, std::uint64_t{0});
    });
    client->synchronize();
    EXPECT_EQ(fake.launches(), before + 4);
    return fake.newest();
  };
  EXPECT_EQ(newest_of_a_row().carveout, 0U) << "by itself";
  auto other = connect();
  EXPECT_EQ(newest_of_a_row().carveout, FakeDevice::kCommonCarveout);
  EXPECT_FALSE(newest_of_a_row().ahead);
  policy->ahead = true;
  other.reset();
  other = connect();
  EXPECT_TRUE(newest_of_a_row().ahead);
  EXPECT_EQ(fake.newest().carveout, FakeDevice::kCommonCarveout);
}

/// Starts everything at once, natively, and notes which sessions it sees.
class Witness : public scheduler::Policy {
 public:
  explicit Witness(const scheduler::Machine& machine) : machine_(machine) {}
  std::string_view name() const override { return "witness"; }
  void decide(const scheduler::View& view, scheduler::Decisions& decisions) override {
    seen.clear();
    for (const scheduler::SessionView& session : view.sessions) {
      seen.push_back(session.id);
      if (session.waiting)
        decisions.start.push_back({.session = session.id, .placement = machine_.whole()});
    }
  }
  void finished(const scheduler::Completion&) override {}
  void progressed(const scheduler::Progress&) override {}

  std::vector<scheduler::SessionId> seen;  // of the last decision

 private:
  const scheduler::Machine machine_;
};

TEST_F(ExecutorTest, APolicySeesNoSessionsThatAreIdleForLong) {
  Witness* policy = nullptr;
  start(std::make_unique<FakeDevice>(),
        [&](const scheduler::Machine& machine, scheduler::ProfileTable&) {
          auto made = std::make_unique<Witness>(machine);
          policy = made.get();
          return made;
        });
  std::vector<std::unique_ptr<Client>> clients;
  for (int i = 0; i < 5; ++i) {
    clients.push_back(connect());
    clients.back()->SessionClient::load("module", "noop");
  }
  const auto launch = [&](std::size_t which) {
    clients[which]->launch(0, 1, std::uint64_t{0});
    clients[which]->synchronize();
    std::vector<scheduler::SessionId> seen;
    executor_->with_profiles([&](scheduler::ProfileTable&) { seen = policy->seen; });
    return seen;
  };
  EXPECT_EQ(launch(2), (std::vector<scheduler::SessionId>{1, 2, 3, 4, 5}));
  ASSERT_TRUE(executor_->set(1, 1, 3));
  std::this_thread::sleep_for(Executor::kAsleepAfter + 50ms);
  EXPECT_EQ(launch(3), (std::vector<scheduler::SessionId>{1, 4}))
      << "others leave room for a higher priority";
  EXPECT_EQ(launch(1), (std::vector<scheduler::SessionId>{1, 2, 4})) << "in the order of arrival";
  EXPECT_EQ(launch(4), (std::vector<scheduler::SessionId>{1, 2, 4, 5}));
  clients[1].reset();
  clients[2].reset();
  EXPECT_EQ(launch(3), (std::vector<scheduler::SessionId>{1, 4, 5}));
  EXPECT_TRUE(executor_->status(5));
}

TEST_F(ExecutorTest, WhatTheDeviceRefusesIsNotMeasured) {
  CountingPolicy* policy = nullptr;
  start(std::make_unique<FakeDevice>(),
        [&](const scheduler::Machine& machine, scheduler::ProfileTable& profiles) {
          auto counting = std::make_unique<CountingPolicy>(machine, profiles);
          policy = counting.get();
          return counting;
        });
  auto client = connect();
  client->SessionClient::load("not read", "noop");
  const auto launch = [&](bool refused) {
    client->launch(0, {1, 1, 1}, {32, 1, 1}, std::uint64_t{0},
                   refused ? FakeDevice::kMostShared + 1 : 0);
  };
  // Decided on, the first of a batch that is not, and in the row behind it.
  for (const int where : {0, 0, 2}) {
    const int before = policy->unmeasured;
    executor_->with_profiles([&](scheduler::ProfileTable&) {
      for (int i = 0; i < 4; ++i) launch(i == where);
    });
    client->synchronize();
    EXPECT_EQ(client->channel->take_async_error().code, ErrorCode::kInvalidConfiguration);
    // The policy may be told a little later.
    for (int i = 0; i < 10'000 && policy->unmeasured == before; ++i)
      std::this_thread::sleep_for(1ms);
    launch(false);
    client->synchronize();
    EXPECT_EQ(policy->unmeasured, before + 1);
  }
}

TEST_F(ExecutorTest, ASessionMakesOnlySoManyProfiles) {
  start(std::make_unique<FakeDevice>(),
        [](const scheduler::Machine& machine, scheduler::ProfileTable& profiles) {
          return std::make_unique<KnowingPolicy>(machine, profiles);
        });
  const auto rows = [this] {
    std::size_t count = 0;
    executor_->with_profiles([&](scheduler::ProfileTable& profiles) { count = profiles.size(); });
    return count;
  };
  auto client = connect();
  client->SessionClient::load("not read", "noop");
  client->launch(0, {1, 65536, 1}, {1, 1, 1}, std::uint64_t{0});
  client->launch(0, {1, 1, 1}, {1025, 1, 1}, std::uint64_t{0});
  client->launch(0, {1u << 31, 1u << 31, 4}, {1, 1, 1}, std::uint64_t{0});  // 2^64 blocks
  client->synchronize();
  EXPECT_EQ(client->channel->take_async_error().code, ErrorCode::kInvalidConfiguration);
  EXPECT_EQ(rows(), 0u) << "of launches that cannot be";
  for (std::uint32_t y = 1; y <= 4; ++y) {
    for (std::uint32_t x = 1; x * y <= 1024; ++x)
      client->launch(0, {1, 1, 1}, {x, y, 1}, std::uint64_t{0});
  }
  client->synchronize();
  EXPECT_EQ(rows(), Executor::kMostRowsOfSession + 1) << "the last one is all the others'";
  auto other = connect();
  other->SessionClient::load("not read", "noop");
  other->launch(0, {1, 1, 1}, {1, 1, 8}, std::uint64_t{0});
  other->synchronize();
  EXPECT_EQ(rows(), Executor::kMostRowsOfSession + 2);
}

TEST(LaunchBatchTest, TheKernelWithMostOfTheTimeIsTheMainOne) {
  constexpr scheduler::KernelId kQuick = 3, kSlow = 5;
  LaunchBatch batch;
  batch.completion = {.kernel = kQuick, .main = kQuick, .placement = {}, .launches = 0};
  batch.add(kQuick, 0.2, 0.2);
  EXPECT_EQ(batch.completion.main, kQuick);
  EXPECT_FALSE(batch.completion.mixed);
  for (int i = 0; i < 10; ++i) {
    batch.add(kSlow, 0.7, 0.6);
    EXPECT_EQ(batch.completion.main, kSlow);
    batch.add(kQuick, 0.2, 0.2);
    EXPECT_EQ(batch.completion.main, kSlow);
  }
  EXPECT_TRUE(batch.completion.mixed);
  EXPECT_EQ(batch.completion.kernel, kQuick);
  EXPECT_EQ(batch.completion.launches, 21u);
  EXPECT_NEAR(batch.expected_ms, 11 * 0.2 + 10 * 0.7, 1e-9);
  EXPECT_NEAR(batch.alone_ms, 11 * 0.2 + 10 * 0.6, 1e-9);
}

/// Waits until both sessions want to launch; then gives each the device alone, one after the other.
class BothAlonePolicy : public scheduler::Policy {
 public:
  explicit BothAlonePolicy(const scheduler::Machine& machine) : machine_(machine) {}

  std::string_view name() const override { return "both alone"; }
  void decide(const scheduler::View& view, scheduler::Decisions& decisions) override {
    const auto waits = [](const scheduler::SessionView& session) {
      return session.waiting.has_value();
    };
    if (std::ranges::count_if(view.sessions, waits) < 2) return;
    for (const scheduler::SessionView& session : view.sessions) {
      decisions.start.push_back(
          {.session = session.id, .placement = machine_.whole(), .alone = true});
    }
  }
  void finished(const scheduler::Completion&) override {}

 private:
  const scheduler::Machine machine_;
};

TEST_F(ExecutorTest, WhoIsStartedSecondWaitsForALaunchThatIsOnlyAboutToBeMade) {
  auto made = std::make_unique<FakeDevice>();
  FakeDevice& fake = *made;
  fake.add_kernel("first", {});
  fake.add_kernel("second", {});
  fake.before_launch([](const std::string& kernel) {
    if (kernel == "first") std::this_thread::sleep_for(50ms);
  });
  start_with<BothAlonePolicy>(std::move(made));
  auto first = connect(), second = connect();
  first->SessionClient::load("first", "first");
  second->SessionClient::load("second", "second");
  first->launch(0, 1, std::uint64_t{0});
  second->launch(0, 1, std::uint64_t{0});
  first->synchronize();
  second->synchronize();
  std::vector<std::string> ran;
  for (const std::string& piece : fake.trace()) ran.push_back(piece.substr(0, piece.find('@')));
  EXPECT_EQ(ran, (std::vector<std::string>{"first", "second"}));
}

TEST_F(ExecutorTest, ALaunchThatWaitsOnTheDeviceIsKnownToWaitForThatSession) {
  auto made = std::make_unique<FakeDevice>();
  FakeDevice& fake = *made;
  start_with<BothAlonePolicy>(std::move(made));
  auto first = connect(), second = connect();
  first->SessionClient::load("first", "spin");
  second->SessionClient::load("second", "noop");
  first->launch(0, 1, std::uint64_t{0});
  while (!executor_->status(1)->waits) std::this_thread::yield();
  EXPECT_TRUE(executor_->uses().at(0).waits_since);
  EXPECT_TRUE(executor_->uses().at(0).waits_for.empty()) << "it waits for the policy";
  second->launch(0, 1, std::uint64_t{0});
  auto uses = executor_->uses();
  while (uses.at(1).waits_for.empty() || !uses[0].holds_since) {
    std::this_thread::yield();
    uses = executor_->uses();
  }
  EXPECT_EQ(uses[1].waits_for, std::vector{uses[0].session});
  EXPECT_TRUE(uses[1].waits_since);
  EXPECT_FALSE(uses[0].waits_since);
  fake.release_spinning();
  first->synchronize();
  second->synchronize();
  EXPECT_FALSE(executor_->uses().at(1).waits_since);
}

TEST_F(ExecutorTest, ALaunchThatWaitsEndsWithItsClient) {
  start_with<BothAlonePolicy>(std::make_unique<FakeDevice>());
  auto client = connect();
  client->SessionClient::load("any", "noop");
  client->launch(0, 1, std::uint64_t{0});
  client->leave();
  EXPECT_EQ(static_cast<FakeDevice&>(*device_).launches(), 0);
}

TEST_F(ExecutorTest, ALaunchThatWaitsWhenItsSessionIsStoppedIsNoFault) {
  start_with<BothAlonePolicy>(std::make_unique<FakeDevice>());
  auto client = connect();
  client->SessionClient::load("any", "noop");
  client->launch(0, 1, std::uint64_t{0});
  while (!executor_->status(1)->waits) std::this_thread::yield();
  client->session().stop("slated is stopping");
  const auto told = client->channel->check();
  ASSERT_FALSE(told);
  EXPECT_EQ(told.error().message, "slated is stopping");
  client->leave();
  EXPECT_FALSE(client->session().faulted());
}

TEST_F(ExecutorTest, ALaunchThatWaitsWhenItsSessionEndsHasAnEndInTheTrace) {
  start_with<BothAlonePolicy>(std::make_unique<FakeDevice>());
  auto client = connect();
  client->SessionClient::load("not read", "noop");
  client->launch(0, 1, std::uint64_t{0});
  const auto launches = [this](TraceKind kind) {
    std::vector<std::uint64_t> numbers;
    for (const TraceEvent& event : trace_->snapshot().events) {
      if (event.kind == kind) numbers.push_back(event.launch.launch);
    }
    return numbers;
  };
  while (launches(TraceKind::kWaits).empty()) std::this_thread::sleep_for(1ms);
  client->leave();
  EXPECT_EQ(launches(TraceKind::kEnds), launches(TraceKind::kWaits));
}

class PolicyExecutorTest : public ExecutorTest,
                           public testing::WithParamInterface<std::string_view> {};

TEST_P(PolicyExecutorTest, SeveralSessionsGetTheirResults) {
  scheduler::Settings settings;
  settings.long_kernel = scheduler::Milliseconds(0.5);  // so that many can be resized
  start("sim:sms=8", policy_maker(std::string(GetParam()), settings), settings);
  std::vector<std::unique_ptr<Client>> clients;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) clients.push_back(connect());
  for (unsigned i = 0; i < 4; ++i) {
    threads.emplace_back([&, i] { work(*clients[i], i, kLaunches); });
  }
  for (auto& thread : threads) thread.join();
}

TEST_P(PolicyExecutorTest, BesideAnEndlessLaunchAndAResizableGridOthersGetTheirResults) {
  if (GetParam() == "fifo") GTEST_SKIP() << "which starts everything as it comes";
  const scheduler::Settings settings;
  start("sim:sms=8", policy_maker(std::string(GetParam()), settings), settings);
  constexpr std::uint32_t kForEver = 0x7fffffff, kGrid = 400'000;
  auto endless = connect(1), neighbour = connect(2);
  endless->load();
  endless->stream(7);
  const std::uint64_t words = endless->allocate(kGrid * 4), word = endless->allocate(4);
  endless->launch(7, 1, Parameters{word, 1, kForEver});
  endless->launch(0, kGrid, Parameters{words, 1, 1000});
  work(*neighbour, 5, 30);
  EXPECT_FALSE(executor_->status(1)->kernel.empty()) << "it still runs";
  endless->leave();
}

INSTANTIATE_TEST_SUITE_P(All, PolicyExecutorTest,
                         testing::ValuesIn(scheduler::policy_names().begin(),
                                           scheduler::policy_names().end()),
                         [](const auto& test) { return std::string(test.param); });

}  // namespace
}  // namespace slate::daemon
