// fifo and timeslice: everything at once, and everything in turn.
#include <gtest/gtest.h>

#include <map>

#include "tests/unit/scheduler/scene.h"

namespace slate::scheduler::test {
namespace {

TEST(PoliciesTest, AnUnknownNameIsAnErrorThatListsTheNames) {
  ProfileTable profiles;
  const auto made = make_policy("lottery", {}, h200(), profiles);
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code, ErrorCode::kInvalidValue);
  for (const std::string_view name : policy_names()) {
    EXPECT_NE(made.error().message.find(name), std::string::npos);
    EXPECT_EQ(make_policy(name, {}, h200(), profiles).value()->name(), name);
  }
}

TEST(FifoTest, EveryLaunchStartsWhenItComes) {
  Scene scene("fifo");
  for (const ModelKernel& k : kernels()) scene.sim.add({.kernels = {&k}, .arrivals_ms = 40});
  scene.sim.on_start = [&](std::size_t, const Start& start) {
    EXPECT_EQ(start.placement, h200().whole());
    EXPECT_FALSE(start.alone);
  };
  scene.sim.run_until(2000);
  for (std::size_t i = 0; i < kernels().size(); ++i) {
    EXPECT_GT(scene.sim.outcome(i).started, 20U);
    EXPECT_EQ(scene.sim.outcome(i).longest_wait_ms, 0);
  }
}

TEST(FifoTest, TheQuickerFormIsUsedOnceItIsKnown) {
  Scene scene("fifo");
  scene.sim.add({.kernels = {&kernel("GS")}, .depth = 2});
  scene.sim.add({.kernels = {&kernel("BS")}, .depth = 2, .begin_ms = 100});
  Form last = Form::kNative;
  scene.sim.on_start = [&](std::size_t program, const Start& start) {
    if (program == 0) last = start.form;
  };
  scene.sim.run_until(50);
  EXPECT_EQ(last, Form::kWorker);
  scene.sim.run_until(200);
  EXPECT_EQ(last, Form::kWorker);
  // Times beside another kernel are not times alone.
  const auto& alone = scene.profiles.kernel(scene.sim.kernel_id(kernel("GS"))).alone;
  EXPECT_NEAR(alone[1].ms, 2.53 / 2, 0.02);
}

/// Device time at once of more than one session never happens.
void expect_exclusive(Simulator& sim) {
  auto running = std::make_shared<std::map<std::size_t, double>>();
  sim.on_end = [&sim, running](std::size_t program, const Completion& completion) {
    if (completion.resized) return;
    const double ended = sim.now_ms(), began = ended - completion.device_time.count();
    for (const auto& [other, end] : *running) {
      if (other != program) {
        EXPECT_LE(end, began + 1e-6);
      }
    }
    (*running)[program] = ended;
  };
}

TEST(TimesliceTest, OneSessionAtATimeHasTheDevice) {
  Scene scene("timeslice");
  for (const char* name : {"BS", "ST", "TR", "CB"}) scene.sim.add({.kernels = {&kernel(name)}});
  expect_exclusive(scene.sim);
  scene.sim.run_until(500);
  for (std::size_t i = 0; i < 4; ++i) EXPECT_GT(scene.sim.outcome(i).ended, 10U);
}

TEST(TimesliceTest, TurnsCostNoIdleTime) {
  Scene scene("timeslice");
  for (const char* name : {"BS", "ST", "TR"}) scene.sim.add({.kernels = {&kernel(name)}});
  scene.sim.run_until(1000);
  double device = 0;
  for (std::size_t i = 0; i < 3; ++i) device += scene.sim.outcome(i).device_ms;
  EXPECT_GT(device, 998);
}

TEST(TimesliceTest, SharesAreAsTheWeights) {
  Settings settings;
  for (const double weight : {2.0, 3.0, 5.0}) {
    Scene scene("timeslice", settings);
    scene.sim.add({.kernels = {&kernel("BS")}});
    scene.sim.add({.kernels = {&kernel("CB")}, .weight = weight});
    scene.sim.run_until(2000);
    EXPECT_NEAR(scene.sim.outcome(1).device_ms / scene.sim.outcome(0).device_ms, weight,
                0.05 * weight);
  }
}

/// One session of user 1, and `flood` of user 2 with weights that he gave them.
void add_flood(Scene& scene, int flood, double weight) {
  scene.sim.add({.kernels = {&kernel("BS")}, .user = 1});
  for (int i = 0; i < flood; ++i)
    scene.sim.add({.kernels = {&kernel("CB")}, .weight = weight, .user = 2});
}

TEST(TimesliceTest, SharesGoToUsersFirst) {
  for (const double weight : {1.0, 4.0}) {
    Scene scene("timeslice");
    add_flood(scene, 8, weight);
    scene.sim.run_until(4000);
    double others = 0;
    for (std::size_t i = 1; i <= 8; ++i) others += scene.sim.outcome(i).device_ms;
    EXPECT_NEAR(scene.sim.outcome(0).device_ms / others, 1, 0.1) << weight;
    EXPECT_NEAR(scene.sim.outcome(1).device_ms, others / 8, others / 80) << weight;
  }
}

TEST(TimesliceTest, UsersMayHaveWeights) {
  Scene scene("timeslice");
  scene.sim.add({.kernels = {&kernel("BS")}, .weight = 0.5, .user = 1, .user_weight = 3});
  for (int i = 0; i < 2; ++i) scene.sim.add({.kernels = {&kernel("CB")}, .user = 2});
  scene.sim.run_until(4000);
  const double others = scene.sim.outcome(1).device_ms + scene.sim.outcome(2).device_ms;
  EXPECT_NEAR(scene.sim.outcome(0).device_ms / others, 3, 0.3);
}

TEST(TimesliceTest, AUsersIdleSessionsTakeNothingFromHisOthers) {
  Scene scene("timeslice");
  add_flood(scene, 1, 1);
  for (int i = 0; i < 7; ++i) scene.sim.add({.kernels = {&kernel("CB")}, .launches = 1, .user = 2});
  scene.sim.run_until(4000);
  EXPECT_NEAR(scene.sim.outcome(0).device_ms / scene.sim.outcome(1).device_ms, 1, 0.1);
}

TEST(TimesliceTest, ATurnWaitsForTheHoldersNextLaunchToBeBrought) {
  // Kernels so long that one is queued at a time, of programs that always have more.
  Scene scene("timeslice");
  scene.sim.next_after_ms = 0.06;
  scene.sim.add({.kernels = {&kernel("CB")}});
  scene.sim.add({.kernels = {&kernel("CB")}, .weight = 3});
  scene.sim.run_until(2000);
  const double all = scene.sim.outcome(0).device_ms + scene.sim.outcome(1).device_ms;
  EXPECT_NEAR(scene.sim.outcome(1).device_ms / scene.sim.outcome(0).device_ms, 3, 0.15);
  EXPECT_GT(all, 1990);
}

TEST(TimesliceTest, KernelsLongerThanTheQuantumPayItBack) {
  Settings settings;
  ModelKernel native = kernel("MM");
  native.worker_legal = false;
  Scene scene("timeslice", settings);
  scene.sim.add({.kernels = {&native}});
  scene.sim.add({.kernels = {&kernel("BS")}});
  scene.sim.run_until(3000);
  EXPECT_NEAR(scene.sim.outcome(0).device_ms / scene.sim.outcome(1).device_ms, 1, 0.05);
}

TEST(TimesliceTest, ASessionWithNothingWaitingPassesItsTurnOn) {
  Scene scene("timeslice");
  // Waits for each launch and thinks for 0.5 ms: its turn must not stop the other.
  scene.sim.add({.kernels = {&kernel("ST")}, .depth = 1, .gap_ms = 0.5});
  scene.sim.add({.kernels = {&kernel("TR")}});
  scene.sim.run_until(1000);
  EXPECT_GT(scene.sim.outcome(0).device_ms + scene.sim.outcome(1).device_ms, 990);
  EXPECT_GT(scene.sim.outcome(0).ended, 200U);
}

TEST(TimesliceTest, LongResizableWorkHasTheConfiguredTurns) {
  const auto resizes_with = [](double quantum_ms) {
    Settings settings;
    settings.quantum = Milliseconds(quantum_ms);
    Scene scene("timeslice", settings);
    const ModelKernel endless = lengthy(300);
    scene.sim.add({.kernels = {&endless}, .launches = 1});
    scene.sim.add({.kernels = {&endless}, .launches = 1});
    scene.sim.run_until(400);
    return scene.sim.resizes();
  };
  EXPECT_GT(resizes_with(5), 3 * resizes_with(20));
}

TEST(TimesliceTest, LongResizableWorkIsTakenOffAndPutBack) {
  Scene scene("timeslice");
  const ModelKernel endless = lengthy(300);
  scene.sim.add({.kernels = {&endless}, .launches = 1});
  scene.sim.add({.kernels = {&endless}, .launches = 1});
  scene.sim.run_until(100);
  EXPECT_NEAR(scene.sim.progress(0), scene.sim.progress(1), 0.03);
  EXPECT_GT(scene.sim.resizes(), 20U);
  scene.sim.drain(700);
  EXPECT_EQ(scene.sim.outcome(0).ended + scene.sim.outcome(1).ended, 2U);
  EXPECT_LT(scene.sim.now_ms(), 620);  // and the resizes
}

ModelKernel unresizable(double ms) {
  ModelKernel made = lengthy(ms);
  made.worker_legal = false;
  made.slice_legal = true;
  return made;
}

TEST(TimesliceTest, LongWorkThatCannotBeResizedTakesTurnsInSlices) {
  Scene scene("timeslice");
  const ModelKernel endless = unresizable(300);
  scene.sim.add({.kernels = {&endless}, .launches = 2});
  scene.sim.add({.kernels = {&kernel("BS")}, .end_ms = 500});
  scene.sim.run_until(500);
  EXPECT_LT(scene.sim.outcome(1).longest_wait_ms, 15);
  EXPECT_NEAR(scene.sim.outcome(0).device_ms / scene.sim.outcome(1).device_ms, 1, 0.1);
  scene.sim.drain(1500);
  EXPECT_EQ(scene.sim.outcome(0).ended, 2U);
  EXPECT_NEAR(scene.sim.outcome(0).work_ms, 600, 1);
  EXPECT_NEAR(scene.profiles.kernel(scene.sim.kernel_id(endless)).best_alone().ms, 300, 6);
}

TEST(TimesliceTest, AHigherPriorityWaitsForTwoSlicesAtMost) {
  Scene scene("timeslice");
  const ModelKernel endless = unresizable(1000);
  scene.sim.add({.kernels = {&endless}, .launches = 2});
  scene.sim.add({.kernels = {&kernel("BS")}, .arrivals_ms = 20, .begin_ms = 1100, .priority = 1});
  double longest = 0;
  scene.sim.on_end = [&](std::size_t program, const Completion& completion) {
    if (program == 1) longest = std::max(longest, completion.device_time.count());
  };
  scene.sim.run_until(1900);
  EXPECT_GT(scene.sim.outcome(1).ended, 20U);
  EXPECT_LT(scene.sim.outcome(1).longest_wait_ms + longest, 2 * 2 + 1);
}

TEST(TimesliceTest, SlicesLeaveNoGaps) {
  Scene scene("timeslice");
  const ModelKernel endless = unresizable(400);
  scene.sim.add({.kernels = {&endless}, .launches = 4});
  scene.sim.drain(5000);
  EXPECT_NEAR(scene.sim.now_ms(), 1600, 2);
}

TEST(TimesliceTest, HigherPrioritiesGoStrictlyFirst) {
  Scene scene("timeslice");
  scene.sim.add({.kernels = {&kernel("TR")}});
  scene.sim.add({.kernels = {&kernel("BS")}, .begin_ms = 100, .end_ms = 400, .priority = 1});
  scene.sim.run_until(110);
  const auto low = scene.sim.outcome(0).started;
  scene.sim.run_until(390);
  EXPECT_EQ(scene.sim.outcome(0).started, low);
  scene.sim.run_until(600);
  EXPECT_GT(scene.sim.outcome(0).started, low + 100);
}

TEST(TimesliceTest, AHigherPriorityPreemptsALongKernelAtOnce) {
  Scene scene("timeslice");
  const ModelKernel endless = lengthy(1500);
  scene.sim.add({.kernels = {&endless}, .launches = 1});
  scene.sim.add({.kernels = {&kernel("BS")}, .arrivals_ms = 20, .begin_ms = 50, .priority = 1});
  double longest = 0;
  scene.sim.on_end = [&](std::size_t program, const Completion& completion) {
    if (program == 1) longest = std::max(longest, completion.device_time.count());
  };
  scene.sim.run_until(1000);
  EXPECT_LT(scene.sim.outcome(1).longest_wait_ms, 1.0);
  EXPECT_LT(longest, 0.25);
  EXPECT_GT(scene.sim.progress(0), 0.55);
}

/// A session that launches, as the roster sees it.
struct OneSession {
  KernelId kernel(const char* name, double ms) {
    const KernelId id = profiles.find_or_add({.name = name});
    profiles.kernel(id).alone[0].add(ms);
    return id;
  }
  View at(int ms) {
    return {.now = Time{} + std::chrono::milliseconds(ms),
            .machine = machine,
            .sessions = {&session, 1}};
  }
  void launches(KernelId id, int ms) {
    session.id = 1;
    session.waiting = WaitingLaunch{.kernel = id, .blocks = 1, .since = at(ms).now};
    roster.update(at(ms));
  }
  void pauses(int from_ms, int to_ms) {
    session.waiting.reset();
    session.idle_since = at(from_ms).now;
    roster.update(at(to_ms));
  }

