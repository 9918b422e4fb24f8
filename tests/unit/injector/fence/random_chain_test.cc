// Random kernels of blocks that run in turn, with branches and loops between them, in any order of
// the text: what the fence moves out of one block into another one changes nothing.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "device/device.h"
#include "tests/unit/forms/form_runner.h"
#include "tests/unit/injector/fence/random_text.h"

namespace slate::test {
namespace {

constexpr std::uint32_t kChainThreads = 64;
constexpr int kIndices = 256;  // a power of two
constexpr int kFurthest = 40;  // beyond an index
constexpr int kOwnWords = 8;   // words of a thread that only it reads and writes
constexpr int kChanging = 2;   // index registers that are written again and again

/// Writes the text of one kernel. %r9 adds up all that was loaded. Indices stay below kIndices.
class RandomChainKernel : RandomText {
 public:
  explicit RandomChainKernel(std::uint64_t seed) : RandomText(seed) {}

  std::string text() {
    known_ = {"%r3"};
    for (int i = 0; i < kChanging; ++i) known_.push_back(fmt::format("%m{}", i));
    std::vector<std::string> blocks;
    const int count = 2 + pick(5);
    for (int i = 0; i < count; ++i) {
      body_ = fmt::format("B{}:\n", i);
      statements(2 + pick(4), 0);
      line("bra.uni B{};", i + 1);
      blocks.push_back(body_);
    }
    if (chance(2)) std::ranges::shuffle(blocks, random_);
    std::string all;
    for (const std::string& block : blocks) all += block;
    return fmt::format(
        ".version 8.7\n.target sm_90\n.address_size 64\n"
        ".visible .entry kernel(.param .u64 p, .param .u64 q)\n{{\n"
        ".reg .pred %p<{0}>;\n.reg .b32 %r<{0}>, %m<{1}>;\n.reg .b64 %rd<{0}>;\n"
        "ld.param.u64 %rd1, [p];\nld.param.u64 %rd2, [q];\nmov.u32 %r1, %ctaid.x;\n"
        "mov.u32 %r2, %ntid.x;\nmov.u32 %r3, %tid.x;\nmad.lo.u32 %r4, %r1, %r2, %r3;\n"
        "mul.wide.u32 %rd3, %r4, {2};\nadd.s64 %rd4, %rd2, %rd3;\nmov.u32 %r9, %r4;\n"
        "mov.u32 %m0, %r3;\nshr.u32 %m1, %r3, 1;\nbra.uni B0;\n{3}B{4}:\n"
        "st.global.u32 [%rd4], %r9;\nret;\n}}\n",
        next_, kChanging, 4 * kOwnWords, all, count);
  }

 private:
  std::string predicate() {
    const std::string bits = fresh("r"), p = fresh("p");
    line("and.b32 {}, %r9, {};\nsetp.eq.u32 {}, {}, 0;", bits, 1 << pick(4), p, bits);
    return p;
  }

  /// The register with the address of a word near an index.
  std::string near() {
    const char sign = chance(2) ? 's' : 'u';
    std::string index = one_of(known_);
    for (int i = pick(3); i > 0; --i) {
      const std::string next = fresh("r");
      line("add.s32 {}, {}, {};", next, index, pick(kFurthest / 4));
      index = next;
    }
    const std::string wide = fresh("rd"), at = fresh("rd");
    line("mul.wide.{}32 {}, {}, 4;\nadd.s64 {}, %rd1, {};", sign, wide, index, at, wide);
    return at;
  }

  void load() {
    const std::string at = near(), found = fresh("r");
    const std::string guard = chance(6) ? "@" + predicate() + " " : "";
    if (!guard.empty()) line("mov.u32 {}, 7;", found);
    line("{}ld.global{}.u32 {}, [{}+{}];", guard, chance(3) ? "" : ".nc", found, at,
         4 * pick(kFurthest / 4));
    line("mad.lo.u32 %r9, %r9, 31, {};", found);
    if (!chance(3)) return;
    const std::string index = fresh("r");
    line("and.b32 {}, {}, {};", index, found, kIndices - 1);
    known_.push_back(index);
  }

