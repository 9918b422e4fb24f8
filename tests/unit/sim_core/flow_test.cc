// Control flow: divergence, reconvergence, calls, exits and the schedule.
#include <gtest/gtest.h>

#include "tests/unit/sim_core/harness.h"

namespace slate::sim::test {
namespace {

TEST(FlowTest, VectorAddAddsEveryElement) {
  Machine machine;
  for (std::uint32_t i = 0; i < 256; ++i) {
    machine.words()[i] = i;
    machine.words_b()[i] = 1000 * i;
  }
  const std::string body = R"(
    mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x; mad.lo.s32 %r4, %r2, %r3, %r1;
    setp.ge.s32 %p1, %r4, 200;
    @%p1 bra DONE;
    mul.wide.s32 %rd6, %r4, 4;
    add.s64 %rd7, %rd1, %rd6; add.s64 %rd8, %rd2, %rd6;
    ld.global.u32 %r5, [%rd7]; ld.global.u32 %r6, [%rd8];
    add.s32 %r7, %r5, %r6;
    st.global.u32 [%rd7], %r7;
  DONE:)";
  Shape setup;
  setup.grid = {4, 1, 1};
  setup.block = {64, 1, 1};
  const Outcome outcome = machine.run(entry(body), setup);
  ASSERT_TRUE(outcome.ok()) << outcome.message();
  for (std::uint32_t i = 0; i < 256; ++i) EXPECT_EQ(machine.words()[i], i < 200 ? 1001 * i : i);
}

TEST(FlowTest, LanesLeaveALoopAfterTheirOwnTripCount) {
  Machine machine;
  const std::string body = R"(
    mov.u32 %r2, 0; mov.u32 %r3, 0;
  LOOP:
    add.s32 %r3, %r3, %r2;
    add.s32 %r2, %r2, 1;
    setp.le.u32 %p1, %r2, %r1;
    @%p1 bra LOOP;
    activemask.b32 %r4;
    st.global.u32 [%rd4], %r3;
    st.global.u32 [%rd5], %r4;)";
  ASSERT_TRUE(machine.run(entry(body)).ok());
  for (std::uint32_t i = 0; i < 32; ++i) {
    EXPECT_EQ(machine.words()[i], i * (i + 1) / 2);
    EXPECT_EQ(machine.words_b()[i], 0xffffffffu) << "not reconverged after the loop";
  }
}

TEST(FlowTest, ArmsOfAConditionMeetAgainBehindIt) {
  Machine machine;
  const std::string body = R"(
    and.b32 %r2, %r1, 1; setp.eq.u32 %p1, %r2, 0;
    @%p1 bra EVEN;
    mov.u32 %r3, 111;
    bra.uni JOIN;
  EVEN:
    mov.u32 %r3, 222;
  JOIN:
    activemask.b32 %r4;
    st.global.u32 [%rd4], %r3;
    st.global.u32 [%rd5], %r4;)";
  ASSERT_TRUE(machine.run(entry(body)).ok());
  for (std::uint32_t i = 0; i < 32; ++i) {
    EXPECT_EQ(machine.words()[i], i % 2 ? 111u : 222u);
    EXPECT_EQ(machine.words_b()[i], 0xffffffffu);
  }
}

TEST(FlowTest, ALaneMayTakeALockThatAnotherLaneHolds) {
  Machine machine;
  // Each lane spins on the lock in its own loop and releases it in another place.
  const std::string body = R"(
  AGAIN:
    atom.global.cas.b32 %r2, [%rd1], 0, 1;
    setp.ne.u32 %p1, %r2, 0;
    @%p1 bra AGAIN;
    ld.volatile.global.u32 %r3, [%rd1+4];
    add.u32 %r3, %r3, 1;
    st.volatile.global.u32 [%rd1+4], %r3;
    membar.gl;
    atom.global.exch.b32 %r4, [%rd1], 0;)";
  const Outcome outcome = machine.run(entry(body), {.block = {64, 1, 1}});
  ASSERT_TRUE(outcome.ok()) << outcome.message();
  EXPECT_EQ(machine.words()[1], 64u);
}

