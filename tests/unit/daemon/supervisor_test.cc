// The supervisor in a thread of this process, with real engine processes on sim, in a runtime
// directory of its own.
#include "daemon/supervisor/supervisor.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <thread>

#include "ipc/channel.h"
#include "tests/unit/daemon/running_supervisor.h"

namespace slate::daemon {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;
using nlohmann::json;

constexpr auto kConnect = 30s;

class SupervisorTest : public testing::Test {
 protected:
  SupervisorTest() {
    std::string pattern = fs::temp_directory_path() / "slate-supervisor-test-XXXXXX";
    directory_ = mkdtemp(pattern.data());
  }
  ~SupervisorTest() override {
    EXPECT_EQ(leftovers(), 0) << "shared memory left behind";
    fs::remove_all(directory_);
  }

  std::unique_ptr<ipc::ClientChannel> connect() {
    auto client = ipc::ClientChannel::connect(directory_, kConnect);
    EXPECT_TRUE(client) << client.error().message;
    return client ? std::move(*client) : nullptr;
  }
  static Result<std::uint64_t> allocate(ipc::ClientChannel& client, std::uint64_t bytes) {
    ipc::AddressReply answer{};
    const auto done =
        client.call(ipc::CommandType::kMemoryAllocate, ipc::bytes_of(ipc::MemoryAllocate{bytes}),
                    {}, std::as_writable_bytes(std::span(&answer, 1)));
    if (!done) return std::unexpected(done.error());
    return answer.address;
  }

  json status() {
    const auto connection = ipc::connect_to_daemon(directory_, ipc::HelloKind::kControl, kConnect);
    if (!connection) return connection.error().message;
    const ipc::ControlRequest request;
    EXPECT_EQ(::write(connection->to_daemon.get(), &request, sizeof(request)),
              static_cast<ssize_t>(sizeof(request)));
    std::string text;
    char buffer[4096];
    while (true) {
      const int fd = connection->from_daemon.get();
      poll_now_blocking(fd);
      const ssize_t got = ::read(fd, buffer, sizeof(buffer));
      if (got == 0) break;
      if (got > 0) text.append(buffer, static_cast<std::size_t>(got));
    }
    return json::parse(text.substr(std::min(text.size(), sizeof(ipc::ControlReply))));
  }

  /// Asks until `wanted` holds; the test's own time limit is the only one.
  template <typename Wanted>
  json status_when(Wanted wanted) {
    while (true) {
      json now = status();
      if (wanted(now)) return now;
      std::this_thread::sleep_for(5ms);
    }
  }

  int leftovers() const {
    const std::string prefix = ipc::segment_prefix(directory_).substr(1);
    int count = 0;
    for (const auto& entry : fs::directory_iterator("/dev/shm")) {
      if (entry.path().filename().string().starts_with(prefix)) ++count;
    }
    return count;
  }

  std::string directory_;

