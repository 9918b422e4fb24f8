// Where a thread that has returned early goes, and the kernels in which it cannot be told.
#include "injector/analysis/parked_walk.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/unit/injector/split_entry.h"

namespace slate::injector {
namespace {

struct Planned {
  std::unique_ptr<const ptx::Module> module;
  std::optional<ParkedWalk> walk;
  const ParkedWalk* operator->() const { return &*walk; }

  const ptx::Function& function() const { return module->functions.back(); }
  /// The n-th instruction with the opcode, from 0.
  std::uint32_t index_of(std::string_view opcode, int n = 0) const {
    const auto& all = function().instructions;
    for (std::uint32_t i = 0; i < all.size(); ++i) {
      if (all[i].opcode == opcode && n-- == 0) return i;
    }
    ADD_FAILURE() << "no such " << opcode;
    return 0;
  }
};

/// `body` in a split_entry(), with a label behind it.
Planned plan(const std::string& body) {
  auto module = ptx::parse(test::split_entry(body + "\nOUT:"));
  EXPECT_TRUE(module) << module.error().message;
  Planned planned{.module = std::move(*module), .walk = {}};
  Effort effort;
  planned.walk = plan_parked_walk(planned.module->functions.back(), false, effort);
  return planned;
}

const std::string kLeave = "@%p1 bra OUT;\n";
const std::string kStore = "st.shared.u32 [words], %r1;\n";

TEST(ParkedWalkTest, ThereIsNoneWhereAllLeaveTogetherOrBehindTheLastBarrier) {
  EXPECT_FALSE(plan("bar.sync 0;").walk);
  EXPECT_FALSE(plan("@%p2 bra OUT; bar.sync 0;").walk);
  EXPECT_FALSE(plan("bar.sync 0;\n" + kLeave + kStore).walk);
}

TEST(ParkedWalkTest, GoesFromTheExitToTheNextBarrierAndFromThereToTheEnd) {
  const Planned planned = plan(kLeave + kStore + "bar.sync 0;\n" + kStore);
  ASSERT_TRUE(planned.walk);
  ASSERT_EQ(planned->exits.size(), 1u);
  const std::uint32_t barrier = planned.index_of("bar");
  EXPECT_EQ(planned->exits[0].stop, barrier);
  EXPECT_EQ(planned->barriers, std::vector<std::uint32_t>{barrier});
  EXPECT_TRUE(planned->looping_barriers.empty());
  const std::map<std::uint32_t, std::uint32_t> jumps{{barrier + 1, ParkedWalk::kEnd}};
  EXPECT_EQ(planned->jumps, jumps);
}

TEST(ParkedWalkTest, ExitsInTheMiddleAreExitsToo) {
  EXPECT_EQ(plan("@%p1 ret; bar.sync 0;")->exits.size(), 1u);
  EXPECT_EQ(plan("@%p1 exit; bar.sync 0;")->exits.size(), 1u);
}

TEST(ParkedWalkTest, PassesOverBranchesThatConcernNoBarrier) {
  const Planned planned = plan(kLeave + "bar.sync 0;\nsetp.eq.u32 %p3, %r1, 5; @%p3 bra OVER;\n" +
                               kStore + "OVER: bar.sync 0;");
  ASSERT_TRUE(planned.walk);
  EXPECT_EQ(planned->jumps.at(planned.index_of("bar") + 1), planned.index_of("bar", 1));
}

TEST(ParkedWalkTest, TakesBranchesOfTheBlockAndComputesTheirConditions) {
  const Planned planned =
      plan(kLeave + kStore + "add.u32 %r3, %r2, 1;\n" + kStore +
           "setp.eq.u32 %p3, %r3, 5; @%p3 bra OVER;\nbar.sync 0;\nOVER: bar.sync 0;");
  ASSERT_TRUE(planned.walk);
  const std::uint32_t sum = planned.index_of("add");
  EXPECT_EQ(planned->exits[0].stop, sum);
  EXPECT_EQ(planned->jumps.at(sum + 1), planned.index_of("setp", 2));
  EXPECT_EQ(planned->barriers.size(), 2u);
}

TEST(ParkedWalkTest, BarriersOfALoopAreKnown) {
  const Planned planned = plan("mov.u32 %r3, 0;\n" + kLeave + "LOOP: bar.sync 0;\n" + kStore +
                               "add.u32 %r3, %r3, 1; setp.lt.u32 %p3, %r3, %r2; @%p3 bra LOOP;\n"
                               "bar.sync 0;");
  ASSERT_TRUE(planned.walk);
  EXPECT_EQ(planned->barriers.size(), 2u);
  EXPECT_EQ(planned->looping_barriers, std::vector<std::uint32_t>{planned.index_of("bar")});
}

TEST(ParkedWalkTest, EntersALoopWhereItBegins) {
  const Planned planned = plan("mov.u32 %r3, 0;\n" + kLeave + "LOOP: " + kStore + "bar.sync 0;\n" +
                               "add.u32 %r3, %r3, 1; setp.lt.u32 %p3, %r3, %r2; @%p3 bra LOOP;");
  ASSERT_TRUE(planned.walk);
  const std::uint32_t header = planned.index_of("st");
  EXPECT_EQ(planned->exits[0].stop, header);
  EXPECT_EQ(planned->jumps.at(header), planned.index_of("bar"));
}

TEST(ParkedWalkTest, GoesRoundNoLoopInWhichItMayMeetNoBarrier) {
  // Its end is the way out of those who leave, so who is parked would never come to it.
  const std::string loop = "add.u32 %r3, %r3, 1; setp.lt.u32 %p3, %r3, %r1; @%p3 bra LOOP;";
  EXPECT_FALSE(plan("mov.u32 %r3, 0;\nLOOP: @%p2 bra ON; bar.sync 0;\nON: " + kStore + loop).walk);
  EXPECT_TRUE(
      plan("mov.u32 %r3, 0;\nLOOP: @%p2 bra ON; bar.sync 0;\nON: bar.sync 0;\n" + loop).walk);
}

TEST(ParkedWalkTest, AnExitUnderADifferingLoopConditionParks) {
  const Planned planned = plan(
      "mov.u32 %r3, 0;\nLOOP: bar.sync 0;\nadd.u32 %r3, %r3, 1;\n"
      "setp.lt.u32 %p3, %r3, %r1; @%p3 bra LOOP;");
  ASSERT_TRUE(planned.walk);
  EXPECT_EQ(planned->exits.size(), 1u);
}

TEST(ParkedWalkTest, WhatItCannotKnowMayNotDecideWhichBarrierIsNext) {
  const std::string decide =
      "setp.eq.u32 %p3, %r3, 5; @%p3 bra OVER;\nbar.sync 0;\nOVER:"
      " bar.sync 0;";
  EXPECT_FALSE(plan(kLeave + "ld.shared.u32 %r3, [words];\n" + decide).walk);
  EXPECT_FALSE(plan(kLeave + "ld.param.u64 %d1, [a]; ld.global.u32 %r3, [%d1];\n" + decide).walk);
  EXPECT_FALSE(plan(kLeave + "ld.volatile.param.u32 %r3, [n];\n" + decide).walk);
  EXPECT_TRUE(plan(kLeave + "ld.param.u32 %r3, [n];\n" + decide).walk);
  EXPECT_TRUE(plan(kLeave + "ld.const.u32 %r3, [table+4];\n" + decide).walk);
  EXPECT_FALSE(plan(kLeave + "ld.const.u32 %r3, [%d1];\n" + decide).walk) << "may fail";
  // Before the first exit it is there with the others.
  EXPECT_TRUE(plan("ld.shared.u32 %r3, [words];\n" + kLeave + decide).walk);
}

TEST(ParkedWalkTest, CarriesNoSumWithoutItsCarry) {
  const std::string decide =
      "setp.eq.u32 %p3, %r3, 5; @%p3 bra OVER;\nbar.sync 0;\nOVER: bar.sync 0;";
  EXPECT_FALSE(plan(kLeave + "add.cc.u32 %r4, %r2, %r2; addc.u32 %r3, %r2, 0;\n" + decide).walk);
}

TEST(ParkedWalkTest, OtherBarriersAreLeftAlone) {
  EXPECT_FALSE(plan(kLeave + "@%p2 bar.sync 0;").walk) << "guarded";
  EXPECT_FALSE(plan(kLeave + "bar.sync 0, 64;").walk) << "counts threads";
  EXPECT_FALSE(plan(kLeave + "bar.sync %r2;").walk) << "named by a register";
  EXPECT_FALSE(plan(kLeave + "bar.arrive 0, 64; bar.sync 0;").walk) << "does not wait";
  EXPECT_TRUE(plan(kLeave + "bar.sync 3;").walk);
  EXPECT_TRUE(plan(kLeave + "bar.red.or.pred %p3, 0, %p1;").walk);
}

}  // namespace
}  // namespace slate::injector