TEST(FlowTest, ReturnInADivergentFunctionComesBackToEveryCaller) {
  Machine machine;
  const std::string functions = R"(
.func (.param .b32 out) f(.param .b32 in)
{
  .reg .b32 %r<8>; .reg .pred %p<4>;
  ld.param.u32 %r1, [in];
  setp.lt.u32 %p1, %r1, 10;
  @!%p1 bra BIG;
  st.param.b32 [out], 7;
  ret;
BIG:
  mul.lo.u32 %r2, %r1, 2;
  st.param.b32 [out], %r2;
  ret;
})";
  const std::string body = R"(
    and.b32 %r5, %r1, 1; setp.eq.u32 %p1, %r5, 0;
    @%p1 bra EVEN;
    { .param .b32 p0; .param .b32 q0;
      st.param.b32 [p0], %r1;
      call.uni (q0), f, (p0);
      ld.param.b32 %r6, [q0]; }
    bra.uni JOIN;
  EVEN:
    add.u32 %r7, %r1, 100;
    { .param .b32 p0; .param .b32 q0;
      st.param.b32 [p0], %r7;
      call.uni (q0), f, (p0);
      ld.param.b32 %r6, [q0]; }
  JOIN:
    activemask.b32 %r8;
    st.global.u32 [%rd4], %r6;
    st.global.u32 [%rd5], %r8;)";
  const Outcome outcome = machine.run(entry(body, functions));
  ASSERT_TRUE(outcome.ok()) << outcome.message();
  for (std::uint32_t i = 0; i < 32; ++i) {
    const std::uint32_t in = i % 2 ? i : i + 100;
    EXPECT_EQ(machine.words()[i], in < 10 ? 7 : 2 * in);
    EXPECT_EQ(machine.words_b()[i], 0xffffffffu);
  }
}

TEST(FlowTest, RecursionGivesEveryDepthItsOwnRegisters) {
  Machine machine;
  const std::string functions = R"(
.func (.reg .b32 out) factorial(.reg .b32 n)
{
  .reg .b32 %r<8>; .reg .pred %p<4>;
  setp.le.u32 %p1, n, 1;
  mov.u32 out, 1;
  @%p1 ret;
  sub.u32 %r1, n, 1;
  call (%r2), factorial, (%r1);
  mul.lo.u32 out, %r2, n;
  ret;
})";
  const std::string body = R"(
    and.b32 %r2, %r1, 7;
    call (%r3), factorial, (%r2);
    st.global.u32 [%rd4], %r3;)";
  const Outcome outcome = machine.run(entry(body, functions));
  ASSERT_TRUE(outcome.ok()) << outcome.message();
  const std::uint32_t expected[8] = {1, 1, 2, 6, 24, 120, 720, 5040};
  for (std::uint32_t i = 0; i < 32; ++i) EXPECT_EQ(machine.words()[i], expected[i % 8]);
}

TEST(FlowTest, EndlessRecursionFaults) {
  Machine machine;
  const std::string functions = R"(
.func f() { call f; ret; }
)";
  const Outcome outcome = machine.run(entry("call f;", functions));
  ASSERT_FALSE(outcome.ok());
  EXPECT_EQ(outcome.error->code, ErrorCode::kLaunchFailed);
  EXPECT_NE(outcome.message().find("stack"), std::string::npos) << outcome.message();
}

TEST(FlowTest, StacksGrowToTheSizeOfCudasLargest) {
  // 16 KiB a thread each time.
  const std::string functions = R"(
.func f(.reg .b32 n)
{
  .reg .b32 %r<2>; .reg .pred %p<2>; .param .b8 q[16384];
  st.param.u32 [q], n;
  setp.eq.u32 %p1, n, 0; @%p1 ret;
  sub.u32 %r1, n, 1;
  call f, (%r1);
  ret;
})";
  for (const int depth : {20, 40}) {
    Machine machine;
    const Outcome outcome =
        machine.run(entry("call f, (" + std::to_string(depth) + ");", functions));
    EXPECT_EQ(outcome.ok(), depth == 20) << outcome.message();
    EXPECT_EQ(outcome.message().find("stack") != std::string::npos, depth == 40);
  }
}

