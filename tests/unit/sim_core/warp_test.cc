// Barriers and the instructions that look across the lanes of a warp.
#include <gtest/gtest.h>

#include <bit>

#include "tests/unit/sim_core/harness.h"

namespace slate::sim::test {
namespace {

TEST(BarrierTest, OrdersStoresAndLoadsOfAllWarps) {
  Machine machine;
  const std::string body = R"(
    .shared .align 4 .b32 words[256];
    mov.u32 %r2, words; mad.lo.u32 %r3, %r1, 4, %r2; st.shared.u32 [%r3], %r1;
    bar.sync 0;
    sub.u32 %r4, 255, %r1; mad.lo.u32 %r3, %r4, 4, %r2; ld.shared.u32 %r5, [%r3];
    st.global.u32 [%rd4], %r5;)";
  for (const std::uint64_t seed : {0, 1, 2}) {
    Shape setup;
    setup.block = {256, 1, 1};
    setup.quantum = 3;
    if (seed) setup.seed = seed;
    const Outcome outcome = machine.run(entry(body), setup);
    ASSERT_TRUE(outcome.ok()) << outcome.message();
    for (std::uint32_t i = 0; i < 256; ++i) EXPECT_EQ(machine.words()[i], 255 - i);
  }
}

TEST(BarrierTest, ThreadsThatHaveExitedAreNotWaitedFor) {
  Machine machine;
  const std::string body = R"(
    setp.ge.u32 %p1, %r1, 40; @%p1 ret;
    bar.sync 0;
    st.global.u32 [%rd4], 1;)";
  const Outcome outcome = machine.run(entry(body), {.block = {128, 1, 1}});
  ASSERT_TRUE(outcome.ok()) << outcome.message();
  for (std::uint32_t i = 0; i < 128; ++i) EXPECT_EQ(machine.words()[i], i < 40 ? 1u : 0u);
}

TEST(BarrierTest, AnExitCompletesABarrierThatOthersWaitAt) {
  Machine machine;
  // Warp 1 leaves late, while warp 0 waits.
  const std::string body = R"(
    setp.lt.u32 %p1, %r1, 32; @%p1 bra WAIT;
    mov.u32 %r2, 0;
  DELAY: add.u32 %r2, %r2, 1; setp.lt.u32 %p2, %r2, 2000; @%p2 bra DELAY;
    exit;
  WAIT:
    bar.sync 0;
    st.global.u32 [%rd4], 1;)";
  const Outcome outcome = machine.run(entry(body), {.block = {64, 1, 1}});
  ASSERT_TRUE(outcome.ok()) << outcome.message();
  EXPECT_EQ(machine.words()[31], 1u);
}

TEST(BarrierTest, DivergedLanesMayArriveAtDifferentInstructions) {
  Machine machine;
  const std::string body = R"(
    and.b32 %r2, %r1, 1; setp.eq.u32 %p1, %r2, 0; @%p1 bra EVEN;
    barrier.sync 0; bra JOIN;
  EVEN:
    barrier.sync 0;
  JOIN:
    st.global.u32 [%rd4], 1;)";
  const Outcome outcome = machine.run(entry(body), {.block = {64, 1, 1}});
  ASSERT_TRUE(outcome.ok()) << outcome.message();
  EXPECT_EQ(machine.words()[63], 1u);
}

TEST(BarrierTest, NamedBarriersLinkProducersAndConsumers) {
  Machine machine;
  // Warp 0 produces and only arrives; warp 1 consumes; warp 2 has no part in it.
  const std::string body = R"(
    .shared .align 4 .b32 cell;
    shr.u32 %r2, %r1, 5;
    setp.eq.u32 %p1, %r2, 0; setp.eq.u32 %p2, %r2, 1;
    @%p1 bra PRODUCE;
    @%p2 bra CONSUME;
    exit;
  PRODUCE:
    st.shared.u32 [cell], 42;
    bar.arrive 3, 64;
    exit;
  CONSUME:
    bar.sync 3, 64;
    ld.shared.u32 %r3, [cell]; st.global.u32 [%rd4], %r3;)";
  Shape setup;
  setup.block = {96, 1, 1};
  for (const std::uint64_t seed : {1, 2, 3, 4}) {
    setup.seed = seed;
    const Outcome outcome = machine.run(entry(body), setup);
    ASSERT_TRUE(outcome.ok()) << outcome.message();
    EXPECT_EQ(machine.words()[40], 42u);
    EXPECT_EQ(machine.words()[70], 0u);
  }
}

