// adaptive against the model: what it settles on, how soon, and what the search costs.
#include <gtest/gtest.h>

#include <random>

#include "tests/unit/scheduler/scene.h"

namespace slate::scheduler::test {
namespace {

using Pair = std::tuple<int, int>;
using Phase = AdaptivePolicy::Phase;

class AdaptivePairTest : public testing::TestWithParam<Pair> {
 protected:
  const ModelKernel& a() const {
    return kernels()[static_cast<std::size_t>(std::get<0>(GetParam()))];
  }
  const ModelKernel& b() const {
    return kernels()[static_cast<std::size_t>(std::get<1>(GetParam()))];
  }
};

TEST_P(AdaptivePairTest, ReachesNearlyTheBestArrangementSoon) {
  Scene scene("adaptive");
  scene.sim.jitter = 0.01;
  scene.sim.add({.kernels = {&a()}});
  scene.sim.add({.kernels = {&b()}});
  const ModelKernel* members[] = {&a(), &b()};
  const double best = best_makespan(members, h200(), 0.5);
  const auto is_there = [&] {
    return (scene.adaptive().resting() || scene.adaptive().phase() == Phase::kSettled) &&
           scene.plan_makespan({&a(), &b()}) <= best / 0.95;
  };
  while (!is_there() && scene.sim.now_ms() < 1000) scene.sim.run_until(scene.sim.now_ms() + 0.5);
  const double reached = scene.sim.now_ms();
  const std::uint64_t fewest = std::min(scene.sim.outcome(0).ended, scene.sim.outcome(1).ended);
  EXPECT_TRUE(reached <= 100 || fewest <= 30) << reached << " ms, " << fewest << " launches";
  // And it stays there.
  const double settled = scene.settle(1000);
  // A per cent more where all together, as the hardware does by itself, takes the place of turns.
  EXPECT_LE(scene.plan_makespan({&a(), &b()}), best / 0.94);
  scene.sim.run_until(settled + 2000);
  EXPECT_EQ(scene.adaptive().searches(), 1U);
  EXPECT_LE(scene.plan_makespan({&a(), &b()}), best / 0.94);
}

TEST_P(AdaptivePairTest, IsNeverMuchSlowerThanOneAfterTheOther) {
  Scene scene("adaptive");
  scene.sim.jitter = 0.01;
  scene.sim.add({.kernels = {&a()}});
  scene.sim.add({.kernels = {&b()}});
  scene.sim.run_until(1000);
  const double work = scene.sim.outcome(0).work_ms + scene.sim.outcome(1).work_ms;
  // What has begun by the end is work, too.
  const double begun = scene.sim.progress(0) * a().native_ms / a().best_speed() +
                       scene.sim.progress(1) * b().native_ms / b().best_speed();
  EXPECT_GT((work + begun) * 1.02, 1000);
}

TEST_P(AdaptivePairTest, LeavesEverybodyHalfOfItsShare) {
  Scene scene("adaptive");
  scene.sim.add({.kernels = {&a()}});
  scene.sim.add({.kernels = {&b()}});
  scene.sim.run_until(1000);
  EXPECT_GT(scene.sim.outcome(0).work_ms, 250);
  EXPECT_GT(scene.sim.outcome(1).work_ms, 250);
}

INSTANTIATE_TEST_SUITE_P(
    Model, AdaptivePairTest, testing::Combine(testing::Range(0, 7), testing::Range(0, 7)),
    [](const auto& which) {
      return kernels()[static_cast<std::size_t>(std::get<0>(which.param))].name +
             kernels()[static_cast<std::size_t>(std::get<1>(which.param))].name;
    });

TEST(AdaptiveTest, KernelsWithNothingToGainAreLeftToTheHardwareAtOnePercent) {
  // Two that saturate nothing and scale linearly, without anything to gain from mixing.
  ModelKernel linear = kernel("CB");
  linear.scaling = {8 / 132.,  16 / 132., 32 / 132.,  48 / 132., 64 / 132.,
                    80 / 132., 96 / 132., 112 / 132., 1};
  linear.mix = 0;
  linear.worker = 0.94;
  for (const double ms : {0.05, 0.3, 2.8, 9.0}) {
    ModelKernel other = linear;
    other.name = "other";
    linear.native_ms = other.native_ms = ms;
    Scene scene("adaptive");
    scene.sim.jitter = 0.01;
    scene.sim.add({.kernels = {&linear}});
    scene.sim.add({.kernels = {&other}});
    scene.sim.run_until(1000);
    EXPECT_EQ(scene.adaptive().arrangement().sharing, Sharing::kTogether) << ms;
    const double work = scene.sim.outcome(0).work_ms + scene.sim.outcome(1).work_ms +
                        (scene.sim.progress(0) + scene.sim.progress(1)) * ms;
    EXPECT_GT(work * 1.02, 1000) << ms;
  }
}

TEST(AdaptiveTest, TheMemoryBoundOneBeginsWithAThird) {
  // tensor_gemm reads a third of what the memory gives, and does all that the arithmetic does.
  for (const double compute : {0.1, 1.7}) {
    Scene scene("adaptive");
    scene.sim.add({.kernels = {&kernel("CB")}});
    scene.sim.add({.kernels = {&kernel("ST")}});
    scene.sim.run_until(0.1);
    KernelProfile& reader = scene.profiles.kernel(scene.sim.kernel_id(kernel("ST")));
    reader.memory_override = 0.37;
    reader.compute_override = compute;
    const auto& plan = scene.adaptive().arrangement();
    while (plan.sharing != Sharing::kPlaced && scene.sim.now_ms() < 100)
      scene.sim.run_until(scene.sim.now_ms() + 0.05);
    ASSERT_EQ(plan.sharing, Sharing::kPlaced);
    const bool first = scene.sim.kernel_id(kernel("ST")) < scene.sim.kernel_id(kernel("CB"));
    const std::uint32_t units = plan.units[first ? 0 : 1];
    EXPECT_NEAR(units, compute < 1 ? h200().units / 3.0 : h200().units / 2.0, 1);
  }
}

TEST(AdaptiveTest, CompletionsNoticedSeveralAtATimeDoNotMislead) {
  const char* pairs[][2] = {{"BS", "ST"}, {"ST", "CB"}, {"RG", "TR"}, {"BS", "GS"}, {"ST", "MM"}};
  for (const std::uint32_t merge : {2U, 5U}) {
    for (const auto& names : pairs) {
      Scene scene("adaptive");
      scene.sim.merge = merge;
      const ModelKernel* members[] = {&kernel(names[0]), &kernel(names[1])};
      for (const ModelKernel* each : members) scene.sim.add({.kernels = {each}});
      EXPECT_LT(scene.settle(1000), 700) << names[0] << names[1] << merge;
      scene.sim.run_until(2000);
      EXPECT_EQ(scene.adaptive().searches(), 1U) << names[0] << names[1] << merge;
      EXPECT_LE(scene.plan_makespan({members[0], members[1]}),
                best_makespan(members, h200(), 0.5) / 0.95)
          << names[0] << names[1] << merge;
    }
  }
}

TEST(AdaptiveTest, ThreeReachNearlyTheBest) {
  const char* triples[][3] = {{"ST", "CB", "GS"},
                              {"MM", "TR", "RG"},
                              {"BS", "GS", "CB"},
                              {"ST", "TR", "CB"},
                              {"GS", "GS", "ST"}};
  for (const auto& names : triples) {
    Scene scene("adaptive");
    const ModelKernel* members[3];
    for (int i = 0; i < 3; ++i) {
      members[i] = &kernel(names[i]);
      scene.sim.add({.kernels = {members[i]}});
    }
    scene.settle(2000);
    const double best = best_makespan(members, h200(), 0.5);
    EXPECT_LE(scene.plan_makespan({members[0], members[1], members[2]}), best / 0.9)
        << names[0] << names[1] << names[2];
  }
}

TEST(AdaptiveTest, EightEqualProgramsFinishTogether) {
  for (const char* name : {"BS", "GS", "TR", "CB", "MM"}) {
    Scene scene("adaptive");
    const ModelKernel& k = kernel(name);
    const auto launches = static_cast<std::uint64_t>(std::max(20.0, 300 / k.native_ms));
    for (int i = 0; i < 8; ++i) scene.sim.add({.kernels = {&k}, .launches = launches});
    scene.sim.drain(60'000);
    double first = 1e9, last = 0;
    for (std::size_t i = 0; i < 8; ++i) {
      EXPECT_EQ(scene.sim.outcome(i).ended, launches);
      first = std::min(first, scene.sim.outcome(i).last_end_ms);
      last = std::max(last, scene.sim.outcome(i).last_end_ms);
    }
    EXPECT_LT(last, first * 1.1) << name;
  }
}

TEST(AdaptiveTest, EightDifferentSessionsGainTogether) {
  Scene scene("adaptive");
  for (const char* name : {"BS", "GS", "TR", "ST", "CB", "RG", "GS", "ST"}) {
    scene.sim.add({.kernels = {&kernel(name)}});
  }
  scene.settle(3000);
  const double settled = scene.sim.now_ms();
  std::vector<double> before;
  for (std::size_t i = 0; i < 8; ++i) before.push_back(scene.sim.outcome(i).work_ms);
  scene.sim.run_until(settled + 1000);
  double work = 0;
  for (std::size_t i = 0; i < 8; ++i) {
    const double mine = scene.sim.outcome(i).work_ms - before[i];
    EXPECT_GT(mine, 1000 / 8.0 * 0.4) << i;
    work += mine;
  }
  EXPECT_GT(work, 1150);
}

TEST(AdaptiveTest, WeightsOfOneToThreeGiveOneToThree) {
  for (const char* name : {"CB", "TR", "BS"}) {
    ModelKernel k = kernel(name);
    k.bandwidth = 0.99;  // nothing to gain from sharing
    k.mix = 0;
    for (double& speed : k.scaling) speed *= 0.9;
    k.scaling.back() = 1;
    Scene scene("adaptive");
    scene.sim.add({.kernels = {&k}});
    scene.sim.add({.kernels = {&k}, .weight = 3});
    scene.sim.run_until(2000);
    EXPECT_NEAR(scene.sim.outcome(1).work_ms / scene.sim.outcome(0).work_ms, 3, 0.3) << name;
  }
}

TEST(AdaptiveTest, WeightsCountAlsoWhereSharingGains) {
  Scene scene("adaptive");
  scene.sim.next_after_ms = 0.06;
  scene.sim.add({.kernels = {&kernel("BS")}});
  scene.sim.add({.kernels = {&kernel("BS")}, .weight = 3});
  scene.sim.run_until(2000);
  EXPECT_NEAR(scene.sim.outcome(1).work_ms / scene.sim.outcome(0).work_ms, 3, 0.3);
}

TEST(AdaptiveTest, SharesGoToUsersFirst) {
  Scene scene("adaptive");
  scene.sim.next_after_ms = 0.06;
  scene.sim.add({.kernels = {&kernel("BS")}, .user = 1});
  for (int i = 0; i < 8; ++i) scene.sim.add({.kernels = {&kernel("BS")}, .user = 2});
  scene.sim.run_until(4000);
  double others = 0;
  for (std::size_t i = 1; i <= 8; ++i) others += scene.sim.outcome(i).work_ms;
  EXPECT_NEAR(scene.sim.outcome(0).work_ms / others, 1, 0.12);
}

TEST(AdaptiveTest, WeightsCountForLongKernelsBehindWhichNothingIsQueued) {
  Scene scene("adaptive");
  scene.sim.next_after_ms = 0.06;
  const ModelKernel lasting = lengthy(16);
  scene.sim.add({.kernels = {&lasting}, .depth = 1, .gap_ms = 0.15});
  scene.sim.add({.kernels = {&lasting}, .depth = 1, .gap_ms = 0.15, .weight = 3});
  scene.sim.run_until(4000);
  EXPECT_NEAR(scene.sim.outcome(1).work_ms / scene.sim.outcome(0).work_ms, 3, 0.3);
}

TEST(AdaptiveTest, AFirstMeetingCostsLittle) {
  // Nothing to gain, and every candidate takes long: without a bound it is 0.976.
  ModelKernel one = kernel("CB"), other = kernel("CB");
  one.name = "one";
  one.native_ms = 24;
  other.native_ms = 9;
  one.mix = other.mix = 0;
  one.worker_legal = other.worker_legal = false;
  Scene scene("adaptive");
  scene.sim.add({.kernels = {&one}});
  scene.sim.add({.kernels = {&other}});
  scene.sim.run_until(1000);
  EXPECT_GT(scene.adaptive().candidates(), 1U);
  const double work = scene.sim.outcome(0).work_ms + scene.sim.outcome(1).work_ms;
  EXPECT_GT(work + scene.sim.progress(0) * 24 + scene.sim.progress(1) * 9, 985);
}

TEST(AdaptiveTest, WhatIsKnownOfEqualProgramsHoldsForAnyNumberOfThem) {
  Scene scene("adaptive");
  for (int i = 0; i < 4; ++i) {
    scene.sim.add({.kernels = {&kernel("CB")}, .end_ms = i < 2 ? 1500. : 500.});
  }
  scene.sim.run_until(450);
  EXPECT_EQ(scene.adaptive().phase(), Phase::kSettled);
  const std::uint32_t searches = scene.adaptive().searches();
  scene.sim.run_until(1000);
  EXPECT_EQ(scene.adaptive().phase(), Phase::kSettled);
  EXPECT_EQ(scene.adaptive().searches(), searches);
}

TEST(AdaptiveTest, ThousandsOfKernelsPassThrough) {
  Scene scene("adaptive");
  std::mt19937_64 random(5);
  std::vector<ModelKernel> made;
  made.reserve(3000);
  for (int program = 0; program < 30; ++program) {
    std::vector<const ModelKernel*> mine;
    for (int i = 0; i < 100; ++i) {
      ModelKernel& k = made.emplace_back(kernels()[random() % 7]);
      k.name += std::to_string(made.size());
      k.native_ms *= 0.1 + static_cast<double>(random() % 100) / 50;
      mine.push_back(&k);
    }
    scene.sim.add({.kernels = mine, .launches = 300, .begin_ms = program * 20.0});
  }
  scene.sim.drain(200'000);
  for (std::size_t i = 0; i < 30; ++i) EXPECT_EQ(scene.sim.outcome(i).ended, 300U);
}

TEST(AdaptiveGroupTest, ADeviceThatIsSlowForAMomentIsNoReasonToSearch) {
  for (const double slow_ms : {200.0, 1000.0}) {
    ModelKernel memory = kernel("ST"), compute = kernel("CB");
    Scene scene("adaptive");
    scene.sim.add({.kernels = {&memory}});
    scene.sim.add({.kernels = {&compute}});
    scene.sim.run_until(1500);
    EXPECT_EQ(scene.adaptive().searches(), 1U);
    const Arrangement before = scene.adaptive().arrangement();
    // At two thirds of its clock, and an SM asks for no more bytes in a cycle.
    compute.native_ms *= 1.5;
    for (double& speed : memory.scaling) speed *= speed < 0.9 ? 0.75 : 1;
    scene.sim.run_until(1500 + slow_ms);
    compute = kernel("CB");
    memory = kernel("ST");
    scene.sim.run_until(4000);
    const bool moment = slow_ms < 300;
    EXPECT_EQ(scene.adaptive().searches() == 1, moment) << slow_ms;
    if (moment) {
      EXPECT_EQ(scene.adaptive().arrangement(), before);
    }
  }
}

}  // namespace
}  // namespace slate::scheduler::test