TEST(FlowTest, IndirectCallsGoWhereEachLanePoints) {
  Machine machine;
  const std::string functions = R"(
.func (.param .b32 out) f(.param .b32 in);
.func (.param .b32 out) g(.param .b32 in);
.global .align 8 .u64 table[2] = {f, g};
.func (.param .b32 out) f(.param .b32 in)
{ .reg .b32 %r<4>; ld.param.b32 %r1, [in]; add.u32 %r1, %r1, 1; st.param.b32 [out], %r1; ret; }
.func (.param .b32 out) g(.param .b32 in)
{ .reg .b32 %r<4>; ld.param.b32 %r1, [in]; add.u32 %r1, %r1, 1000; st.param.b32 [out], %r1; ret; }
)";
  const std::string body = R"(
    and.b32 %r2, %r1, 1; mul.wide.u32 %rd6, %r2, 8;
    mov.u64 %rd7, table; add.s64 %rd7, %rd7, %rd6;
    ld.global.u64 %rd8, [%rd7];
    { .param .b32 p0; .param .b32 q0;
      st.param.b32 [p0], %r1;
      proto: .callprototype (.param .b32 _) _ (.param .b32 _);
      call (q0), %rd8, (p0), proto;
      ld.param.b32 %r6, [q0]; }
    st.global.u32 [%rd4], %r6;)";
  const Outcome outcome = machine.run(entry(body, functions));
  ASSERT_TRUE(outcome.ok()) << outcome.message();
  for (std::uint32_t i = 0; i < 32; ++i) EXPECT_EQ(machine.words()[i], i + (i % 2 ? 1000 : 1));
}

TEST(FlowTest, AFunctionMayBeCalledByItsAlias) {
  Machine machine;
  const std::string functions = R"(
.visible .func (.reg .b32 out) f(.reg .b32 in) { add.u32 out, in, 3; ret; }
.visible .func (.reg .b32 out) other(.reg .b32 in);
.alias other, f;
)";
  const Outcome outcome =
      machine.run(entry("call (%r6), other, (%r1); st.global.u32 [%rd4], %r6;", functions));
  ASSERT_TRUE(outcome.ok()) << outcome.message();
  for (std::uint32_t i = 0; i < 32; ++i) EXPECT_EQ(machine.words()[i], i + 3);
}

TEST(FlowTest, BranchTablesSendLanesToTheirEntry) {
  Machine machine;
  const std::string body = R"(
    and.b32 %r2, %r1, 3;
    TABLE: .branchtargets L0, L1, L2, L3;
    brx.idx %r2, TABLE;
  L0: mov.u32 %r3, 10; bra JOIN;
  L1: mov.u32 %r3, 11; bra JOIN;
  L2: mov.u32 %r3, 12; bra JOIN;
  L3: mov.u32 %r3, 13;
  JOIN:
    st.global.u32 [%rd4], %r3;)";
  const Outcome outcome = machine.run(entry(body));
  ASSERT_TRUE(outcome.ok()) << outcome.message();
  for (std::uint32_t i = 0; i < 32; ++i) EXPECT_EQ(machine.words()[i], 10 + i % 4);
}

TEST(FlowTest, ABranchTableMeansTheLabelsOfItsOwnScope) {
  Machine machine;
  const std::string body = R"(
    and.b32 %r2, %r1, 1;
    mov.u32 %r3, 0;
    { A: add.u32 %r3, %r3, 1;
      B: add.u32 %r3, %r3, 1;
      setp.gt.u32 %p1, %r3, 2;
      @%p1 bra END; }
    { TABLE: .branchtargets A, B;
      brx.idx %r2, TABLE;
      A: add.u32 %r3, %r3, 10; bra END;
      B: add.u32 %r3, %r3, 20; }
  END:
    st.global.u32 [%rd4], %r3;)";
  const Outcome outcome = machine.run(entry(body));
  ASSERT_TRUE(outcome.ok()) << outcome.message();
  for (std::uint32_t i = 0; i < 32; ++i) EXPECT_EQ(machine.words()[i], 12 + i % 2 * 10);
}

TEST(FlowTest, GuardsActOnEachLane) {
  Machine machine;
  const std::string body = R"(
    setp.lt.u32 %p1, %r1, 5;
    mov.u32 %r2, 1;
    @%p1 mov.u32 %r2, 2;
    @!%p1 add.u32 %r2, %r2, 10;
    @%p1 exit;
    st.global.u32 [%rd4], %r2;)";
  ASSERT_TRUE(machine.run(entry(body)).ok());
  for (std::uint32_t i = 0; i < 32; ++i) EXPECT_EQ(machine.words()[i], i < 5 ? 0u : 11u);
}

TEST(FlowTest, TrapFaultsWithItsLine) {
  Machine machine;
  const Outcome outcome = machine.run(entry("setp.eq.u32 %p1, %r1, 9;\n@%p1 trap;"));
  ASSERT_FALSE(outcome.ok());
  EXPECT_EQ(outcome.error->code, ErrorCode::kLaunchFailed);
  EXPECT_NE(outcome.message().find("kernel k, block (0,0,0), thread (9,0,0), line"),
            std::string::npos)
      << outcome.message();
}

