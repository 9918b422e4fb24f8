// Executor: whatever a policy decides (forms, placements, resizes, retreats, turns), every block of
// every launch runs exactly once and streams keep their order. On sim, with policies that decide at
// random, and with each of slate's own.
#include "daemon/engine/executor.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstring>
#include <random>
#include <thread>

#include "tests/unit/daemon/session_client.h"

namespace slate::daemon {
namespace {

using scheduler::Form;
using namespace std::chrono_literals;

// add: every block adds `step` to its own word, by way of a read and a write that a second run of
// the same block, or one out of order, would show: word = 3 * word + step. Each block works for a
// while first.
constexpr std::string_view kModule = R"(
.version 7.0
.target sm_70
.address_size 64

.visible .entry add(.param .u64 words, .param .u32 step, .param .u32 work)
{
  .reg .pred %p<3>;
  .reg .b32 %r<8>;
  .reg .b64 %d<4>;
  ld.param.u64 %d1, [words];
  ld.param.u32 %r1, [step];
  ld.param.u32 %r2, [work];
  mov.u32 %r3, %tid.x;
  setp.ne.u32 %p1, %r3, 0;
  @%p1 bra done;
again:
  sub.u32 %r2, %r2, 1;
  setp.gt.s32 %p2, %r2, 0;
  @%p2 bra again;
  mov.u32 %r4, %ctaid.x;
  mul.wide.u32 %d2, %r4, 4;
  add.u64 %d3, %d1, %d2;
  ld.global.u32 %r5, [%d3];
  mad.lo.u32 %r6, %r5, 3, %r1;
  st.global.u32 [%d3], %r6;
done:
  ret;
}
)";

// sim is twenty times slower under a sanitizer.
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr int kLaunches = 10;
#else
constexpr int kLaunches = 40;
#endif

struct Parameters {
  std::uint64_t words;
  std::uint32_t step;
  std::uint32_t work;
};

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

class Client : public SessionClient {
 public:
  using SessionClient::SessionClient;
  void load() { SessionClient::load(kModule, "add"); }
  void stream(std::uint64_t id) {
    ASSERT_TRUE(channel->post(ipc::CommandType::kStreamCreate,
                              ipc::bytes_of(ipc::StreamCreate{id, ipc::kStreamNonBlocking, 0})));
  }
  void fill(std::uint64_t stream, std::uint64_t address, std::uint64_t bytes) {
    ASSERT_TRUE(channel->post(ipc::CommandType::kFill,
                              ipc::bytes_of(ipc::Fill{address, bytes, bytes, 1, stream, 0, 0})));
  }
  std::vector<std::uint32_t> read(std::uint64_t address, std::size_t count) {
    const std::uint64_t bytes = count * sizeof(std::uint32_t);
    auto staging = channel->acquire_staging();
    EXPECT_TRUE(staging);
    std::vector<std::uint32_t> words(count);
    auto done = channel->post(ipc::CommandType::kCopyToHost,
                              ipc::bytes_of(ipc::StagedCopy{address, bytes, bytes, 1, 0,
                                                            staging->slot, 0, staging->sequence}));
    if (done) done = channel->wait_staging(*staging);
    EXPECT_TRUE(done);
    std::memcpy(words.data(), staging->memory.data(), bytes);
    channel->release_staging(*staging, true);
    return words;
  }
};

class ExecutorTest : public testing::Test {
 protected:
  ~ExecutorTest() override {
    if (executor_ == nullptr) return;
    executor_->stop_preparing();
    device_->set_stall_hooks({});
  }
  void start(const std::string& device, const PolicyMaker& policy,
             const scheduler::Settings& settings = {}) {
    device_ = std::move(*device::open_device(device));
    compiler_ = std::make_unique<Compiler>(*device_, nullptr);
    completer_ = std::make_unique<Completer>(*device_);
    forms_ = std::make_unique<FormService>(*device_, FormChoice::kAuto, true);
    trace_ = std::make_unique<Trace>(4096);
    executor_ =
        std::make_unique<Executor>(*device_, *forms_, *completer_, *trace_, policy, settings);
    device_->set_stall_hooks(
        {[this] { executor_->begin_rest(); }, [this] { executor_->end_rest(); }});
  }
  std::unique_ptr<Client> connect() {
    return std::make_unique<Client>(*device_, *compiler_, *executor_, *completer_, next_++);
  }

  /// Launches on two streams, each in its order, with a fill in between; then looks.
  void work(Client& client, unsigned seed, int launches) {
    std::mt19937 random(seed);
    client.load();
    client.stream(7);
    struct Line {
      std::uint64_t stream, address;
      std::uint32_t blocks;
      std::uint32_t wanted = 0;
    };
    Line lines[] = {{0, 0, 700}, {7, 0, 1900}};
    for (Line& line : lines) {
      line.address = client.allocate(line.blocks * 4);
      client.fill(line.stream, line.address, line.blocks * 4);
    }
    for (int i = 0; i < launches; ++i) {
      Line& line = lines[random() % 2];
      if (random() % 10 == 0) {
        client.fill(line.stream, line.address, line.blocks * 4);
        line.wanted = 0;
      }
      const auto step = static_cast<std::uint32_t>(random() % 1000);
      client.launch(line.stream, line.blocks, Parameters{line.address, step, 1 + step % 400});
      line.wanted = 3 * line.wanted + step;
      if (random() % 8 == 0) client.synchronize();
    }
    client.synchronize();
    for (const Line& line : lines) {
      const auto words = client.read(line.address, line.blocks);
      for (std::size_t i = 0; i < words.size(); ++i) {
        ASSERT_EQ(words[i], line.wanted) << "block " << i << " seed " << seed;
      }
    }
  }

