#include "daemon/supervisor/engine_keeper.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>

namespace slate::daemon {
namespace {

TEST(EngineKeeperTest, AnEngineThatEndsAsSoonAsItIsReadyHasHadSessions) {
  int ready = 0, died = 0;
  EngineKeeper keeper(FAKE_ENGINE_PATH, Config{},
                      {.ready = [&] { ++ready; },
                       .message = [](const LinkMessage&) {},
                       .died = [&](const Error&, std::uint64_t) { ++died; }});
  keeper.service();
  PollSet polls;
  keeper.add_to(polls);
  polls.sleep();  // until it says that it is ready
  const pid_t engine = keeper.pid();
  ASSERT_EQ(::kill(engine, SIGKILL), 0);
  siginfo_t end{};
  ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(engine), &end, WEXITED | WNOWAIT), 0);
  keeper.service();
  EXPECT_EQ(ready, 1);
  EXPECT_EQ(died, 1);
  EXPECT_EQ(keeper.restarts(), 1u);
  keeper.kill_all();
}

}  // namespace
}  // namespace slate::daemon