TEST(FlowTest, RandomSchedulesGiveTheSameResultAndOneSeedTheSameOrder) {
  // Each warp appends its number to a list: the order shows the schedule.
  const std::string body = R"(
    mov.u32 %r2, 0;
  LOOP:
    and.b32 %r3, %r1, 31; setp.ne.u32 %p1, %r3, 0;
    @%p1 bra SKIP;
    atom.global.add.u32 %r4, [%rd2], 1;
    mul.wide.u32 %rd6, %r4, 4; add.s64 %rd6, %rd6, %rd2;
    shr.u32 %r5, %r1, 5; st.global.u32 [%rd6+4], %r5;
  SKIP:
    atom.global.add.u32 %r6, [%rd1], %r1;
    add.u32 %r2, %r2, 1; setp.lt.u32 %p2, %r2, 20;
    @%p2 bra LOOP;)";
  std::vector<std::vector<std::uint32_t>> orders;
  for (const std::uint64_t seed : {1, 1, 2, 3}) {
    Machine machine;
    Shape setup;
    setup.block = {128, 1, 1};
    setup.seed = seed;
    setup.quantum = 16;
    ASSERT_TRUE(machine.run(entry(body), setup).ok());
    EXPECT_EQ(machine.words()[0], 20u * (127u * 128u / 2));
    ASSERT_EQ(machine.words_b()[0], 80u);
    orders.emplace_back(machine.words_b() + 1, machine.words_b() + 81);
  }
  EXPECT_EQ(orders[0], orders[1]);
  EXPECT_NE(orders[0], orders[2]);
  EXPECT_NE(orders[2], orders[3]);
}

TEST(FlowTest, SpecialRegistersDescribeTheThread) {
  Machine machine;
  const std::string body = R"(
    mov.u32 %r2, %ctaid.y; mov.u32 %r3, %nctaid.x; mov.u32 %r4, %tid.y; mov.u32 %r5, %laneid;
    mov.u32 %r6, %lanemask_lt; mov.u32 %r7, %smid; mov.u32 %r8, %nsmid; mov.u32 %r9, %warpid;
    mov.u32 %r10, %ntid.y; mov.u32 %r12, %nwarpid;
    mov.u32 %r11, WARP_SZ;
    setp.ne.u32 %p1, %r4, 3; @%p1 bra DONE;
    setp.ne.u32 %p1, %r1, 5; @%p1 bra DONE;
    st.global.v4.u32 [%rd1], {%r2, %r3, %r4, %r5};
    st.global.v4.u32 [%rd1+16], {%r6, %r7, %r8, %r9};
    st.global.v4.u32 [%rd1+32], {%r10, %r11, %r12, %r1};
  DONE:)";
  Shape setup;
  setup.grid = {2, 3, 1};
  setup.block = {16, 4, 1};
  ASSERT_TRUE(machine.run(entry(body), setup).ok());
  // The last block is (1,2), index 5, on SM 1; thread (5,3) is linear 53: warp 1, lane 21.
  const std::vector<std::uint32_t> expected = {2, 2, 3, 21, (1u << 21) - 1, 1, 4, 1, 4, 32, 2, 5};
  EXPECT_EQ(std::vector<std::uint32_t>(machine.words(), machine.words() + 12), expected);
}

TEST(FlowTest, ASleepingSpinReturnsEarlyAndEndsWhenReleased) {
  Machine machine;
  const std::string body = R"(
    setp.ge.u32 %p2, %r1, 32;
    @%p2 bra RELEASE;
  SPIN:
    nanosleep.u32 100;
    ld.acquire.gpu.global.u32 %r2, [%rd1];
    setp.eq.u32 %p1, %r2, 0;
    @%p1 bra SPIN;
    st.global.u32 [%rd5], 5;
    bra DONE;
  RELEASE:
    st.release.gpu.global.u32 [%rd1], 1;
  DONE:)";
  ASSERT_TRUE(machine.run(entry(body), {.block = {64, 1, 1}}).ok());
  for (std::uint32_t i = 0; i < 32; ++i) EXPECT_EQ(machine.words_b()[i], 5u);
}

}  // namespace
}  // namespace slate::sim::test
