// Memory: spaces, widths, vectors, atomics, and what happens to accesses that are not allowed.
#include <gtest/gtest.h>

#include <bit>

#include "tests/unit/sim_core/harness.h"

namespace slate::sim::test {
namespace {

TEST(MemoryTest, VectorsMoveAllTheirElements) {
  Machine machine;
  for (std::uint32_t i = 0; i < 128; ++i) machine.words()[i] = i;
  const std::string body = R"(
    mul.wide.u32 %rd6, %r1, 16; add.s64 %rd7, %rd1, %rd6; add.s64 %rd8, %rd2, %rd6;
    ld.global.v4.u32 {%r2, %r3, %r4, %r5}, [%rd7];
    add.u32 %r2, %r2, 1000;
    st.global.v2.u32 [%rd8], {%r5, %r4};
    st.global.v2.u32 [%rd8+8], {%r3, %r2};)";
  ASSERT_TRUE(machine.run(entry(body)).ok());
  for (std::uint32_t i = 0; i < 32; ++i) {
    EXPECT_EQ(machine.words_b()[4 * i], 4 * i + 3);
    EXPECT_EQ(machine.words_b()[4 * i + 1], 4 * i + 2);
    EXPECT_EQ(machine.words_b()[4 * i + 2], 4 * i + 1);
    EXPECT_EQ(machine.words_b()[4 * i + 3], 4 * i + 1000);
  }
}

TEST(MemoryTest, VectorRegistersAreNamedAsAWhole) {
  Machine machine;
  for (std::uint32_t i = 0; i < 128; ++i) machine.words()[i] = i;
  const std::string body = R"(
    .reg .v4 .u32 %v; .reg .v2 .u32 %w;
    mul.wide.u32 %rd6, %r1, 16; add.s64 %rd7, %rd1, %rd6; add.s64 %rd8, %rd2, %rd6;
    ld.global.v4.u32 %v, [%rd7];
    ld.global.v2.u32 %w, [%rd7+8];
    add.u32 %v.w, %w.x, 1000;
    st.global.v4.u32 [%rd8], %v;)";
  const Outcome outcome = machine.run(entry(body));
  ASSERT_TRUE(outcome.ok()) << outcome.message();
  for (std::uint32_t i = 0; i < 128; ++i) {
    EXPECT_EQ(machine.words_b()[i], i % 4 == 3 ? i - 1 + 1000 : i);
  }
}

TEST(MemoryTest, NarrowLoadsExtendToTheRegister) {
  Machine machine;
  machine.words()[0] = 0x80fff081;
  const std::string body = R"(
    setp.ne.u32 %p1, %r1, 0; @%p1 exit;
    ld.global.u8 %r2, [%rd1]; ld.global.s8 %r3, [%rd1]; ld.global.u16 %rs1, [%rd1];
    ld.global.s16 %r4, [%rd1]; ld.global.s8 %rs2, [%rd1]; ld.global.s32 %rd6, [%rd1];
    ld.global.u8 %rs3, [%rd1+3];
    st.global.u32 [%rd2], %r2; st.global.u32 [%rd2+4], %r3; st.global.u16 [%rd2+8], %rs1;
    st.global.u32 [%rd2+12], %r4; st.global.u16 [%rd2+16], %rs2; st.global.u64 [%rd2+24], %rd6;
    st.global.u8 [%rd2+32], %rs3; st.global.u8 [%rd2+33], %r2;)";
  ASSERT_TRUE(machine.run(entry(body)).ok());
  const std::uint32_t* const out = machine.words_b();
  EXPECT_EQ(out[0], 0x81u);
  EXPECT_EQ(out[1], 0xffffff81u);
  EXPECT_EQ(out[2], 0xf081u);
  EXPECT_EQ(out[3], 0xfffff081u);
  EXPECT_EQ(out[4], 0xff81u);
  EXPECT_EQ(out[6], 0x80fff081u);
  EXPECT_EQ(out[7], 0xffffffffu);
  EXPECT_EQ(out[8], 0x8180u);
}

