// The supervisor in a thread of this process, with real engine processes on sim, in a runtime
// directory of its own.
#include "daemon/supervisor/supervisor.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>

#include <atomic>
#include <filesystem>
#include <future>
#include <nlohmann/json.hpp>
#include <thread>

#include "ipc/channel.h"
#include "ipc/packets.h"
#include "tests/unit/daemon/running_supervisor.h"
#include "tools/control_client.h"

namespace slate::daemon {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;
using nlohmann::json;

constexpr auto kConnectTimeout = 30s;

class SupervisorTest : public testing::Test {
 protected:
  SupervisorTest() {
    std::string pattern = fs::temp_directory_path() / "slate-supervisor-test-XXXXXX";
    directory_ = mkdtemp(pattern.data());
  }
  ~SupervisorTest() override { fs::remove_all(directory_); }

  std::unique_ptr<ipc::ClientChannel> connect(const ipc::Wishes& wishes = {}) {
    auto client = ipc::ClientChannel::connect(directory_, kConnectTimeout, wishes);
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

  /// Gives the session something that no other engine can rebuild.
  static Result<void> bind_to_engine(ipc::ClientChannel& client) {
    const ArraySpec spec{.format = {ChannelKind::kFloat, 32, 1, 0}, .extent = {16, 0, 0}};
    return client.call(ipc::CommandType::kArrayCreate, ipc::bytes_of(ipc::ArrayCreate{1, spec}), {},
                       {});
  }

  json status() {
    const auto answer = tools::ask_daemon(directory_, {}, {});
    if (!answer) return answer.error().message;
    return json::parse(*answer);
  }

  Result<std::string> ask(ipc::ControlVerb verb, const std::string& text) {
    ipc::ControlRequest request;
    request.verb = verb;
    return tools::ask_daemon(directory_, request, text);
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

  std::string directory_;
};

TEST_F(SupervisorTest, AClientIsServed) {
  RunningSupervisor supervisor(SLATED_PATH, directory_);
  const auto client = connect();
  ASSERT_TRUE(client);
  EXPECT_TRUE(allocate(*client, 1000));
  EXPECT_GT(client->status().device.total_memory, 0u);
  for (const auto& entry : fs::directory_iterator(directory_)) {
    EXPECT_FALSE(fs::is_fifo(entry)) << "the names go at once";
  }
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
  ASSERT_EQ(during["users"].size(), 1u);
  EXPECT_EQ(during["users"][0]["uid"], getuid());
  EXPECT_EQ(during["users"][0]["memory_used"], session["memory_used"]);
  EXPECT_GT(session["memory_used"], 0u);
  EXPECT_TRUE(during["device"]["simulated"]);
  EXPECT_TRUE(during.contains("cache") && during["cache"].is_null());  // sim compiles nothing
  EXPECT_GT(during["engine"]["pid"], 0);
  client.reset();
  const json after = status_when([](const json& now) { return now["sessions"].empty(); });
  EXPECT_EQ(after["totals"]["sessions_served"], 1u);
  EXPECT_EQ(after["device"]["memory_free"], after["device"]["memory_total"]);
}

TEST_F(SupervisorTest, ASessionGoesOnWhenItsEngineIsKilled) {
  RunningSupervisor supervisor(SLATED_PATH, directory_);
  const auto client = connect();
  ASSERT_TRUE(allocate(*client, 1000));
  const pid_t engine = status()["engine"]["pid"];
  ASSERT_EQ(kill(engine, SIGKILL), 0);
  EXPECT_TRUE(allocate(*client, 1000)) << client->check().error().message;
  const auto next = connect();
  ASSERT_TRUE(next);
  EXPECT_TRUE(allocate(*next, 1000));
  const json now = status();
  EXPECT_NE(now["engine"]["pid"], engine);
  EXPECT_EQ(now["engine"]["restarts"], 1u);
  EXPECT_EQ(now["sessions"].size(), 2u);
}

TEST_F(SupervisorTest, ASessionThatCannotLeaveItsEngineIsToldOfItsEnd) {
  RunningSupervisor supervisor(SLATED_PATH, directory_);
  const auto client = connect();
  ASSERT_TRUE(bind_to_engine(*client));
  // Not SIGSEGV: sanitizers turn that into an exit of their own.
  ASSERT_EQ(kill(status()["engine"]["pid"], SIGABRT), 0);
  while (client->check()) std::this_thread::sleep_for(1ms);
  EXPECT_EQ(client->check().error().code, ErrorCode::kUnavailable);
  EXPECT_NE(client->check().error().message.find("ABRT"), std::string::npos)
      << "no fault of its kernels: " << client->check().error().message;
}

TEST_F(SupervisorTest, AnEngineThatHangsIsReplacedAndItsSessionsAreTold) {
  Config config;
  config.engine_timeout_seconds = 0.5;
  RunningSupervisor supervisor(SLATED_PATH, directory_, config);
  const auto client = connect();
  ASSERT_TRUE(bind_to_engine(*client));
  const auto free = connect();
  ASSERT_TRUE(allocate(*free, 1000));
  ASSERT_EQ(kill(status()["engine"]["pid"], SIGSTOP), 0);
  while (client->check()) std::this_thread::sleep_for(1ms);
  EXPECT_NE(client->check().error().message.find("did not answer for 0.5 s"), std::string::npos)
      << client->check().error().message;
  EXPECT_TRUE(allocate(*free, 1000)) << "it goes on in the next engine";
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
  config.spare_engine = SpareChoice::kAlways;
  RunningSupervisor supervisor(SLATED_PATH, directory_, config);
  const auto client = connect();
  ASSERT_TRUE(allocate(*client, 1000));
  for (int i = 0; i < 3; ++i) {
    kill(status()["engine"]["pid"], SIGKILL);
    EXPECT_TRUE(allocate(*client, 1000)) << client->check().error().message;
  }
}

TEST_F(SupervisorTest, RenewedEnginesTakeTheSessionsOver) {
  RunningSupervisor supervisor(SLATED_PATH, directory_);
  const auto client = connect(), bound = connect();
  ASSERT_TRUE(allocate(*client, 1000));
  ASSERT_TRUE(bind_to_engine(*bound));
  const pid_t first = status()["engine"]["pid"];
  const json answer = json::parse(*ask(ipc::ControlVerb::kRenew, ""));
  ASSERT_EQ(answer["stay"].size(), 1u) << answer;
  EXPECT_EQ(answer["stay"][0]["id"], bound->session());
  const json now = status_when([&](const json& each) {
    return each["engine"]["pid"] != first && !each["engine"]["renews"].get<bool>();
  });
  EXPECT_TRUE(allocate(*client, 1000)) << client->check().error().message;
  EXPECT_TRUE(allocate(*bound, 1000)) << "in its old engine";
  EXPECT_EQ(now["engine"]["restarts"], 0u);
  EXPECT_EQ(kill(first, 0), 0);
  bound->abandon();
  while (kill(first, 0) == 0) std::this_thread::sleep_for(1ms);  // it ends with its last session
  EXPECT_TRUE(allocate(*client, 1000)) << client->check().error().message;
}

TEST_F(SupervisorTest, ARenewedEngineThatDiesIsNotReplaced) {
  RunningSupervisor supervisor(SLATED_PATH, directory_);
  const auto client = connect(), bound = connect();
  ASSERT_TRUE(bind_to_engine(*bound));
  const pid_t first = status()["engine"]["pid"];
  ASSERT_TRUE(ask(ipc::ControlVerb::kRenew, ""));
  status_when([&](const json& each) { return each["engine"]["pid"] != first; });
  ASSERT_TRUE(allocate(*client, 1000));
  kill(first, SIGKILL);
  while (bound->check()) std::this_thread::sleep_for(1ms);
  EXPECT_TRUE(allocate(*client, 1000)) << client->check().error().message;
  EXPECT_EQ(status()["sessions"].size(), 1u);
}

TEST_F(SupervisorTest, ASuspendedSessionWaitsAndGoesOn) {
  RunningSupervisor supervisor(SLATED_PATH, directory_);
  const auto client = connect();
  ASSERT_TRUE(allocate(*client, 1 << 20));
  const std::string id = std::to_string(client->session());
  ASSERT_TRUE(ask(ipc::ControlVerb::kSuspend, id));
  const json suspended =
      status_when([](const json& now) { return now["sessions"][0]["state"] == "suspended"; });
  EXPECT_EQ(suspended["device"]["memory_free"], suspended["device"]["memory_total"]);
  auto later = std::async(std::launch::async, [&] { return allocate(*client, 1 << 20); });
  kill(suspended["engine"]["pid"], SIGKILL);
  status_when([&](const json& now) { return now["engine"]["pid"] != suspended["engine"]["pid"]; });
  EXPECT_EQ(later.wait_for(50ms), std::future_status::timeout);
  ASSERT_TRUE(ask(ipc::ControlVerb::kResume, id));
  EXPECT_TRUE(later.get()) << client->check().error().message;
}

TEST_F(SupervisorTest, ASessionThatCannotLeaveIsNotSuspended) {
  RunningSupervisor supervisor(SLATED_PATH, directory_);
  const auto bound = connect();
  ASSERT_TRUE(bind_to_engine(*bound));
  const auto refused = ask(ipc::ControlVerb::kSuspend, std::to_string(bound->session()));
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("arrays"), std::string::npos) << refused.error().message;
  EXPECT_TRUE(allocate(*bound, 1000));
}

TEST_F(SupervisorTest, AClientThatEndsWhileItIsSuspendedLeavesNothing) {
  RunningSupervisor supervisor(SLATED_PATH, directory_);
  auto client = connect();
  ASSERT_TRUE(allocate(*client, 1000));
  ASSERT_TRUE(ask(ipc::ControlVerb::kSuspend, std::to_string(client->session())));
  status_when([](const json& now) { return now["sessions"][0]["state"] == "suspended"; });
  client.reset();
  status_when([](const json& now) { return now["sessions"].empty(); });
}

TEST_F(SupervisorTest, AUserMayHaveAnEngineOfHisOwn) {
  Config config;
  config.sharing = SharingChoice::kUser;
  RunningSupervisor supervisor(SLATED_PATH, directory_, config);
  auto client = connect();
  ASSERT_TRUE(allocate(*client, 1000));
  // The common engine may be the later one to be ready.
  const json now = status_when([](const json& each) { return each["engines"].size() == 2; });
  EXPECT_EQ(now["engines"][0]["domain"], "common");
  EXPECT_EQ(now["engines"][0]["sessions"], 0u);
  EXPECT_EQ(now["engines"][1]["domain"], "uid " + std::to_string(getuid()));
  EXPECT_EQ(now["engines"][1]["sessions"], 1u);
  EXPECT_GT(now["sessions"][0]["memory_used"], 0u) << "its engine is asked, too";
  const json shared =
      status_when([](const json& each) { return each["engines"][1]["time"].is_number(); });
  EXPECT_EQ(shared["engines"][1]["time"], 0) << "nothing was launched";
  EXPECT_EQ(shared["engines"][1]["held"], false);
  kill(now["engines"][1]["pid"], SIGKILL);
  EXPECT_TRUE(allocate(*client, 1000)) << client->check().error().message;
  EXPECT_EQ(status()["engine"]["pid"], now["engine"]["pid"]);
  client.reset();
  status_when([](const json& each) { return each["engines"].size() == 1; });
}

/// A visitor who says `bytes`, and what the daemon answers; none: it hangs up.
class Visit {
 public:
  explicit Visit(const std::string& directory)
      : socket_(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    ipc::meeting_path(directory).copy(address.sun_path, sizeof(address.sun_path) - 1);
    const auto* const its = reinterpret_cast<const sockaddr*>(&address);
    EXPECT_EQ(::connect(socket_.get(), its, sizeof(address)), 0);
  }
  void say(const void* bytes, std::size_t size) {
    const iovec piece{const_cast<void*>(bytes), size};
    EXPECT_TRUE(ipc::send_packet(socket_.get(), {&piece, 1}));
  }
  std::optional<ipc::Welcome> answer() {
    ipc::Welcome welcome;
    const iovec piece{&welcome, sizeof(welcome)};
    pollfd poller{socket_.get(), POLLIN, 0};
    if (::poll(&poller, 1, 10'000) != 1) return std::nullopt;
    const auto packet = ipc::receive_packet(socket_.get(), {&piece, 1});
    if (!packet || !*packet) return std::nullopt;
    return welcome;
  }

 private:
  UniqueFd socket_;
};

TEST_F(SupervisorTest, GarbageFromVisitorsIsNotNoticed) {
  RunningSupervisor supervisor(SLATED_PATH, directory_);
  const auto before = connect();
  Visit visit(directory_);
  const std::string garbage(3001, '\xa5');
  visit.say(garbage.data(), garbage.size());
  const auto answer = visit.answer();
  ASSERT_TRUE(answer);
  EXPECT_NE(answer->status, 0u);
  const auto after = connect();
  ASSERT_TRUE(after);
  EXPECT_TRUE(allocate(*after, 1000));
  EXPECT_TRUE(allocate(*before, 1000));
}

TEST_F(SupervisorTest, AnotherProtocolIsRefusedWithAReason) {
  RunningSupervisor supervisor(SLATED_PATH, directory_);
  ASSERT_TRUE(connect());
  Visit visit(directory_);
  ipc::Hello hello;
  hello.protocol = ipc::kProtocolVersion + 1;
  std::strcpy(hello.build, "9.9");
  visit.say(&hello, sizeof(hello));
  const auto answer = visit.answer();
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->status, static_cast<std::uint32_t>(ErrorCode::kInitialization));
  EXPECT_NE(std::string(answer->message).find("9.9"), std::string::npos) << answer->message;
}

TEST_F(SupervisorTest, VisitorsWhoSayNothingKeepNobodyOut) {
  RunningSupervisor supervisor(SLATED_PATH, directory_);
  std::vector<Visit> silent;
  for (int i = 0; i < 3 * Reception::kMostOfUser; ++i) silent.emplace_back(directory_);
  // The silent ones go after a while. Until then one of the same user comes again and again.
  const auto client = connect();
  ASSERT_TRUE(client);
  EXPECT_TRUE(allocate(*client, 1000));
  const auto sent_away = silent.back().answer();
  ASSERT_TRUE(sent_away);
  EXPECT_NE(sent_away->come_again, 0u);
}

TEST_F(SupervisorTest, AUsersSessionsDoNotTakeOthersPlaces) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs a second user";
  ASSERT_EQ(::chmod(directory_.c_str(), 0755), 0);
  Config config;
  config.max_sessions = 3;
  config.max_sessions_per_user = 2;
  RunningSupervisor supervisor(SLATED_PATH, directory_, config);
  const auto connects_as = [this](uid_t user, int count) {
    const pid_t child = fork();
    if (child == 0) {
      if (::setuid(user) != 0) _exit(99);
      std::vector<std::unique_ptr<ipc::ClientChannel>> held;
      for (int i = 0; i < count + 1; ++i) {
        auto client = ipc::ClientChannel::connect(directory_, kConnectTimeout);
        if (!client) _exit(client.error().code == ErrorCode::kLimit ? i : 98);
        held.push_back(std::move(*client));
      }
      _exit(97);
    }
    int status = 0;
    EXPECT_EQ(waitpid(child, &status, 0), child);
    return WEXITSTATUS(status);
  };
  EXPECT_EQ(connects_as(65534, 2), 2) << "and no more";
  status_when([](const json& now) { return now["sessions"].empty(); });
  std::vector<std::unique_ptr<ipc::ClientChannel>> roots;
  for (int i = 0; i < 2; ++i) roots.push_back(connect());
  EXPECT_FALSE(ipc::ClientChannel::connect(directory_, kConnectTimeout))
      << "root has the share of a user";
  EXPECT_EQ(connects_as(65534, 1), 1) << "of the three";
}

TEST_F(SupervisorTest, SessionsAreLimited) {
  Config config;
  config.max_sessions_per_user = 1;
  RunningSupervisor supervisor(SLATED_PATH, directory_, config);
  auto client = connect();
  const auto refused = ipc::ClientChannel::connect(directory_, kConnectTimeout);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kLimit);
  client.reset();
  status_when([](const json& now) { return now["sessions"].empty(); });
  EXPECT_TRUE(connect());
}

TEST_F(SupervisorTest, AConfigurationReadAgainIsForNewSessions) {
  const UniqueFd told(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  std::atomic<bool> wrong{true};
  std::atomic<int> read{0};
  RunningSupervisor supervisor(SLATED_PATH, directory_, {},
                               {.fd = told.get(), .read = [&]() -> std::optional<Config> {
                                  ++read;
                                  if (wrong) return std::nullopt;
                                  Config config;
                                  config.memory_limit = *parse_memory_limit("64M");
                                  return config;
                                }});
  const auto tell = [&](int times) {
    const std::uint64_t one = 1;
    ASSERT_EQ(::write(told.get(), &one, sizeof(one)), static_cast<ssize_t>(sizeof(one)));
    while (read < times) std::this_thread::sleep_for(1ms);
  };
  const auto before = connect();
  const std::uint64_t usual = before->status().memory_limit;
  tell(1);
  EXPECT_EQ(connect()->status().memory_limit, usual) << "a mistake changes nothing";
  wrong = false;
  tell(2);
  EXPECT_EQ(connect()->status().memory_limit, 64u << 20);
  EXPECT_TRUE(allocate(*before, 1000)) << "nobody's session ended";
}

TEST_F(SupervisorTest, TheMemoryLimitIsTheSessions) {
  Config config;
  config.memory_limit = *parse_memory_limit("64M");
  RunningSupervisor supervisor(SLATED_PATH, directory_, config);
  const auto client = connect();
  EXPECT_EQ(client->status().memory_limit, 64u << 20);
  EXPECT_EQ(allocate(*client, 65 << 20).error().code, ErrorCode::kOutOfMemory);
}

TEST_F(SupervisorTest, AProgramMayWantLessMemoryThanTheLimitAndGetsNoMore) {
  Config config;
  config.memory_limit = *parse_memory_limit("64M");
  RunningSupervisor supervisor(SLATED_PATH, directory_, config);
  const auto modest = connect({.weight = {}, .priority = {}, .memory = 24 << 20});
  EXPECT_EQ(modest->status().memory_limit, 24u << 20);
  EXPECT_EQ(allocate(*modest, 25 << 20).error().code, ErrorCode::kOutOfMemory);
  EXPECT_TRUE(allocate(*modest, 20 << 20));
  ipc::MemoryInfoReply info{};
  ASSERT_TRUE(modest->call(ipc::CommandType::kMemoryInfo, ipc::bytes_of(char{}), {},
                           std::as_writable_bytes(std::span(&info, 1))));
  EXPECT_EQ(info.total_bytes, 24u << 20);
  EXPECT_EQ(info.free_bytes, 4u << 20);
  EXPECT_EQ(connect({.weight = {}, .priority = {}, .memory = 1ull << 40})->status().memory_limit,
            64u << 20);
  EXPECT_EQ(connect()->status().memory_limit, 64u << 20);
}

TEST_F(SupervisorTest, StoppingTellsTheSessionsAndRemovesTheSocket) {
  auto supervisor = std::make_unique<RunningSupervisor>(SLATED_PATH, directory_);
  const auto client = connect();
  ASSERT_TRUE(allocate(*client, 1000));
  EXPECT_TRUE(supervisor->stop());
  const auto after = allocate(*client, 1000);
  ASSERT_FALSE(after);
  EXPECT_EQ(after.error().code, ErrorCode::kUnavailable);
  EXPECT_EQ(after.error().message, "slated is stopping");
  EXPECT_FALSE(fs::exists(ipc::meeting_path(directory_)));
}

TEST_F(SupervisorTest, AKilledClientLeavesNothing) {
  RunningSupervisor supervisor(SLATED_PATH, directory_);
  ASSERT_TRUE(connect());
  const pid_t child = fork();
  if (child == 0) {
    auto client = ipc::ClientChannel::connect(directory_, kConnectTimeout);
    if (client && allocate(**client, 100 << 20)) kill(getpid(), SIGKILL);
    _exit(1);
  }
  int end = 0;
  ASSERT_EQ(waitpid(child, &end, 0), child);
  ASSERT_TRUE(WIFSIGNALED(end));
  const json after = status_when([](const json& now) { return now["sessions"].empty(); });
  EXPECT_EQ(after["device"]["memory_free"], after["device"]["memory_total"]);
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
