// What turns on the device's memory cost programs, on a virtual clock.
#include "memory_simulation.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace slate::scheduler {
namespace {

constexpr std::uint64_t kGiB = 1ull << 30;

/// Programs that begin at about the same time, each with that part of the device.
std::vector<SimulatedProgram> programs(int count, double part, double kernel_ms,
                                       std::uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<SimulatedProgram> made;
  for (int i = 0; i < count; ++i) {
    SimulatedProgram program;
    program.start_ms = 40 + static_cast<double>(random() % 30);
    program.malloc_ms = 2 + static_cast<double>(random() % 8);
    program.buffer_bytes =
        static_cast<std::uint64_t>(part * static_cast<double>(SimulatedDevice{}.capacity)) / 4;
    program.kernel_ms = kernel_ms;
    made.push_back(program);
  }
  return made;
}

std::vector<SimulatedProgram> three(std::uint32_t seed) {
  return programs(3, 0.6, 23.5, seed);
}

double one_by_one(const std::vector<SimulatedProgram>& all, const SimulatedDevice& device) {
  double ms = 0;
  for (const SimulatedProgram& each : all) ms += simulate_memory({each}, device).ms;
  return ms;
}

/// Their time at once over that of one after the other, and what happens meanwhile.
struct Compared {
  SimulatedRun run;
  double part = 0;
};

Compared compare(const std::vector<SimulatedProgram>& all, const SimulatedDevice& device = {}) {
  const SimulatedRun run = simulate_memory(all, device);
  EXPECT_TRUE(run.all_ended);
  return {run, run.ms / one_by_one(all, device)};
}

TEST(MemorySimulationTest, ProgramsShorterThanATurnHardlyMove) {
  for (std::uint32_t seed = 1; seed <= 12; ++seed) {
    const auto [run, part] = compare(three(seed));
    EXPECT_LT(part, 1.03) << "seed " << seed;
    EXPECT_LE(run.copied_out, 8 * kGiB) << "what two of them have filled at first, seed " << seed;
  }
}

TEST(MemorySimulationTest, ASlowLinkMakesTurnsLonger) {
  const SimulatedDevice slow{.out = 25e6, .in = 25e6, .in_beside_out = 17e6};
  for (std::uint32_t seed = 1; seed <= 6; ++seed)
    EXPECT_LT(compare(three(seed), slow).part, 1.05) << "seed " << seed;
}

TEST(MemorySimulationTest, TheBoundHoldsForProgramsOfManyTurns) {
  for (std::uint32_t seed = 1; seed <= 2; ++seed) {
    auto all = three(seed);
    for (SimulatedProgram& each : all) each.rounds = 200;
    const auto [run, part] = compare(all);
    EXPECT_LT(part, 1.05) << "seed " << seed;
    EXPECT_GT(run.copied_out, 10 * kGiB) << "they take turns";
  }
}

TEST(MemorySimulationTest, EightProgramsThatComputeLoseNothing) {
  for (std::uint32_t seed = 1; seed <= 2; ++seed)
    EXPECT_LT(compare(programs(8, 0.325, 12.75, seed)).part, 1.0) << "seed " << seed;
}

TEST(MemorySimulationTest, EightProgramsThatPauseAreMoreThanTwiceAsFast) {
  auto all = programs(8, 0.325, 12.75, 1);
  for (SimulatedProgram& each : all) each.gap_ms = 205;
  EXPECT_LT(compare(all).part, 0.42);
}

}  // namespace
}  // namespace slate::scheduler
