// What becomes of a kernel's barriers behind the fence: they stay as they are, or lose `.aligned`.
#include <gtest/gtest.h>

#include "injector/fence/fence.h"

namespace slate::injector {
namespace {

enum class Becomes { kItself, kLoose };

/// What becomes of the barrier in the body, which is written as `bar.sync 0`.
Becomes barrier_of(std::string_view body, std::string_view barrier = "bar.sync 0;") {
  std::string text =
      ".version 8.7\n.target sm_90\n.address_size 64\n.func f { ret; }\n"
      ".visible .entry kernel(.param .u64 p, .param .u32 n)\n{\n"
      ".reg .pred %p<9>;\n.reg .b32 %r<9>;\n.reg .b64 %rd<9>;\n"
      "ld.param.u64 %rd1, [p];\nld.param.u32 %r1, [n];\nmov.u32 %r2, %tid.x;\n"
      "setp.eq.u32 %p1, %r2, 5;\nsetp.eq.u32 %p2, %r1, 5;\n";
  text.append(body).append("\nret;\n}\n");
  const auto module = ptx::parse(text);
  EXPECT_TRUE(module) << module.error().message;
  const auto fenced = fence(**module, {});
  EXPECT_TRUE(fenced) << fenced.error().message;
  EXPECT_EQ(fenced->entries.front().why_not, "");
  if (fenced->ptx.contains(barrier)) return Becomes::kItself;
  EXPECT_TRUE(fenced->ptx.contains("barrier.")) << fenced->ptx;
  return Becomes::kLoose;
}

TEST(FenceBarriersTest, OneThatAllThreadsComeToTogetherStaysAsItIs) {
  EXPECT_EQ(barrier_of("bar.sync 0;"), Becomes::kItself);
  EXPECT_EQ(barrier_of("@%p2 bra OUT;\nbar.sync 0;\nOUT:"), Becomes::kItself);
  EXPECT_EQ(barrier_of("@%p1 bra OTHER;\nmov.u32 %r3, 1;\nOTHER:\nbar.sync 0;"), Becomes::kItself);
}

TEST(FenceBarriersTest, BehindAnEarlyReturnItStaysWhereTheOtherLanesComeTogether) {
  EXPECT_EQ(barrier_of("@%p1 ret;\nbar.sync 0;"), Becomes::kItself);
  EXPECT_EQ(barrier_of("@%p1 bra OUT;\nbar.sync 0;\nOUT:"), Becomes::kItself);
  EXPECT_EQ(barrier_of("@!%p1 bra ON;\nst.global.u32 [%rd1], %r1;\nret;\nON:\nbar.sync 0;"),
            Becomes::kItself);
  EXPECT_EQ(barrier_of("mov.u32 %r3, 0;\nLOOP:\nsetp.eq.u32 %p3, %r2, %r3;\n@%p3 bra OUT;\n"
                       "bar.sync 0;\nadd.u32 %r3, %r3, 1;\nsetp.lt.u32 %p4, %r3, %r1;\n"
                       "@%p4 bra LOOP;\nOUT:\nst.global.u32 [%rd1], %r1;"),
            Becomes::kItself);
  EXPECT_EQ(barrier_of("@%p1 ret;\nbar.red.or.pred %p3, 0, %p2;", "bar.red.or.pred %p3, 0, %p2;"),
            Becomes::kItself);
}

TEST(FenceBarriersTest, OneThatAPartOfTheOtherLanesComesToIsLoose) {
  EXPECT_EQ(barrier_of("@%p1 bra OTHER;\nbar.sync 0;\nbra OUT;\nOTHER:\nbar.sync 0;\nOUT:"),
            Becomes::kLoose);
  EXPECT_EQ(barrier_of("@%p1 bra NEXT;\nbar.sync 0;\nNEXT:\nbar.sync 1;"), Becomes::kLoose);
  EXPECT_EQ(barrier_of("@%p1 bar.sync 0;\nbar.sync 1;"), Becomes::kLoose);
}

TEST(FenceBarriersTest, LanesThatMeetOthersBeforeTheirEndAreNotWaitedFor) {
  EXPECT_EQ(barrier_of("@!%p1 bra ON;\nbar.warp.sync 0xffffffff;\nret;\nON:\nbar.sync 0;"),
            Becomes::kLoose);
  EXPECT_EQ(barrier_of("@!%p1 bra ON;\nshfl.sync.idx.b32 %r3, %r1, 0, 31, -1;\nret;\nON:\n"
                       "bar.sync 0;"),
            Becomes::kLoose);
  EXPECT_EQ(barrier_of("@!%p1 bra ON;\ncall f;\nret;\nON:\nbar.sync 0;"), Becomes::kLoose);
}

TEST(FenceBarriersTest, ABarrierOfAPartOfTheBlockDoesNotWaitForThem) {
  EXPECT_EQ(barrier_of("@%p1 ret;\nbar.sync 1, 64;", "bar.sync 1, 64;"), Becomes::kLoose);
  EXPECT_EQ(barrier_of("@%p1 ret;\nbar.sync %r1;", "bar.sync %r1;"), Becomes::kLoose);
}

}  // namespace
}  // namespace slate::injector
