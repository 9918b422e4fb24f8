// Which reads of a register find nothing written there, and which only seem to.
#include "injector/analysis/undefined.h"

#include <gtest/gtest.h>

#include <string>

#include "injector/analysis/analysis.h"

namespace slate::injector {
namespace {

constexpr const char* kUndefinedHeader = ".version 8.8\n.target sm_90\n.address_size 64\n";

/// "NAME line N" of what is found in the last function; N counts from the line of its brace.
std::string undefined_in(const std::string& functions) {
  const auto module = ptx::parse(kUndefinedHeader + functions);
  EXPECT_TRUE(module) << module.error().message;
  const ptx::Function& function = (*module)->functions.back();
  Effort effort;
  const auto found = find_undefined_read(function, ControlFlow(function), effort);
  return found ? found->register_name + " line " + std::to_string(found->line - function.line)
               : std::string();
}

/// The same of a kernel, whose first instruction is on line 1. %r1 is set, and %d1, an address.
std::string found_in(const std::string& body) {
  return undefined_in(
      ".entry k(.param .u64 a, .param .u32 n) {"
      " .reg .pred %p<9>; .reg .b16 %h<9>; .reg .b32 %r<30>; .reg .b64 %d<9>; .reg .f32 %f<9>;"
      " ld.param.u32 %r1, [n]; ld.param.u64 %d1, [a];\n" +
      body + "\nret;\n}\n");
}

const std::string kUndefinedStore = "st.global.u32 [%d1], %r5;\n";
const std::string kCompare = "setp.eq.u32 %p1, %r1, 0;\n";

TEST(UndefinedTest, ARegisterThatNothingWritesIsFoundWithItsLine) {
  EXPECT_EQ(found_in("add.u32 %r5, %r1, 1;\n" + kUndefinedStore), "");
  EXPECT_EQ(found_in("\n" + kUndefinedStore), "%r5 line 2");
  EXPECT_EQ(found_in("\nadd.u32 %r5, %r6, 1;\n\n" + kUndefinedStore), "%r6 line 2");
}

TEST(UndefinedTest, AnyUseButAComputationCounts) {
  for (const char* use :
       {"st.global.u32 [%d2], %r1;", "ld.global.u32 %r2, [%d2];", "st.global.u32 [%d1], %r2;",
        "@%p2 bra L; st.global.u32 [%d1], %r1; L:", "@%p2 st.global.u32 [%d1], %r1;",
        "shfl.sync.idx.b32 %r3, %r2, 0, 31, -1; st.global.u32 [%d1], %r3;", "bar.sync %r2;",
        "atom.global.add.u32 %r3, [%d1], %r2;", "red.global.add.u32 [%d1], %r2;", "@%p2 ret;",
        "{ .param .b32 p; st.param.b32 [p], %r2; }", "vote.sync.any.pred %p3, %p2, -1;",
        "st.global.v2.u32 [%d1], {%r1, %r2};", "ts: .branchtargets L, M; brx.idx %r2, ts; L: M:",
        "tex.1d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [%d1, {%f5}];"}) {
    EXPECT_NE(found_in(use), "") << use;
  }
}

TEST(UndefinedTest, AValueOfWhichNothingComesIsNone) {
  EXPECT_EQ(found_in("mov.u32 %r5, %r6; add.u32 %r7, %r5, %r1; setp.eq.u32 %p1, %r7, 0;"), "");
  EXPECT_EQ(found_in("mov.u32 %r5, %r6; mov.u32 %r5, %r1;\n" + kUndefinedStore), "");
  EXPECT_EQ(found_in("mov.u32 %r5, %r6; mov.b64 %d2, {%r1, %r5};\n"
                     "st.global.u64 [%d1], %d2;"),
            "%r6 line 1");
}

TEST(UndefinedTest, OneWayWithoutAWriteIsEnough) {
  EXPECT_EQ(found_in(kCompare + "@%p1 bra L;\nmov.u32 %r5, 1;\nL:\n" + kUndefinedStore),
            "%r5 line 5");
  EXPECT_EQ(
      found_in(kCompare + "mov.u32 %r5, 2; @%p1 bra L;\nmov.u32 %r5, 1;\nL:\n" + kUndefinedStore),
      "");
  EXPECT_EQ(found_in(kCompare + "@%p1 bra L;\nmov.u32 %r5, 1;\nbra M;\nL: mov.u32 %r5, 2;\nM:\n" +
                     kUndefinedStore),
            "");
  EXPECT_EQ(
      found_in(kCompare + "@%p1 bra L;\nmov.u32 %r5, 1;\nbra M;\nL: trap;\nM:\n" + kUndefinedStore),
      "");
}

TEST(UndefinedTest, ALoopThatRunsAtLeastOnceWrites) {
  EXPECT_EQ(found_in("mov.u32 %r2, 0;\nL: mov.u32 %r5, %r2; add.u32 %r2, %r2, 1;\n"
                     "setp.lt.u32 %p1, %r2, %r1; @%p1 bra L;\n" +
                     kUndefinedStore),
            "");
  // Its first round reads what only the round before has written.
  EXPECT_EQ(found_in("mov.u32 %r2, 0;\nL:\nst.global.u32 [%d1], %r5;\nmov.u32 %r5, %r2;\n"
                     "add.u32 %r2, %r2, 1; setp.lt.u32 %p1, %r2, %r1; @%p1 bra L;"),
            "%r5 line 3");
  // A test that jumps past the loop is taken to be for those who do not run this code.
  EXPECT_EQ(found_in("mov.u32 %r2, 0; setp.eq.u32 %p2, %r1, 0; @%p2 bra OUT;\n"
                     "L: mov.u32 %r5, %r2; add.u32 %r2, %r2, 1;\n"
                     "setp.lt.u32 %p1, %r2, %r1; @%p1 bra L;\nOUT:\n" +
                     kUndefinedStore),
            "");
  EXPECT_EQ(found_in("mov.u32 %r2, 0; setp.eq.u32 %p2, %r1, 0; @%p2 bra OUT;\n"
                     "L: add.u32 %r5, %r5, %r2; add.u32 %r2, %r2, 1;\n"
                     "setp.lt.u32 %p1, %r2, %r1; @%p1 bra L;\nOUT:\n" +
                     kUndefinedStore),
            "%r5 line 2");
}

TEST(UndefinedTest, APredicateGuardsWriteAndReadAlike) {
  EXPECT_EQ(found_in(kCompare + "@%p1 mov.u32 %r5, 1;\n@%p1 " + kUndefinedStore), "");
  EXPECT_EQ(found_in(kCompare + "@%p1 mov.u32 %r5, 1;\n@!%p1 " + kUndefinedStore), "%r5 line 3");
  EXPECT_EQ(found_in(kCompare + "@%p1 mov.u32 %r5, 1;\n" + kUndefinedStore), "%r5 line 3");
  EXPECT_EQ(found_in(kCompare + "@%p1 mov.u32 %r5, 1;\n@!%p1 mov.u32 %r5, 2;\n" + kUndefinedStore),
            "");
  EXPECT_EQ(found_in(kCompare + "@%p1 mov.u32 %r5, 1;\nsetp.eq.u32 %p1, %r1, 1;\n@%p1 " +
                     kUndefinedStore),
            "%r5 line 4");
}

TEST(UndefinedTest, BranchesOnOnePredicateGoTheSameWay) {
  const std::string write = kCompare + "@%p1 bra L;\nmov.u32 %r5, 1;\nL: add.u32 %r2, %r1, 1;\n";
  EXPECT_EQ(found_in(write + "@%p1 bra M;\n" + kUndefinedStore + "M:"), "");
  EXPECT_EQ(found_in(write + "@!%p1 bra M;\n" + kUndefinedStore + "M:"), "%r5 line 6");
  EXPECT_EQ(found_in(write + "@!%p1 " + kUndefinedStore), "");
  EXPECT_EQ(found_in(write + "not.pred %p2, %p1; @%p2 bra M; bra N; M:\n" + kUndefinedStore + "N:"),
            "");
  EXPECT_EQ(
      found_in(write + "and.pred %p2, %p1, %p1; @%p2 bra M; bra N; M:\n" + kUndefinedStore + "N:"),
      "%r5 line 6");
}

TEST(UndefinedTest, AFlagSetWhereTheValueIsSaysThatItIs) {
  EXPECT_EQ(found_in("mov.pred %p2, 0; mov.pred %p3, %p2;\n" + kCompare +
                     "@%p1 bra L;\nmov.u32 %r5, 1; mov.pred %p3, -1;\nL: @%p3 " + kUndefinedStore +
                     "@%p3 ret;"),
            "");
}

TEST(UndefinedTest, ASelectionTakesOneOfTwo) {
  const std::string write = kCompare + "@%p1 mov.u32 %r4, 1;\n";
  EXPECT_EQ(found_in(write + "selp.b32 %r5, %r4, %r1, %p1;\n" + kUndefinedStore), "");
  EXPECT_EQ(found_in(write + "selp.b32 %r5, %r1, %r4, %p1;\n" + kUndefinedStore), "%r4 line 3");
}

TEST(UndefinedTest, WhatSomeThreadsHandOnIsForTheOthersToKnow) {
  const std::string shuffle =
      "shfl.sync.bfly.b32 %r5, %r4, 1, 31, -1; setp.eq.u32 %p2, %r1, 9; @%p2 ret;\n" +
      kUndefinedStore;
  EXPECT_EQ(found_in(shuffle), "%r4 line 1");
  EXPECT_EQ(found_in(kCompare + "@%p1 mov.u32 %r4, 1;\n" + shuffle), "");
  const std::string shared = ".shared .b32 s;\nst.shared.b32 [s], %r4;\n";
  EXPECT_EQ(found_in(shared), "%r4 line 2");
  EXPECT_EQ(found_in(kCompare + "@%p1 mov.u32 %r4, 1;\n" + shared), "");
  EXPECT_EQ(found_in(kCompare + "@%p1 mov.u32 %r4, 1;\nst.shared.b32 [%r4], %r1;\n"), "%r4 line 3");
}

TEST(UndefinedTest, ABranchOverComputationOnlyIsASelection) {
  const std::string loaded = kCompare + "@%p1 mov.u32 %r4, 1;\nmov.u32 %r5, 3;\n";
  const std::string branch = "setp.lt.u32 %p2, %r4, %r1; @%p2 bra L; add.u32 %r5, %r5, 1;\nL:\n";
  EXPECT_EQ(found_in(loaded + branch + "@%p1 " + kUndefinedStore), "");
  EXPECT_EQ(found_in(loaded + branch + kUndefinedStore), "%r4 line 4");
  EXPECT_EQ(found_in(loaded + branch + "st.global.u32 [%d1], %r1;"), "");
  EXPECT_EQ(found_in(loaded + "setp.lt.u32 %p2, %r4, %r1; @%p2 bra L;\n" + kUndefinedStore + "L:"),
            "%r4 line 4");
}

TEST(UndefinedTest, AComparisonMadeTwiceSaysTheSame) {
  const std::string write = kCompare + "@%p1 bra L;\nmov.u32 %r4, 1;\nL: add.u32 %r7, %r1, 2;\n";
  const std::string store = "@%p3 bra M;\nst.global.u32 [%d1], %r4;\nM:";
  EXPECT_EQ(found_in(write + "setp.eq.u32 %p3, %r1, 0;\n" + store), "");
  EXPECT_EQ(found_in(write + "setp.ne.u32 %p2, %r1, 0; not.pred %p3, %p2;\n" + store), "");
  EXPECT_EQ(found_in(write + "ld.param.u32 %r8, [n]; setp.eq.u32 %p3, %r8, 0;\n" + store), "");
  EXPECT_EQ(found_in(write + "sub.u32 %r8, %r7, 2; setp.eq.u32 %p3, %r8, 0;\n" + store), "");
  EXPECT_NE(found_in(write + "setp.eq.u32 %p3, %r7, 0;\n" + store), "");
  EXPECT_NE(found_in(write + "setp.ne.u32 %p3, %r1, 0;\n" + store), "");
  EXPECT_NE(found_in(write + "setp.eq.u32 %p3, %r1, 1;\n" + store), "");
}

TEST(UndefinedTest, ABitThatIsNotSetIsAsGoodAsAdded) {
  const auto read_behind = [](const std::string& other) {
    return found_in(
        "mul.lo.u32 %r6, %r1, 14; add.u32 %r7, %r6, 1; setp.lt.u32 %p1, %r7, 9; @%p1 bra L;\n"
        "mov.u32 %r4, 1;\nL: " +
        other + "setp.ge.u32 %p3, %r8, 9; @!%p3 bra M;\nst.global.u32 [%d1], %r4;\nM:");
  };
  EXPECT_EQ(read_behind("or.b32 %r8, %r6, 1;"), "");
  EXPECT_NE(read_behind("or.b32 %r8, %r6, 2;"), "");
  EXPECT_NE(read_behind("or.b32 %r8, %r7, 1;"), "");
  EXPECT_NE(read_behind("or.b32 %r8, %r6, %r7;"), "");
}

TEST(UndefinedTest, AnIntegerMayHoldACondition) {
  const std::string write = kCompare + "@%p1 bra L;\nmov.u32 %r4, 1;\nL: ";
  const std::string store = " @%p3 bra M;\nst.global.u32 [%d1], %r4;\nM:";
  const std::string is_zero = "setp.eq.u32 %p3, %r6, 0;";
  EXPECT_EQ(found_in(write + "selp.b32 %r6, 0, 1, %p1;" + is_zero + store), "");
  EXPECT_EQ(found_in(write + "selp.b32 %r6, -1, 0, %p1; setp.ne.s32 %p3, %r6, 0;" + store), "");
  EXPECT_EQ(found_in(write + "selp.b32 %r6, 0, %r1, %p1;" + is_zero + store), "");
  EXPECT_EQ(found_in(write + "selp.b32 %r7, 0, 1, %p1; mov.b32 %r6, %r7;" + is_zero + store), "");
  EXPECT_NE(found_in(write + "selp.b32 %r6, 1, 0, %p1;" + is_zero + store), "");
  EXPECT_NE(found_in(write + "selp.b32 %r6, 1, 2, %p1;" + is_zero + store), "");
  EXPECT_NE(found_in(write + "selp.b32 %r6, %r1, 1, %p1;" + is_zero + store), "");
  EXPECT_NE(found_in(write + "selp.b32 %r6, 0, 1, %p1; add.u32 %r6, %r6, 1;" + is_zero + store),
            "");
  EXPECT_EQ(found_in(write + "selp.b32 %r6, 2, 1, %p1; setp.eq.u32 %p3, %r6, 2;" + store), "");
  EXPECT_EQ(found_in(write + "selp.b32 %r6, 2, 1, %p1; setp.gt.u32 %p3, %r6, 1;" + store), "");
  EXPECT_NE(found_in(write + "selp.b32 %r6, 2, 1, %p1; setp.lt.u32 %p3, %r6, 2;" + store), "");
  EXPECT_NE(found_in(write + "selp.b32 %r6, 20, 21, %p1; setp.eq.u32 %p3, %r6, 20;" + store), "");
}

TEST(UndefinedTest, ConditionsInIntegersAreCombined) {
  const std::string write = kCompare + "@%p1 bra L;\nmov.u32 %r4, 1;\nL: ";
  const std::string store = " setp.eq.u32 %p3, %r6, 0; @%p3 bra M;\nst.global.u32 [%d1], %r4;\nM:";
  const std::string flag = "selp.b16 %h1, 0, 1, %p1; cvt.u32.u16 %r7, %h1;";
  EXPECT_EQ(found_in(write + flag + "and.b32 %r6, %r7, %r1;" + store), "");
  EXPECT_NE(found_in(write + flag + "or.b32 %r6, %r7, %r1;" + store), "");
  const std::string other = "setp.lt.u32 %p4, %r1, 5; selp.b32 %r8, 1, 0, %p4;";
  EXPECT_EQ(found_in(write + flag + other + "and.b32 %r6, %r7, %r8;" + store), "");
  EXPECT_NE(found_in(write + flag + other + "or.b32 %r6, %r7, %r8;" + store), "");
  // The upper half, a pattern of bits that becomes a number, and the second of two results.
  EXPECT_NE(found_in(write +
                     "selp.b32 %r7, 1, 0, %p1; mov.b32 %f1, %r7; cvt.rzi.u32.f32 %r8, %f1;"
                     "setp.eq.u32 %p4, %r8, 1; selp.b32 %r6, 0, 1, %p4;" +
                     store),
            "");
  EXPECT_NE(found_in(write +
                     "selp.b32 %r7, 1, 0, %p1; mov.b32 {%h1, %h2}, %r7;"
                     "cvt.u32.u16 %r8, %h2; setp.eq.u32 %p4, %r8, 1; selp.b32 %r6, 0, 1, %p4;" +
                     store),
            "");
  EXPECT_NE(found_in(write +
                     "selp.b32 %r7, 1, 0, %p1; setp.eq.u32 %p4|%p5, %r7, 1;"
                     "selp.b32 %r6, 0, 1, %p5;" +
                     store),
            "");
  EXPECT_EQ(found_in("or.b32 %r5, %r6, 1;\n" + kUndefinedStore), "%r6 line 1");
  EXPECT_EQ(found_in("and.b32 %r5, %r6, 0;\n" + kUndefinedStore), "");
}

// HeCBench ne.
TEST(UndefinedTest, AMaskOfAllBitsLeavesWhatItIsCombinedWith) {
  const std::string flags = kCompare + "setp.lt.u32 %p4, %r1, 5; selp.b32 %r8, 1, 0, %p4;";
  const std::string read =
      "setp.eq.u32 %p3, %r6, 0; @%p3 bra L;\nmov.u32 %r4, 1;\nL: @!%p1 bra M;\n@!%p4 bra M;\n"
      "st.global.u32 [%d1], %r4;\nM:";
  const std::string mask = "selp.b32 %r7, -1, 0, %p1;";
  EXPECT_EQ(found_in(flags + mask + "and.b32 %r6, %r7, %r8;" + read), "");
  EXPECT_EQ(found_in(flags + mask + "and.b32 %r6, %r8, %r7;" + read), "");
  EXPECT_EQ(found_in(flags + mask + "or.b32 %r6, %r8, %r7;" + read), "");
  EXPECT_NE(found_in(flags + mask + "cvt.u32.u16 %r9, %r7; and.b32 %r6, %r9, 1;" + read), "")
      << "a wider integer has bits that are not set";
  EXPECT_NE(found_in(flags + mask + "xor.b32 %r6, %r8, %r7;" + read), "");
  EXPECT_NE(found_in(flags + "selp.b32 %r7, 2, 0, %p1; and.b32 %r6, %r7, %r8;" + read), "");
  EXPECT_NE(found_in(flags + mask + "cvt.sat.u32.s32 %r6, %r7;" + read), "") << "0 in any case";
}

TEST(UndefinedTest, AComparisonOfWhatHasChangedSaysNothing) {
  const std::string loop = "mov.u32 %r2, 0;\nL: add.u32 %r2, %r2, 1; setp.lt.u32 %p1, %r2, %r1;\n";
  const std::string write = "@%p1 bra M;\nmov.u32 %r4, 1;\nM: ";
  const std::string read = "setp.lt.u32 %p3, %r2, %r1; @%p3 bra N;\nst.global.u32 [%d1], %r4;\nN: ";
  const std::string end = "setp.lt.u32 %p4, %r2, 99; @%p4 bra L;";
  EXPECT_EQ(found_in(loop + write + read + end), "");
  EXPECT_NE(found_in(loop + write + "add.u32 %r2, %r2, 1;\n" + read + end), "");
}

TEST(UndefinedTest, TheCarryFlagIsARegister) {
  EXPECT_EQ(found_in("add.cc.u32 %r4, %r1, %r1; addc.u32 %r5, %r1, 0;\n" + kUndefinedStore), "");
  EXPECT_EQ(found_in("addc.u32 %r5, %r1, 0;\n" + kUndefinedStore), "the carry flag line 1");
  EXPECT_EQ(found_in("add.cc.u32 %r4, %r1, %r6; addc.u32 %r5, %r1, 0;\n" + kUndefinedStore),
            "%r6 line 1");
}

TEST(UndefinedTest, VectorsAreWrittenPartByPart) {
  const std::string part = ".reg .v2 .f32 v; mov.f32 v.x, 0f00000000;\n";
  EXPECT_EQ(found_in(part + "st.global.f32 [%d1], v.x;"), "");
  EXPECT_EQ(found_in(part + "st.global.f32 [%d1], v.y;"), "v line 2");
  EXPECT_EQ(found_in(part + "st.global.v2.f32 [%d1], v;"), "v line 2");
  EXPECT_EQ(found_in(part + "mov.f32 v.y, v.x; st.global.v2.f32 [%d1], v;"), "");
  EXPECT_EQ(found_in("ld.global.v2.u32 {%r4, %r5}, [%d1];\n" + kUndefinedStore), "");
  EXPECT_EQ(found_in("mov.b64 {_, %r5}, %d1;\n" + kUndefinedStore), "");
}

TEST(UndefinedTest, ANameInAScopeIsAnotherRegister) {
  const std::string outer = ".reg .b32 t; mov.u32 t, 1;\n";
  EXPECT_EQ(found_in(outer + "{ .reg .b32 t; st.global.u32 [%d1], t; }"), "t line 2");
  EXPECT_EQ(found_in(outer + "{ .reg .b32 t; mov.u32 t, 2; }\nst.global.u32 [%d1], t;"), "");
  EXPECT_EQ(found_in(".reg .b32 t; { .reg .b32 t; mov.u32 t, 2; }\nst.global.u32 [%d1], t;"),
            "t line 2");
}

TEST(UndefinedTest, CallsWriteWhatTheyReturn) {
  const std::string f = ".func (.param .b32 r) f(.param .b32 x) { ret; }\n";
  const auto called = [&](const std::string& argument) {
    return undefined_in(f +
                        ".entry k(.param .u64 a) { .reg .b32 %r<9>; .reg .b64 %d1;\n"
                        "ld.param.u64 %d1, [a]; { .param .b32 p, q; mov.u32 %r1, 1;\n"
                        "st.param.b32 [p], " +
                        argument +
                        "; call (q), f, (p);\n"
                        "ld.param.b32 %r5, [q]; }\n" +
                        kUndefinedStore + "ret; }");
  };
  EXPECT_EQ(called("%r1"), "");
  EXPECT_EQ(called("%r2"), "%r2 line 2");
}

TEST(UndefinedTest, ParametersInRegistersAreWrittenAndResultsMustBe) {
  const std::string head = ".func (.reg .b32 out) f(.reg .b32 in) {\n";
  EXPECT_EQ(undefined_in(head + "mov.b32 out, in;\nret; }"), "");
  EXPECT_EQ(undefined_in(head + "\nret; }"), "out line 2");
  EXPECT_EQ(undefined_in(head + "call (out), f, (in);\n}"), "");
  EXPECT_EQ(undefined_in(head + "call (out), f, (out);\n}"), "out line 1");
}

TEST(UndefinedTest, NobodyComesToCodeBehindAReturn) {
  EXPECT_EQ(found_in("ret;\n" + kUndefinedStore), "");
}

TEST(UndefinedTest, PredicatesThatDoNotConcernTheRegisterAreLeftAside) {
  std::string body;
  for (int i = 0; i < 24; ++i) {
    const std::string p = "%q" + std::to_string(i);
    body += "setp.eq.u32 " + p + ", %r1, " + std::to_string(i) + "; @" + p + " bra L" +
            std::to_string(i) + "; add.u32 %r2, %r1, 1; L" + std::to_string(i) + ":\n";
  }
  body += "@!%q0 mov.u32 %r5, 1;\n";
  for (int i = 0; i < 24; ++i) body += "@%q" + std::to_string(i) + " ret;\n";
  EXPECT_EQ(found_in(".reg .pred %q<24>;\n" + body + "@!%q0 " + kUndefinedStore), "");
}

// --- What becomes of such kernels

EntryAnalysis analysed(const std::string& functions) {
  const auto module = ptx::parse(kUndefinedHeader + functions);
  EXPECT_TRUE(module) << module.error().message;
  EntryAnalysis entry = analyse(**module).entries.at(0);
  entry.name = {};
  return entry;
}

TEST(UndefinedTest, TheKernelTakesNoFormAndSaysWhy) {
  const EntryAnalysis entry = analysed(
      ".entry k(.param .u64 a)\n{ .reg .b32 %r1; .reg .b64 %d1;\nld.param.u64 %d1, [a];\n"
      "st.global.u32 [%d1], %r1;\nret; }");
  ASSERT_TRUE(entry.undefined);
  EXPECT_EQ(entry.undefined->register_name, "%r1");
  EXPECT_EQ(entry.undefined->line, 7u);
  for (const Verdict* verdict : {&entry.worker, &entry.slice, &entry.profile}) {
    EXPECT_EQ(
        verdict->why_not,
        "line 7: may read %r1 before anything is written to it, so that the result may depend "
        "on the machine code");
  }
}

TEST(UndefinedTest, AFunctionsReadConcernsAllThatMayCallIt) {
  const std::string f =
      ".func f() { .reg .b32 %r1; .reg .b64 %d1; mov.u64 %d1, 0; st.global.u32 [%d1], %r1; ret; "
      "}\n";
  EXPECT_TRUE(analysed(f + ".entry k() { call f; ret; }").undefined);
  EXPECT_TRUE(analysed(f + ".func g() { call f; ret; }\n.entry k() { call g; ret; }").undefined);
  EXPECT_TRUE(analysed(f + ".entry k() { .reg .b64 %d<3>; .reg .b32 %r1; mov.u64 %d1, f;\n"
                           "p: .callprototype _ (); call %d1, (), p; ret; }")
                  .undefined);
  EXPECT_FALSE(analysed(f + ".entry k() { ret; }").undefined);
}

}  // namespace
}  // namespace slate::injector
