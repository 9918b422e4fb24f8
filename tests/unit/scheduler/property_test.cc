// Random programs that come, go, wait, and end in the middle, under every policy. The simulator
// aborts on a Start for nobody, an empty placement, an illegal form, or a deadlock; here the
// overlaps and the ends are checked.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "scheduler/policies.h"
#include "tests/unit/scheduler/scene.h"

namespace slate::scheduler::test {
namespace {

class PropertyTest : public testing::TestWithParam<std::tuple<std::string_view, int>> {};

double among(std::mt19937_64& random, double low, double high) {
  return std::uniform_real_distribution<double>(low, high)(random);
}

Program any_program(std::mt19937_64& random, std::vector<ModelKernel>& made) {
  Program program;
  const std::uint64_t kinds = 1 + random() % 3;
  for (std::uint64_t i = 0; i < kinds; ++i) {
    ModelKernel& k = made.emplace_back(kernels()[random() % 7]);
    if (random() % 3 == 0) {
      k.name += std::to_string(made.size());
      k.native_ms *= among(random, 0.05, 3);
      if (random() % 8 == 0) k.native_ms *= 50;
      k.worker_legal = random() % 4 != 0;
      k.slice_legal = random() % 2 != 0;
    }
    program.kernels.push_back(&k);
  }
  program.depth = static_cast<std::uint32_t>(1 + random() % 40);
  if (random() % 3 == 0) program.gap_ms = among(random, 0, 4);
  if (random() % 4 == 0) program.arrivals_ms = among(random, 0.5, 30);
  program.launches = 1 + random() % 400;
  for (const ModelKernel* k : program.kernels) {
    if (k->native_ms > 30) program.launches = std::min<std::uint64_t>(program.launches, 8);
  }
  program.begin_ms = among(random, 0, 300);
  program.end_ms = program.begin_ms + among(random, 1, 600);
  program.weight = random() % 3 == 0 ? among(random, 0.2, 5) : 1;
  program.priority = random() % 5 == 0 ? static_cast<int>(random() % 3) : 0;
  return program;
}

TEST_P(PropertyTest, RandomEventsBreakNoRule) {
  const auto [name, seed] = GetParam();
  std::mt19937_64 random(static_cast<std::uint64_t>(seed) * 7919);
  const Machine machines[] = {h200(),
                              {.sm_count = 132, .units = 1, .sms_per_unit = 132},
                              {.sm_count = 4, .units = 4, .sms_per_unit = 1},
                              {.sm_count = 132, .units = 132, .sms_per_unit = 1}};
  Settings settings;
  settings.ageing = Milliseconds(100);
  settings.group = static_cast<std::uint32_t>(1 + random() % 8);
  Scene scene(name, settings, machines[random() % 4], random());
  scene.sim.jitter = 0.05;
  std::vector<ModelKernel> made;
  made.reserve(400);
  const std::size_t programs = 1 + random() % 24;
  for (std::size_t i = 0; i < programs; ++i) scene.sim.add(any_program(random, made));
  for (KernelId id = 0; id < scene.profiles.size(); ++id) {
    scene.profiles.kernel(id).memory_override = among(random, 0, 1);
    scene.profiles.kernel(id).compute_override = among(random, 0, 0.1);
  }
  // Under one plan of adaptive, placements are the same or apart.
  std::map<std::uint64_t, std::map<std::size_t, Placement>> plans;
  scene.sim.on_start = [&](std::size_t program, const Start& start) {
    if (std::string_view(name) != "adaptive" || start.alone) return;
    if (scene.adaptive().arrangement().sharing != Sharing::kPlaced) return;
    auto& plan = plans[start.tag];
    plan[program] = start.placement;
    for (const auto& [other, placement] : plan) {
      if (other != program) {
        EXPECT_FALSE(placement.overlaps(start.placement));
      }
    }
    if (plans.size() > 3) plans.erase(plans.begin());
  };
  for (int i = 0; i < 40; ++i) {
    scene.sim.run_until(i * 25.0);
    if (random() % 8 == 0) scene.sim.end_session(random() % programs);
  }
  scene.sim.drain(1e6);
  for (std::size_t i = 0; i < programs; ++i) {
    EXPECT_EQ(scene.sim.outcome(i).started, scene.sim.outcome(i).ended) << i;
  }
  EXPECT_LT(scene.sim.now_ms(), 1e6);
}

INSTANTIATE_TEST_SUITE_P(Seeds, PropertyTest,
                         testing::Combine(testing::ValuesIn(policy_names()), testing::Range(0, 50)),
                         [](const auto& which) {
                           return std::string(std::get<0>(which.param)) +
                                  std::to_string(std::get<1>(which.param));
                         });

}  // namespace
}  // namespace slate::scheduler::test
