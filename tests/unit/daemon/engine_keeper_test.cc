#include "daemon/supervisor/engine_keeper.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>

#include <set>

namespace slate::daemon {
namespace {

class EngineKeeperTest : public testing::Test {
 protected:
  ~EngineKeeperTest() override {
    if (keeper_) keeper_->kill_all();
  }

  /// Engines are never asked whether they live.
  static Config with(SpareChoice spare) {
    Config config;
    config.spare_engine = spare;
    config.engine_timeout_seconds = 0;
    return config;
  }
  EngineKeeper& keep(const Config& config) {
    const EngineKeeper::Events events{
        .ready =
            [this](EngineProcess& engine) {
              ++ready_;
              if (device_is_full_) engine.free_memory = 0;
            },
        .message = [](EngineProcess&, const LinkMessage&) {},
        .died = [this](const EngineProcess&, const Error&) { ++died_; },
        .is_in_use = [this](std::uint64_t serial) { return used_.contains(serial); }};
    return keeper_.emplace(FAKE_ENGINE_PATH, config, serials_, events);
  }
  /// Serves until `wanted` holds; the test's own time limit is the only one.
  template <typename Wanted>
  void serve_until(Wanted wanted) {
    keeper_->service();
    while (!wanted()) {
      PollSet polls;
      keeper_->add_to(polls);
      polls.sleep();
      keeper_->service();
    }
  }
  /// Waits until the process has ended, which the keeper has not seen then.
  static void kill_and_wait(pid_t engine) {
    ASSERT_EQ(::kill(engine, SIGKILL), 0);
    siginfo_t end{};
    ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(engine), &end, WEXITED | WNOWAIT), 0);
  }

  std::uint64_t serials_ = 0;
  std::set<std::uint64_t> used_;  // serial numbers of the engines that have sessions
  bool device_is_full_ = false;
  int ready_ = 0, died_ = 0;
  std::optional<EngineKeeper> keeper_;
};

TEST_F(EngineKeeperTest, AnEngineThatEndsAsSoonAsItIsReadyHasHadSessions) {
  EngineKeeper& keeper = keep(with(SpareChoice::kNever));
  keeper.service();
  PollSet polls;
  keeper.add_to(polls);
  polls.sleep();  // until it says that it is ready
  kill_and_wait(keeper.pid());
  keeper.service();
  EXPECT_EQ(ready_, 1);
  EXPECT_EQ(died_, 1);
  EXPECT_EQ(keeper.restarts(), 1u);
}

TEST_F(EngineKeeperTest, ASpareEngineThatNobodyAskedForGivesItsMemoryBack) {
  EngineKeeper& keeper = keep(with(SpareChoice::kAuto));
  EXPECT_EQ(keeper.spare_bytes(), 0u);
  serve_until([&] { return !keeper.spares().empty(); });
  EXPECT_EQ(keeper.spare_bytes(), 1u << 16) << "as it has said";
  EXPECT_TRUE(keeper.give_up_spares());
  EXPECT_TRUE(keeper.spares().empty());
  EXPECT_EQ(keeper.spare_bytes(), 0u);
  EXPECT_TRUE(keeper.has_leaving());
  EXPECT_FALSE(keeper.give_up_spares());
  serve_until([&] { return !keeper.has_leaving(); });
  keeper.service();
  PollSet polls;
  keeper.add_to(polls);
  EXPECT_GT(polls.time_left(), std::chrono::seconds(30)) << "no other one starts for a while";
  EXPECT_NE(keeper.active(), nullptr);
  EXPECT_EQ(died_, 0);
}

TEST_F(EngineKeeperTest, ASpareEngineThatIsWantedAlwaysStays) {
  EngineKeeper& keeper = keep(with(SpareChoice::kAlways));
  serve_until([&] { return !keeper.spares().empty(); });
  EXPECT_FALSE(keeper.give_up_spares());
  EXPECT_EQ(keeper.spares().size(), 1u);
}