  Settings settings;
  ProfileTable profiles;
  Roster roster{settings, profiles};
  Machine machine = h200();
  SessionView session;
};

TEST(TurnsTest, LongLaunchesOfFreeStreamsAreNotHeldBack) {
  OneSession one;
  const KernelId slow = one.kernel("slow", 380);
  Turns turns(one.settings, one.profiles);
  const auto starts = [&](bool free) {
    one.launches(slow, 0);
    one.session.waiting->wave = 2112;
    one.session.waiting->stream_is_free = free;
    one.session.running = {.launches = 3,
                           .expected = Milliseconds(1140),
                           .filled = 3.0 / 2112,
                           .kernel = slow,
                           .placement = one.machine.whole()};
    Decisions decisions;
    turns.decide(one.at(0), one.roster, one.roster.contenders(), {}, decisions);
    return decisions.start.size();
  };
  EXPECT_EQ(starts(false), 0u);
  EXPECT_EQ(starts(true), 1u);
}

TEST(TurnsTest, LaunchesOfSeveralKernelsAreChargedAsWhatAllOfThemWereExpectedToTake) {
  OneSession one;
  const KernelId quick = one.kernel("quick", 0.01);
  Turns turns(one.settings, one.profiles);
  one.launches(quick, 0);
  Decisions decisions;
  turns.decide(one.at(0), one.roster, one.roster.contenders(), {}, decisions);
  const double charged = one.roster[0].received;
  Completion completion{.session = 1,
                        .kernel = quick,
                        .placement = {},
                        .launches = 10,
                        .device_time = Milliseconds(0.3),
                        .alone = Milliseconds(0.2),
                        .mixed = true};
  turns.finished(one.roster, completion);
  EXPECT_NEAR(one.roster[0].received, charged + 10 * 0.1, 1e-9);
  completion.mixed = false;
  turns.finished(one.roster, completion);
  EXPECT_NEAR(one.roster[0].received, charged + 10 * 0.1 + 10 * 0.29, 1e-9);
}

TEST(RosterTest, OfLaunchesOfSeveralKernelsTheOneWithMostTimeCounts) {
  OneSession one;
  const KernelId quick = one.kernel("quick", 0.2), slow = one.kernel("slow", 0.6);
  one.launches(quick, 0);
  EXPECT_EQ(one.roster[0].kernel, quick);
  // However many batches begin with the quick one.
  for (int i = 0; i < 50; ++i) {
    one.roster.finished({.session = 1,
                         .kernel = quick,
                         .main = slow,
                         .placement = {},
                         .launches = 4,
                         .alone = Milliseconds(0.4),
                         .mixed = true});
    EXPECT_EQ(one.roster[0].kernel, slow);
  }
  // Nor when the program comes back with it after a pause.
  one.pauses(50, 100);
  EXPECT_FALSE(one.roster[0].active);
  one.launches(quick, 200);
  EXPECT_EQ(one.roster[0].kernel, slow);
  // But with one that it did not have.
  one.pauses(200, 300);
  const KernelId other = one.kernel("other", 1);
  one.launches(other, 400);
  EXPECT_EQ(one.roster[0].kernel, other);
}

TEST(TimesliceTest, AgeingLetsTheLowestThrough) {
  Settings settings;
  settings.ageing = Milliseconds(200);
  Scene scene("timeslice", settings);
  scene.sim.add({.kernels = {&kernel("TR")}, .depth = 4});
  scene.sim.add({.kernels = {&kernel("BS")}, .priority = 1});
  scene.sim.run_until(5000);
  EXPECT_LT(scene.sim.outcome(0).longest_wait_ms, 230);
  EXPECT_GT(scene.sim.outcome(0).ended, 20U);
  EXPECT_GT(scene.sim.outcome(1).device_ms, 4700);
}

TEST(TimesliceTest, AloneASessionQueuesDeeper) {
  Scene scene("timeslice");
  scene.sim.add({.kernels = {&kernel("TR")}});
  scene.sim.run_until(100);
  const std::uint64_t queued = scene.sim.outcome(0).started - scene.sim.outcome(0).ended;
  EXPECT_GE(queued, 12U);  // 8 ms of 0.6
  EXPECT_LE(queued, 15U);
  scene.sim.add({.kernels = {&kernel("TR")}});
  scene.sim.run_until(200);
  EXPECT_LE(scene.sim.outcome(0).started - scene.sim.outcome(0).ended, 5U);
}

}  // namespace
}  // namespace slate::scheduler::test
