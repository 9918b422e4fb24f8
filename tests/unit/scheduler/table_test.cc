// table: Table I cell by cell, the split, and who is left when a partner goes.
#include "scheduler/table.h"

#include <gtest/gtest.h>

#include "tests/unit/scheduler/scene.h"

namespace slate::scheduler::test {
namespace {

struct Class {
  const char* name;
  double compute, memory;
};
constexpr Class kClasses[] = {{"L_C", 0.001, 0.1},
                              {"M_C", 0.01, 0.1},
                              {"H_C", 0.5, 0.1},
                              {"M_M", 0.5, 0.5},
                              {"H_M", 0.001, 0.95}};

/// A kernel of the class, known to the table.
ModelKernel make(Scene& scene, const Class& of, const char* name) {
  ModelKernel kernel = test::kernel(of.memory > 0.9 ? "ST" : "CB");
  kernel.name = name;
  kernel.native_ms = 0.4;
  kernel.bandwidth = of.memory;
  KernelProfile& profile = scene.profiles.kernel(scene.sim.kernel_id(kernel));
  profile.compute_override = of.compute;
  profile.memory_override = of.memory;
  for (int i = 0; i < 5; ++i) profile.alone[0].add(kernel.native_ms);
  for (int i = 0; i < 2; ++i) profile.alone[1].add(kernel.native_ms / kernel.worker);
  return kernel;
}

class TableOneTest : public testing::TestWithParam<std::tuple<int, int>> {};

TEST_P(TableOneTest, RunningAndNewcomerShareOnlyWhereItSaysSo) {
  const auto [row, column] = GetParam();
  Scene scene("table");
  const ModelKernel running = make(scene, kClasses[row], "running");
  const ModelKernel newcomer = make(scene, kClasses[column], "newcomer");
  scene.sim.add({.kernels = {&running}});
  scene.sim.add({.kernels = {&newcomer}, .begin_ms = 50});
  std::uint64_t shared = 0, whole = 0;
  scene.sim.on_start = [&](std::size_t, const Start& start) {
    if (scene.sim.now_ms() < 80) return;
    ++(start.placement == h200().whole() ? whole : shared);
  };
  scene.sim.run_until(300);
  EXPECT_GT(scene.sim.outcome(0).ended, 300U / 2);
  EXPECT_GT(scene.sim.outcome(1).ended, 100U);
  // As printed in the paper, running by row.
  constexpr bool kPrinted[5][5] = {{true, true, false, true, true},
                                   {true, true, false, false, true},
                                   {false, false, false, false, true},
                                   {true, false, true, false, false},
                                   {true, true, false, false, false}};
  if (kPrinted[row][column]) {
    EXPECT_GT(shared, 100U);
    EXPECT_EQ(whole, 0U);
  } else {
    EXPECT_EQ(shared, 0U);
    EXPECT_GT(whole, 100U);
  }
}

INSTANTIATE_TEST_SUITE_P(Cells, TableOneTest,
                         testing::Combine(testing::Range(0, 5), testing::Range(0, 5)),
                         [](const auto& which) {
                           return std::string(kClasses[std::get<0>(which.param)].name) + "_then_" +
                                  kClasses[std::get<1>(which.param)].name;
                         });

TEST(TableTest, ThePapersKernelsAreInThePapersClasses) {
  // Table II, over the peaks of its Titan Xp.
  const Machine titan{.peak_gflops = 12'150, .peak_gbytes = 547.6};
  const auto class_for = [&](double gflops, double gbytes) {
    ProfileTable profiles;
    const KernelId id = profiles.find_or_add({});
    KernelProfile& profile = profiles.kernel(id);
    profile.alone[0].add(1.0);
    profile.flops = gflops * 1e6;
    profile.bytes = gbytes * 1e6;
    return class_of(profiles, id, titan, {});
  };
  EXPECT_EQ(class_for(161, 401), KernelClass::kMediumMemory);   // BlackScholes
  EXPECT_EQ(class_for(19.6, 341), KernelClass::kMediumMemory);  // Gaussian
  EXPECT_EQ(class_for(4.2, 71.6), KernelClass::kLowCompute);    // QuasiRandom
  EXPECT_EQ(class_for(0, 569), KernelClass::kHighMemory);       // Transpose
  EXPECT_EQ(class_for(1525, 100), KernelClass::kHighCompute);   // SGEMM's compute
  EXPECT_EQ(class_for(161, 100), KernelClass::kMediumCompute);  // BlackScholes' compute
}

TEST(TableTest, UnknownIntensityMeansSolo) {
  Scene scene("table");
  scene.sim.add({.kernels = {&kernel("ST")}});
  scene.sim.add({.kernels = {&kernel("CB")}});
  scene.sim.on_start = [&](std::size_t, const Start& start) {
    EXPECT_TRUE(start.alone);
    EXPECT_EQ(start.placement, h200().whole());
  };
  scene.sim.run_until(200);
  EXPECT_GT(scene.sim.outcome(1).ended, 20U);
}

TEST(TableTest, TheTableIsASetting) {
  Settings settings;
  for (auto& row : settings.table) row.fill(false);
  Scene scene("table", settings);
  const ModelKernel a = make(scene, kClasses[0], "a"), b = make(scene, kClasses[4], "b");
  scene.sim.add({.kernels = {&a}});
  scene.sim.add({.kernels = {&b}});
  scene.sim.on_start = [&](std::size_t, const Start& start) { EXPECT_TRUE(start.alone); };
  scene.sim.run_until(100);
}

TEST(TableTest, TheMemoryBoundOneGetsTheFewestUnitsThatKeepItsSpeed) {
  Scene scene("table");
  const ModelKernel compute = make(scene, kClasses[2], "compute");
  const ModelKernel memory = make(scene, kClasses[4], "memory");
  scene.sim.add({.kernels = {&compute}});
  scene.sim.add({.kernels = {&memory}, .begin_ms = 20});
  Placement last{}, other{};
  scene.sim.on_start = [&](std::size_t program, const Start& start) {
    (program == 1 ? last : other) = start.placement;
  };
  scene.sim.run_until(500);
  // ST's scaling: .91 at 32 SMs, but the last of its units has only half of the others'.
  EXPECT_EQ(last.count, 5U);
  EXPECT_EQ(other.count, 12U);
  EXPECT_FALSE(last.overlaps(other));
}

TEST(TableTest, ALongPartnerShrinksAndGrowsWithoutEnding) {
  Scene scene("table");
  ModelKernel running = make(scene, kClasses[2], "running");
  const ModelKernel memory = make(scene, kClasses[4], "memory");
  running.native_ms = 2000;
  running.blocks = 1'000'000;
  KernelProfile& profile = scene.profiles.kernel(scene.sim.kernel_id(running));
  profile.compute_override = 0.5;
  profile.memory_override = 0.1;
  profile.alone[1].add(2000);
  scene.sim.add({.kernels = {&running}, .launches = 1});
  scene.sim.add({.kernels = {&memory}, .begin_ms = 100, .end_ms = 300});
  scene.sim.run_until(50);
  EXPECT_EQ(scene.sim.placement(0), h200().whole());
  scene.sim.run_until(100.01);
  EXPECT_LT(scene.sim.placement(0).count, 17U);
  EXPECT_GT(scene.sim.placement(0).count, 8U);
  EXPECT_LT(scene.sim.outcome(1).first_start_ms, 100.1);
  scene.sim.run_until(340);
  EXPECT_EQ(scene.sim.placement(0), h200().whole());
}

TEST(TableTest, NoMoreThanTwoAtOnceAndAllGetTheirShare) {
  Scene scene("table");
  std::vector<ModelKernel> all;
  all.reserve(6);
  for (int i = 0; i < 6; ++i) {
    static const char* names[] = {"k0", "k1", "k2", "k3", "k4", "k5"};
    all.push_back(make(scene, kClasses[i % 5], names[i]));
    scene.sim.add({.kernels = {&all.back()}});
  }
  scene.sim.run_until(3000);
  for (std::size_t i = 0; i < 6; ++i) EXPECT_GT(scene.sim.outcome(i).work_ms, 250) << i;
}

}  // namespace
}  // namespace slate::scheduler::test