TEST_F(EngineKeeperTest, AfterALossThereAreTwoSpareEngines) {
  EngineKeeper& keeper = keep(with(SpareChoice::kAuto));
  serve_until([&] { return !keeper.spares().empty(); });
  const pid_t first = keeper.spares().front();
  kill_and_wait(keeper.pid());
  serve_until([&] { return keeper.spares().size() == 2; });
  EXPECT_EQ(keeper.pid(), first);
  EXPECT_EQ(keeper.spare_bytes(), 2u << 16);
  const std::vector<pid_t> spares = keeper.spares();
  kill_and_wait(keeper.pid());
  keeper.service();
  EXPECT_EQ(keeper.pid(), spares.front()) << "without waiting";
  EXPECT_EQ(keeper.spares(), std::vector{spares.back()});
  EXPECT_EQ(ready_, 3);
  EXPECT_TRUE(keeper.give_up_spares());
  EXPECT_TRUE(keeper.spares().empty());
}

TEST_F(EngineKeeperTest, WithoutRoomForTwoSpareEnginesThereIsOne) {
  EngineKeeper& keeper = keep(with(SpareChoice::kAlways));
  serve_until([&] { return !keeper.spares().empty(); });
  device_is_full_ = true;
  kill_and_wait(keeper.pid());
  serve_until([&] { return keeper.restarts() == 1 && !keeper.spares().empty(); });
  PollSet polls;
  keeper.add_to(polls);
  EXPECT_GT(polls.time_left(), std::chrono::seconds(30)) << "no other one starts";
  EXPECT_EQ(keeper.spares().size(), 1u);
}

TEST_F(EngineKeeperTest, ARenewedEngineStaysUntilItHasNoSessions) {
  EngineKeeper& keeper = keep(with(SpareChoice::kNever));
  serve_until([&] { return keeper.active() != nullptr; });
  const pid_t first = keeper.pid();
  const std::uint64_t old = keeper.active()->serial;
  used_ = {old};
  keeper.renew(FAKE_ENGINE_PATH, with(SpareChoice::kNever));
  EXPECT_FALSE(keeper.is_renewed());
  serve_until([&] { return keeper.is_renewed(); });
  EXPECT_NE(keeper.pid(), first);
  ASSERT_NE(keeper.find(old), nullptr);
  EXPECT_EQ(keeper.find(old)->pid(), first);
  used_.clear();
  serve_until([&] { return keeper.find(old) == nullptr; });
  EXPECT_EQ(ready_, 2);
  EXPECT_EQ(died_, 0);
  EXPECT_EQ(keeper.restarts(), 0u);
}

TEST_F(EngineKeeperTest, ASpareEngineRefreshesAtOnce) {
  EngineKeeper& keeper = keep(with(SpareChoice::kAlways));
  serve_until([&] { return !keeper.spares().empty(); });
  const pid_t first = keeper.pid(), spare = keeper.spares().front();
  EXPECT_TRUE(keeper.refresh());
  keeper.service();
  EXPECT_EQ(keeper.pid(), spare);
  serve_until([&] { return !keeper.spares().empty() && !keeper.has_leaving(); });
  EXPECT_NE(keeper.spares().front(), first);
  EXPECT_EQ(died_, 0);
}

TEST_F(EngineKeeperTest, SomeOlderEnginesHaveSessionsAndNoMore) {
  EngineKeeper& keeper = keep(with(SpareChoice::kAlways));
  for (std::size_t older = 0; older < EngineKeeper::kMostOlder; ++older) {
    serve_until([&] { return !keeper.spares().empty(); });
    used_.insert(keeper.active()->serial);
    EXPECT_TRUE(keeper.refresh());
    serve_until([&] { return !keeper.renews(); });
  }
  const pid_t last = keeper.pid();
  EXPECT_FALSE(keeper.refresh());
  EXPECT_FALSE(keeper.renews());
  used_.erase(used_.begin());
  serve_until([&] { return keeper.refresh(); });
  serve_until([&] { return keeper.pid() != last; });
  used_.clear();
}

TEST_F(EngineKeeperTest, ARenewalThatFailsChangesNothing) {
  EngineKeeper& keeper = keep(with(SpareChoice::kNever));
  serve_until([&] { return keeper.active() != nullptr; });
  const pid_t first = keeper.pid();
  keeper.renew("/bin/false", with(SpareChoice::kNever));
  serve_until([&] { return !keeper.renews(); });
  EXPECT_FALSE(keeper.is_renewed());
  EXPECT_EQ(keeper.pid(), first);
  EXPECT_EQ(died_, 0);
}

}  // namespace
}  // namespace slate::daemon
