// Executor: launches that can be resized while they run. On sim, with a policy that resizes as the
// test says.
#include <gtest/gtest.h>

#include <atomic>
#include <mutex>
#include <optional>
#include <thread>

#include "daemon/engine/executor.h"
#include "daemon/engine/held_commands.h"
#include "tests/unit/daemon/dispatching_device.h"
#include "tests/unit/daemon/executor_fixture.h"
#include "tests/unit/daemon/other_engine.h"

namespace slate::daemon {
namespace {

using scheduler::Form;
using namespace std::chrono_literals;

/// Starts everything as workers that can be resized, and resizes as the test says.
class ObedientPolicy : public scheduler::Policy {
 public:
  explicit ObedientPolicy(const scheduler::Machine& machine) : start_(machine.whole()) {}
  std::string_view name() const override { return "obedient"; }
  void decide(const scheduler::View& view, scheduler::Decisions& decisions) override {
    const std::lock_guard lock(mutex_);
    for (const scheduler::SessionView& session : view.sessions) {
      if (session.running.resizable && wanted_) {
        decisions.resize.push_back({session.id, *wanted_});
        wanted_.reset();
      }
      if (session.waiting) {
        decisions.start.push_back({.session = session.id,
                                   .form = Form::kWorker,
                                   .placement = start_,
                                   .alone = false,
                                   .tag = 1});
      }
    }
    decisions.again = view.now + 1ms;
  }
  void finished(const scheduler::Completion&) override { ++ended; }
  void progressed(const scheduler::Progress& progress) override {
    blocks_done.store(progress.blocks_done);
  }
  void want(const scheduler::Placement& placement) {
    const std::lock_guard lock(mutex_);
    wanted_ = placement;
  }
  /// What comes from now on starts there.
  void start_on(const scheduler::Placement& placement) {
    const std::lock_guard lock(mutex_);
    start_ = placement;
  }
  bool obeyed() {
    const std::lock_guard lock(mutex_);
    return !wanted_.has_value();
  }

  std::atomic<std::uint64_t> blocks_done{0};
  std::atomic<int> ended{0};