TEST(MemoryTest, GenericAddressesReachSharedLocalAndGlobal) {
  Machine machine;
  const std::string body = R"(
    .shared .align 4 .b32 words[32];
    .local .align 8 .b8 depot[16];
    mov.u64 %rd6, words; add.s64 %rd6, %rd6, %rd3; cvta.shared.u64 %rd7, %rd6;
    mov.u64 %rd8, depot; cvta.local.u64 %rd9, %rd8;
    mul.lo.u32 %r2, %r1, 3; mul.lo.u32 %r3, %r1, 5;
    st.u32 [%rd7], %r2;
    st.u32 [%rd9+8], %r3;
    ld.shared.u32 %r4, [%rd6]; ld.local.u32 %r5, [%rd8+8]; ld.local.u32 %r9, [depot+8];
    isspacep.shared %p1, %rd7; isspacep.local %p2, %rd9; isspacep.global %p3, %rd4;
    isspacep.global %p4, %rd7;
    selp.u32 %r6, 1, 0, %p1; @%p2 add.u32 %r6, %r6, 2; @%p3 add.u32 %r6, %r6, 4;
    @%p4 add.u32 %r6, %r6, 8;
    cvta.to.shared.u64 %rd10, %rd7; sub.s64 %rd11, %rd10, %rd6; cvt.u32.u64 %r7, %rd11;
    add.u32 %r8, %r4, %r5; add.u32 %r8, %r8, %r7; add.u32 %r8, %r8, %r9; sub.u32 %r8, %r8, %r5;
    st.u32 [%rd4], %r8; st.global.u32 [%rd5], %r6;)";
  const Outcome outcome = machine.run(entry(body));
  ASSERT_TRUE(outcome.ok()) << outcome.message();
  for (std::uint32_t i = 0; i < 32; ++i) {
    EXPECT_EQ(machine.words()[i], 8 * i);
    EXPECT_EQ(machine.words_b()[i], 7u);
  }
}

TEST(MemoryTest, ConstantsAndGlobalsKeepTheirInitialValues) {
  Machine machine;
  const std::string before = R"(
.const .align 4 .b32 numbers[4] = {10, 20, 30, 40};
.global .align 4 .u32 counter = 5;)";
  const std::string body = R"(
    and.b32 %r2, %r1, 3; mul.wide.u32 %rd6, %r2, 4; mov.u64 %rd7, numbers; add.s64 %rd7, %rd7, %rd6;
    ld.const.u32 %r3, [%rd7]; ld.const.u32 %r4, [numbers+8]; ld.global.u32 %r5, [counter];
    add.u32 %r3, %r3, %r4; add.u32 %r3, %r3, %r5;
    atom.global.add.u32 %r6, [counter], 1;
    st.global.u32 [%rd4], %r3;)";
  const Outcome outcome = machine.run(entry(body, before));
  ASSERT_TRUE(outcome.ok()) << outcome.message();
  for (std::uint32_t i = 0; i < 32; ++i) EXPECT_EQ(machine.words()[i], 10 * (i % 4 + 1) + 30 + 5);
  EXPECT_EQ(machine.memory.at<std::uint32_t>(Memory64::kGlobalsOffset)[0], 37u);
}

TEST(MemoryTest, AnOffsetBehindAVariableIsPartOfItsAddress) {
  Machine machine;
  const std::string before = ".global .align 4 .b32 numbers[4] = {10, 20, 30, 40};";
  const std::string body = R"(
    .shared .align 4 .b32 words[32];
    .local .align 8 .b8 depot[16];
    cvta.global.u64 %rd6, numbers+8; ld.u32 %r2, [%rd6];
    cvta.shared.u64 %rd7, words+12; mov.u32 %r3, words; mapa.shared::cluster.u32 %r4, words+4, 0;
    cvta.to.shared.u64 %rd8, %rd7; cvt.u32.u64 %r5, %rd8;
    sub.u32 %r5, %r5, %r3; sub.u32 %r4, %r4, %r3;
    cvta.local.u64 %rd9, depot+4; st.u32 [%rd9], %r1; ld.local.u32 %r6, [depot+4];
    add.u64 %rd10, numbers+4, 8; ld.global.u32 %r7, [%rd10];
    add.u32 %r6, %r6, %r7;
    st.global.v4.u32 [%rd1], {%r2, %r4, %r5, %r7}; st.global.u32 [%rd5], %r6;)";
  const Outcome outcome = machine.run(entry(body, before));
  ASSERT_TRUE(outcome.ok()) << outcome.message();
  EXPECT_EQ(machine.words()[0], 30u);
  EXPECT_EQ(machine.words()[1], 4u);
  EXPECT_EQ(machine.words()[2], 12u);
  EXPECT_EQ(machine.words()[3], 40u);
  for (std::uint32_t i = 0; i < 32; ++i) EXPECT_EQ(machine.words_b()[i], i + 40);
}

