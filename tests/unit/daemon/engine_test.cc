// The engine in this process, on a FakeDevice, with the supervisor's end of the link in the test's
// hands.
#include "daemon/engine/engine.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <future>
#include <nlohmann/json.hpp>

#include "tests/unit/daemon/fake_device.h"
#include "tests/unit/daemon/temporary_directory.h"
#include "tests/unit/ipc/session_ends.h"

namespace slate::daemon {
namespace {

using ipc::CommandType;

class EngineTest : public testing::Test {
 protected:
  /// Keeps nothing.
  static Config plain_config() {
    Config config;
    config.cache_size = {};
    config.state_dir = "none";
    return config;
  }
  /// With it a new user's session begins beside kernels that have no fence.
  static Config fenceless_config() {
    Config config = plain_config();
    config.fence = FenceChoice::kNever;
    return config;
  }
  void start(Config config = plain_config(), const std::string& compiler = "") {
    auto ends = *EngineLink::make_pair();
    link_ = EngineLink(std::move(ends.first));
    auto device = std::make_unique<FakeDevice>();
    device_ = device.get();
    device_->set_compiler(compiler);
    engine_ = std::make_unique<Engine>(std::move(device), EngineLink(std::move(ends.second)),
                                       std::move(config), ReaderSettings{},
                                       [this](int status) { exited_.set_value(status); });
    thread_ = std::thread([this] { result_ = engine_->run(); });
    EXPECT_EQ(next(LinkType::kReady).text.size(), sizeof(DeviceInfo));
  }
  ~EngineTest() override {
    stop();
    EXPECT_EQ(result_, 0);
  }
  void stop() {
    if (!thread_.joinable()) return;
    EXPECT_TRUE(link_.send({.type = LinkType::kStop}, "stopping"));
    thread_.join();
  }

  /// The next message of this type; others are passed over.
  LinkMessage next(LinkType type) {
    while (true) {
      pollfd poller{link_.fd(), POLLIN, 0};
      ::poll(&poller, 1, -1);
      auto message = link_.receive();
      if (!message) {
        ADD_FAILURE() << message.error().message;
        return {};
      }
      if (*message && (*message)->header.type == type) return std::move(**message);
    }
  }

  std::unique_ptr<ipc::ClientChannel> connect(std::uint64_t id, std::uint32_t uid = 0,
                                              double max_blocking_ms = 0) {
    ipc::SessionEnds ends(device_->info(), 64 << 20);
    const auto book = Book::make();
    EXPECT_TRUE(book);
    const int fds[] = {ends.ends.from_client.get(), ends.ends.to_client.get(),
                       ends.ends.socket.get(), ends.segment.fd(), (*book)->fd()};
    EXPECT_TRUE(link_.send({.type = LinkType::kAddSession,
                            .session = id,
                            .limit = 64 << 20,
                            .user_limit = 64 << 20,
                            .pid = 7,
                            .uid = uid,
                            .max_blocking_ms = max_blocking_ms},
                           "prog", fds));
    return std::move(ends.client);
  }
  static void launch(ipc::ClientChannel& client, std::string_view kernel,
                     std::uint32_t blocks = 1) {
    const auto bytes = [](std::string_view text) {
      return std::as_bytes(std::span(text.data(), text.size()));
    };
    ipc::FunctionReply function;
    ASSERT_TRUE(client.call(CommandType::kModuleLoad,
                            ipc::bytes_of(ipc::ModuleLoad{1, 1, 0, ipc::kImagePtx, 0}), bytes("x"),
                            {}));
    ASSERT_TRUE(client.call(CommandType::kFunctionGet, ipc::bytes_of(ipc::FunctionGet{1, 1}),
                            bytes(kernel), std::as_writable_bytes(std::span(&function, 1))));
    ASSERT_TRUE(client.post(CommandType::kLaunch,
                            ipc::bytes_of(ipc::Launch{1, 0, {blocks, 1, 1}, {1, 1, 1}, 0, 8}),
                            bytes("12345678")));
  }
  static Result<void> synchronize(ipc::ClientChannel& client) {
    return client.call(CommandType::kSynchronize,
                       ipc::bytes_of(ipc::Target{ipc::TargetKind::kSession, 0, 0}), {}, {});
  }