TEST(BarrierTest, ReductionsGiveEveryThreadTheResult) {
  Machine machine;
  const std::string body = R"(
    setp.lt.u32 %p1, %r1, 50; setp.lt.u32 %p5, %r1, 1000;
    bar.red.popc.u32 %r2, 0, %p1;
    bar.red.and.pred %p2, 0, %p1; bar.red.or.pred %p3, 0, !%p5; bar.red.and.pred %p4, 0, %p5;
    selp.u32 %r3, 1, 0, %p2; @%p3 add.u32 %r3, %r3, 2; @%p4 add.u32 %r3, %r3, 4;
    st.global.u32 [%rd4], %r2; st.global.u32 [%rd5], %r3;)";
  const Outcome outcome = machine.run(entry(body), {.block = {96, 1, 1}});
  ASSERT_TRUE(outcome.ok()) << outcome.message();
  for (std::uint32_t i = 0; i < 96; ++i) {
    EXPECT_EQ(machine.words()[i], 50u);
    EXPECT_EQ(machine.words_b()[i], 4u);
  }
}

TEST(BarrierTest, ThereAreSixteenBarriersOfWholeWarps) {
  Machine machine;
  EXPECT_TRUE(machine.run(entry("bar.sync 15;")).ok());
  EXPECT_TRUE(machine.run(entry("barrier.cluster.arrive; barrier.cluster.wait;")).ok());
  for (const char* const body :
       {"bar.sync 16;", "mov.u32 %r2, 16; bar.sync %r2;", "mov.u32 %r2, 33; bar.sync 0, %r2;",
        "mov.u32 %r2, 2048; bar.arrive 0, %r2;"}) {
    const Outcome outcome = machine.run(entry(body));
    ASSERT_FALSE(outcome.ok()) << body;
    EXPECT_EQ(outcome.error->code, ErrorCode::kIllegalInstruction);
  }
}

TEST(BarrierTest, ADeadlockIsNamed) {
  Machine machine;
  const std::string body = R"(
    setp.ge.u32 %p1, %r1, 32; @%p1 bra OTHER;
    bar.sync 1;
    ret;
  OTHER:
    bar.sync 2;)";
  const Outcome outcome = machine.run(entry(body), {.block = {64, 1, 1}});
  ASSERT_FALSE(outcome.ok());
  EXPECT_EQ(outcome.error->code, ErrorCode::kLaunchTimeout);
  EXPECT_NE(outcome.message().find("thread (0,0,0), line 17: bar.sync waits at barrier 1"),
            std::string::npos)
      << outcome.message();
  EXPECT_NE(outcome.message().find("thread (32,0,0), line 20: bar.sync waits at barrier 2"),
            std::string::npos)
      << outcome.message();
}