// As on a GPU, where constants are memory like other.
TEST(MemoryTest, AStoreByItsAddressChangesAConstant) {
  Machine machine;
  const Outcome outcome = machine.run(entry(
      "mov.u64 %rd6, numbers; cvta.const.u64 %rd7, %rd6; mov.u32 %r2, 77; st.u32 [%rd7], %r2;\n"
      "membar.gl; ld.u32 %r3, [%rd7]; st.global.u32 [%rd1], %r3;",
      ".const .align 4 .b32 numbers[4] = {10, 20, 30, 40};"));
  ASSERT_TRUE(outcome.ok()) << outcome.message();
  EXPECT_EQ(machine.words()[0], 77u);
}

TEST(MemoryTest, DynamicSharedMemoryFollowsTheStatic) {
  Machine machine;
  const std::string before = ".extern .shared .align 16 .b8 dynamic[];";
  const std::string body = R"(
    .shared .align 4 .b32 words[8];
    mov.u32 %r2, dynamic; mov.u32 %r3, words; sub.u32 %r4, %r2, %r3;
    mov.u32 %r6, %dynamic_smem_size;
    mad.lo.u32 %r5, %r1, 4, %r2; st.shared.u32 [%r5], %r1;
    bar.sync 0;
    xor.b32 %r7, %r1, 1; mad.lo.u32 %r5, %r7, 4, %r2; ld.shared.u32 %r8, [%r5];
    st.global.u32 [%rd4], %r8; st.global.u32 [%rd5], %r6;)";
  Shape setup;
  setup.dynamic_shared = 128;
  const Outcome outcome = machine.run(entry(body, before), setup);
  ASSERT_TRUE(outcome.ok()) << outcome.message();
  for (std::uint32_t i = 0; i < 32; ++i) {
    EXPECT_EQ(machine.words()[i], i ^ 1);
    EXPECT_EQ(machine.words_b()[i], 128u);
  }
  setup.dynamic_shared = 96;
  const Outcome outside = machine.run(entry(body, before), setup);
  ASSERT_FALSE(outside.ok());
  EXPECT_NE(outside.message().find("thread (24,0,0)"), std::string::npos) << outside.message();
  EXPECT_NE(outside.message().find("shared"), std::string::npos) << outside.message();
}

TEST(MemoryTest, ABlockHasAMultipleOf128BytesOfSharedMemory) {
  Machine machine;
  const std::string body = R"(
    .shared .align 4 .b32 words[33];
    mov.u32 %r2, words; mov.u32 %r6, %total_smem_size; add.u32 %r3, %r2, 252;
    st.shared.u32 [%r3], %r1; st.global.u32 [%rd5], %r6;)";
  const Outcome outcome = machine.run(entry(body));
  ASSERT_TRUE(outcome.ok()) << outcome.message();
  EXPECT_EQ(machine.words_b()[0], 256u);
}

TEST(MemoryTest, AWildAccessIsNamed) {
  Machine machine;
  const Outcome outcome =
      machine.run(entry("setp.ne.u32 %p1, %r1, 3;\nmov.u64 %rd6, 16;\n@%p1 mov.u64 %rd6, %rd1;\n"
                        "ld.global.u32 %r2, [%rd6];"));
  ASSERT_FALSE(outcome.ok());
  EXPECT_EQ(outcome.error->code, ErrorCode::kIllegalAddress);
  EXPECT_NE(outcome.message().find(
                "thread (3,0,0), line 18: ld.global.u32 of 4 bytes at 0x10: not mapped"),
            std::string::npos)
      << outcome.message();
}

