// adaptive: what is not known, cannot be measured or does not stay together for long must not hold
// anybody up.
#include <gtest/gtest.h>

#include <array>

#include "tests/unit/scheduler/scene.h"

namespace slate::scheduler::test {
namespace {

using Phase = AdaptivePolicy::Phase;

/// As known as a kernel that has run alone for a while.
void know(Scene& scene, const ModelKernel& kernel) {
  KernelProfile& profile = scene.profiles.kernel(scene.sim.kernel_id(kernel));
  for (const Form form : {Form::kNative, Form::kWorker}) {
    for (int i = 0; i < 20; ++i)
      profile.alone[static_cast<std::size_t>(form)].add(kernel.native_ms / kernel.speed(form));
  }
}

TEST(AdaptiveUnknownTest, KernelsOfAnyLengthAreMeasuredBesideOthers) {
  // Of so many waves that it begins as workers, which are taken off the device when turns end.
  for (const double ms : {1.0, 2.5, 4.0, 8.0, 9.5, 20.0}) {
    for (const bool waits : {false, true}) {
      ModelKernel unknown = kernel("GS");
      unknown.name = "unknown";
      unknown.native_ms = ms;
      unknown.worker = 0.95;
      Scene scene("adaptive");
      scene.sim.next_after_ms = waits ? 0.06 : 0;
      scene.sim.add({.kernels = {&unknown}, .depth = waits ? 1U : 8U});
      scene.sim.add({.kernels = {&kernel("CB")}, .depth = waits ? 1U : 8U});
      scene.sim.run_until(200);
      EXPECT_GT(scene.adaptive().phase(), Phase::kMeasure) << ms << waits;
    }
  }
}

TEST(AdaptiveUnknownTest, OfAKernelWithAFormOfItsOwnOnlyThatIsMeasured) {
  for (const Form form : {Form::kNative, Form::kWorker}) {
    Scene scene("adaptive");
    scene.sim.add({.kernels = {&kernel("ST")}});
    scene.sim.add({.kernels = {&kernel("CB")}});
    scene.profiles.kernel(scene.sim.kernel_id(kernel("CB"))).form_override = form;
    EXPECT_LT(scene.settle(1000), 500) << form_name(form);
  }
}

TEST(AdaptiveUnknownTest, NobodyWaitsForLongForWorkOfOthersThatCannotBeStopped) {
  ModelKernel stubborn = kernel("MM");
  stubborn.native_ms = 3000;
  stubborn.worker_legal = stubborn.slice_legal = false;
  stubborn.blocks = 1000;
  Scene scene("adaptive");
  for (const char* name : {"BS", "TR"}) know(scene, kernel(name));
  scene.sim.add({.kernels = {&stubborn}, .launches = 1});
  scene.sim.add({.kernels = {&kernel("BS")}, .depth = 4, .begin_ms = 100, .priority = 1});
  scene.sim.add({.kernels = {&kernel("TR")}, .depth = 4, .begin_ms = 100, .priority = 1});
  scene.sim.run_until(1000);
  EXPECT_EQ(scene.sim.outcome(0).ended, 0U);
  scene.sim.run_until(6000);
  EXPECT_LT(scene.sim.outcome(1).longest_wait_ms, 20);
  EXPECT_LT(scene.sim.outcome(2).longest_wait_ms, 20);
}

TEST(AdaptiveMeetingsTest, AStaleArrangementIsReplacedThoughMeetingsAreShort) {
  const ModelKernel &reader = kernel("ST"), &computer = kernel("CB");
  Scene scene("adaptive");
  for (const ModelKernel* each : {&reader, &computer}) know(scene, *each);
  GroupProfile stale;
  stale.kernels = {scene.sim.kernel_id(reader), scene.sim.kernel_id(computer)};
  stale.sharing = Sharing::kPlaced;
  stale.forms = {Form::kNative, Form::kNative};
  stale.placements = {{.first = 0, .count = 13}, {.first = 13, .count = 4}};
  stale.makespan = 0.6;
  scene.profiles.set_group(stale);
  scene.sim.add({.kernels = {&computer}});
  for (double begin = 20; begin < 3000; begin += 70) {
    scene.sim.add({.kernels = {&reader}, .depth = 4, .begin_ms = begin, .end_ms = begin + 60});
  }
  scene.sim.run_until(2000);
  EXPECT_LT(scene.profiles.group(stale.kernels)->placements[0].count, 9U);
  const std::uint32_t searches = scene.adaptive().searches();
  scene.sim.run_until(3000);
  EXPECT_EQ(scene.adaptive().searches(), searches);
}

TEST(AdaptiveMeetingsTest, ACandidateThatNobodyStaysForIsGivenUp) {
  // A request of 0.3 ms each 20 ms meets a kernel of 2.8 ms: no candidate has time to be measured.
  ModelKernel request = kernel("CB");
  request.name = "request";
  request.native_ms = 0.3;
  for (const double warm : {15, 40}) {
    Scene scene("adaptive");
    scene.sim.add({.kernels = {&kernel("CB")}});
    // It has been busier, and was searched for.
    scene.sim.add({.kernels = {&request}, .depth = 4, .begin_ms = 20, .end_ms = 20 + warm});
    scene.sim.add({.kernels = {&request}, .depth = 1, .gap_ms = 20, .begin_ms = 60 + warm});
    scene.sim.run_until(3000);
    const double before = scene.sim.outcome(2).device_ms;
    const std::uint64_t ended = scene.sim.outcome(2).ended;
    scene.sim.run_until(6000);
    const double each = (scene.sim.outcome(2).device_ms - before) /
                        static_cast<double>(scene.sim.outcome(2).ended - ended);
    EXPECT_LT(each, 0.75) << warm;  // together it takes 0.6
  }
}

TEST(AdaptiveMeetingsTest, ACardThatSlowsDownDoesNotMakeAnArrangementABadOne) {
  // As one that draws too much power does after a while: all is slower, and turns would be, too.
  Scene scene("adaptive");
  scene.sim.jitter = 0.01;
  for (int i = 0; i < 2; ++i) scene.sim.add({.kernels = {&kernel("RG")}});
  const auto work = [&] { return scene.sim.outcome(0).work_ms + scene.sim.outcome(1).work_ms; };
  scene.sim.run_until(300);
  const double begun = work();
  scene.sim.run_until(450);
  const double before = (work() - begun) / 150;
  scene.sim.clock = 0.76;
  const double slowed = work();
  scene.sim.run_until(850);
  EXPECT_GT((work() - slowed) / 400, before * scene.sim.clock * 0.97);
}

TEST(AdaptiveManyTest, ALongKernelGetsNoMoreThanItsShare) {
  // Its end, by which it would be known what it had, is far away.
  ModelKernel lasting = kernel("ST");
  lasting.name = "lasting";
  lasting.native_ms = 3000;
  lasting.worker = 1;
  lasting.blocks = 10'000'000;
  Scene scene("adaptive");
  scene.sim.add({.kernels = {&lasting}, .launches = 1});
  for (int i = 1; i < 12; ++i) scene.sim.add({.kernels = {&kernel("CB")}, .depth = 4});
  scene.sim.run_until(10'000);
  const double share = scene.sim.progress(0) * lasting.native_ms / 10'000;
  EXPECT_GT(share, 0.5 / 12);
  EXPECT_LT(share, 2.0 / 12);
}

TEST(AdaptiveManyTest, WhoHadALaunchThatNobodyCouldStopDoesNotWaitForAllOthersToHaveAsMuch) {
  ModelKernel stubborn = kernel("ST"), brief = kernel("ST");
  stubborn.name = "stubborn";
  stubborn.native_ms = 3000;
  stubborn.worker_legal = stubborn.slice_legal = false;
  brief.name = "brief";
  std::vector<const ModelKernel*> kernels(2000, &brief);
  kernels.front() = &stubborn;
  Scene scene("adaptive");
  scene.sim.add({.kernels = kernels, .depth = 4, .launches = kernels.size()});
  for (int i = 1; i < 16; ++i) scene.sim.add({.kernels = {&kernel("CB")}, .depth = 4});
  while (scene.sim.outcome(0).ended == 0) scene.sim.run_until(scene.sim.now_ms() + 100);
  scene.sim.run_until(scene.sim.now_ms() + 6000);
  EXPECT_GT(scene.sim.outcome(0).ended, 100U);
}

TEST(AdaptiveManyTest, MembersAlikeChangePlacesAgainAndAgain) {
  // 17 units: one of the two has always more.
  ModelKernel saturating = kernel("CB");
  saturating.name = "saturating";
  saturating.native_ms = 0.5;
  saturating.scaling = {.2, .35, .5, .6, .70, .79, .87, .94, 1};
  saturating.worker = 0.9;
  Scene scene("adaptive");
  scene.sim.add({.kernels = {&saturating}});
  scene.sim.add({.kernels = {&saturating}});
  scene.settle(1000);
  ASSERT_EQ(scene.adaptive().arrangement().sharing, Sharing::kPlaced);
  scene.sim.run_until(2000);
  const std::array before = {scene.sim.outcome(0).work_ms, scene.sim.outcome(1).work_ms};
  scene.sim.run_until(4000);
  const double first = scene.sim.outcome(0).work_ms - before[0];
  const double second = scene.sim.outcome(1).work_ms - before[1];
  EXPECT_NEAR(first / second, 1, 0.02);
}

TEST(PriorityHoldTest, WhoIsKeptAwayForLongerThanSomebodyLingersStartsWhenThatEnds) {
  for (const char* policy : {"timeslice", "table", "adaptive"}) {
    Settings settings;
    settings.priority_hold = Milliseconds(5);
    Scene scene(policy, settings);
    scene.sim.add({.kernels = {&kernel("BS")}, .launches = 5, .begin_ms = 10.5});
    scene.sim.add({.kernels = {&kernel("BS")}, .launches = 1, .begin_ms = 10, .priority = 1});
    scene.sim.run_until(100);
    EXPECT_EQ(scene.sim.outcome(0).ended, 5U) << policy;
  }
}

}  // namespace
}  // namespace slate::scheduler::test