 private:
  static void poll_now_blocking(int fd) {
    pollfd poller{fd, POLLIN, 0};
    ::poll(&poller, 1, 10'000);
  }
};

TEST_F(SupervisorTest, AClientIsServed) {
  RunningSupervisor supervisor(SLATED_PATH, directory_);
  const auto client = connect();
  ASSERT_TRUE(client);
  EXPECT_TRUE(allocate(*client, 1000));
  EXPECT_GT(client->status().device.total_memory, 0u);
  EXPECT_EQ(leftovers(), 0) << "the name goes as soon as both sides have mapped it";
}

TEST_F(SupervisorTest, StatusTellsOfSessionsAndForgetsThem) {
  RunningSupervisor supervisor(SLATED_PATH, directory_);
  auto client = connect();
  ASSERT_TRUE(allocate(*client, 1000));
  const json during = status();
  ASSERT_EQ(during["sessions"].size(), 1u) << during;
  const json& session = during["sessions"][0];
  EXPECT_EQ(session["pid"], getpid());
  EXPECT_EQ(session["uid"], getuid());
  EXPECT_EQ(session["state"], "serving");
  EXPECT_GT(session["memory_used"], 0u);
  EXPECT_TRUE(during["device"]["simulated"]);
  EXPECT_TRUE(during.contains("cache") && during["cache"].is_null());  // sim compiles nothing
  EXPECT_GT(during["engine"]["pid"], 0);
  client.reset();
  const json after = status_when([](const json& now) { return now["sessions"].empty(); });
  EXPECT_EQ(after["totals"]["sessions_served"], 1u);
  EXPECT_EQ(after["device"]["memory_free"], after["device"]["memory_total"]);
}

TEST_F(SupervisorTest, AKilledEngineIsReplacedAndItsSessionsAreTold) {
  RunningSupervisor supervisor(SLATED_PATH, directory_);
  const auto client = connect();
  ASSERT_TRUE(allocate(*client, 1000));
  const pid_t engine = status()["engine"]["pid"];
  ASSERT_EQ(kill(engine, SIGKILL), 0);
  while (client->check()) std::this_thread::sleep_for(1ms);
  EXPECT_EQ(client->check().error().code, ErrorCode::kUnavailable);
  const auto next = connect();
  ASSERT_TRUE(next);
  EXPECT_TRUE(allocate(*next, 1000));
  const json now = status();
  EXPECT_NE(now["engine"]["pid"], engine);
  EXPECT_EQ(now["engine"]["restarts"], 1u);
  EXPECT_EQ(now["sessions"].size(), 1u);
}

TEST_F(SupervisorTest, ACrashedEngineIsNoFaultOfItsSessionsKernels) {
  RunningSupervisor supervisor(SLATED_PATH, directory_);
  const auto client = connect();
  ASSERT_TRUE(allocate(*client, 1000));
  // Not SIGSEGV: sanitizers turn that into an exit of their own.
  ASSERT_EQ(kill(status()["engine"]["pid"], SIGABRT), 0);
  while (client->check()) std::this_thread::sleep_for(1ms);
  EXPECT_EQ(client->check().error().code, ErrorCode::kUnavailable);
  EXPECT_NE(client->check().error().message.find("ABRT"), std::string::npos);
}

TEST_F(SupervisorTest, ASessionWithoutDescriptorsIsToldWhy) {
  RunningSupervisor supervisor(SLATED_PATH, directory_);
  const auto before = connect();
  ASSERT_TRUE(allocate(*before, 1000));
  const pid_t engine = status()["engine"]["pid"];
  const fs::directory_iterator open("/proc/" + std::to_string(engine) + "/fd");
  const auto used = static_cast<rlim_t>(std::distance(begin(open), end(open)));
  rlimit limit{}, tight{};
  ASSERT_EQ(prlimit(engine, RLIMIT_NOFILE, nullptr, &limit), 0);
  tight = {used, limit.rlim_max};
  ASSERT_EQ(prlimit(engine, RLIMIT_NOFILE, &tight, nullptr), 0);
  const auto refused = connect();
  ASSERT_TRUE(refused);
  const auto failed = allocate(*refused, 1000);
  ASSERT_FALSE(failed);
  EXPECT_NE(failed.error().message.find("descriptors"), std::string::npos)
      << failed.error().message;
  ASSERT_EQ(prlimit(engine, RLIMIT_NOFILE, &limit, nullptr), 0);
  EXPECT_TRUE(allocate(*before, 1000));
  EXPECT_TRUE(allocate(*connect(), 1000));
}

TEST_F(SupervisorTest, ASpareEngineTakesOver) {
  Config config;
  config.spare_engine = true;
  RunningSupervisor supervisor(SLATED_PATH, directory_, config);
  const auto client = connect();
  ASSERT_TRUE(allocate(*client, 1000));
  kill(status()["engine"]["pid"], SIGKILL);
  while (client->check()) std::this_thread::sleep_for(1ms);
  const auto next = connect();
  ASSERT_TRUE(next);
  EXPECT_TRUE(allocate(*next, 1000));
}

TEST_F(SupervisorTest, GarbageInTheRendezvousIsNotNoticed) {
  RunningSupervisor supervisor(SLATED_PATH, directory_);
  const auto before = connect();
  const UniqueFd fifo(open(ipc::rendezvous_path(directory_).c_str(), O_WRONLY | O_NONBLOCK));
  ASSERT_TRUE(fifo);
  std::string garbage(3001, '\xa5');
  const std::uint64_t magic = ipc::kMagic;
  garbage.replace(500, sizeof(magic), reinterpret_cast<const char*>(&magic), sizeof(magic));
  ASSERT_GT(::write(fifo.get(), garbage.data(), garbage.size()), 0);
  const auto after = connect();
  ASSERT_TRUE(after);
  EXPECT_TRUE(allocate(*after, 1000));
  EXPECT_TRUE(allocate(*before, 1000));
}

TEST_F(SupervisorTest, AnotherProtocolIsRefusedWithAReason) {
  RunningSupervisor supervisor(SLATED_PATH, directory_);
  ASSERT_TRUE(connect());
  // By hand what connect_to_daemon() does, but with another version.
  const std::string folder = ipc::sessions_path(directory_) + "/old-client";
  ASSERT_EQ(mkdir(folder.c_str(), 0700), 0);
  ASSERT_EQ(mkfifo((folder + "/to_client").c_str(), 0600), 0);
  ASSERT_EQ(mkfifo((folder + "/to_daemon").c_str(), 0600), 0);
  const UniqueFd from_daemon(open((folder + "/to_client").c_str(), O_RDONLY | O_NONBLOCK));
  ipc::Hello hello;
  hello.protocol = ipc::kProtocolVersion + 1;
  std::strcpy(hello.build, "9.9");
  std::strcpy(hello.directory, "old-client");
  hello.checksum = ipc::hello_checksum(hello);
  const UniqueFd fifo(open(ipc::rendezvous_path(directory_).c_str(), O_WRONLY | O_NONBLOCK));
  ASSERT_EQ(::write(fifo.get(), &hello, sizeof(hello)), static_cast<ssize_t>(sizeof(hello)));
  ipc::Welcome welcome;
  pollfd poller{from_daemon.get(), POLLIN, 0};
  ASSERT_EQ(::poll(&poller, 1, 10'000), 1);
  ASSERT_EQ(::read(from_daemon.get(), &welcome, sizeof(welcome)),
            static_cast<ssize_t>(sizeof(welcome)));
  EXPECT_EQ(welcome.status, static_cast<std::uint32_t>(ErrorCode::kInitialization));
  EXPECT_NE(std::string(welcome.message).find("9.9"), std::string::npos) << welcome.message;
}

TEST_F(SupervisorTest, SessionsAreLimited) {
  Config config;
  config.max_sessions = 1;
  RunningSupervisor supervisor(SLATED_PATH, directory_, config);
  auto client = connect();
  const auto refused = ipc::ClientChannel::connect(directory_, kConnect);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kLimit);
  client.reset();
  status_when([](const json& now) { return now["sessions"].empty(); });
  EXPECT_TRUE(connect());
}

TEST_F(SupervisorTest, TheMemoryLimitIsTheSessions) {
  Config config;
  config.memory_limit = *parse_memory_limit("64M");
  RunningSupervisor supervisor(SLATED_PATH, directory_, config);
  const auto client = connect();
  EXPECT_EQ(client->status().memory_limit, 64u << 20);
  EXPECT_EQ(allocate(*client, 65 << 20).error().code, ErrorCode::kOutOfMemory);
}

TEST_F(SupervisorTest, StoppingTellsTheSessionsAndRemovesTheRendezvous) {
  auto supervisor = std::make_unique<RunningSupervisor>(SLATED_PATH, directory_);
  const auto client = connect();
  ASSERT_TRUE(allocate(*client, 1000));
  EXPECT_TRUE(supervisor->stop());
  const auto after = allocate(*client, 1000);
  ASSERT_FALSE(after);
  EXPECT_EQ(after.error().code, ErrorCode::kUnavailable);
  EXPECT_EQ(after.error().message, "slated is stopping");
  EXPECT_FALSE(fs::exists(ipc::rendezvous_path(directory_)));
}

TEST_F(SupervisorTest, AKilledClientLeavesNothing) {
  RunningSupervisor supervisor(SLATED_PATH, directory_);
  ASSERT_TRUE(connect());
  const pid_t child = fork();
  if (child == 0) {
    auto client = ipc::ClientChannel::connect(directory_, kConnect);
    if (client && allocate(**client, 100 << 20)) kill(getpid(), SIGKILL);
    _exit(1);
  }
  int end = 0;
  ASSERT_EQ(waitpid(child, &end, 0), child);
  ASSERT_TRUE(WIFSIGNALED(end));
  const json after = status_when([](const json& now) { return now["sessions"].empty(); });
  EXPECT_EQ(after["device"]["memory_free"], after["device"]["memory_total"]);
  EXPECT_TRUE(fs::is_empty(ipc::sessions_path(directory_)));
}

TEST_F(SupervisorTest, ASecondDaemonOnTheSameDirectoryIsRefused) {
  RunningSupervisor supervisor(SLATED_PATH, directory_);
  ASSERT_TRUE(connect());
  Config config;
  config.runtime_dir = directory_;
  config.state_dir = "none";
  const auto second = Supervisor::make(config, SLATED_PATH, 0);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, ErrorCode::kUnavailable);
}

TEST_F(SupervisorTest, ADeviceThatCannotExistEndsTheDaemon) {
  Config config;
  config.device = "abacus";
  config.state_dir = "none";
  config.runtime_dir = directory_;
  const UniqueFd never(eventfd(0, EFD_CLOEXEC));
  auto supervisor = Supervisor::make(config, SLATED_PATH, never.get());
  ASSERT_TRUE(supervisor);
  EXPECT_EQ((*supervisor)->run().error().code, ErrorCode::kInvalidValue);
}

}  // namespace
}  // namespace slate::daemon
