// The analysis of long text costs in proportion to its length, or stops and says so.
#include "injector/analysis/effort.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "injector/analysis/analysis.h"
#include "injector/analysis/dominators.h"
#include "injector/analysis/parked_walk.h"

namespace slate::injector {
namespace {

constexpr const char* kEffortHeader = ".version 8.8\n.target sm_90\n.address_size 64\n";

struct Cost {
  std::uint64_t steps = 0;
  bool spent = false;
  std::string why_not;
};

Cost cost_of(const std::string& text, Effort effort = {}) {
  const auto module = ptx::parse(kEffortHeader + text);
  EXPECT_TRUE(module) << module.error().message;
  const ModuleAnalysis analysis = analyse(**module, OwnNames::kRefused, effort);
  return {analysis.effort.steps(), analysis.effort.is_spent(),
          analysis.entries.at(0).profile.why_not};
}

std::string repeated(std::uint32_t times, const std::function<std::string(std::string)>& piece) {
  std::string text;
  for (std::uint32_t i = 0; i < times; ++i) text += piece(std::to_string(i));
  return text;
}

std::string looping_kernel(const std::string& body) {
  return ".entry k(.param .u32 n) { .reg .pred %p<9>; .reg .b32 %r<9>;\n"
         "ld.param.u32 %r1, [n]; mov.u32 %r2, %tid.x; mov.u32 %r3, 0;\n" +
         body + "ret; }\n";
}

std::string loops(std::uint32_t n) {
  return looping_kernel(repeated(n, [](const std::string& i) {
    return "L" + i + ": add.u32 %r3, %r3, 1; setp.lt.u32 %p1, %r3, %r2; @%p1 bra L" + i + ";\n";
  }));
}

std::string calls(std::uint32_t n) {
  return ".func f0() { ret; }\n" +
         repeated(n,
                  [](const std::string& i) {
                    return ".func f" + std::to_string(std::stoul(i) + 1) + "() { call f" + i +
                           "; ret; }\n";
                  }) +
         ".entry k() { call f" + std::to_string(n) + "; ret; }\n";
}

/// As above, but each function stands before the one that it calls.
std::string calls_backwards(std::uint32_t n) {
  return repeated(n,
                  [&](const std::string& i) {
                    const std::uint32_t at = n - static_cast<std::uint32_t>(std::stoul(i));
                    return ".func f" + std::to_string(at) + "() { call f" + std::to_string(at - 1) +
                           "; ret; }\n";
                  }) +
         ".func f0() { bar.sync 0; ret; }\n.entry k() { call f" + std::to_string(n) + "; ret; }\n";
}

std::string skipped_barriers(std::uint32_t n) {
  return looping_kernel(repeated(n, [](const std::string& i) {
    return "setp.eq.u32 %p1, %r1, " + i + "; @%p1 bra L" + i + "; bar.sync 0;\nL" + i + ":\n";
  }));
}

TEST(EffortTest, TwiceTheTextCostsTwiceAsMuch) {
  for (const auto& [name, text] :
       std::initializer_list<std::pair<const char*, std::function<std::string(std::uint32_t)>>>{
           {"loops", loops},
           {"calls", calls},
           {"calls_backwards", calls_backwards},
           {"skipped_barriers", skipped_barriers}}) {
    const Cost once = cost_of(text(500));
    const Cost twice = cost_of(text(1000));
    EXPECT_GT(once.steps, 500u) << name;
    EXPECT_LE(twice.steps, 2 * once.steps + once.steps / 4) << name;
  }
}

/// Each of many registers flows into one, to which nothing comes of it.
std::string unwritten(std::uint32_t n) {
  return ".entry k() { .reg .b32 %r<" + std::to_string(n + 1) + ">;\n" +
         repeated(n, [](const std::string& i) { return "mov.u32 %r0, %r" + i + ";\n"; }) +
         "ret; }\n";
}

/// Every branch parts the threads of all that follows.
std::string early_returns(std::uint32_t n) {
  return looping_kernel(repeated(n,
                                 [](const std::string& i) {
                                   return "setp.eq.u32 %p1, %r2, " + i +
                                          "; @%p1 bra OUT; add.u32 %r3, %r3, %r2;\n";
                                 }) +
                        "bar.sync 0;\nOUT: ");
}

TEST(EffortTest, WhatCostsMoreStopsAndTakesNoForm) {
  for (const auto& [text, longer] : {std::pair(early_returns(400), early_returns(800)),
                                     std::pair(unwritten(400), unwritten(800))}) {
    const Cost cost = cost_of(text);
    EXPECT_GT(cost_of(longer).steps, 3 * cost.steps) << "else it is for the test above";
    const Cost limited = cost_of(text, Effort(cost.steps / 4));
    EXPECT_TRUE(limited.spent);
    EXPECT_LT(limited.steps, cost.steps / 2);
    EXPECT_EQ(limited.why_not, "its module takes too long to analyse for its length");
  }
}

TEST(EffortTest, AnOrdinaryKernelHasMoreThanEnough) {
  const std::string text = early_returns(100);
  EXPECT_LT(cost_of(text).steps, Effort::kFree / 10);
  EXPECT_FALSE(cost_of(text, Effort::for_text(text.size())).spent);
}

TEST(EffortTest, AWalkOfTheParkedIsNotPlannedWithoutIt) {
  const auto module = ptx::parse(kEffortHeader + early_returns(20));
  ASSERT_TRUE(module) << module.error().message;
  const ptx::Function& function = (*module)->functions.back();
  Effort effort;
  EXPECT_TRUE(plan_parked_walk(function, false, effort));
  Effort little(effort.steps() / 2);
  EXPECT_FALSE(plan_parked_walk(function, false, little));
}

TEST(EffortTest, DominatorsOfALadderAreThoseOfTheDefinition) {
  // 0 to n go up one side, each with a way to the other, n + 1 to 2 n + 1.
  constexpr std::uint32_t n = 40;
  std::vector<std::vector<std::uint32_t>> successors(2 * n + 2);
  for (std::uint32_t i = 0; i <= n; ++i) {
    if (i < n) successors[i].push_back(i + 1);
    successors[i].push_back(n + 1 + i);
    if (i < n) successors[n + 1 + i].push_back(n + 2 + i);
  }
  const auto found = immediate_dominators(successors, 0);
  EXPECT_EQ(found[0], kNoDominator);
  for (std::uint32_t i = 1; i <= n; ++i) {
    EXPECT_EQ(found[i], i - 1);
    EXPECT_EQ(found[n + 1 + i], 0u);
  }
  EXPECT_EQ(found[n + 1], 0u);
}

/// By removing each node in turn.
TEST(EffortTest, DominatorsAreThoseWithoutWhomThereIsNoWay) {
  for (std::uint32_t seed = 1; seed < 60; ++seed) {
    constexpr std::uint32_t kNodes = 14;
    std::vector<std::vector<std::uint32_t>> successors(kNodes);
    std::uint32_t random = seed * 2654435761u;
    for (std::uint32_t edge = 0; edge < 22; ++edge) {
      random = random * 1664525 + 1013904223;
      successors[random >> 8 & 0xff ? (random >> 16) % kNodes : 0].push_back((random >> 24) %
                                                                             kNodes);
    }
    const auto reached = [&](std::uint32_t without) {
      std::vector<bool> seen(kNodes, false);
      std::vector<std::uint32_t> waiting;
      if (without != 0) waiting.push_back(0);
      while (!waiting.empty()) {
        const std::uint32_t node = waiting.back();
        waiting.pop_back();
        if (seen[node]) continue;
        seen[node] = true;
        for (const std::uint32_t next : successors[node]) {
          if (next != without) waiting.push_back(next);
        }
      }
      return seen;
    };
    const auto all = reached(kNodes);
    const auto found = immediate_dominators(successors, 0);
    for (std::uint32_t node = 1; node < kNodes; ++node) {
      std::vector<std::uint32_t> strict;
      for (std::uint32_t other = 0; other < kNodes; ++other) {
        if (other != node && all[node] && !reached(other)[node]) strict.push_back(other);
      }
      // The nearest is the one that all others dominate.
      std::uint32_t nearest = kNoDominator;
      for (const std::uint32_t one : strict) {
        if (nearest == kNoDominator || !reached(nearest)[one]) nearest = one;
      }
      EXPECT_EQ(found[node], nearest) << "seed " << seed << " node " << node;
    }
  }
}

}  // namespace
}  // namespace slate::injector
