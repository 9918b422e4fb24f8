// adaptive: memory of groups, coming and going, priorities, long kernels.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "tests/unit/scheduler/scene.h"

namespace slate::scheduler::test {
namespace {

using Phase = AdaptivePolicy::Phase;

TEST(AdaptiveGroupTest, AKnownGroupStartsAtItsArrangement) {
  Scene scene("adaptive");
  scene.sim.add({.kernels = {&kernel("ST")}, .end_ms = 400});
  scene.sim.add({.kernels = {&kernel("CB")}, .end_ms = 400});
  scene.sim.run_until(600);
  EXPECT_EQ(scene.adaptive().searches(), 1U);
  scene.sim.add({.kernels = {&kernel("CB")}, .begin_ms = 600});
  scene.sim.add({.kernels = {&kernel("ST")}, .begin_ms = 600});
  scene.sim.run_until(610);
  EXPECT_EQ(scene.adaptive().phase(), Phase::kSettled);
  EXPECT_EQ(scene.adaptive().arrangement().sharing, Sharing::kPlaced);
  scene.sim.run_until(1500);
  EXPECT_EQ(scene.adaptive().searches(), 1U);
}

TEST(AdaptiveGroupTest, AStoredArrangementThatNoLongerHoldsIsSearchedAnew) {
  Scene scene("adaptive");
  scene.sim.add({.kernels = {&kernel("ST")}});
  scene.sim.add({.kernels = {&kernel("CB")}});
  // What another device or driver may have left: a bad split with a proud number.
  scene.settle(500);
  std::vector<KernelId> kernels = {scene.sim.kernel_id(kernel("ST")),
                                   scene.sim.kernel_id(kernel("CB"))};
  std::ranges::sort(kernels);
  GroupProfile group = *scene.profiles.group(kernels);
  const GroupProfile good = group;
  group.placements = {{.first = 0, .count = 13}, {.first = 13, .count = 4}};
  if (good.placements[0].count > 8)
    group.placements = {{.first = 0, .count = 4}, {.first = 4, .count = 13}};
  scene.profiles.set_group(group);
  Scene fresh("adaptive");
  fresh.sim.kernel_id(
      *(kernels[0] == scene.sim.kernel_id(kernel("ST")) ? &kernel("ST") : &kernel("CB")));
  fresh.profiles = scene.profiles;
  fresh.sim.add({.kernels = {&kernel("ST")}});
  fresh.sim.add({.kernels = {&kernel("CB")}});
  fresh.sim.run_until(5);
  EXPECT_EQ(fresh.adaptive().searches(), 0U);
  fresh.sim.run_until(500);
  EXPECT_EQ(fresh.adaptive().searches(), 1U);
  EXPECT_LE(fresh.plan_makespan({&kernel("ST"), &kernel("CB")}), 0.67);
}

GroupProfile pinned_split(Scene& scene, std::uint32_t first, std::uint32_t second) {
  GroupProfile group;
  group.kernels = {scene.sim.kernel_id(kernel("ST")), scene.sim.kernel_id(kernel("CB"))};
  group.sharing = Sharing::kPlaced;
  group.forms = {Form::kNative, Form::kNative};
  group.placements = {{.first = 0, .count = first}, {.first = first, .count = second}};
  group.pinned = true;
  return group;
}

TEST(AdaptiveGroupTest, APinnedArrangementIsKeptWhateverItIsLike) {
  Scene scene("adaptive");
  scene.sim.add({.kernels = {&kernel("ST")}});
  scene.sim.add({.kernels = {&kernel("CB")}, .weight = 3});
  scene.profiles.set_group(pinned_split(scene, 15, 2));
  scene.sim.run_until(1000);
  EXPECT_EQ(scene.adaptive().searches(), 0U);
  EXPECT_EQ(scene.adaptive().arrangement().units[0], 15U);
  EXPECT_EQ(scene.adaptive().arrangement_text(scene.machine),
            "session 103 on SMs 0-119 (native), session 106 on SMs 120-131 (native)");
}

TEST(AdaptiveGroupTest, ARememberedQuotaIsGivenToItsMember) {
  Scene scene("adaptive");
  scene.sim.add({.kernels = {&kernel("ST")}});
  scene.sim.add({.kernels = {&kernel("CB")}});
  GroupProfile group = pinned_split(scene, 17, 0);
  group.sharing = Sharing::kTogether;
  group.forms[0] = Form::kWorker;
  group.placements = {{.first = 0, .count = 17, .blocks_per_sm = 3}, {.first = 0, .count = 17}};
  scene.profiles.set_group(group);
  std::uint32_t quota = 0;
  scene.sim.on_start = [&](std::size_t program, const Start& start) {
    if (program == 0) quota = start.placement.blocks_per_sm;
    if (program == 1) {
      EXPECT_EQ(start.placement.blocks_per_sm, 0U);
    }
  };
  scene.sim.run_until(50);
  EXPECT_EQ(quota, 3U);
}

TEST(AdaptiveGroupTest, WhoGoesAheadIsThroughWithWhatItHadBeforeTheOthersGoOn) {
  Scene scene("adaptive");
  scene.sim.add({.kernels = {&kernel("ST")}});
  scene.sim.add({.kernels = {&kernel("CB")}, .begin_ms = 20});
  GroupProfile group = pinned_split(scene, 17, 0);
  group.sharing = Sharing::kTogether;
  group.placements = {{.first = 0, .count = 17, .ahead = true}, {.first = 0, .count = 17}};
  scene.profiles.set_group(group);
  int behind = 0, ahead = 0;
  scene.sim.on_start = [&](std::size_t program, const Start& start) {
    if (scene.adaptive().arrangement().sharing != Sharing::kTogether) return;
    EXPECT_EQ(start.placement.ahead, program == 0);
    (program == 0 ? ahead : behind) += 1;
    if (behind == 1 && program == 1) {
      EXPECT_GT(ahead, 0) << "its work of before has ended";
    }
  };
  scene.sim.run_until(60);
  EXPECT_GT(behind, 1);
  EXPECT_EQ(scene.adaptive().arrangement_text(scene.machine),
            "session 103 on SMs 0-131, ahead (native), session 106 on SMs 0-131 (native)");
}

TEST(AdaptiveGroupTest, PinningAndForgettingTakeEffectAtOnce) {
  Scene scene("adaptive");
  scene.sim.add({.kernels = {&kernel("ST")}});
  scene.sim.add({.kernels = {&kernel("CB")}});
  scene.settle(500);
  const ModelKernel* members[] = {&kernel("ST"), &kernel("CB")};
  const GroupProfile group = pinned_split(scene, 15, 2);
  scene.profiles.set_group(group);
  scene.profiles.edited();
  scene.sim.run_until(scene.sim.now_ms() + 5);
  EXPECT_EQ(scene.adaptive().arrangement().units[0], 15U);
  scene.profiles.forget_group(scene.profiles.ordered(group).kernels);
  scene.sim.run_until(scene.sim.now_ms() + 500);
  EXPECT_EQ(scene.adaptive().searches(), 2U);
  EXPECT_LE(scene.plan_makespan({members[0], members[1]}),
            best_makespan(members, h200(), 0.5) / 0.94);
}

TEST(AdaptiveGroupTest, APartnersIdlenessLendsItsSmsAndItsReturnRestoresThem) {
  Scene scene("adaptive");
  scene.sim.add({.kernels = {&kernel("ST")}});
  scene.sim.add({.kernels = {&kernel("CB")}, .depth = 3, .end_ms = 300});
  scene.sim.add({.kernels = {&kernel("CB")}, .begin_ms = 400});
  scene.sim.run_until(300);
  const Arrangement before = scene.adaptive().arrangement();
  EXPECT_EQ(before.sharing, Sharing::kPlaced);
  Placement last{};
  scene.sim.on_start = [&](std::size_t program, const Start& start) {
    if (program == 0) last = start.placement;
  };
  scene.sim.run_until(399);
  EXPECT_EQ(last, h200().whole());
  scene.sim.run_until(420);
  EXPECT_EQ(scene.adaptive().arrangement(), before);
  EXPECT_EQ(scene.adaptive().searches(), 1U);
}

TEST(AdaptiveGroupTest, ProgramsThatWaitForEachLaunchKeepTheirPlan) {
  Scene scene("adaptive");
  scene.sim.add({.kernels = {&kernel("ST")}, .depth = 1, .gap_ms = 0.03});
  scene.sim.add({.kernels = {&kernel("CB")}, .depth = 1, .gap_ms = 0.03});
  scene.sim.run_until(scene.settle(1000) + 700);
  EXPECT_EQ(scene.adaptive().arrangement().sharing, Sharing::kPlaced);
  const auto before = scene.adaptive().arrangement();
  for (int i = 0; i < 2000; ++i) {
    scene.sim.run_until(scene.sim.now_ms() + 0.37);
    ASSERT_EQ(scene.adaptive().arrangement(), before);
  }
}

TEST(AdaptiveGroupTest, AllTogetherTheyBeginOneAfterTheOther) {
  Scene scene("adaptive");
  scene.sim.add({.kernels = {&kernel("BS")}});
  scene.sim.add({.kernels = {&kernel("BS")}});
  double first[2] = {0, 0};
  scene.sim.on_start = [&](std::size_t program, const Start&) {
    const bool together = scene.adaptive().arrangement().sharing == Sharing::kTogether;
    if (together && first[program] == 0) first[program] = scene.sim.now_ms();
  };
  while (first[0] == 0 || first[1] == 0) {
    ASSERT_LT(scene.sim.now_ms(), 100);
    scene.sim.run_until(scene.sim.now_ms() + 0.01);
  }
  EXPECT_NEAR(std::abs(first[1] - first[0]), kernel("BS").native_ms / 2,
              0.2 * kernel("BS").native_ms);
}

TEST(AdaptiveGroupTest, ProgramsAlikeTryAFewRhythmsAndKeepOne) {
  for (const bool alike : {true, false}) {
    Scene scene("adaptive");
    const ModelKernel& other = kernel(alike ? "TR" : "CB");
    scene.sim.add({.kernels = {&kernel("TR")}});
    scene.sim.add({.kernels = {&other}});
    GroupProfile together;
    for (const ModelKernel* each : {&kernel("TR"), &other}) {
      const KernelId id = scene.sim.kernel_id(*each);
      scene.profiles.kernel(id).alone[static_cast<std::size_t>(Form::kNative)].add(each->native_ms);
      together.kernels.push_back(id);
    }
    std::ranges::sort(together.kernels);
    together.sharing = Sharing::kTogether;
    together.forms = {Form::kNative, Form::kNative};
    together.pinned = true;
    scene.profiles.set_group(std::move(together));
    std::set<std::uint64_t> plans;
    scene.sim.on_start = [&](std::size_t, const Start& start) { plans.insert(start.tag); };
    scene.sim.run_until(500);
    EXPECT_GE(plans.size(), alike ? 3U : 1U);
    EXPECT_LE(plans.size(), alike ? 7U : 2U);
    plans.clear();
    scene.sim.run_until(1000);
    EXPECT_EQ(plans.size(), 1U);
  }
}

TEST(AdaptiveGroupTest, ProgramsAlikeThatRunAsIfAloneAreLeftAsTheyAre) {
  for (const bool as_if_alone : {true, false}) {
    ModelKernel small = kernel("TR");
    small.mix = as_if_alone ? 0.95 : 0.6;
    small.bandwidth = 0.1;
    Scene scene("adaptive");
    scene.sim.add({.kernels = {&small}});
    scene.sim.add({.kernels = {&small}});
    bool placed = false;
    std::set<std::uint64_t> together;
    scene.sim.on_start = [&](std::size_t, const Start& start) {
      const Arrangement& plan = scene.adaptive().arrangement();
      placed |= plan.sharing == Sharing::kPlaced;
      if (plan.sharing == Sharing::kTogether) together.insert(start.tag);
    };
    scene.sim.run_until(500);
    EXPECT_EQ(scene.adaptive().arrangement().sharing, Sharing::kTogether);
    EXPECT_EQ(placed, !as_if_alone);
    EXPECT_EQ(together.size() == 1, as_if_alone);
  }
}

TEST(AdaptiveGroupTest, ProgramsAlikeThatFallOutOfStepBeginAnewNowAndThen) {
  ModelKernel small = kernel("TR");
  small.mix = 0.95;
  small.bandwidth = 0.1;
  Scene scene("adaptive");
  scene.sim.add({.kernels = {&small}});
  scene.sim.add({.kernels = {&small}});
  std::set<std::uint64_t> plans;
  scene.sim.on_start = [&](std::size_t, const Start& start) { plans.insert(start.tag); };
  scene.sim.run_until(500);
  plans.clear();
  scene.sim.run_until(1000);
  EXPECT_EQ(plans.size(), 1U);
  small.mix = 0.85;
  scene.sim.run_until(3000);
  EXPECT_GE(plans.size(), 3U);
  EXPECT_LE(plans.size(), 6U) << "with longer and longer in between";
  EXPECT_EQ(scene.adaptive().searches(), 1U);
}

TEST(AdaptiveGroupTest, BesideIdleProgramsOnlyASampleIsMeasured) {
  Scene scene("adaptive");
  scene.sim.add({.kernels = {&kernel("BS")}});
  scene.sim.add({.kernels = {&kernel("ST")}, .end_ms = 20});
  scene.sim.run_until(60);
  int starts = 0, sampled = 0;
  scene.sim.on_start = [&](std::size_t, const Start& start) {
    ++starts;
    sampled += start.sampled && start.repeats ? 1 : 0;
  };
  scene.sim.run_until(80);
  EXPECT_EQ(scene.adaptive().phase(), AdaptivePolicy::Phase::kSingle);
  EXPECT_GT(starts, 0);
  EXPECT_EQ(sampled, starts);
}

TEST(AdaptiveGroupTest, AnInterruptedSearchGoesOnWhereItWas) {
  Scene scene("adaptive");
  scene.sim.add({.kernels = {&kernel("TR")}});
  // Comes for 15 ms, goes for 15: never long enough for a whole search.
  for (int i = 0; i < 20; ++i) {
    scene.sim.add({.kernels = {&kernel("BS")}, .begin_ms = 10 + i * 30.0, .end_ms = 25 + i * 30.0});
  }
  scene.sim.run_until(600);
  EXPECT_EQ(scene.adaptive().searches(), 1U);
  EXPECT_EQ(scene.profiles.groups().size(), 1U);
}

TEST(AdaptiveGroupTest, AMinorKernelBetweenDoesNotChangeTheGroup) {
  Scene scene("adaptive");
  ModelKernel small = kernel("BS");
  small.name = "small";
  small.native_ms = 0.02;
  scene.sim.add({.kernels = {&kernel("GS"), &small}});
  scene.sim.add({.kernels = {&kernel("CB")}});
  scene.sim.run_until(1500);
  EXPECT_LE(scene.adaptive().searches(),
            2U);  // the first launch of all may have been the small one
  EXPECT_EQ(scene.adaptive().phase(), Phase::kSettled);
  EXPECT_GT(scene.sim.outcome(0).work_ms + scene.sim.outcome(1).work_ms, 1500 * 1.2);
}

TEST(AdaptiveGroupTest, AKernelThatChangesIsMeasuredAgain) {
  // From the middle on the memory-bound one is another: same name, a third of the speed.
  ModelKernel changing = kernel("ST");
  Scene scene("adaptive");
  scene.sim.add({.kernels = {&changing}});
  scene.sim.add({.kernels = {&kernel("CB")}});
  scene.sim.run_until(500);
  EXPECT_EQ(scene.adaptive().searches(), 1U);
  changing.native_ms *= 3;
  changing.scaling = kernel("CB").scaling;
  changing.bandwidth = 0.02;
  scene.sim.run_until(3000);
  EXPECT_GE(scene.adaptive().searches(), 2U);
  EXPECT_LE(scene.adaptive().searches(), 4U);
  EXPECT_EQ(scene.adaptive().phase(), Phase::kSettled);
}

TEST(AdaptivePriorityTest, ALongKernelOfLowerPriorityRetreatsAtOnce) {
  const ModelKernel endless = lengthy(1500);
  Scene scene("adaptive");
  scene.sim.add({.kernels = {&endless}, .launches = 1});
  scene.sim.add({.kernels = {&kernel("ST")}, .begin_ms = 50, .end_ms = 250, .priority = 5});
  scene.sim.run_until(50.01);
  EXPECT_TRUE(scene.sim.placement(0).empty());
  EXPECT_LT(scene.sim.outcome(1).first_start_ms, 50.01);
  const double done = scene.sim.progress(0);
  scene.sim.run_until(240);
  EXPECT_EQ(scene.sim.progress(0), done);
  scene.sim.run_until(300);
  EXPECT_FALSE(scene.sim.placement(0).empty());
  EXPECT_GT(scene.sim.progress(0), done);
}

TEST(AdaptivePriorityTest, NothingNewOfALowerPriorityStartsWhileAHigherOneWaits) {
  Scene scene("adaptive");
  scene.sim.add({.kernels = {&kernel("BS")}});
  scene.sim.add({.kernels = {&kernel("TR")}, .begin_ms = 100, .end_ms = 300, .priority = 1});
  scene.sim.on_start = [&](std::size_t program, const Start&) {
    if (program == 0) {
      EXPECT_FALSE(scene.sim.now_ms() > 100.001 && scene.sim.now_ms() < 300);
    }
  };
  scene.sim.run_until(500);
  EXPECT_GT(scene.sim.outcome(1).ended, 300U);
}

TEST(AdaptivePriorityTest, LongKernelsThatShareTheDeviceMakeRoomOnceAHigherPriorityIsThere) {
  ModelKernel lasting = lengthy(16);
  for (double& speed : lasting.scaling) speed *= 0.9;  // parts of the device gain nothing
  lasting.scaling.back() = 1;
  Scene scene("adaptive");
  scene.sim.add({.kernels = {&lasting}});
  scene.sim.add({.kernels = {&lasting}, .begin_ms = 5});
  scene.sim.run_until(990);
  EXPECT_EQ(scene.adaptive().arrangement().sharing, Sharing::kTogether);
  EXPECT_EQ(scene.adaptive().arrangement().forms[0], Form::kNative);
  scene.sim.add(
      {.kernels = {&kernel("ST")}, .depth = 1, .gap_ms = 40, .begin_ms = 1000, .priority = 5});
  std::vector<double> took;
  double started = 0;
  scene.sim.on_start = [&](std::size_t program, const Start&) {
    if (program == 2) started = scene.sim.now_ms();
  };
  scene.sim.on_end = [&](std::size_t program, const Completion&) {
    if (program == 2) took.push_back(scene.sim.now_ms() - started);
  };
  scene.sim.run_until(3000);
  ASSERT_GT(took.size(), 30U);
  // The first ones have what runs natively beside them; then a search that knows better;
  // from then on the device is theirs at once.
  for (std::size_t i = took.size() / 2; i < took.size(); ++i) EXPECT_LT(took[i], 0.3) << i;
}

TEST(AdaptivePriorityTest, AgeingLetsTheLowestThrough) {
  Settings settings;
  settings.ageing = Milliseconds(300);
  const ModelKernel endless = lengthy(20);
  Scene scene("adaptive", settings);
  scene.sim.add({.kernels = {&kernel("TR")}, .depth = 4});
  scene.sim.add({.kernels = {&kernel("BS")}, .priority = 1});
  scene.sim.add({.kernels = {&endless}, .launches = 1, .priority = -1});
  scene.sim.run_until(8000);
  EXPECT_LT(scene.sim.outcome(0).longest_wait_ms, 400);
  EXPECT_EQ(scene.sim.outcome(2).ended, 1U);
}

TEST(AdaptiveLongTest, ANewcomerNeverWaitsForALongResizableKernel) {
  const ModelKernel endless = lengthy(3000);
  Scene scene("adaptive");
  scene.sim.add({.kernels = {&endless}, .launches = 1});  // 3 s
  scene.sim.add({.kernels = {&kernel("BS")}, .arrivals_ms = 37, .begin_ms = 100});
  scene.sim.run_until(2000);
  EXPECT_LT(scene.sim.outcome(1).longest_wait_ms, 12);
  EXPECT_LT(scene.sim.outcome(1).first_start_ms, 100.2);
}

TEST(AdaptiveLongTest, LongWorkIsTakenOffRarelyForWhoDoesNotWaitForEachLaunch) {
  Scene scene("adaptive");
  const ModelKernel endless = lengthy(3000);
  scene.sim.add({.kernels = {&endless}, .launches = 1});
  scene.sim.add({.kernels = {&kernel("BS")}, .depth = 8});
  GroupProfile turns;
  for (const ModelKernel* each : {&endless, &kernel("BS")}) {
    const KernelId id = scene.sim.kernel_id(*each);
    scene.profiles.kernel(id).alone[static_cast<std::size_t>(Form::kWorker)].add(each->native_ms);
    turns.kernels.push_back(id);
  }
  turns.pinned = true;
  std::ranges::sort(turns.kernels);
  scene.profiles.set_group(std::move(turns));
  scene.sim.run_until(100);
  const std::uint64_t before = scene.sim.resizes();
  scene.sim.run_until(1100);
  EXPECT_EQ(scene.adaptive().arrangement().sharing, Sharing::kAlone);
  EXPECT_LT(scene.sim.resizes() - before, 130U) << "off and on again, for 10 ms each";
  EXPECT_GT(scene.sim.resizes() - before, 60U);
  EXPECT_NEAR(scene.sim.outcome(1).device_ms, 1100 * 0.5, 60);
}

TEST(AdaptiveLongTest, KernelsThatDoNotEndAreSearchedByTheirProgress) {
  Scene scene("adaptive");
  ModelKernel stream = kernel("ST");
  stream.name = "long stream";
  stream.native_ms = 20'000;
  ModelKernel compute = kernel("CB");
  compute.name = "long compute";
  compute.native_ms = 20'000;
  compute.worker = stream.worker = 1.0;
  compute.blocks = stream.blocks = 10'000'000;
  scene.sim.add({.kernels = {&stream}, .launches = 1});
  scene.sim.add({.kernels = {&compute}, .launches = 1});
  const double settled = scene.settle(1000);
  EXPECT_LT(settled, 150);
  EXPECT_EQ(scene.adaptive().arrangement().sharing, Sharing::kPlaced);
  const ModelKernel* members[] = {&stream, &compute};
  EXPECT_LE(scene.plan_makespan({&stream, &compute}), best_makespan(members, h200(), 0.5) / 0.95);
  EXPECT_FALSE(scene.sim.placement(0).overlaps(scene.sim.placement(1)));
  const double before = scene.sim.progress(0) + scene.sim.progress(1);
  scene.sim.run_until(settled + 1000);
  EXPECT_GT(scene.sim.progress(0) + scene.sim.progress(1) - before, 1.5 * 1000 / 20'000);
}

TEST(AdaptiveLongTest, ALongKernelGetsTheDeviceBackWhenItsPartnerGoes) {
  const ModelKernel endless = lengthy(3000);
  Scene scene("adaptive");
  scene.sim.add({.kernels = {&endless}, .launches = 1});
  scene.sim.add({.kernels = {&kernel("ST")}, .depth = 4, .begin_ms = 20, .end_ms = 400});
  scene.sim.run_until(390);
  EXPECT_EQ(scene.adaptive().arrangement().sharing, Sharing::kPlaced);
  EXPECT_LT(scene.sim.placement(0).count, 17U);
  scene.sim.run_until(410);
  EXPECT_EQ(scene.sim.placement(0), h200().whole());
}

TEST(AdaptiveLongTest, OneLongAndOneShortReachNearlyTheBest) {
  Scene scene("adaptive");
  const ModelKernel endless = lengthy(3000);
  scene.sim.add({.kernels = {&endless}, .launches = 1});
  scene.sim.add({.kernels = {&kernel("ST")}});
  scene.settle(500);
  const ModelKernel* members[] = {&endless, &kernel("ST")};
  EXPECT_LE(scene.plan_makespan({&endless, &kernel("ST")}),
            best_makespan(members, h200(), 0.5) / 0.95);
}

TEST(AdaptiveManyTest, MoreSessionsThanAGroupHoldsAllMakeProgress) {
  Scene scene("adaptive");
  for (int i = 0; i < 20; ++i) {
    scene.sim.add({.kernels = {&kernels()[static_cast<std::size_t>(i) % 7]}});
  }
  scene.sim.run_until(10'000);
  for (std::size_t i = 0; i < 20; ++i)
    EXPECT_GT(scene.sim.outcome(i).work_ms, 10'000 / 20.0 * 0.4) << i;
}

TEST(AdaptiveMachineTest, ADeviceWithoutPartsIsSharedInTurnsOrTogether) {
  Settings settings;
  const Machine one{.sm_count = 132, .units = 1, .sms_per_unit = 132};
  Scene scene("adaptive", settings, one);
  scene.sim.add({.kernels = {&kernel("ST")}});
  scene.sim.add({.kernels = {&kernel("CB")}});
  scene.sim.run_until(500);
  EXPECT_NE(scene.adaptive().arrangement().sharing, Sharing::kPlaced);
  EXPECT_GT(scene.sim.outcome(0).work_ms + scene.sim.outcome(1).work_ms, 490);
}

}  // namespace
}  // namespace slate::scheduler::test