TEST(MemoryTest, TheEndOfTheReservationIsABound) {
  Machine machine;
  // The first chunk is mapped and the second is not: lane 31 touches its first word.
  const std::string body = R"(
    add.s64 %rd6, %rd1, 2097028; add.s64 %rd6, %rd6, %rd3;
    st.global.u32 [%rd6], %r1;)";
  const Outcome outcome = machine.run(entry(body));
  ASSERT_FALSE(outcome.ok());
  EXPECT_NE(outcome.message().find("thread (31,0,0)"), std::string::npos) << outcome.message();
}

TEST(MemoryTest, ParametersAreInsideTheGlobalSpace) {
  Machine machine;
  const std::string body = R"(
    mov.b64 %rd6, b; cvta.param.u64 %rd7, %rd6; ld.u64 %rd8, [%rd7];
    isspacep.param %p1, %rd7; isspacep.global %p2, %rd7; isspacep.param %p3, %rd4;
    isspacep.shared %p4, %rd7;
    selp.u32 %r2, 1, 0, %p1; @%p2 add.u32 %r2, %r2, 2; @%p3 add.u32 %r2, %r2, 4;
    @%p4 add.u32 %r2, %r2, 8;
    st.global.u32 [%rd8], %r2;)";
  const Outcome outcome = machine.run(entry(body));
  ASSERT_TRUE(outcome.ok()) << outcome.message();
  EXPECT_EQ(machine.words_b()[0], 3u);
}

TEST(MemoryTest, AMisalignedAccessFaults) {
  Machine machine;
  const Outcome outcome = machine.run(entry("ld.global.v2.u32 {%r2, %r3}, [%rd1+4];"));
  ASSERT_FALSE(outcome.ok());
  EXPECT_EQ(outcome.error->code, ErrorCode::kMisalignedAddress);
}

TEST(MemoryTest, LocalMemoryBelongsToTheThread) {
  Machine machine;
  const std::string body = R"(
    .local .align 4 .b8 array[400];
    mov.u32 %r2, 0; mov.u64 %rd6, array;
  FILL:
    mul.wide.u32 %rd7, %r2, 4; add.s64 %rd8, %rd6, %rd7;
    mad.lo.u32 %r3, %r1, 1000, %r2; st.local.u32 [%rd8], %r3;
    add.u32 %r2, %r2, 1; setp.lt.u32 %p1, %r2, 100; @%p1 bra FILL;
    mul.wide.u32 %rd7, %r1, 12; add.s64 %rd8, %rd6, %rd7; ld.local.u32 %r4, [%rd8];
    st.global.u32 [%rd4], %r4;)";
  const Outcome outcome = machine.run(entry(body));
  ASSERT_TRUE(outcome.ok()) << outcome.message();
  for (std::uint32_t i = 0; i < 32; ++i) EXPECT_EQ(machine.words()[i], 1000 * i + 3 * i);
  const Outcome outside = machine.run(
      entry(".local .align 4 .b8 array[16]; mov.u64 %rd6, array; ld.local.u32 %r2, [%rd6+16];"));
  EXPECT_FALSE(outside.ok());
}

TEST(MemoryTest, AtomicsOnOneWordCountEveryLane) {
  Machine machine;
  machine.words()[1] = 1000;
  machine.words()[6] = 0x3f800000;
  const std::string body = R"(
    atom.global.add.u32 %r2, [%rd1], 1;
    atom.global.min.s32 %r3, [%rd1+4], %r1;
    red.global.max.u32 [%rd1+8], %r1;
    atom.global.inc.u32 %r4, [%rd1+12], 9;
    atom.global.or.b32 %r5, [%rd1+16], %r1;
    red.global.add.u64 [%rd1+40], %rd3;
    cvt.rn.f32.u32 %f1, %r1; atom.global.add.f32 %f2, [%rd1+24], %f1;
    cvt.rn.f64.u32 %fd1, %r1; red.global.add.f64 [%rd1+32], %fd1;
    st.global.u32 [%rd5], %r2;)";
  const Outcome outcome = machine.run(entry(body));
  ASSERT_TRUE(outcome.ok()) << outcome.message();
  const std::uint32_t* const words = machine.words();
  EXPECT_EQ(words[0], 32u);
  EXPECT_EQ(words[1], 0u);
  EXPECT_EQ(words[2], 31u);
  EXPECT_EQ(words[3], 32u % 10);
  EXPECT_EQ(words[4], 31u);
  EXPECT_EQ(std::bit_cast<float>(words[6]), 497.0f);
  EXPECT_EQ(machine.memory.at<double>(32)[0], 496.0);
  EXPECT_EQ(machine.memory.at<std::uint64_t>(40)[0], 4u * 496);
  for (std::uint32_t i = 0; i < 32; ++i) EXPECT_EQ(machine.words_b()[i], i) << "old value";
}

