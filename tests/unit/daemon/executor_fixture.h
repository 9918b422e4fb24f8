// What tests of the executor share: a kernel that tells in which order and how often its blocks
// ran, sessions that launch it, and the executor with all that it needs.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "daemon/engine/executor.h"
#include "tests/unit/daemon/session_client.h"

namespace slate::daemon {

// add: every block adds `step` to its own word, by way of a read and a write that a second run of
// the same block, or one out of order, would show: word = 3 * word + step. Each block works for a
// while first.
inline constexpr std::string_view kModule = R"(
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

struct Parameters {
  std::uint64_t words;
  std::uint32_t step;
  std::uint32_t work;
};

/// A session that launches the kernel.
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
                              ipc::bytes_of(ipc::Fill{address, bytes, bytes, 1, stream, 0, 1})));
  }
  std::vector<std::uint32_t> read(std::uint64_t address, std::size_t count) {
    const std::uint64_t bytes = count * sizeof(std::uint32_t);
    auto staging = channel->acquire_staging();
    EXPECT_TRUE(staging);
    std::vector<std::uint32_t> words(count);
    auto done =
        channel->post(ipc::CommandType::kCopy,
                      ipc::bytes_of(ipc::Copy{Place::in_slot(staging->slot, staging->sequence),
                                              Place::on_device(address, bytes),
                                              {bytes},
                                              0}));
    if (done) done = channel->wait_staging(*staging);
    EXPECT_TRUE(done);
    std::memcpy(words.data(), staging->memory.data(), bytes);
    channel->release_staging(*staging, true);
    return words;
  }
};

/// An executor on a device of its own, and sessions on it.
class ExecutorTest : public testing::Test {
 protected:
  ~ExecutorTest() override {
    if (executor_ == nullptr) return;
    executor_->stop_preparing();
    device_->set_stall_hooks({});
  }
  void start(const std::string& device, const PolicyMaker& policy,
             const scheduler::Settings& settings = {}) {
    start(std::move(*device::open_device(device)), policy, settings);
  }
  void start(std::unique_ptr<device::Device> device, const PolicyMaker& policy,
             const scheduler::Settings& settings = {}) {
    device_ = std::move(device);
    compiler_ = std::make_unique<Compiler>(*device_, nullptr);
    completer_ = std::make_unique<Completer>(*device_);
    maker_ = std::make_unique<FormMaker>(*compiler_,
                                         FormMaker::Settings{.profiles = true, .at_once = true});
    forms_ =
        std::make_unique<FormService>(*device_, FormChoice::kAuto, true, maker_.get(), dispatch_);
    trace_ = std::make_unique<Trace>(4096);
    executor_ =
        std::make_unique<Executor>(*device_, *forms_, *completer_, *trace_, policy, settings);
    device_->set_stall_hooks(
        {[this] { executor_->begin_rest(); }, [this] { executor_->end_rest(); }});
  }
  /// With a policy that only has to know the machine.
  template <class Chosen>
  void start_with(std::unique_ptr<device::Device> device) {
    start(std::move(device), [](const scheduler::Machine& machine, scheduler::ProfileTable&) {
      return std::make_unique<Chosen>(machine);
    });
  }
  std::unique_ptr<Client> connect(std::uint32_t uid = 0) {
    return std::make_unique<Client>(*device_, *compiler_, *executor_, *completer_, next_++, uid);
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
  std::unique_ptr<FormMaker> maker_;
  DispatchChoice dispatch_ = DispatchChoice::kHost;
  std::unique_ptr<FormService> forms_;
  std::unique_ptr<Trace> trace_;
  std::unique_ptr<Executor> executor_;
  std::uint64_t next_ = 1;
};

}  // namespace slate::daemon