 private:
  std::mutex mutex_;
  scheduler::Placement start_;
  std::optional<scheduler::Placement> wanted_;
};

/// By the host and by the dispatch kernel.
class ResizeTest : public ExecutorTest, public testing::WithParamInterface<DispatchChoice> {
 protected:
  void start_obedient() {
    auto device = *device::open_device("sim:sms=4");
    dispatch_ = GetParam();
    if (dispatch_ == DispatchChoice::kDevice) {
      auto dispatching = std::make_unique<DispatchingDevice>(std::move(device));
      dispatching_ = dispatching.get();
      device = std::move(dispatching);
    }
    start(std::move(device), [this](const scheduler::Machine& machine, scheduler::ProfileTable&) {
      auto made = std::make_unique<ObedientPolicy>(machine);
      policy_ = made.get();
      return made;
    });
  }
  void resize(const scheduler::Placement& placement) {
    policy_->want(placement);
    while (!policy_->obeyed()) std::this_thread::sleep_for(1ms);
  }
  /// The count of blocks once it has stopped rising: on a loaded machine not with the first pause.
  std::uint64_t settled_blocks() {
    constexpr int kPauses = 4;
    std::uint64_t seen = policy_->blocks_done.load();
    for (int pauses = 0; pauses < kPauses; ++pauses) {
      std::this_thread::sleep_for(50ms);
      const std::uint64_t now = policy_->blocks_done.load();
      if (now != seen) pauses = -1;
      seen = now;
    }
    return seen;
  }
  /// Room for one block's word, which is 0.
  std::uint64_t one_word(Client& client) {
    client.load();
    const std::uint64_t address = client.allocate(4);
    client.fill(0, address, 4);
    client.synchronize();
    return address;
  }
  /// Starts a kernel of kBlocks whose words become 5, and waits until it has begun.
  std::uint64_t begin_long_kernel(Client& client) {
    client.load();
    const std::uint64_t address = client.allocate(kBlocks * 4);
    client.fill(0, address, kBlocks * 4);
    client.launch(0, kBlocks, Parameters{address, 5, kWork});
    while (policy_->blocks_done.load() == 0) std::this_thread::sleep_for(1ms);
    return address;
  }
  ObedientPolicy* policy_ = nullptr;
  DispatchingDevice* dispatching_ = nullptr;
  static constexpr std::uint32_t kBlocks = 4000;
  static constexpr std::uint32_t kWork = 4000;
};

TEST_P(ResizeTest, ACalledBackKernelStandsStillAndGoesOnWhereItWas) {
  start_obedient();
  auto client = connect();
  client->load();
  const auto address = client->allocate(kBlocks * 4);
  client->fill(0, address, kBlocks * 4);
  client->launch(0, kBlocks, Parameters{address, 5, kWork});
  client->launch(0, kBlocks,
                 Parameters{address, 7, 1});  // must wait for the first one's last block
  while (policy_->blocks_done.load() == 0) std::this_thread::sleep_for(1ms);
  resize({});
  const std::uint64_t blocks = settled_blocks();
  EXPECT_LT(blocks, kBlocks);
  EXPECT_EQ(policy_->ended.load(), 0);
  resize({.first = 1, .count = 2});
  client->synchronize();
  for (const std::uint32_t word : client->read(address, kBlocks)) ASSERT_EQ(word, 3u * 5 + 7);
}

TEST_P(ResizeTest, AKernelThatWasCalledOffWaitsOnceItsWorkersHaveLeft) {
  start_obedient();
  auto client = connect();
  begin_long_kernel(*client);
  const auto use = [this] { return executor_->uses().at(0); };
  EXPECT_FALSE(use().holds_since) << "it can be called off";
  EXPECT_FALSE(use().waits_since);
  resize({});
  while (use().holds_since || !use().waits_since) std::this_thread::sleep_for(1ms);
  resize(executor_->machine().whole());
  EXPECT_FALSE(use().waits_since);
  client->synchronize();
}

TEST_P(ResizeTest, WorkersThatDoNotLeaveHoldTheDevice) {
  start_obedient();
  auto client = connect();
  client->load();
  const auto address = client->allocate(kBlocks * 4);
  client->launch(0, kBlocks, Parameters{address, 5, 0x7fffffff});
  while (policy_->blocks_done.load() == 0) std::this_thread::sleep_for(1ms);
  resize({});
  while (!executor_->uses().at(0).holds_since) std::this_thread::sleep_for(1ms);
  const SessionUse use = executor_->uses().at(0);
  EXPECT_FALSE(use.waits_since);
  EXPECT_FALSE(use.leaves_room);
  client->leave();
}

TEST_P(ResizeTest, WhatCanBeCalledBackStaysAwayDuringARest) {
  start_obedient();
  auto client = connect(), late = connect();
  const auto other = one_word(*late);
  const auto address = begin_long_kernel(*client);
  executor_->begin_rest();
  executor_->begin_rest();
  const std::uint64_t blocks = settled_blocks();
  EXPECT_LT(blocks, kBlocks);
  late->launch(0, 1, Parameters{other, 9, 1});  // begins, and leaves at once
  resize({.first = 1, .count = 2});             // of either; shown when the rest ends
  executor_->end_rest();
  EXPECT_LE(settled_blocks(), blocks);  // of either kernel
  EXPECT_EQ(policy_->ended.load(), 0);
  executor_->end_rest();
  client->synchronize();
  late->synchronize();
  for (const std::uint32_t word : client->read(address, kBlocks)) ASSERT_EQ(word, 5u);
  EXPECT_EQ(late->read(other, 1)[0], 9u);
}

TEST_P(ResizeTest, WhatCanBeCalledBackRestsWhileAnotherEngineIsBehind) {
  start_obedient();
  auto client = connect();
  const auto address = begin_long_kernel(*client);
  OtherEngine other;
  other.stays_behind();
  other.meet(*executor_);
  while (!other.is_kept_off()) {
    ASSERT_EQ(policy_->ended.load(), 0) << "it is not held";
    std::this_thread::sleep_for(1ms);
  }
  const std::uint64_t blocks = settled_blocks();
  EXPECT_LT(blocks, kBlocks);
  EXPECT_TRUE(other.is_kept_off());
  EXPECT_EQ(policy_->ended.load(), 0);
  other.has_no_work();
  client->synchronize();
  for (const std::uint32_t word : client->read(address, kBlocks)) ASSERT_EQ(word, 5u);
}

TEST_P(ResizeTest, WorkersMakeRoomForAFillOnceItsTurnHasCome) {
  start_obedient();
  auto client = connect(), late = connect();
  const auto other = one_word(*late);
  const auto address = begin_long_kernel(*client);

  Completer::Group group;
  StreamTable streams(*device_, *completer_, group, [](const Error&) {});
  const auto visitor = executor_->add({.session = 77, .program = "visitor"}, streams, group);
  const auto stream = *device_->create_stream(0);
  const auto long_kernel = [&] {
    const auto module =
        *device_->load_module(device::ImageKind::kPtx, std::as_bytes(std::span(kModule)));
    const Parameters parameters{other, 9, 5000 * kWork};
    device::LaunchSpec spec;
    spec.function = *device_->find_function(module, "add");
    spec.grid = {1, 1, 1};
    spec.block = {32, 1, 1};
    spec.parameters = std::as_bytes(std::span(&parameters, 1));
    const std::uint64_t unit = device_->granularity();
    spec.arena = {.base = other / unit * unit, .bytes = unit};
    return device_->launch(spec, stream);
  };
  ASSERT_TRUE(executor_->let_through(*visitor, stream, long_kernel));
  EXPECT_LT(settled_blocks(), kBlocks);
  EXPECT_EQ(policy_->ended.load(), 0);
  client->synchronize();
  for (const std::uint32_t word : client->read(address, kBlocks)) ASSERT_EQ(word, 5u);
  EXPECT_TRUE(group.wait_empty(60s));
  EXPECT_EQ(late->read(other, 1)[0], 9u);
  executor_->abandon(*visitor);
  executor_->remove(visitor);
  streams.destroy_all();
  device_->destroy_stream(stream);
}

TEST_P(ResizeTest, ARestEndsAlsoWhereItsEndCannotBeMarked) {
  start_obedient();
  auto client = connect();
  const auto address = begin_long_kernel(*client);
  Completer::Group group;
  StreamTable streams(*device_, *completer_, group, [](const Error&) {});
  const auto visitor = executor_->add({.session = 77, .program = "visitor"}, streams, group);
  const auto stream = *device_->create_stream(0);
  const auto lose_stream = [&]() -> Result<void> {
    device_->destroy_stream(stream);
    return {};
  };
  EXPECT_FALSE(executor_->let_through(*visitor, stream, lose_stream));
  client->synchronize();  // would hang
  for (const std::uint32_t word : client->read(address, kBlocks)) ASSERT_EQ(word, 5u);
  EXPECT_TRUE(group.wait_empty(60s));
  executor_->abandon(*visitor);
  executor_->remove(visitor);
  streams.destroy_all();
}

TEST_P(ResizeTest, WhoIsFarAheadOfALaunchThatCanBeCalledBackWaitsAsNatively) {
  start_obedient();
  auto client = connect();
  const auto address = begin_long_kernel(*client);
  resize({});
  constexpr std::uint32_t kAhead = HeldCommands::kCrowd + 1200;
  for (std::uint32_t i = 0; i < kAhead; ++i) client->launch(0, 4, Parameters{address, i, 1});
  const auto& status = client->channel->status();
  const std::uint64_t each = status.ring_tail.load() / (kAhead + 4);  // of a launch, at least
  std::this_thread::sleep_for(100ms);
  const std::uint64_t left = status.ring_tail.load() - status.ring_head.load();
  EXPECT_GT(left, 1000 * each);
  EXPECT_EQ(policy_->ended.load(), 0);
  resize({.first = 0, .count = 4});
  client->synchronize();
  std::uint32_t wanted = 5;
  for (std::uint32_t i = 0; i < kAhead; ++i) wanted = 3 * wanted + i;
  const auto words = client->read(address, kBlocks);
  for (std::uint32_t i = 0; i < kBlocks; ++i) ASSERT_EQ(words[i], i < 4 ? wanted : 5u) << i;
}

TEST_P(ResizeTest, WhoIsFarAheadMayLeave) {
  start_obedient();
  auto client = connect();
  const auto address = begin_long_kernel(*client);
  resize({});
  for (std::size_t i = 0; i < HeldCommands::kCrowd + 100; ++i)
    client->launch(0, 4, Parameters{address, 1, 1});
  std::this_thread::sleep_for(20ms);
  client->leave();  // would hang
}

// Workers with a quota may find next to no room: they can be moved, however short their kernel is.
TEST_P(ResizeTest, AShortKernelWithAQuotaCanBeMoved) {
  start_obedient();
  auto client = connect();
  client->load();
  const auto address = client->allocate(kBlocks * 4);
  client->fill(0, address, kBlocks * 4);
  client->launch(0, kBlocks, Parameters{address, 1, 1});
  client->synchronize();
  executor_->with_profiles([](scheduler::ProfileTable& profiles) {
    for (auto& form : profiles.kernel(0).alone) form.add(2, 20);
  });
  policy_->start_on({.first = 0, .count = 4, .blocks_per_sm = 1});
  policy_->blocks_done.store(0);
  client->launch(0, kBlocks, Parameters{address, 5, kWork});
  while (policy_->blocks_done.load() == 0) std::this_thread::sleep_for(1ms);  // of a lane only
  resize({});
  EXPECT_LT(settled_blocks(), kBlocks);
  resize({.first = 1, .count = 2});
  client->synchronize();
  for (const std::uint32_t word : client->read(address, kBlocks)) ASSERT_EQ(word, 3u * 1 + 5);
}

TEST_P(ResizeTest, WithoutAControlBlockLeftAKernelRunsNatively) {
  start_obedient();
  auto client = connect(), beside = connect();  // so that every launch is decided on
  client->load();
  const auto address = client->allocate(kBlocks * 4);
  client->fill(0, address, kBlocks * 4);
  ControlMemory& control = *forms_->control_memory();
  std::deque<std::pair<ControlMemory::Share, device::Address>> all;  // of so many sessions
  for (ControlMemory::Share share; const auto block = control.take(share); share = {})
    all.emplace_back(share, *block);
  client->launch(0, kBlocks, Parameters{address, 1, 1});  // a long one, as far as is known
  client->synchronize();
  executor_->with_profiles([](scheduler::ProfileTable& profiles) {
    for (auto& form : profiles.kernel(0).alone) form.add(0.01, 20);
  });
  for (int i = 0; i < 2; ++i) {  // short ones, of which the first is counted
    client->launch(0, kBlocks, Parameters{address, 5, 1});
    client->synchronize();
  }
  for (auto& [share, block] : all) control.give_back(block, share);
  EXPECT_EQ(forms_->launches(injector::Form::kWorker), 0u);
  for (const std::uint32_t word : client->read(address, kBlocks))
    ASSERT_EQ(word, 9u * 1 + 3 * 5 + 5);
  client->launch(0, kBlocks, Parameters{address, 5, 1});
  client->synchronize();
  EXPECT_EQ(forms_->launches(injector::Form::kWorker), 1u) << "as soon as there is one again";
}

TEST_P(ResizeTest, AClientThatLeavesEndsItsCalledBackKernel) {
  start_obedient();
  auto client = connect();
  begin_long_kernel(*client);
  resize({});
  client->leave();  // would hang
}

TEST_P(ResizeTest, AFaultOfAKernelThatCanBeResizedIsItsSessions) {
  start_obedient();
  auto client = connect(), other = connect();
  client->load();
  const auto address = one_word(*other);
  client->launch(0, 1, Parameters{0x10, 5, 1});
  const auto waited =
      client->channel->call(ipc::CommandType::kSynchronize,
                            ipc::bytes_of(ipc::Target{ipc::TargetKind::kSession, 0, 0}), {}, {});
  ASSERT_FALSE(waited);
  EXPECT_EQ(waited.error().code, ErrorCode::kIllegalAddress);
  other->launch(0, 1, Parameters{address, 5, 1});
  other->synchronize();
  EXPECT_EQ(other->read(address, 1)[0], 5u);
}

INSTANTIATE_TEST_SUITE_P(By, ResizeTest,
                         testing::Values(DispatchChoice::kHost, DispatchChoice::kDevice),
                         [](const auto& chosen) {
                           return std::string(dispatch_choice_name(chosen.param));
                         });

/// What only the dispatch kernel does.
class DispatchTest : public ResizeTest {};

TEST_P(DispatchTest, MoreRoomBringsAllWorkersAnewFromTheDevice) {
  start_obedient();
  policy_->start_on({.first = 0, .count = 1});
  auto client = connect();
  const auto address = begin_long_kernel(*client);
  EXPECT_EQ(dispatching_->epochs(), 1);
  resize({.first = 0, .count = 4});
  while (dispatching_->epochs() < 2 && policy_->ended.load() == 0) std::this_thread::sleep_for(1ms);
  EXPECT_EQ(dispatching_->epochs(), 2);
  EXPECT_EQ(dispatching_->dispatches(), 1) << "the host launches nothing";
  client->synchronize();
  for (const std::uint32_t word : client->read(address, kBlocks)) ASSERT_EQ(word, 5u);
  EXPECT_EQ(forms_->dispatched(), 1u);
}

TEST_P(DispatchTest, MoreRoomBeforeTheFirstWorkersIsTheirs) {
  start_obedient();
  policy_->start_on({.first = 0, .count = 1});
  auto client = connect();
  client->load();
  const std::uint64_t address = client->allocate(kBlocks * 4);
  client->fill(0, address, kBlocks * 4);
  dispatching_->hold_epochs(true);
  client->launch(0, kBlocks, Parameters{address, 5, 1});
  while (dispatching_->dispatches() == 0) std::this_thread::sleep_for(1ms);
  resize({.first = 0, .count = 4});
  std::this_thread::sleep_for(50 * LaneSteering::kTick);
  dispatching_->hold_epochs(false);
  const auto limit = std::chrono::steady_clock::now() + 20s;
  while (policy_->ended.load() == 0 && std::chrono::steady_clock::now() < limit)
    std::this_thread::sleep_for(1ms);
  ASSERT_EQ(policy_->ended.load(), 1) << "its table is empty, and nobody is there who could leave";
  EXPECT_EQ(dispatching_->epochs(), 1);
  for (const std::uint32_t word : client->read(address, kBlocks)) ASSERT_EQ(word, 5u);
}

TEST_P(DispatchTest, LessRoomNeedsNoNewWorkers) {
  start_obedient();
  auto client = connect();
  const auto address = begin_long_kernel(*client);
  resize({.first = 1, .count = 2});
  client->synchronize();
  EXPECT_EQ(dispatching_->epochs(), 1);
  for (const std::uint32_t word : client->read(address, kBlocks)) ASSERT_EQ(word, 5u);
}

TEST_P(DispatchTest, AKernelThatIsOffTheDeviceHasNoDispatchKernelThere) {
  start_obedient();
  auto client = connect();
  const auto address = begin_long_kernel(*client);
  resize({});
  const std::uint64_t blocks = settled_blocks();
  EXPECT_LT(blocks, kBlocks);
  resize({.first = 0, .count = 4});
  client->synchronize();
  EXPECT_EQ(dispatching_->dispatches(), 2);
  for (const std::uint32_t word : client->read(address, kBlocks)) ASSERT_EQ(word, 5u);
}

TEST_P(DispatchTest, ResizesInAnyOrderLoseNoBlockAndRunNoneTwice) {
  start_obedient();
  auto client = connect();
  const auto address = begin_long_kernel(*client);
  std::mt19937 random(1);
  while (policy_->ended.load() == 0) {
    const auto first = static_cast<std::uint32_t>(random() % 4);
    const auto count = static_cast<std::uint32_t>(random() % (5 - first));
    policy_->want(count == 0 ? scheduler::Placement{}
                             : scheduler::Placement{.first = first, .count = count});
    std::this_thread::sleep_for(std::chrono::milliseconds(random() % 6));
    if (random() % 4 == 0) {
      executor_->begin_rest();
      std::this_thread::sleep_for(std::chrono::milliseconds(random() % 6));
      executor_->end_rest();
    }
    policy_->want({.first = 0, .count = 4});
    std::this_thread::sleep_for(std::chrono::milliseconds(random() % 6));
  }
  client->synchronize();
  for (const std::uint32_t word : client->read(address, kBlocks)) ASSERT_EQ(word, 5u);
}

TEST_P(DispatchTest, WhereTheDeviceRefusesTheHostStartsTheWorkers) {
  start_obedient();
  dispatching_->refuse_workers();
  auto client = connect();
  const auto address = begin_long_kernel(*client);
  EXPECT_EQ(dispatching_->epochs(), 0);
  resize({});
  EXPECT_LT(settled_blocks(), kBlocks);
  resize({.first = 1, .count = 2});
  client->synchronize();
  for (const std::uint32_t word : client->read(address, kBlocks)) ASSERT_EQ(word, 5u);
}

INSTANTIATE_TEST_SUITE_P(By, DispatchTest, testing::Values(DispatchChoice::kDevice),
                         [](const auto&) { return std::string("device"); });

}  // namespace
}  // namespace slate::daemon