TEST(MemoryTest, SharedAndPackedAtomicsWork) {
  Machine machine;
  machine.words()[0] = 0x3c004000;  // halves 1 and 2
  machine.words()[1] = 0x3f804000;  // bfloat16 1 and 2
  const std::string body = R"(
    .shared .align 8 .b64 cell[2];
    mov.u32 %r9, cell;
    mov.u64 %rd6, 0; st.shared.u64 [cell], %rd6; st.shared.u64 [cell+8], %rd6;
    bar.warp.sync 0xffffffff;
    atom.shared.add.u32 %r2, [%r9], 2;
    atom.shared.cas.b64 %rd7, [cell+8], 0, 77;
    mov.b32 %r3, 0x3c003c00; setp.eq.u32 %p1, %r1, 0;
    @%p1 red.global.add.noftz.f16x2 [%rd1], %r3;
    mov.b32 %r4, 0x3f803f80;
    @%p1 red.global.add.noftz.bf16x2 [%rd1+4], %r4;
    bar.warp.sync 0xffffffff;
    ld.shared.u32 %r5, [cell]; ld.shared.u64 %rd8, [cell+8]; cvt.u32.u64 %r6, %rd8;
    st.global.v2.u32 [%rd2], {%r5, %r6};)";
  const Outcome outcome = machine.run(entry(body));
  ASSERT_TRUE(outcome.ok()) << outcome.message();
  EXPECT_EQ(machine.words_b()[0], 64u);
  EXPECT_EQ(machine.words_b()[1], 77u);
  EXPECT_EQ(machine.words()[0], 0x40004200u);
  EXPECT_EQ(machine.words()[1], 0x40004040u);
}

TEST(MemoryTest, SumsInGlobalMemoryAreFlushedAndThoseInSharedAreNot) {
  Machine machine;
  // A negative denormal, to which others are added; and one sum that only becomes denormal.
  for (std::uint32_t i = 0; i < 5; ++i) machine.words()[i] = 0x80400000;
  const std::string body = R"(
    .shared .align 4 .b32 cell;
    setp.ne.u32 %p1, %r1, 0; @%p1 exit;
    mov.b32 %f1, 0x00000001; mov.b32 %f2, 0x80000001; mov.b32 %f3, 0x00800001; mov.b32 %f4, 0x80800000;
    atom.global.add.f32 %f5, [%rd1], %f1; red.global.add.f32 [%rd1+4], %f2;
    atom.add.f32 %f6, [%rd1+8], %f1;
    atom.global.add.f32 %f7, [%rd1+12], %f3; atom.global.add.f32 %f7, [%rd1+12], %f4;
    mov.b32 %r2, 0x80400000; st.shared.u32 [cell], %r2;
    red.shared.add.f32 [cell], %f1;
    cvta.shared.u64 %rd6, cell; atom.add.f32 %f8, [%rd6], %f1; ld.shared.u32 %r3, [cell];
    st.global.v4.f32 [%rd2], {%f5, %f6, %f7, %f8}; st.global.u32 [%rd2+16], %r3;)";
  const Outcome outcome = machine.run(entry(body));
  ASSERT_TRUE(outcome.ok()) << outcome.message();
  const std::uint32_t* const sums = machine.words();
  const std::uint32_t* const before = machine.words_b();
  EXPECT_EQ(sums[0], 0u) << "-0 + 0";
  EXPECT_EQ(sums[1], 0x80000000u) << "-0 + -0";
  EXPECT_EQ(sums[2], 0u) << "by a generic address";
  EXPECT_EQ(sums[3], 0u) << "a result of one denormal unit";
  EXPECT_EQ(before[0], 0x80400000u) << "what was there is given back as it was";
  EXPECT_EQ(before[2], 0x00800001u);
  EXPECT_EQ(before[3], 0x803fffffu);
  EXPECT_EQ(before[4], 0x803ffffeu);
}