  /// Whether the session has a launch on the device.
  bool runs(std::uint64_t id) {
    EXPECT_TRUE(link_.send({.type = LinkType::kStatusRequest, .number = 1}));
    const auto report = nlohmann::json::parse(next(LinkType::kStatusReport).text);
    for (const auto& session : report["sessions"]) {
      if (session["id"] == id) return session.contains("kernel");
    }
    return false;
  }
  /// User 1's session 1, whose kernel takes the whole device, or so many blocks, and never ends.
  std::unique_ptr<ipc::ClientChannel> begin_endless(double max_blocking_ms,
                                                    std::uint32_t blocks = kFull) {
    auto client = connect(1, 1, max_blocking_ms);
    launch(*client, "spin", blocks);
    while (!runs(1)) std::this_thread::yield();
    return client;
  }
  static constexpr std::uint32_t kFull = 1 << 20;

  EngineLink link_;
  FakeDevice* device_ = nullptr;
  std::promise<int> exited_;
  std::unique_ptr<Engine> engine_;
  std::thread thread_;
  int result_ = -1;
};

TEST_F(EngineTest, AFinishedSessionIsReportedWithItsLaunches) {
  start();
  auto client = connect(5);
  launch(*client, "noop");
  ASSERT_TRUE(synchronize(*client));
  client.reset();
  const auto ended = next(LinkType::kSessionEnded);
  EXPECT_EQ(ended.header.session, 5u);
  EXPECT_EQ(ended.header.number, 1u);
  EXPECT_EQ(ended.header.flags, 0u);
  EXPECT_TRUE(device_->holds_nothing());
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
TEST_F(EngineTest, WithoutSessionsTheHeapsFreeMemoryGoesBack) {
  // Blocks that stay keep the free ones between them from going back by themselves.
  constexpr std::size_t kBlocks = 64 << 10, kBytes = 1000, kStay = 64;
  std::vector<std::unique_ptr<char[]>> blocks(kBlocks);
  for (auto& block : blocks) {
    block = std::make_unique_for_overwrite<char[]>(kBytes);
    std::memset(block.get(), 1, kBytes);
  }
  for (std::size_t i = 0; i < kBlocks; ++i) {
    if (i % kStay != 0) blocks[i].reset();
  }
  const auto resident = [] {
    std::ifstream file("/proc/self/statm");
    std::uint64_t all = 0, pages = 0;
    file >> all >> pages;
    return pages * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  };
  start();
  const std::uint64_t before = resident();
  connect(5).reset();
  next(LinkType::kSessionEnded);
  const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  const auto is_back = [&] { return resident() + kBlocks * kBytes / 2 < before; };
  while (!is_back() && std::chrono::steady_clock::now() < limit) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    EXPECT_FALSE(runs(5)) << "questions about the engine do not put it off";
  }
  EXPECT_TRUE(is_back());
}
#endif

TEST_F(EngineTest, AFaultedSessionIsReportedAsSuch) {
  start();
  auto client = connect(5);
  launch(*client, "fault");
  EXPECT_EQ(synchronize(*client).error().code, ErrorCode::kIllegalAddress);
  client.reset();
  EXPECT_EQ(next(LinkType::kSessionEnded).header.flags, kSessionFaulted);
}

TEST_F(EngineTest, StatusTellsOfEverySession) {
  start();
  auto one = connect(1);
  auto two = connect(2);
  ASSERT_TRUE(synchronize(*one));
  launch(*two, "noop");
  ASSERT_TRUE(synchronize(*two));
  ASSERT_TRUE(link_.send({.type = LinkType::kStatusRequest, .number = 77}));
  const auto report = next(LinkType::kStatusReport);
  EXPECT_EQ(report.header.number, 77u);
  EXPECT_EQ(report.header.flags, kLastPiece);
  const auto status = nlohmann::json::parse(report.text);
  ASSERT_EQ(status["sessions"].size(), 2u);
  EXPECT_EQ(status["sessions"][1]["launches"], 1u);
}

TEST_F(EngineTest, StatusTellsOfTheCompileCache) {
  const TemporaryDirectory directory;
  Config config = plain_config();
  config.cache_dir = directory.path();
  config.cache_size = {1 << 20};
  config.form = FormChoice::kNative;  // forms are looked for there, too
  start(std::move(config), "fake");
  for (const std::uint64_t id : {1u, 2u}) {
    auto client = connect(id);
    launch(*client, "noop");
    ASSERT_TRUE(synchronize(*client));
    client.reset();
    EXPECT_EQ(next(LinkType::kSessionEnded).header.session, id);
  }
  ASSERT_TRUE(link_.send({.type = LinkType::kStatusRequest, .number = 1}));
  const auto status = nlohmann::json::parse(next(LinkType::kStatusReport).text);
  EXPECT_EQ(status["cache"]["hits"], 1u);
  EXPECT_EQ(status["cache"]["misses"], 1u);
  EXPECT_EQ(status["cache"]["stores"], 1u);
  stop();  // before the directory goes
}

TEST_F(EngineTest, ALostDeviceFailsItsSessionAndEndsTheProcess) {
  start();
  auto culprit = connect(1);
  auto neighbour = connect(2);
  ASSERT_TRUE(synchronize(*neighbour));
  launch(*culprit, "lose");
  const auto fault = next(LinkType::kFault);
  EXPECT_EQ(fault.header.code, ErrorCode::kIllegalAddress);
  EXPECT_NE(fault.text.find("lose (prog, pid 7)"), std::string::npos) << fault.text;
  EXPECT_EQ(exited_.get_future().get(), kEngineFaultStatus);
  EXPECT_TRUE(neighbour->check()) << "it goes on in the next engine";
  EXPECT_EQ(culprit->check().error().code, ErrorCode::kIllegalAddress);
}

TEST_F(EngineTest, EachSessionHearsWhoseKernelLostTheDevice) {
  start();
  auto culprit = connect(1);
  auto neighbour = connect(2);
  // With memory of a device that exports none it cannot go on in another engine.
  ipc::AddressReply reply;
  ASSERT_TRUE(neighbour->call(CommandType::kMemoryAllocate,
                              ipc::bytes_of(ipc::MemoryAllocate{1000}), {},
                              std::as_writable_bytes(std::span(&reply, 1))));
  launch(*culprit, "lose");
  EXPECT_EQ(exited_.get_future().get(), kEngineFaultStatus);
  const std::string own = culprit->check().error().message;
  EXPECT_NE(own.find("; by its own kernel lose (prog, pid 7)"), std::string::npos) << own;
  const std::string others = neighbour->check().error().message;
  EXPECT_NE(others.find("; by another program's kernel lose (prog, pid 7)"), std::string::npos)
      << others;
  EXPECT_EQ(next(LinkType::kFault).header.session, 1u) << "the only one with work";
}

TEST(CauseTest, WhatIsNotKnownIsNotSaid) {
  const RunningKernels kernels{
      {1, {"a (x, pid 1)", "b (x, pid 1)"}}, {2, {"c (y, pid 2)"}}, {3, {}}};
  EXPECT_EQ(cause_for(1, {}), "");
  EXPECT_EQ(cause_for(1, kernels),
            "; by its own kernel a (x, pid 1) or b (x, pid 1), or another program's c (y, pid 2)");
  EXPECT_EQ(cause_for(3, kernels),
            "; by another program's kernel a (x, pid 1) or b (x, pid 1) or c (y, pid 2)");
  EXPECT_EQ(cause_for(0, kernels), "; running: a (x, pid 1), b (x, pid 1), c (y, pid 2)");
}

TEST_F(EngineTest, AStuckSessionEndsTheProcessOnlyWhereConfigured) {
  Config config = plain_config();
  config.kill_grace_seconds = 0.001;
  config.kill_stuck_engine = true;
  start(std::move(config));
  device_->refuse_cancel();
  auto client = connect(1);
  launch(*client, "spin");
  client.reset();
  EXPECT_EQ(next(LinkType::kFault).header.code, ErrorCode::kUnavailable);
  EXPECT_EQ(exited_.get_future().get(), kEngineFaultStatus);
  device_->release_spinning();
}

TEST_F(EngineTest, WhoKeepsAnotherUserWaitingBeyondTheBoundIsEndedAndToldWhy) {
  start(fenceless_config());
  auto endless = begin_endless(20);
  auto neighbour = connect(2, 2, 20);
  launch(*neighbour, "noop");
  EXPECT_TRUE(synchronize(*neighbour));
  const Error told = synchronize(*endless).error();
  EXPECT_EQ(told.code, ErrorCode::kLaunchTimeout);
  for (const char* part :
       {"it kept launches of another user waiting for ", "spin (prog, pid 7)", "max_blocking_ms"}) {
    EXPECT_NE(told.message.find(part), std::string::npos) << part << " in " << told.message;
  }
}

TEST_F(EngineTest, ANewUserBeginsWhenNoKernelRunsThatHadNoFence) {
  start();
  const auto first = begin_endless(0, 1);
  const auto own = connect(2, 1);
  EXPECT_TRUE(synchronize(*own)) << "its user's kernels may touch its memory";
  const auto second = connect(3, 2), third = connect(4, 3);
  auto begun = std::async(std::launch::async, [&] { return synchronize(*second); });
  auto begun_later = std::async(std::launch::async, [&] { return synchronize(*third); });
  EXPECT_EQ(begun.wait_for(std::chrono::milliseconds(100)), std::future_status::timeout);
  EXPECT_EQ(begun_later.wait_for(std::chrono::milliseconds(0)), std::future_status::timeout);
  device_->release_spinning();
  EXPECT_TRUE(begun.get());
  EXPECT_TRUE(begun_later.get());
  EXPECT_TRUE(synchronize(*first));
}

TEST_F(EngineTest, ANewUserWhoWaitsMayLeaveForAnotherEngine) {
  start();
  const auto first = begin_endless(0, 1);
  const auto second = connect(2, 2);
  EXPECT_EQ(next(LinkType::kSessionWaits).header.session, 2u);
  ASSERT_TRUE(link_.send({.type = LinkType::kLeave, .session = 2}));
  EXPECT_EQ(next(LinkType::kSessionLeft).header.session, 2u);
  EXPECT_TRUE(runs(1));
  device_->release_spinning();
  EXPECT_TRUE(synchronize(*first));
}

TEST_F(EngineTest, WhoseKernelKeepsANewUserFromBeginningIsEnded) {
  start();
  const auto endless = begin_endless(20, 1);
  const auto neighbour = connect(2, 2, 20);
  EXPECT_TRUE(synchronize(*neighbour));
  EXPECT_EQ(synchronize(*endless).error().code, ErrorCode::kLaunchTimeout);
}

TEST_F(EngineTest, AKernelWithoutAFenceThatCannotBeStoppedEndsTheProcess) {
  start();
  device_->refuse_cancel();
  const auto endless = begin_endless(20);
  const auto neighbour = connect(2, 2, 20);
  const LinkMessage fault = next(LinkType::kFault);
  EXPECT_NE(fault.text.find("session 1 keeps session 2 waiting"), std::string::npos) << fault.text;
  EXPECT_EQ(exited_.get_future().get(), kEngineFaultStatus);
  EXPECT_TRUE(neighbour->check()) << "it begins in the next engine";
  device_->release_spinning();
}

TEST_F(EngineTest, BehindACallThatWaitsForAllKernelsOthersWaitForThemToo) {
  start(fenceless_config());
  device_->add_kernel("deep", {.local_bytes = 4096});
  std::promise<void> over;
  const auto wait = [ended = over.get_future().share()] { ended.wait(); };
  device_->before_local_memory(wait);
  device_->before_launch([wait](const std::string& kernel) {
    if (kernel == "noop") wait();
  });
  const auto endless = connect(1, 1, 20), raises = connect(3, 1, 20), neighbour = connect(2, 2, 20);
  launch(*endless, "spin");
  while (!runs(1)) std::this_thread::yield();
  launch(*raises, "deep");
  launch(*neighbour, "noop");
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (endless->check() && std::chrono::steady_clock::now() < deadline) std::this_thread::yield();
  over.set_value();
  EXPECT_EQ(endless->check().error().code, ErrorCode::kLaunchTimeout);
  EXPECT_TRUE(synchronize(*neighbour));
  EXPECT_TRUE(synchronize(*raises));
}

TEST_F(EngineTest, WorkThatKeepsAnotherUserWaitingAndCannotBeStoppedEndsTheProcess) {
  start(fenceless_config());
  device_->refuse_cancel();
  auto endless = begin_endless(20);
  auto neighbour = connect(2, 2, 20);
  launch(*neighbour, "noop");
  const LinkMessage fault = next(LinkType::kFault);
  EXPECT_EQ(fault.header.code, ErrorCode::kUnavailable);
  EXPECT_NE(fault.text.find("session 1 keeps session 2 waiting"), std::string::npos) << fault.text;
  EXPECT_EQ(exited_.get_future().get(), kEngineFaultStatus);
  EXPECT_TRUE(neighbour->check()) << "it goes on in the next engine";
  EXPECT_EQ(endless->check().error().code, ErrorCode::kLaunchTimeout);
  device_->release_spinning();
}

TEST_F(EngineTest, ABlockedEngineIsKeptWhereConfigured) {
  Config config = fenceless_config();
  config.blocked_engine = BlockedEngine::kKeep;
  start(std::move(config));
  device_->refuse_cancel();
  auto endless = begin_endless(1);
  auto neighbour = connect(2, 2, 1);
  launch(*neighbour, "noop");
  while (endless->check()) std::this_thread::yield();
  std::this_thread::sleep_for(BlockingWatch::kGrace + 3 * BlockingWatch::kEvery);
  device_->release_spinning();
  EXPECT_TRUE(synchronize(*neighbour));
}

TEST_F(EngineTest, LostDescriptorsEndTheSessionOnly) {
  start();
  ASSERT_TRUE(link_.send({.type = LinkType::kAddSession, .session = 9}, "prog"));
  const LinkMessage ended = next(LinkType::kSessionEnded);
  EXPECT_EQ(ended.header.session, 9u);
  EXPECT_NE(ended.text.find("descriptors"), std::string::npos) << "its client is told";
  auto client = connect(10);
  EXPECT_TRUE(synchronize(*client));
}

TEST_F(EngineTest, AnEndedSessionLosesItsWorkAndNoOtherNoticesIt) {
  start();
  auto client = connect(1), neighbour = connect(2);
  launch(*client, "spin");
  ASSERT_TRUE(synchronize(*neighbour));
  ASSERT_TRUE(link_.send({.type = LinkType::kEndSession, .session = 7}, "there is none"));
  ASSERT_TRUE(link_.send({.type = LinkType::kEndSession, .session = 1}, "somebody ended it"));
  const LinkMessage ended = next(LinkType::kSessionEnded);
  EXPECT_EQ(ended.header.session, 1u);
  EXPECT_EQ(ended.header.flags & kSessionFaulted, 0u);
  EXPECT_EQ(synchronize(*client).error().message, "somebody ended it");
  EXPECT_TRUE(synchronize(*neighbour));
}

TEST_F(EngineTest, StopTellsTheSessions) {
  start();
  auto client = connect(1);
  ASSERT_TRUE(synchronize(*client));
  stop();
  EXPECT_EQ(synchronize(*client).error().message, "stopping");
}

}  // namespace
}  // namespace slate::daemon