  void own() {
    const std::string found = fresh("r");
    if (chance(2)) {
      line("st.global.u32 [%rd4+{}], %r9;", 4 * pick(kOwnWords));
    } else {
      line("ld.global.u32 {}, [%rd4+{}];\nmad.lo.u32 %r9, %r9, 31, {};", found, 4 * pick(kOwnWords),
           found);
    }
  }

  void change() {
    const int which = pick(kChanging);
    line("add.s32 %m{0}, %m{0}, {1};\nand.b32 %m{0}, %m{0}, {2};", which, pick(100), kIndices - 1);
  }

  void branch(int depth) {
    branch_past(predicate(), 3, [&] {
      const auto known = known_;
      statements(1 + pick(2), depth + 1);
      known_ = known;
    });
  }

  void loop(int depth) {
    const std::string head = fmt::format("L{}", next_++), turns = fresh("r"), p = fresh("p");
    const auto known = known_;
    line("mov.u32 {}, 0;\n{}:", turns, head);
    statements(2 + pick(3), depth + 1);
    line("add.u32 {0}, {0}, 1;\nsetp.lt.u32 {1}, {0}, {2};\n@{1} bra {3};", turns, p, 1 + pick(4),
         head);
    known_ = known;
  }

  void statements(int count, int depth) {
    for (; count > 0; --count) {
      const int kind = pick(12);
      if (kind < 6 || depth > 2)
        load();
      else if (kind < 8)
        own();
      else if (kind == 8)
        change();
      else if (kind < 11)
        branch(depth);
      else
        loop(depth);
    }
  }

  std::vector<std::string> known_;  // registers with an index on every way here
};

class RandomChainTest : public testing::TestWithParam<int> {};

TEST_P(RandomChainTest, WhatMovesBetweenBlocksChangesNothing) {
  auto device = device::open_device("sim:sms=2,memory=256M,seed=5,max_kernel_seconds=60");
  ASSERT_TRUE(device) << device.error().message;
  std::uint32_t early = 0;
  for (int i = 0; i < random_kernels() && !HasFailure(); ++i) {
    const auto seed = static_cast<std::uint64_t>(GetParam()) * 1'000'000 + i;
    const std::string text = RandomChainKernel(seed).text();
    SCOPED_TRACE(fmt::format("seed {}:\n{}", seed, text));
    std::mt19937_64 random(seed);
    std::vector<std::uint32_t> words(kIndices + 2 * kFurthest);
    for (std::uint32_t& word : words) word = static_cast<std::uint32_t>(random());
    const KernelCase kernel{
        .name = "kernel",
        .entry = "kernel",
        .grid = {3, 1, 1},
        .block = {kChainThreads, 1, 1},
        .arguments = {Argument::buffer(words), Argument::buffer(std::vector<std::uint32_t>(
                                                   3 * kChainThreads * kOwnWords, 5))}};
    FormRunner plain(**device, text, 0), fenced(**device, text, 0, true, &kernel);
    for (const injector::FenceVerdict& entry : fenced.fenced().entries) {
      EXPECT_EQ(entry.why_not, "") << entry.name;
      early += entry.counts.early;
    }
    const Outcome expected = plain.run_native(kernel);
    EXPECT_EQ(difference(fenced.run_native(kernel), expected), "");
    if (const auto bounded = fenced.run_bounded(kernel)) {
      EXPECT_EQ(difference(*bounded, expected), "") << "bounded";
    }
    EXPECT_EQ(difference(fenced.run_worker(kernel, random, {}), expected), "") << "worker";
    EXPECT_EQ(fenced.take_record().state, injector::FenceRecord::kFree);
  }
  EXPECT_GT(early, static_cast<std::uint32_t>(random_kernels())) << "else this tests nothing";
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomChainTest, testing::Range(1, 5));

}  // namespace
}  // namespace slate::test