TEST(MemoryTest, NarrowSumsRoundToNearestEven) {
  Machine machine;
  // Halves, then bfloat16: two to one, a tie, overflow, denormals, infinity and NaN.
  constexpr std::uint32_t kSums[][4] = {
      {0x3c00, 0x1000, 0x3c00, 0}, {0x3c01, 0x1000, 0x3c02, 0}, {0x7bff, 0x4c00, 0x7c00, 0},
      {0x0001, 0x0001, 0x0002, 0}, {0x8001, 0x0001, 0x0000, 0}, {0x7c00, 0xfc00, 0x7fff, 0},
      {0x3f80, 0x3b80, 0x3f80, 1}, {0x3f81, 0x3b80, 0x3f82, 1}, {0x7f7f, 0x7f7f, 0x7f80, 1},
      {0x0001, 0x0001, 0x0002, 1}, {0x7f80, 0xff80, 0x7fff, 1}};
  for (const auto& [a, b, sum, is_bf16] : kSums) {
    machine.words()[0] = a;
    machine.words_b()[0] = b;
    const std::string body = std::string("setp.ne.u32 %p1, %r1, 0; @%p1 exit;\n") +
                             "ld.global.b16 %rs1, [%rd2];\nred.global.add.noftz." +
                             (is_bf16 ? "bf16" : "f16") + " [%rd1], %rs1;";
    const Outcome outcome = machine.run(entry(body));
    ASSERT_TRUE(outcome.ok()) << outcome.message();
    EXPECT_EQ(machine.words()[0], sum) << a << " + " << b;
  }
}

TEST(MemoryTest, WideCompareAndSwapTakesBothHalves) {
  Machine machine;
  const std::string body = R"(
    .reg .b128 %q<4>;
    setp.ne.u32 %p1, %r1, 0; @%p1 exit;
    mov.b64 %rd6, 0; mov.b64 %rd7, 0; mov.b128 %q1, {%rd6, %rd7};
    mov.b64 %rd8, 11; mov.b64 %rd9, 22; mov.b128 %q2, {%rd8, %rd9};
    atom.global.cas.b128 %q3, [%rd1], %q1, %q2;
    mov.b128 {%rd10, %rd11}, %q3; st.global.v2.u64 [%rd2], {%rd10, %rd11};)";
  const Outcome outcome = machine.run(entry(body));
  ASSERT_TRUE(outcome.ok()) << outcome.message();
  EXPECT_EQ(machine.memory.at<std::uint64_t>(0)[0], 11u);
  EXPECT_EQ(machine.memory.at<std::uint64_t>(0)[1], 22u);
  EXPECT_EQ(machine.words_b()[0], 0u);
}

TEST(MemoryTest, AsynchronousCopiesFillSharedMemory) {
  Machine machine;
  for (std::uint32_t i = 0; i < 128; ++i) machine.words()[i] = 3 * i + 1;
  const std::string body = R"(
    .shared .align 16 .b8 buffer[512];
    mov.u32 %r2, buffer; shl.b32 %r3, %r1, 4; add.u32 %r4, %r2, %r3;
    mul.wide.u32 %rd6, %r1, 16; add.s64 %rd7, %rd1, %rd6;
    cp.async.cg.shared.global [%r4], [%rd7], 16, 8;
    cp.async.commit_group; cp.async.wait_group 0;
    bar.sync 0;
    ld.shared.v4.u32 {%r5, %r6, %r7, %r8}, [%r4];
    add.s64 %rd8, %rd2, %rd6; st.global.v4.u32 [%rd8], {%r5, %r6, %r7, %r8};)";
  const Outcome outcome = machine.run(entry(body));
  ASSERT_TRUE(outcome.ok()) << outcome.message();
  for (std::uint32_t i = 0; i < 128; ++i) {
    EXPECT_EQ(machine.words_b()[i], i % 4 < 2 ? 3 * i + 1 : 0)
        << "bytes past the source size are zero";
  }
}