  std::unique_ptr<device::Device> device_;
  std::unique_ptr<Compiler> compiler_;
  std::unique_ptr<Completer> completer_;
  std::unique_ptr<FormService> forms_;
  std::unique_ptr<Trace> trace_;
  std::unique_ptr<Executor> executor_;
  std::uint64_t next_ = 1;
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

/// Starts everything natively, knows its time well, and counts how often it is asked.
class CountingPolicy : public scheduler::Policy {
 public:
  CountingPolicy(const scheduler::Machine& machine, scheduler::ProfileTable& profiles)
      : machine_(machine), profiles_(profiles) {}

  std::string_view name() const override { return "counting"; }
  void decide(const scheduler::View& view, scheduler::Decisions& decisions) override {
    for (const scheduler::SessionView& session : view.sessions) {
      if (!session.waiting) continue;
      while (!answers) std::this_thread::sleep_for(1ms);
      profiles_.kernel(session.waiting->kernel).alone[0] = {.ms = 0.001, .samples = 1000};
      decisions.start.push_back(
          {.session = session.id, .placement = machine_.whole(), .repeats = repeats});
      ++starts;
    }
  }
  void finished(const scheduler::Completion&) override {}

  std::atomic<int> starts{0};
  std::atomic<bool> answers{true};   // decide() waits for it
  std::atomic<bool> repeats{false};  // in all starts

 private:
  const scheduler::Machine machine_;
  scheduler::ProfileTable& profiles_;
};

TEST_F(ExecutorTest, WhatIsKnownIsNotAskedAgainWithinABatch) {
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
  // The first one is decided when the others are already there, so that nothing ends the batch.
  const auto starts_of = [&] {
    const int before = policy->starts;
    policy->answers = false;
    for (std::size_t i = 0; i < kRepeated; ++i) {
      client->launch(0, blocks[i % 2], Parameters{address, 1, 1});
      wanted = 3 * wanted + 1;
    }
    policy->answers = true;
    client->synchronize();
    return policy->starts - before;
  };
  EXPECT_EQ(starts_of(), 2);  // the first launch is profiled, and so for itself
  EXPECT_EQ(starts_of(), 1);
  // Nor when grids of two sizes, two kernels to the policy, take turns.
  blocks = {64, 640};
  EXPECT_LE(starts_of(), 4);
  EXPECT_LE(starts_of(), 2);
  blocks = {64, 64};
  auto other = connect();
  EXPECT_EQ(starts_of(), kRepeated);
  policy->repeats = true;
  EXPECT_EQ(starts_of(), 1);
  for (const std::uint32_t word : client->read(address, 64)) ASSERT_EQ(word, wanted);
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

INSTANTIATE_TEST_SUITE_P(All, PolicyExecutorTest,
                         testing::ValuesIn(scheduler::policy_names().begin(),
                                           scheduler::policy_names().end()),
                         [](const auto& test) { return std::string(test.param); });

/// Starts everything as workers that can be resized, and resizes as the test says.
class ObedientPolicy : public scheduler::Policy {
 public:
  explicit ObedientPolicy(const scheduler::Machine& machine) : machine_(machine) {}
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
                                   .placement = machine_.whole(),
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
  bool obeyed() {
    const std::lock_guard lock(mutex_);
    return !wanted_.has_value();
  }

  std::atomic<std::uint64_t> blocks_done{0};
  std::atomic<int> ended{0};

 private:
  const scheduler::Machine machine_;
  std::mutex mutex_;
  std::optional<scheduler::Placement> wanted_;
};

class ResizeTest : public ExecutorTest {
 protected:
  void start_obedient() {
    start("sim:sms=4", [this](const scheduler::Machine& machine, scheduler::ProfileTable&) {
      auto made = std::make_unique<ObedientPolicy>(machine);
      policy_ = made.get();
      return made;
    });
  }
  void resize(const scheduler::Placement& placement) {
    policy_->want(placement);
    while (!policy_->obeyed()) std::this_thread::sleep_for(1ms);
  }
  /// The count of blocks once it has stopped rising.
  std::uint64_t settled_blocks() {
    std::uint64_t seen = policy_->blocks_done.load();
    while (true) {
      std::this_thread::sleep_for(100ms);
      const std::uint64_t now = policy_->blocks_done.load();
      if (now == seen) return now;
      seen = now;
    }
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
  static constexpr std::uint32_t kBlocks = 4000;
  static constexpr std::uint32_t kWork = 4000;
};

TEST_F(ResizeTest, ACalledBackKernelStandsStillAndGoesOnWhereItWas) {
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

TEST_F(ResizeTest, WhatCanBeCalledBackStaysAwayDuringARest) {
  start_obedient();
  auto client = connect(), late = connect();
  late->load();
  const auto other = late->allocate(4);
  late->fill(0, other, 4);
  late->synchronize();
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

TEST_F(ResizeTest, WorkersMakeRoomForAFillOnceItsTurnHasCome) {
  start_obedient();
  auto client = connect(), late = connect();
  late->load();
  const auto other = late->allocate(4);
  late->fill(0, other, 4);
  late->synchronize();
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

TEST_F(ResizeTest, AClientThatLeavesEndsItsCalledBackKernel) {
  start_obedient();
  auto client = connect();
  begin_long_kernel(*client);
  resize({});
  client->leave();  // would hang
}

TEST_F(ResizeTest, AFaultOfAKernelThatCanBeResizedIsItsSessions) {
  start_obedient();
  auto client = connect(), other = connect();
  client->load();
  other->load();
  const auto address = other->allocate(4);
  other->fill(0, address, 4);
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

}  // namespace
}  // namespace slate::daemon
