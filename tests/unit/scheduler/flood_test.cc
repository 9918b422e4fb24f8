// A program that waits for each launch, beside another user's sessions that launch without end.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <tuple>

#include "tests/unit/scheduler/scene.h"

namespace slate::scheduler::test {
namespace {

constexpr double kGapMs = 0.008;  // from the end of a launch to the program's next one
constexpr double kBeginMs = 200, kEndMs = 700;

ModelKernel taking(double ms) {
  ModelKernel made = kernel("BS");
  made.name = "takes " + std::to_string(ms);
  made.native_ms = ms;
  made.worker = 0.95;
  return made;
}

struct Speed {
  double launches = 0;  // launches of the program that waits for each
  double others = 0;    // part of the device's time that the other sessions had
};

Speed measure(Scene& scene, const Program& waits, const Program& floods, std::size_t sessions) {
  scene.sim.next_after_ms = 0.001;
  scene.sim.add(waits);
  for (std::size_t i = 0; i < sessions; ++i) scene.sim.add(floods);
  const auto now = [&] {
    Speed all{.launches = static_cast<double>(scene.sim.outcome(0).ended)};
    for (std::size_t i = 1; i <= sessions; ++i) all.others += scene.sim.outcome(i).work_ms;
    return all;
  };
  scene.sim.run_until(kBeginMs);
  const Speed before = now();
  scene.sim.run_until(kEndMs);
  const Speed after = now();
  return {.launches = after.launches - before.launches,
          .others = (after.others - before.others) / (kEndMs - kBeginMs)};
}

Speed measure(std::string_view policy, const Program& waits, const Program& floods,
              std::size_t sessions) {
  Scene scene(policy);
  return measure(scene, waits, floods, sessions);
}

Program waiting_for_each(const ModelKernel& kernel) {
  return {.kernels = {&kernel}, .depth = 1, .gap_ms = kGapMs, .user = 1};
}

class FloodTest : public testing::TestWithParam<std::tuple<std::string, double, double>> {};

TEST_P(FloodTest, AProgramThatWaitsForEachLaunchHasItsUsersShare) {
  const auto& [policy, waited_for_ms, flooding_ms] = GetParam();
  const ModelKernel waited_for = taking(waited_for_ms), flooding = taking(flooding_ms);
  const Program waits = waiting_for_each(waited_for), floods{.kernels = {&flooding}, .user = 2};
  const Speed alone = measure(policy, waits, floods, 0);
  const Speed beside = measure(policy, waits, floods, 8);
  // Half of the time is its share. The search of adaptive costs both a part.
  EXPECT_GT(beside.launches, (policy == "adaptive" ? 0.4 : 0.45) * alone.launches);
  EXPECT_GT(beside.others, policy == "adaptive" ? 0.2 : 0.4);
}

INSTANTIATE_TEST_SUITE_P(Policies, FloodTest,
                         testing::Combine(testing::Values("timeslice", "adaptive"),
                                          testing::Values(0.004, 0.1, 2),
                                          testing::Values(0.004, 0.1, 2)));

/// A kernel that fills so much of the device.
ModelKernel small(double ms, double filled) {
  ModelKernel made = taking(ms);
  made.name += " of a part";
  made.leaves_room = true;
  made.bandwidth = 0;
  made.blocks = static_cast<std::uint64_t>(filled * static_cast<double>(made.wave));
  return made;
}

class SideBySideTest : public testing::TestWithParam<std::string> {};

TEST_P(SideBySideTest, AProgramKeepsItsSpeedBesideAFloodOfSmallLaunches) {
  const ModelKernel waited_for = small(0.1, 0.125), flooding = small(0.002, 0.001);
  const Program waits = waiting_for_each(waited_for), floods{.kernels = {&flooding}, .user = 2};
  const Speed alone = measure(GetParam(), waits, floods, 0);
  const Speed beside = measure(GetParam(), waits, floods, 8);
  EXPECT_GT(beside.launches, 0.95 * alone.launches);
  // 0.4 us a launch for a twentieth of the time on the device: one in 7.4 us, which take 2 us each.
  EXPECT_NEAR(beside.others, 0.27, 0.05);
}

TEST_P(SideBySideTest, WhoeverWaitsForNoLaunchIsNotHeldBackFor) {
  const ModelKernel kernel = small(0.1, 0.01);
  const Program first{.kernels = {&kernel}, .user = 1}, others{.kernels = {&kernel}, .user = 2};
  const Speed alone = measure(GetParam(), first, others, 0);
  const Speed beside = measure(GetParam(), first, others, 8);
  EXPECT_GT(beside.launches, 0.95 * alone.launches);
  EXPECT_GT(beside.others, 0.95 * 8);
}

TEST_P(SideBySideTest, WhatDoesNotFitTakesTurns) {
  const ModelKernel waited_for = small(0.1, 0.2), flooding = small(0.1, 0.1);
  const Program waits = waiting_for_each(waited_for), floods{.kernels = {&flooding}, .user = 2};
  const Speed alone = measure(GetParam(), waits, floods, 0);
  const Speed beside = measure(GetParam(), waits, floods, 8);
  EXPECT_LT(beside.launches, 0.8 * alone.launches);
}

/// Part of the device's time that sessions of a user launch for, beside another user's session that
/// has nothing to launch any more.
double launched_beside_an_idle_user(std::string_view policy, std::size_t sessions) {
  const ModelKernel tiny = small(0.002, 0.001);
  Program idle = waiting_for_each(tiny);
  idle.end_ms = 10;
  return measure(policy, idle, {.kernels = {&tiny}, .user = 2}, sessions).others;
}

TEST_P(SideBySideTest, SessionsOfOneUserLeaveHalfOfTheWayToTheDevice) {
  // One launch in 3.3 us, which takes 2 us.
  EXPECT_NEAR(launched_beside_an_idle_user(GetParam(), 8), 0.6, 0.05);
}

TEST_P(SideBySideTest, ALoneSessionHasNoBound) {
  EXPECT_GT(launched_beside_an_idle_user(GetParam(), 1), 0.9);
}

INSTANTIATE_TEST_SUITE_P(Policies, SideBySideTest,
                         testing::Values("timeslice", "table", "adaptive"));

TEST(FloodTest, AUserWithMoreWeightMayQueueMore) {
  const ModelKernel short_kernel = taking(0.1);
  const Program floods{.kernels = {&short_kernel}, .user = 2, .user_weight = 3};
  const Speed alone = measure("timeslice", waiting_for_each(short_kernel), floods, 0);
  const Speed beside = measure("timeslice", waiting_for_each(short_kernel), floods, 8);
  EXPECT_NEAR(beside.launches / alone.launches, 0.27, 0.05);
  EXPECT_GT(beside.others, 0.7);
}

TEST(FloodTest, SessionsOfTheSameUserQueueAsEver) {
  const ModelKernel short_kernel = taking(0.1);
  Scene scene("timeslice");
  std::uint32_t most = 0, started = 0;
  scene.sim.on_start = [&](std::size_t program, const Start&) {
    started = program == 0 ? 0 : started + 1;
    most = std::max(most, started);
  };
  measure(scene, waiting_for_each(short_kernel), {.kernels = {&short_kernel}, .user = 1}, 8);
  EXPECT_GE(most, scene.settings.ahead_launches);
}

TEST(FloodTest, AnEndlessLaunchDoesNotHoldUpItsUsersOtherSessions) {
  ModelKernel endless = taking(1e12);
  endless.worker_legal = false;
  endless.blocks = 1;
  const ModelKernel short_kernel = taking(0.1);
  Scene scene("timeslice");
  scene.sim.add(waiting_for_each(short_kernel));
  scene.sim.add({.kernels = {&endless}, .depth = 1, .user = 2});
  scene.sim.add({.kernels = {&short_kernel}, .begin_ms = 10, .user = 2});
  scene.sim.run_until(1000);
  EXPECT_GT(scene.sim.outcome(0).work_ms, 150);
  EXPECT_GT(scene.sim.outcome(2).work_ms, 150);
}

}  // namespace
}  // namespace slate::scheduler::test
