// Launches that cannot be resized and do not end: what the policies make of those that come beside
// them.
#include <gtest/gtest.h>

#include "scheduler/forms.h"
#include "scheduler/roster.h"
#include "tests/unit/scheduler/scene.h"

namespace slate::scheduler::test {
namespace {

constexpr double kForEver = 1e12;  // ms

/// A kernel that never ends, of so many of the 1056 blocks that the device holds.
ModelKernel endless(std::uint64_t blocks) {
  ModelKernel made = kernel("MM");
  made.name = "endless";
  made.native_ms = kForEver;
  made.worker_legal = false;
  made.blocks = blocks;
  made.wave = 1056;
  return made;
}

class EndlessTest : public testing::TestWithParam<const char*> {};

TEST_P(EndlessTest, ANewcomerBeginsAtOnceBesideAnEndlessLaunchThatLeavesRoom) {
  const ModelKernel one = endless(1);
  Scene scene(GetParam());
  scene.sim.add({.kernels = {&one}, .depth = 1, .user = 1});
  scene.sim.add({.kernels = {&kernel("BS")}, .begin_ms = 200, .user = 2});
  scene.sim.run_until(400);
  EXPECT_EQ(scene.sim.outcome(1).first_start_ms, 200);
  EXPECT_GT(scene.sim.outcome(1).device_ms, 195);
}

TEST_P(EndlessTest, WhoComesRightBehindAnEndlessLaunchWaitsForItOnlyForAMoment) {
  const ModelKernel one = endless(1);
  Scene scene(GetParam());
  scene.sim.add({.kernels = {&one}, .depth = 1, .user = 1});
  scene.sim.add({.kernels = {&kernel("BS")}, .begin_ms = 1, .user = 2});
  scene.sim.run_until(400);
  EXPECT_LE(scene.sim.outcome(1).first_start_ms, scene.settings.overdue.count());
  EXPECT_GT(scene.sim.outcome(1).device_ms, 340);
}

TEST_P(EndlessTest, SessionsBesideAnEndlessLaunchShareAsTheirWeights) {
  const ModelKernel one = endless(1);
  Scene scene(GetParam());
  scene.sim.add({.kernels = {&one}, .depth = 1, .user = 1});
  scene.sim.add({.kernels = {&kernel("BS")}, .begin_ms = 100, .user = 2});
  scene.sim.add({.kernels = {&kernel("CB")}, .begin_ms = 100, .user = 3});
  scene.sim.run_until(2100);
  EXPECT_GT(scene.sim.outcome(1).ended, 200U);
  EXPECT_GT(scene.sim.outcome(2).ended, 50U);
}

TEST_P(EndlessTest, NothingIsQueuedBehindAnEndlessLaunchThatLeavesNoRoom) {
  const ModelKernel full = endless(1056);
  Scene scene(GetParam());
  scene.sim.add({.kernels = {&full}, .depth = 1, .user = 1});
  scene.sim.add({.kernels = {&kernel("BS")}, .begin_ms = 200, .user = 2});
  scene.sim.run_until(400);
  EXPECT_EQ(scene.sim.outcome(1).started, 0U)
      << "on the device it would wait for the end, whoever ends the session in front";
}

TEST_P(EndlessTest, ALaunchBehindAnEndlessOneDoesNotKeepTheTurn) {
  // The next launch of the same session can never begin.
  const ModelKernel one = endless(1), grid = lengthy(100);
  Scene scene(GetParam());
  scene.sim.add({.kernels = {&one, &grid}, .depth = 4, .user = 1});
  scene.sim.add({.kernels = {&kernel("BS")}, .depth = 1, .gap_ms = 1, .begin_ms = 5, .user = 2});
  scene.sim.run_until(1000);
  EXPECT_GT(scene.sim.outcome(1).ended, 400U);
  EXPECT_LE(scene.sim.outcome(1).longest_wait_ms, 2 * scene.settings.overdue.count());
}

TEST_P(EndlessTest, ALoneSessionsLongLaunchesAreMeasuredAsEver) {
  ModelKernel slow = endless(1);
  slow.name = "slow";
  slow.native_ms = 120;
  Scene scene(GetParam());
  scene.sim.add({.kernels = {&slow}, .depth = 4, .user = 1});
  scene.sim.run_until(1000);
  const auto& alone = scene.profiles.kernel(scene.sim.kernel_id(slow)).alone[0];
  EXPECT_TRUE(alone.known());
  EXPECT_NEAR(alone.ms, 120, 1);
}

TEST_P(EndlessTest, KernelsThatEndSoonStillTakeTurns) {
  Scene scene(GetParam());
  for (const char* name : {"BS", "ST", "TR"}) scene.sim.add({.kernels = {&kernel(name)}});
  scene.sim.run_until(1000);
  double device = 0;
  for (std::size_t i = 0; i < 3; ++i) device += scene.sim.outcome(i).device_ms;
  EXPECT_GT(device, 990);
}

INSTANTIATE_TEST_SUITE_P(All, EndlessTest, testing::Values("timeslice", "adaptive", "table"),
                         [](const auto& test) { return std::string(test.param); });

SessionView fixed_work(double filled) {
  SessionView session;
  session.running.launches = 1;
  session.running.fixed = true;
  session.running.fixed_filled = filled;
  session.running.expected = Milliseconds(2);
  session.running.fixed_since = Time{} + std::chrono::hours(1);
  return session;
}

TEST(LastingWorkTest, LongUnknownAndStuckWorkLasts) {
  const Settings settings;
  SessionView session = fixed_work(1);
  const Time began = session.running.fixed_since, soon = began + std::chrono::milliseconds(1);
  EXPECT_FALSE(has_lasting_work(session, soon, settings));
  EXPECT_TRUE(has_lasting_work(session, began + ticks(settings.overdue), settings));
  session.running.uncertain = true;
  EXPECT_TRUE(has_lasting_work(session, soon, settings));
  session.running.uncertain = false;
  session.running.expected = 2 * settings.long_kernel;
  EXPECT_TRUE(has_lasting_work(session, soon, settings));
  EXPECT_FALSE(has_stuck_work(session, began + ticks(3 * settings.long_kernel), settings));
  session.running.fixed = false;
  EXPECT_FALSE(has_lasting_work(session, soon, settings));
}

TEST(LastingWorkTest, OnlyWorkThatLeavesRoomIsOverdue) {
  const Settings settings;
  EXPECT_EQ(overdue_at(fixed_work(1), settings), kNever);
  const SessionView small = fixed_work(0.5);
  EXPECT_EQ(overdue_at(small, settings), small.running.fixed_since + ticks(settings.overdue));
}

TEST(LastingWorkTest, ResizableWorkBesideALaunchThatStaysCanRetreat) {
  ProfileTable profiles;
  SessionView session = fixed_work(0.1);
  session.running.launches = 2;
  session.running.resizable = true;
  session.running.kernel = profiles.find_or_add({.name = "unknown"});
  session.running.placement = h200().whole();
  EXPECT_TRUE(can_retreat(session));
  EXPECT_TRUE(worth_resizing(session, profiles, {}));
  session.running.placement = {};
  EXPECT_FALSE(retreated(session)) << "the other launch is still there";
  EXPECT_TRUE(on_device(session));
}

}  // namespace
}  // namespace slate::scheduler::test
