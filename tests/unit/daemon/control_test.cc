// slatectl's questions to a supervisor whose engine is fake_engine_main.cc: its reports say what
// the engine was told.
#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>

#include "ipc/channel.h"
#include "tests/unit/daemon/running_supervisor.h"
#include "tests/unit/daemon/temporary_directory.h"
#include "tools/control_client.h"

namespace slate::daemon {
namespace {

using namespace std::chrono_literals;
using ipc::ControlRequest;
using ipc::ControlVerb;
using nlohmann::json;

constexpr auto kConnect = 30s;
constexpr uid_t kSomebody = 65534;

ControlRequest set_request(ControlVerb verb, std::optional<double> weight,
                           std::optional<int> priority) {
  ControlRequest request;
  request.verb = verb;
  if (weight) {
    request.fields |= ipc::kHasWeight;
    request.weight = *weight;
  }
  if (priority) {
    request.fields |= ipc::kHasPriority;
    request.priority = *priority;
  }
  return request;
}

class ControlTest : public testing::Test {
 protected:
  // Whoever runs the tests may be asked for by other users, too.
  ControlTest() { ::chmod(temporary_.path().c_str(), 0755); }

  void start(Config config = {}) {
    config.state_dir = (temporary_.path() / "state").string();
    supervisor_ = std::make_unique<RunningSupervisor>(FAKE_ENGINE_PATH, runtime_, config);
  }
  std::unique_ptr<ipc::ClientChannel> connect(const ipc::Wishes& wishes = {}) {
    auto client = ipc::ClientChannel::connect(runtime_, kConnect, wishes);
    EXPECT_TRUE(client) << client.error().message;
    return client ? std::move(*client) : nullptr;
  }
  Result<json> ask(const ControlRequest& request, const std::string& text = {}) {
    const auto answer = tools::ask_daemon(runtime_, request, text);
    if (!answer) return std::unexpected(answer.error());
    return json::parse(*answer);
  }
  /// The session as the engine knows it, once it does.
  json session(std::uint64_t id) {
    while (true) {
      const auto status = ask({});
      EXPECT_TRUE(status);
      for (const json& one : (*status)["sessions"]) {
        if (one["id"] == id && one["state"] == "serving") return one;
      }
      std::this_thread::sleep_for(5ms);
    }
  }
  /// What `body` returns in a process of another user; it cannot use gtest.
  static int as_somebody(const std::function<int()>& body) {
    const pid_t child = fork();
    if (child == 0) _exit(setgid(kSomebody) == 0 && setuid(kSomebody) == 0 ? body() : 99);
    int status = 0;
    EXPECT_EQ(waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
  /// What it prints on both its outputs, and its exit status in brackets.
  std::string slatectl(const std::string& arguments) const {
    const std::string command =
        "SLATE_RUNTIME_DIR='" + runtime_ + "' '" + SLATECTL_PATH "' " + arguments + " 2>&1";
    FILE* const pipe = ::popen(command.c_str(), "r");
    std::string output;
    char buffer[4096];
    while (const std::size_t got = std::fread(buffer, 1, sizeof(buffer), pipe))
      output.append(buffer, got);
    return output + fmt::format("[{}]", WEXITSTATUS(::pclose(pipe)));
  }
  static std::string own_program() {
    return std::filesystem::read_symlink("/proc/self/exe").filename().string();
  }

  TemporaryDirectory temporary_;
  const std::string runtime_ = temporary_.path() / "runtime";
  std::unique_ptr<RunningSupervisor> supervisor_;
};

TEST_F(ControlTest, ALiveSessionsWeightAndPriorityReachTheEngine) {
  start();
  const auto client = connect();
  EXPECT_EQ(session(client->session())["weight"], 1.0);
  const auto answer =
      ask(set_request(ControlVerb::kSetSession, 2.5, -3), std::to_string(client->session()));
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_EQ((*answer)["sessions"][0]["weight"], 2.5);
  EXPECT_TRUE((*answer)["kept"].is_null());
  const json after = session(client->session());
  EXPECT_EQ(after["weight"], 2.5);
  EXPECT_EQ(after["priority"], -3);
}

TEST_F(ControlTest, WhatIsNotGivenStaysAsItIs) {
  start();
  const auto client = connect({.weight = 3, .priority = -1});
  const std::string id = std::to_string(client->session());
  ASSERT_TRUE(ask(set_request(ControlVerb::kSetSession, {}, -2), id));
  EXPECT_EQ(session(client->session())["weight"], 3.0);
  EXPECT_EQ(session(client->session())["priority"], -2);
}

TEST_F(ControlTest, SessionsAreFoundByProcessAndByProgram) {
  start();
  const auto first = connect();
  ASSERT_TRUE(ask(set_request(ControlVerb::kSetSession, 2, {}), std::to_string(getpid())));
  EXPECT_EQ(session(first->session())["weight"], 2.0);
  const auto second = connect();
  const auto both = ask(set_request(ControlVerb::kSetSession, 3, {}), own_program());
  ASSERT_TRUE(both) << both.error().message;
  EXPECT_EQ((*both)["sessions"].size(), 2u);
  EXPECT_EQ(session(second->session())["weight"], 3.0);
  EXPECT_EQ(ask(set_request(ControlVerb::kSetSession, 3, {}), "nothing").error().code,
            ErrorCode::kInvalidValue);
}

TEST_F(ControlTest, ValuesOutOfRangeChangeNothing) {
  start();
  const auto client = connect();
  const std::string id = std::to_string(client->session());
  for (const auto& request : {set_request(ControlVerb::kSetSession, 0, {}),
                              set_request(ControlVerb::kSetSession, 101, {}),
                              set_request(ControlVerb::kSetSession, std::nan(""), {}),
                              set_request(ControlVerb::kSetSession, 2, 11),
                              set_request(ControlVerb::kSetSession, {}, {})})
    EXPECT_EQ(ask(request, id).error().code, ErrorCode::kInvalidValue);
  EXPECT_EQ(session(client->session())["weight"], 1.0);
}

TEST_F(ControlTest, TheConfigurationGivesWhatSessionsBeginWith) {
  Config config;
  config.programs.push_back({own_program(), "", {.weight = 7, .priority = 4}});
  start(config);
  const auto client = connect();
  EXPECT_EQ(session(client->session())["weight"], 7.0);
  EXPECT_EQ(session(client->session())["priority"], 4);
}

TEST_F(ControlTest, WhatIsKeptOutlastsSlatedAndOutranksTheEnvironment) {
  start();
  const auto before = connect();
  const auto kept = ask(set_request(ControlVerb::kSetProgram, 5, -4), own_program());
  ASSERT_TRUE(kept) << kept.error().message;
  EXPECT_EQ((*kept)["kept"]["uid"], getuid());
  EXPECT_EQ(session(before->session())["weight"], 5.0) << "those that live change at once";
  supervisor_.reset();
  start();
  const auto after = connect({.weight = 2, .priority = {}});
  EXPECT_EQ(session(after->session())["weight"], 5.0);
  EXPECT_EQ(session(after->session())["priority"], -4);
  ControlRequest forget;
  forget.verb = ControlVerb::kForgetProgram;
  ASSERT_TRUE(ask(forget, own_program()));
  EXPECT_EQ(ask(forget, own_program()).error().code, ErrorCode::kInvalidValue);
  const auto last = connect();
  EXPECT_EQ(session(last->session())["weight"], 1.0);
}

TEST_F(ControlTest, ASessionHandedToTheNextEngineKeepsItsSettings) {
  start();
  auto client = connect();
  ASSERT_TRUE(ask(set_request(ControlVerb::kSetSession, 6, {}), std::to_string(client->session())));
  ControlRequest profile;
  profile.verb = ControlVerb::kProfile;
  // The engine dies of it, and whoever waits for its answer is told.
  EXPECT_EQ(ask(profile, "die").error().code, ErrorCode::kUnavailable);
  EXPECT_EQ(session(client->session())["weight"], 6.0);
}

TEST_F(ControlTest, QuestionsOfOneUserDoNotKeepAnotherOut) {
  if (getuid() != 0) GTEST_SKIP() << "needs a second user";
  start();
  ASSERT_TRUE(connect());
  EXPECT_EQ(as_somebody([&] {
              std::vector<ipc::Connection> held;
              for (int i = 0; i < ControlDesk::kMostOfUser; ++i) {
                auto one = ipc::connect_to_daemon(runtime_, ipc::HelloKind::kControl, kConnect);
                if (!one) return 1;
                held.push_back(std::move(*one));
              }
              if (ipc::connect_to_daemon(runtime_, ipc::HelloKind::kControl, 20ms)) return 2;
              return 0;
            }),
            0);
  EXPECT_TRUE(ask({}));
}

TEST_F(ControlTest, WhatABusyEngineHasNoRoomForReachesItLater) {
  start();
  const auto first = connect();
  session(first->session());
  const pid_t engine = (*ask({}))["engine"]["pid"];
  ASSERT_EQ(::kill(engine, SIGSTOP), 0);
  const auto began = std::chrono::steady_clock::now();
  const std::string id = std::to_string(first->session());
  // More than its link holds.
  for (int i = 1; i <= 600; ++i)
    ASSERT_TRUE(ask(set_request(ControlVerb::kSetSession, 1 + i / 100.0, {}), id));
  const auto second = connect();
  EXPECT_EQ((*ask({}))["sessions"].size(), 2u) << "answered without it";
  EXPECT_LT(std::chrono::steady_clock::now() - began, 60s) << "nobody waited for the engine";
  ASSERT_EQ(::kill(engine, SIGCONT), 0);
  EXPECT_EQ(session(second->session())["weight"], 1.0);
  EXPECT_EQ(session(first->session())["weight"], 7.0) << "and nothing was lost";
}

TEST_F(ControlTest, ProfileRequestsPassToTheEngineAndBack) {
  start();
  ASSERT_TRUE(connect());
  ControlRequest request;
  request.verb = ControlVerb::kProfileSet;
  request.fields = ipc::kHasMemory | ipc::kHasForm;
  request.memory = 0.5;
  request.form = 1;
  const auto answer = ask(request, "scale");
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_EQ((*answer)["kind"], "set");
  EXPECT_EQ((*answer)["kernel"], "scale");
  EXPECT_TRUE((*answer)["compute"].is_null());
  EXPECT_EQ((*answer)["memory"], 0.5);
  EXPECT_EQ((*answer)["form"], 1);
  const auto refused = ask(request, "unknown");
  EXPECT_EQ(refused.error().code, ErrorCode::kInvalidValue);
  EXPECT_EQ(refused.error().message, "no such");
}

TEST_F(ControlTest, AGroupIsCheckedBeforeTheEngineSeesIt) {
  start();
  ASSERT_TRUE(connect());
  ControlRequest request;
  request.verb = ControlVerb::kProfileGroup;
  const auto answer = ask(request, R"({"kernels":["a","b"],"sharing":"placed","sms":[48,84]})");
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_EQ((*answer)["kind"], "pin");
  EXPECT_EQ((*answer)["sms"][1], 84);
  EXPECT_EQ(ask(request, R"({"kernels":["a"]})").error().code, ErrorCode::kInvalidValue);
  EXPECT_EQ(ask(request, std::string(400, '[')).error().code, ErrorCode::kInvalidValue);
}

TEST_F(ControlTest, ATraceComesInPieces) {
  start();
  ASSERT_TRUE(connect());
  ControlRequest request;
  request.verb = ControlVerb::kTrace;
  request.seconds = 1.5;
  const auto answer = ask(request);
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_EQ((*answer)["microseconds"], 1'500'000);
  EXPECT_EQ((*answer)["filler"].get<std::string>().size(), 1u << 20);
}

TEST_F(ControlTest, SlatectlSetsShowsAndTraces) {
  start();
  const auto client = connect();
  const std::string id = std::to_string(client->session());
  EXPECT_EQ(slatectl("set " + id + " --weight 2 --priority -1"),
            fmt::format("session {} (pid {}, {}): weight 2, priority -1\n[0]", id, getpid(),
                        own_program()));
  EXPECT_EQ(slatectl("set --program train --priority 2"),
            fmt::format("kept for train of uid {}: priority 2\n[0]", getuid()));
  EXPECT_EQ(slatectl("set --program train --forget"), "[0]");
  EXPECT_EQ(slatectl("set " + id), "slatectl: give --weight, --priority or both\n[2]");
  EXPECT_EQ(slatectl("set " + id + " --program train --weight 1"),
            "slatectl: name either a session, process or program, or --program NAME\n[2]");
  EXPECT_NE(slatectl("profile").find("\nscale "), std::string::npos) << slatectl("profile");
  EXPECT_TRUE(slatectl("profile show scale").starts_with("scale\n  _Z5scalePfi\n"));
  EXPECT_EQ(slatectl("profile show other"), "slatectl: the profile knows no kernel other\n[1]");
  EXPECT_EQ(slatectl("profile set scale --memory 0.5"), "7 rows changed\n[0]");
  EXPECT_EQ(slatectl("profile forget --all"), "7 rows changed\n[0]");
  EXPECT_EQ(slatectl("profile forget"), "slatectl: name a kernel, or say --all\n[2]");
  const std::string file = temporary_.path() / "trace.json";
  EXPECT_EQ(slatectl("trace --last 2 --out '" + file + "'"), "[0]");
  std::ifstream trace(file);
  EXPECT_EQ(json::parse(trace)["microseconds"], 2'000'000);
  EXPECT_TRUE(slatectl("trace --out /nonexistent/x").ends_with("[1]"));
  EXPECT_NE(slatectl("status").find("policy    none"), std::string::npos);
}

TEST_F(ControlTest, AnUnknownRequestIsRefusedInWords) {
  start();
  ASSERT_TRUE(connect());
  ControlRequest request;
  request.verb = static_cast<ControlVerb>(77);
  EXPECT_EQ(ask(request).error().code, ErrorCode::kNotSupported);
}

TEST_F(ControlTest, OtherUsersSessionsAreNotTheirs) {
  if (getuid() != 0) GTEST_SKIP() << "needs root";
  start();
  const auto client = connect();
  const std::string id = std::to_string(client->session());
  EXPECT_EQ(
      as_somebody([&] {
        return static_cast<int>(ask(set_request(ControlVerb::kSetSession, 2, {}), id).error().code);
      }),
      static_cast<int>(ErrorCode::kPermission));
  EXPECT_EQ(as_somebody([&] {
              // By its name a program of somebody else is not even seen.
              return static_cast<int>(
                  ask(set_request(ControlVerb::kSetSession, 2, {}), own_program()).error().code);
            }),
            static_cast<int>(ErrorCode::kInvalidValue));
  EXPECT_EQ(session(client->session())["weight"], 1.0);
}

TEST_F(ControlTest, AUserWhoseSessionsAreBlamedIsBarredForAWhileAndNobodyElse) {
  if (getuid() != 0) GTEST_SKIP() << "needs a second user";
  Config config;
  config.bar_after = 2;
  start(config);
  ASSERT_TRUE(connect());
  const auto blame = [&](std::uint64_t id) {
    ControlRequest request;
    request.verb = ControlVerb::kProfile;
    return ask(request, fmt::format("blame {}", id)).has_value();
  };
  EXPECT_EQ(as_somebody([&] {
              for (int i = 0; i < 2; ++i) {
                const auto own = ipc::ClientChannel::connect(runtime_, kConnect);
                if (!own) return 1;
                if (!blame((*own)->session())) return 2;
              }
              const auto refused = ipc::ClientChannel::connect(runtime_, kConnect);
              if (refused) return 3;
              if (refused.error().code != ErrorCode::kInitialization) return 4;
              const std::string& words = refused.error().message;
              if (words.find("programs of uid 65534 are barred") == std::string::npos) return 5;
              return words.find("kept others waiting") == std::string::npos ? 6 : 0;
            }),
            0);
  const json barred = (*ask({}))["barred"];
  ASSERT_EQ(barred.size(), 1u);
  EXPECT_EQ(barred[0]["uid"], kSomebody);
  EXPECT_GT(barred[0]["left_s"], 0);
  EXPECT_NE(slatectl("status").find("barred    uid 65534 for "), std::string::npos);
  const auto client = connect();
  EXPECT_TRUE(blame(client->session()) && blame(client->session()) && connect())
      << "root is never barred";
}

TEST_F(ControlTest, WhoEndsAnEngineIsBlamedOnlyIfOthersWereThere) {
  if (getuid() != 0) GTEST_SKIP() << "needs a second user";
  Config config;
  config.bar_after = 1;
  start(config);
  const auto fault = [&] {
    return as_somebody([&] {
      const auto own = ipc::ClientChannel::connect(runtime_, kConnect);
      if (!own) return 1;
      ControlRequest request;
      request.verb = ControlVerb::kProfile;
      return ask(request, fmt::format("fault {}", (*own)->session())) ? 2 : 0;
    });
  };
  EXPECT_EQ(fault(), 0);
  EXPECT_EQ(fault(), 0) << "who mends a program of his own, alone, is not barred";
  const auto other = connect();
  EXPECT_EQ(fault(), 0);
  EXPECT_EQ(fault(), 1) << "now he is";
}

TEST_F(ControlTest, NobodyIsBlamedForAnEngineThatSeveralUsersHad) {
  if (getuid() != 0) GTEST_SKIP() << "needs a second user";
  Config config;
  config.bar_after = 1;
  start(config);
  const auto roots = connect();
  session(roots->session());
  ControlRequest profile;
  profile.verb = ControlVerb::kProfile;
  EXPECT_EQ(as_somebody([&] {
              const auto own = ipc::ClientChannel::connect(runtime_, kConnect);
              if (!own) return 1;
              session((*own)->session());
              return ask(profile, "die").error().code == ErrorCode::kUnavailable ? 0 : 2;
            }),
            0);
  EXPECT_TRUE((*ask({}))["barred"].empty());
}

ControlRequest end_request() {
  ControlRequest request;
  request.verb = ControlVerb::kEndSession;
  return request;
}

TEST_F(ControlTest, AnEndedSessionsClientAndEngineLearnWhoEndedIt) {
  start();
  const auto client = connect(), other = connect();
  session(client->session());
  const auto answer = ask(end_request(), std::to_string(client->session()));
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_EQ((*answer)["sessions"].size(), 1u);
  EXPECT_EQ((*answer)["sessions"][0]["id"], client->session());
  const std::string reason = fmt::format("uid {} ended it with slatectl end", getuid());
  ASSERT_FALSE(client->check());
  EXPECT_EQ(client->check().error().code, ErrorCode::kUnavailable);
  EXPECT_EQ(client->check().error().message, reason);
  EXPECT_EQ(session(client->session())["end"], reason);
  EXPECT_TRUE(other->check());
  EXPECT_FALSE(session(other->session()).contains("end"));
}

TEST_F(ControlTest, AnEndThatABusyEngineHasNoRoomForReachesItLater) {
  start();
  const auto client = connect();
  const auto held = connect();
  session(client->session());
  const pid_t engine = (*ask({}))["engine"]["pid"];
  ASSERT_EQ(::kill(engine, SIGSTOP), 0);
  for (int i = 1; i <= 600; ++i) {
    ASSERT_TRUE(ask(set_request(ControlVerb::kSetSession, 1 + i / 100.0, {}),
                    std::to_string(held->session())));
  }
  ASSERT_TRUE(ask(end_request(), std::to_string(client->session())));
  EXPECT_FALSE(client->check()) << "told without the engine";
  ASSERT_EQ(::kill(engine, SIGCONT), 0);
  while (!session(client->session()).contains("end")) std::this_thread::sleep_for(5ms);
}

TEST_F(ControlTest, AnEndedSessionDoesNotGoToTheNextEngine) {
  start();
  const auto client = connect(), other = connect();
  session(other->session());
  ASSERT_TRUE(ask(end_request(), std::to_string(client->session())));
  ControlRequest profile;
  profile.verb = ControlVerb::kProfile;
  EXPECT_EQ(ask(profile, "die").error().code, ErrorCode::kUnavailable);
  session(other->session());
  EXPECT_EQ((*ask({}))["sessions"].size(), 1u);
}

TEST_F(ControlTest, OnlyItsUserAndTheAdministratorsMayEndASession) {
  if (getuid() != 0) GTEST_SKIP() << "needs root";
  start();
  const auto roots = connect();
  const std::string id = std::to_string(roots->session());
  EXPECT_EQ(as_somebody([&] {
              const auto own = ipc::ClientChannel::connect(runtime_, kConnect);
              if (!own) return 1;
              const auto refused = ask(end_request(), id);
              if (refused || refused.error().code != ErrorCode::kPermission) return 2;
              // By its name a program of somebody else is not even seen.
              const auto mine = ask(end_request(), own_program());
              if (!mine || (*mine)["sessions"].size() != 1) return 3;
              if ((*own)->check()) return 4;
              const auto again = ask(end_request(), "nothing");
              return again || again.error().code != ErrorCode::kInvalidValue ? 5 : 0;
            }),
            0);
  EXPECT_TRUE(roots->check());
}

TEST_F(ControlTest, SlatectlEndsASession) {
  start();
  const auto client = connect();
  const std::string id = std::to_string(client->session());
  EXPECT_EQ(slatectl("end 4711"),
            "slatectl: there is no session, process or program 4711 of yours\n[1]");
  EXPECT_EQ(slatectl("end " + id), fmt::format("session {} (uid {}, pid {}, {}): ended\n[0]", id,
                                               getuid(), getpid(), own_program()));
  EXPECT_FALSE(client->check());
}

TEST_F(ControlTest, AProcessIsTheAskersAndAllItsSessionsChange) {
  start();
  const auto first = connect(), second = connect();
  const auto both = ask(set_request(ControlVerb::kSetSession, 2, {}), std::to_string(getpid()));
  ASSERT_TRUE(both) << both.error().message;
  EXPECT_EQ((*both)["sessions"].size(), 2u);
  EXPECT_EQ(session(second->session())["weight"], 2.0);
  if (getuid() != 0) GTEST_SKIP() << "the rest needs root";
  const std::string id = std::to_string(first->session());
  EXPECT_EQ(as_somebody([&] {
              auto own = ipc::ClientChannel::connect(runtime_, kConnect);
              if (!own) return 1;
              const auto changed = ask(set_request(ControlVerb::kSetSession, 0.5, {}), id);
              return changed || changed.error().code != ErrorCode::kPermission ? 2 : 0;
            }),
            0);
  EXPECT_EQ(session(first->session())["weight"], 2.0);
}

TEST_F(ControlTest, TraceAndChangesOfTheProfileAreTheAdministrators) {
  if (getuid() != 0) GTEST_SKIP() << "needs root";
  start();
  ASSERT_TRUE(connect());
  for (const auto verb : {ControlVerb::kTrace, ControlVerb::kProfileSet,
                          ControlVerb::kProfileForget, ControlVerb::kProfileGroup}) {
    EXPECT_EQ(as_somebody([&] {
                ControlRequest request;
                request.verb = verb;
                return static_cast<int>(ask(request).error().code);
              }),
              static_cast<int>(ErrorCode::kPermission));
  }
  EXPECT_EQ(as_somebody([&] {
              ControlRequest request;
              request.verb = ControlVerb::kProfile;
              return ask(request) ? 0 : 1;
            }),
            0);
}

TEST_F(ControlTest, UsersSeeOnlyWhatIsTheirsWhereTheStatusIsPrivate) {
  if (getuid() != 0) GTEST_SKIP() << "needs root";
  Config config;
  config.private_status = true;
  start(config);
  const auto roots = connect();
  (void)session(roots->session());
  EXPECT_EQ(as_somebody([&] {
              const auto own = ipc::ClientChannel::connect(runtime_, kConnect);
              const auto status = ask({});
              if (!own || !status) return 1;
              const json& sessions = (*status)["sessions"];
              const bool one_only = sessions.size() == 1 && sessions[0]["uid"] == kSomebody &&
                                    (*status)["users"].size() == 1;
              if (!one_only || !(*status)["arrangement"].is_null()) return 2;
              if (sessions[0]["waits_for"] != json::array({(*own)->session()})) return 4;
              ControlRequest request;
              request.verb = ControlVerb::kProfile;
              const auto profile = ask(request);
              return profile || profile.error().code != ErrorCode::kPermission ? 3 : 0;
            }),
            0);
  const auto all = ask({});
  ASSERT_TRUE(all);
  EXPECT_EQ((*all)["sessions"][0]["uid"], 0) << "root sees all";
  EXPECT_EQ((*all)["sessions"][0]["waits_for"], json::array({roots->session(), 2}));
}

TEST_F(ControlTest, AUserMayChooseWithinTheAdministratorsLimits) {
  if (getuid() != 0) GTEST_SKIP() << "needs root";
  start();
  EXPECT_EQ(as_somebody([&] {
              auto client =
                  ipc::ClientChannel::connect(runtime_, kConnect, {.weight = 50, .priority = 9});
              if (!client) return 1;
              const std::uint64_t id = (*client)->session();
              const std::string text = std::to_string(id);
              if (session(id)["weight"] != 4.0 || session(id)["priority"] != 0) return 2;
              if (!ask(set_request(ControlVerb::kSetSession, 0.5, -5), text)) return 3;
              if (session(id)["weight"] != 0.5 || session(id)["priority"] != -5) return 4;
              if (ask(set_request(ControlVerb::kSetSession, 4.5, {}), text)) return 5;
              if (ask(set_request(ControlVerb::kSetProgram, {}, 1), "mine")) return 6;
              if (!ask(set_request(ControlVerb::kSetProgram, 3, {}), "mine")) return 7;
              ControlRequest roots = set_request(ControlVerb::kSetProgram, 1, {});
              roots.fields |= ipc::kHasUid;
              roots.uid = 0;
              if (ask(roots, "mine")) return 8;
              return 0;
            }),
            0);
}

}  // namespace
}  // namespace slate::daemon