TEST(WarpTest, ShufflesFollowTheirModes) {
  Machine machine;
  const std::string body = R"(
    mul.lo.u32 %r2, %r1, 10;
    shfl.sync.up.b32 %r3|%p1, %r2, 2, 0, 0xffffffff;
    shfl.sync.down.b32 %r4|%p2, %r2, 3, 31, 0xffffffff;
    shfl.sync.bfly.b32 %r5, %r2, 1, 31, 0xffffffff;
    shfl.sync.idx.b32 %r6|%p3, %r2, 1, 0x1803, 0xffffffff;
    selp.u32 %r7, 1, 0, %p1; @%p2 add.u32 %r7, %r7, 2; @%p3 add.u32 %r7, %r7, 4;
    mul.wide.u32 %rd6, %r1, 20; add.s64 %rd6, %rd6, %rd1;
    st.global.u32 [%rd6], %r3; st.global.u32 [%rd6+4], %r4; st.global.u32 [%rd6+8], %r5;
    st.global.u32 [%rd6+12], %r6; st.global.u32 [%rd6+16], %r7;)";
  const Outcome outcome = machine.run(entry(body));
  ASSERT_TRUE(outcome.ok()) << outcome.message();
  for (std::uint32_t i = 0; i < 32; ++i) {
    const std::uint32_t* const out = machine.words() + 5 * i;
    EXPECT_EQ(out[0], 10 * (i < 2 ? i : i - 2));
    EXPECT_EQ(out[1], 10 * (i + 3 > 31 ? i : i + 3));
    EXPECT_EQ(out[2], 10 * (i ^ 1));
    EXPECT_EQ(out[3], 10 * ((i & 0x18) | 1)) << "segments of eight lanes";
    EXPECT_EQ(out[4], (i >= 2 ? 1u : 0u) + (i + 3 <= 31 ? 2u : 0u) + 4u);
  }
}

TEST(WarpTest, SynchronousInstructionsWaitForTheLanesTheyName) {
  Machine machine;
  // Odd lanes take a detour before the shuffle, in a part that is ranked behind it.
  const std::string body = R"(
    mov.u32 %r2, %r1; and.b32 %r3, %r1, 1; setp.eq.u32 %p1, %r3, 1;
    @%p1 bra DETOUR;
  MEET:
    shfl.sync.bfly.b32 %r5, %r2, 1, 31, 0xffffffff;
    vote.sync.ballot.b32 %r6, %p1, 0xffffffff;
    st.global.u32 [%rd4], %r5; st.global.u32 [%rd5], %r6;
    exit;
  DETOUR:
    add.u32 %r2, %r2, 100;
    bra MEET;)";
  const Outcome outcome = machine.run(entry(body));
  ASSERT_TRUE(outcome.ok()) << outcome.message();
  for (std::uint32_t i = 0; i < 32; ++i) {
    EXPECT_EQ(machine.words()[i], i % 2 ? i - 1 : i + 1 + 100);
    EXPECT_EQ(machine.words_b()[i], 0xaaaaaaaau);
  }
}

TEST(WarpTest, MemberMasksMayDifferBetweenGroups) {
  Machine machine;
  const std::string body = R"(
    and.b32 %r2, %r1, 24; mov.u32 %r3, 255; shl.b32 %r4, %r3, %r2;
    and.b32 %r5, %r1, 3; setp.eq.u32 %p1, %r5, 0;
    redux.sync.add.s32 %r6, %r1, %r4;
    vote.sync.ballot.b32 %r7, %p1, %r4;
    st.global.u32 [%rd4], %r6; st.global.u32 [%rd5], %r7;)";
  const Outcome outcome = machine.run(entry(body));
  ASSERT_TRUE(outcome.ok()) << outcome.message();
  for (std::uint32_t i = 0; i < 32; ++i) {
    const std::uint32_t first = i / 8 * 8;
    EXPECT_EQ(machine.words()[i], 8 * first + 28);
    EXPECT_EQ(machine.words_b()[i], 0x11u << first);
  }
}

TEST(WarpTest, ExitedLanesAreNotWaitedFor) {
  Machine machine;
  const std::string body = R"(
    setp.ge.u32 %p1, %r1, 20; @%p1 exit;
    setp.lt.u32 %p2, %r1, 4;
    vote.sync.ballot.b32 %r2, %p2, 0xffffffff;
    vote.sync.any.pred %p3, %p2, 0xffffffff; vote.sync.all.pred %p4, %p2, 0xffffffff;
    selp.u32 %r3, 1, 0, %p3; @%p4 add.u32 %r3, %r3, 2;
    bar.warp.sync 0xffffffff;
    st.global.u32 [%rd4], %r2; st.global.u32 [%rd5], %r3;)";
  const Outcome outcome = machine.run(entry(body));
  ASSERT_TRUE(outcome.ok()) << outcome.message();
  EXPECT_EQ(machine.words()[19], 15u);
  EXPECT_EQ(machine.words_b()[0], 1u);
  EXPECT_EQ(machine.words()[20], 0u);
}

