// Compiler output on the interpreter: tests/data/sim/mixed.cu, compared with the same computed
// here.
#include <gtest/gtest.h>

#include <bit>
#include <fstream>
#include <sstream>

#include "tests/unit/sim_core/harness.h"

namespace slate::sim::test {
namespace {

constexpr std::uint32_t kThreads = 256;
constexpr std::uint32_t kTable[8] = {3, 1, 4, 1, 5, 9, 2, 6};

std::uint32_t fibonacci(std::uint32_t n) {
  return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
}

std::uint32_t reversed(std::uint32_t v) {
  std::uint32_t out = 0;
  for (int i = 0; i < 32; ++i) out |= (v >> i & 1) << (31 - i);
  return out;
}

std::uint32_t choose(std::uint32_t which, std::uint32_t v) {
  switch (which) {
    case 0:
      return v * 2;
    case 1:
      return v + 7;
    case 2:
      return v % 13;
    case 3:
      return v / 3;
    case 4:
      return static_cast<std::uint32_t>(std::popcount(v));
    case 5:
      return static_cast<std::uint32_t>(std::countl_zero(v));
    default:
      return reversed(v);
  }
}

/// The nine results of one thread.
std::vector<std::uint32_t> expected(const std::uint32_t* in, std::uint32_t t) {
  const std::uint32_t v = in[t];
  std::uint32_t total = 0, tile = 0, match = 0, sum = 0;
  for (std::uint32_t i = 0; i < kThreads; ++i) total += in[i];
  for (std::uint32_t i = 0; i < 8; ++i) tile += in[t / 8 * 8 + i];
  double weight = t * 0.5;
  for (std::uint32_t i = 0; i < 5; ++i) {
    weight += kTable[(t + (i + t % 5) % 5) & 7] * (i + 1);
  }
  for (std::uint32_t lane = 0; lane < 32; ++lane) {
    if ((t / 32 * 32 + lane) % 5 == t % 5) match |= 1u << lane;
  }
  for (std::uint32_t i = 0; i < t && sum <= 5000; ++i) sum += i % 3 == 0 ? 0 : i;
  std::uint64_t hash = v * 0x9E3779B97F4A7C15ull;
  hash ^= hash >> 29;
  return {total,
          tile,
          t % 3 == 0   ? v * 3 + 1
          : t % 3 == 1 ? v ^ 0x55
                       : v >> 1,
          fibonacci(t % 9),
          static_cast<std::uint32_t>(weight * 4),
          choose(t % 7, v),
          match,
          sum,
          static_cast<std::uint32_t>(hash % 1000003u)};
}

class CompiledTest : public testing::TestWithParam<std::uint64_t> {};

TEST_P(CompiledTest, EverySeedGivesWhatTheHostComputes) {
  std::ifstream file(SLATE_SIM_DATA "/mixed.ptx");
  std::stringstream text;
  text << file.rdbuf();
  Machine machine;
  for (std::uint32_t i = 0; i < kThreads; ++i) machine.words_b()[i] = i * 2654435761u >> 7;
  Shape shape;
  shape.block = {kThreads, 1, 1};
  if (GetParam() != 0) shape.seed = GetParam();
  const Outcome outcome = machine.run(text.str(), shape);
  ASSERT_TRUE(outcome.ok()) << outcome.message();
  EXPECT_EQ(outcome.printed, "thread 77 of 256: 38.5 done\n");
  for (std::uint32_t t = 0; t < kThreads; ++t) {
    const std::vector<std::uint32_t> want = expected(machine.words_b(), t);
    for (std::uint32_t i = 0; i < want.size(); ++i) {
      ASSERT_EQ(machine.words()[i * kThreads + t], want[i]) << "result " << i << ", thread " << t;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Schedules, CompiledTest, testing::Values(0, 1, 2, 3));

}  // namespace
}  // namespace slate::sim::test