TEST(MemoryTest, MbarriersFinishAPhaseWhenAllArrivedAndAllBytesCame) {
  Machine machine;
  for (std::uint32_t i = 0; i < 16; ++i) machine.words()[i] = i + 1;
  const std::string body = R"(
    .shared .align 8 .b64 bar;
    .shared .align 16 .b8 buffer[64];
    mov.u32 %r2, bar; mov.u32 %r3, buffer;
    setp.eq.u32 %p1, %r1, 0;
    @%p1 mbarrier.init.shared::cta.b64 [%r2], 64;
    bar.sync 0;
    @!%p1 bra ARRIVE;
    mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%r2], 64;
    cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r3], [%rd1], 64, [%r2];
  ARRIVE:
    mbarrier.arrive.shared::cta.b64 %rd6, [%r2];
  WAIT:
    mbarrier.try_wait.shared::cta.b64 %p2, [%r2], %rd6;
    @!%p2 bra WAIT;
    and.b32 %r5, %r1, 15; shl.b32 %r5, %r5, 2; add.u32 %r5, %r5, %r3;
    ld.shared.u32 %r6, [%r5]; st.global.u32 [%rd5], %r6;)";
  const Outcome outcome = machine.run(entry(body), {.block = {64, 1, 1}});
  ASSERT_TRUE(outcome.ok()) << outcome.message();
  for (std::uint32_t i = 0; i < 64; ++i) EXPECT_EQ(machine.words_b()[i], i % 16 + 1);
}

TEST(MemoryTest, AsynchronousCopiesArriveAtAnMbarrier) {
  Machine machine;
  for (std::uint32_t i = 0; i < 32; ++i) machine.words()[i] = i + 5;
  // Each lane arrives by itself, and once more by its copy if that does not pay for itself.
  for (const bool noinc : {false, true}) {
    for (const char* const address : {"[%r2]", "[bar]", "[%rd7]"}) {
      const std::string space = address == std::string("[%rd7]") ? "" : ".shared::cta";
      const std::string body = R"(
        .shared .align 8 .b64 bar;
        .shared .align 16 .b8 buffer[128];
        mov.u32 %r2, bar; cvta.shared.u64 %rd7, bar; mov.u32 %r3, buffer;
        mad.lo.u32 %r4, %r1, 4, %r3; setp.eq.u32 %p1, %r1, 0;
        @%p1 mbarrier.init.shared::cta.b64 [%r2], )" +
                               std::string(noinc ? "64" : "32") + R"(;
        bar.warp.sync 0xffffffff;
        cp.async.ca.shared.global [%r4], [%rd4], 4;
        cp.async.mbarrier.arrive)" +
                               (noinc ? ".noinc" : "") + space + ".b64 " + address + R"(;
        mbarrier.arrive.shared::cta.b64 %rd6, [%r2];
      WAIT:
        mbarrier.test_wait.shared::cta.b64 %p2, [%r2], %rd6;
        @!%p2 bra WAIT;
        ld.shared.u32 %r5, [%r4]; st.global.u32 [%rd5], %r5;)";
      const Outcome outcome = machine.run(entry(body));
      ASSERT_TRUE(outcome.ok()) << outcome.message();
      for (std::uint32_t i = 0; i < 32; ++i) EXPECT_EQ(machine.words_b()[i], i + 5);
      std::memset(machine.words_b(), 0, 128);
    }
  }
}

TEST(MemoryTest, PackedMovesKeepTheOrderOfParts) {
  Machine machine;
  const std::string body = R"(
    mov.b64 %rd6, {%r1, 7}; mov.b64 {%r2, %r3}, %rd6;
    cvt.u16.u32 %rs1, %r1; mov.b32 %r4, {%rs1, 5}; mov.b32 {%rs2, _}, %r4;
    cvt.u32.u16 %r5, %rs2; sub.u32 %r5, %r5, %r2; add.u32 %r5, %r5, %r3;
    st.global.u32 [%rd4], %r4; st.global.u32 [%rd5], %r5;)";
  const Outcome outcome = machine.run(entry(body));
  ASSERT_TRUE(outcome.ok()) << outcome.message();
  for (std::uint32_t i = 0; i < 32; ++i) {
    EXPECT_EQ(machine.words()[i], 5u << 16 | i);
    EXPECT_EQ(machine.words_b()[i], 7u);
  }
}

}  // namespace
}  // namespace slate::sim::test