TEST(WarpTest, WarpBarriersMayBeMetInBothArmsOfACondition) {
  Machine machine;
  const std::string body = R"(
    and.b32 %r2, %r1, 1; setp.eq.u32 %p1, %r2, 0; @%p1 bra EVEN;
    bar.warp.sync 0xffffffff;
    ld.volatile.global.u32 %r3, [%rd2]; st.global.u32 [%rd4], %r3;
    bra JOIN;
  EVEN:
    st.volatile.global.u32 [%rd2], 9;
    bar.warp.sync 0xffffffff;
  JOIN:)";
  const Outcome outcome = machine.run(entry(body));
  ASSERT_TRUE(outcome.ok()) << outcome.message();
  for (std::uint32_t i = 1; i < 32; i += 2) EXPECT_EQ(machine.words()[i], 9u);
}

TEST(WarpTest, NegatedPredicatesLeaveThoseOfLanesElsewhereAlone) {
  Machine machine;
  // Odd lanes wait with two predicates in hand, whose places the even lanes' part has again.
  const std::string body = R"(
    and.b32 %r2, %r1, 1; setp.eq.u32 %p1, %r2, 0; @%p1 bra EVEN;
    setp.ne.u32 %p2, %r2, 0; setp.lt.u32 %p3, %r1, 100;
    bar.warp.sync 0xffffffff;
    selp.u32 %r3, 1, 0, %p2; @%p3 add.u32 %r3, %r3, 2;
    st.global.u32 [%rd4], %r3;
    exit;
  EVEN:
    setp.lt.u32 %p4, %r1, 8;
    vote.sync.any.pred %p5, !%p4, 0x55555555;
    selp.u32 %r3, 4, 0, %p5;
    bar.warp.sync 0xffffffff;
    st.global.u32 [%rd4], %r3;)";
  const Outcome outcome = machine.run(entry(body));
  ASSERT_TRUE(outcome.ok()) << outcome.message();
  for (std::uint32_t i = 0; i < 32; ++i) EXPECT_EQ(machine.words()[i], i % 2 ? 3u : 4u) << i;
}

TEST(WarpTest, AShuffleThatWaitsForALaneElsewhereIsADeadlock) {
  Machine machine;
  const std::string body = R"(
    setp.eq.u32 %p1, %r1, 0; @%p1 bra OTHER;
    shfl.sync.idx.b32 %r2, %r1, 0, 31, 0xffffffff;
    exit;
  OTHER:
    bar.sync 0;)";
  const Outcome outcome = machine.run(entry(body));
  ASSERT_FALSE(outcome.ok());
  EXPECT_EQ(outcome.error->code, ErrorCode::kLaunchTimeout);
}

TEST(WarpTest, MatchFindsEqualValues) {
  Machine machine;
  const std::string body = R"(
    and.b32 %r2, %r1, 3; cvt.u64.u32 %rd6, %r2;
    match.any.sync.b32 %r3, %r2, 0xffffffff;
    match.all.sync.b64 %r4|%p1, %rd6, 0xffffffff;
    match.all.sync.b32 %r5|%p2, 8, 0xffffffff;
    selp.u32 %r6, 1, 0, %p1; @%p2 add.u32 %r6, %r6, 2; add.u32 %r6, %r6, %r4;
    st.global.u32 [%rd4], %r3; st.global.u32 [%rd5], %r6;)";
  const Outcome outcome = machine.run(entry(body));
  ASSERT_TRUE(outcome.ok()) << outcome.message();
  for (std::uint32_t i = 0; i < 32; ++i) {
    EXPECT_EQ(machine.words()[i], 0x11111111u << i % 4);
    EXPECT_EQ(machine.words_b()[i], 2u);
  }
}

TEST(WarpTest, ReductionsKnowSignsAndBits) {
  Machine machine;
  const std::string body = R"(
    sub.s32 %r2, %r1, 5;
    redux.sync.min.s32 %r3, %r2, 0xffffffff; redux.sync.min.u32 %r4, %r2, 0xffffffff;
    redux.sync.max.s32 %r5, %r2, 0xffffffff; redux.sync.xor.b32 %r6, %r2, 0xffffffff;
    elect.sync %r7|%p1, 0xffffffff; selp.u32 %r8, 100, 0, %p1; add.u32 %r8, %r8, %r7;
    st.global.v4.u32 [%rd1], {%r3, %r4, %r5, %r6};
    st.global.u32 [%rd5], %r8;)";
  const Outcome outcome = machine.run(entry(body));
  ASSERT_TRUE(outcome.ok()) << outcome.message();
  std::uint32_t bits = 0;
  for (std::uint32_t i = 0; i < 32; ++i) bits ^= i - 5;
  EXPECT_EQ(machine.words()[0], static_cast<std::uint32_t>(-5));
  EXPECT_EQ(machine.words()[1], 0u);
  EXPECT_EQ(machine.words()[2], 26u);
  EXPECT_EQ(machine.words()[3], bits);
  EXPECT_EQ(machine.words_b()[0], 100u);
  EXPECT_EQ(machine.words_b()[1], 0u);
}

TEST(WarpTest, ReductionsOfFloatsKnowMagnitudesAndNaN) {
  Machine machine;
  const std::string body = R"(
    cvt.rn.f32.u32 %f1, %r1; sub.f32 %f1, %f1, 0f41A00000; setp.eq.u32 %p1, %r1, 7;
    mov.f32 %f2, %f1; @%p1 mov.f32 %f2, 0f7FC00000;
    redux.sync.min.f32 %f3, %f2, 0xffffffff; redux.sync.max.abs.f32 %f4, %f1, 0xffffffff;
    redux.sync.max.NaN.f32 %f5, %f2, 0xffffffff; redux.sync.min.abs.NaN.f32 %f6, %f1, 0xffffffff;
    st.global.v4.f32 [%rd1], {%f3, %f4, %f5, %f6};)";
  const Outcome outcome = machine.run(entry(body));
  ASSERT_TRUE(outcome.ok()) << outcome.message();
  EXPECT_EQ(std::bit_cast<float>(machine.words()[0]), -20.0f);
  EXPECT_EQ(std::bit_cast<float>(machine.words()[1]), 20.0f);
  EXPECT_EQ(machine.words()[2], 0x7fffffffu);
  EXPECT_EQ(machine.words()[3], 0u);
  EXPECT_FALSE(machine.run(entry("redux.sync.min.abs.s32 %r2, %r1, 0xffffffff;")).ok());
}

TEST(WarpTest, OldShufflesAndVotesTakeTheActiveLanes) {
  Machine machine;
  const std::string body = R"(
    setp.lt.u32 %p1, %r1, 8; @!%p1 bra DONE;
    shfl.bfly.b32 %r2, %r1, 1, 31;
    vote.ballot.b32 %r3, %p1; vote.all.pred %p2, %p1; selp.u32 %r4, 1, 0, %p2; add.u32 %r3, %r3, %r4;
    st.global.u32 [%rd4], %r2; st.global.u32 [%rd5], %r3;
  DONE:)";
  const Outcome outcome = machine.run(entry(body));
  ASSERT_TRUE(outcome.ok()) << outcome.message();
  EXPECT_EQ(machine.words()[6], 7u);
  EXPECT_EQ(machine.words_b()[6], 256u);
}

}  // namespace
}  // namespace slate::sim::test
