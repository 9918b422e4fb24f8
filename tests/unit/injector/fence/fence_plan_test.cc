// Which checks a function needs, and what the fence refuses.
#include <gtest/gtest.h>

#include "injector/fence/fence.h"
#include "injector/forms/placed_variables.h"

namespace slate::injector {
namespace {

std::string with_body(std::string_view body, std::string_view before = "",
                      std::string_view directives = "") {
  return std::string(".version 8.7\n.target sm_90\n.address_size 64\n")
      .append(before)
      .append(".visible .entry kernel(.param .u64 p, .param .u64 q, .param .u32 n)")
      .append(directives)
      .append(
          "\n{\n.reg .pred %p<9>;\n.reg .b32 %r<9>;\n.reg .b64 %rd<9>;\n.reg .f32 %f<9>;\n"
          ".shared .align 16 .b8 sh[256];\n.local .align 8 .b8 loc[32];\n"
          "ld.param.u64 %rd1, [p];\nld.param.u64 %rd2, [q];\nld.param.u32 %r1, [n];\n")
      .append(body)
      .append("\nret;\n}\n");
}

FenceVerdict judged(const std::string& text, const FenceOptions& options = {}) {
  const auto module = ptx::parse(text);
  EXPECT_TRUE(module) << module.error().message;
  const auto verdicts = judge_fence(**module, options);
  if (!verdicts) return {.name = {}, .why_not = verdicts.error().message, .counts = {}};
  return verdicts->front();
}

AccessCounts counts(std::string_view body, std::string_view before = "") {
  const FenceVerdict verdict = judged(with_body(body, before));
  EXPECT_EQ(verdict.why_not, "");
  return verdict.counts;
}

std::string why_not(std::string_view body, std::string_view before = "",
                    std::string_view directives = "") {
  return judged(with_body(body, before, directives)).why_not;
}

TEST(FencePlanTest, AVariableByNameAndWithinItNeedsNoCheck) {
  const auto all = counts(
      "st.shared.u32 [sh+252], %r1;\nld.shared.v4.u32 {%r1,%r2,%r3,%r4}, [sh];\n"
      "st.local.u64 [loc+24], %rd1;\nld.const.u32 %r2, [c+4];\n"
      "mov.u64 %rd3, loc;\ncvta.local.u64 %rd4, %rd3;\nadd.s64 %rd5, %rd4, 8;\n"
      "st.u32 [%rd5+4], %r1;",
      ".const .align 4 .b32 c[2];\n");
  EXPECT_EQ(all.proven, 5u);
  EXPECT_EQ(all.checks, 0u);
}

TEST(FencePlanTest, WhatCannotBeClearedIsRefused) {
  EXPECT_EQ(why_not("NEXT:\nmov.u32 %r2, 1;\n.reg .b32 late;\n@%p1 mov.u32 late, 3;\n"
                    "add.u32 %r3, late, %r2;\nsetp.lt.u32 %p1, %r3, 9;\n@%p1 bra NEXT;"),
            "line 12: behind it stand declarations of what may be read before it is written");
  EXPECT_EQ(why_not("{\n.param .align 1 .b8 in[100000];\nst.param.b8 [in], %r1;\ncall f, (in);\n}",
                    ".func f(.param .align 1 .b8 in[100000])\n{\nret;\n}\n"),
            "line 20: has more parameters than can be cleared");
}

TEST(FencePlanTest, AVariableByNameIsCheckedBeyondItsEndAndOffItsAlignment) {
  EXPECT_EQ(counts("st.shared.u32 [sh+256], %r1;").checks, 1u);
  EXPECT_EQ(counts("st.shared.u32 [sh+254], %r1;").checks, 1u);
  EXPECT_EQ(counts("st.shared.u32 [sh+2], %r1;").checks, 1u);
  EXPECT_EQ(counts("st.shared.u32 [sh+-4], %r1;").checks, 1u);
}

TEST(FencePlanTest, AccessesByOneBaseShareACheck) {
  const auto all = counts(
      "ld.global.u32 %r2, [%rd1];\nld.global.u32 %r3, [%rd1+8];\n"
      "add.s64 %rd3, %rd1, 64;\nst.global.u32 [%rd3+4], %r3;");
  EXPECT_EQ(all.accesses, 3u);
  EXPECT_EQ(all.checks, 1u);
  EXPECT_EQ(all.branches, 1u);
}

TEST(FencePlanTest, AccessesFarApartHaveChecksOfTheirOwn) {
  EXPECT_EQ(counts("ld.global.u32 %r2, [%rd1];\nld.global.u32 %r3, [%rd1+8000];").checks, 2u);
}

TEST(FencePlanTest, BasesThatAreKnownShareABranch) {
  const auto all = counts("ld.global.u32 %r2, [%rd1];\nst.global.u32 [%rd2], %r2;");
  EXPECT_EQ(all.checks, 2u);
  EXPECT_EQ(all.branches, 1u);
}

TEST(FencePlanTest, ABaseThatChangesIsCheckedAgain) {
  const auto all = counts(
      "ld.global.u32 %r2, [%rd1];\nadd.s64 %rd1, %rd1, 4;\n"
      "ld.global.u32 %r3, [%rd1];");
  EXPECT_EQ(all.checks, 2u);
  EXPECT_EQ(all.branches, 2u);
}

TEST(FencePlanTest, WhatWasShownOnEveryWayIsNotCheckedAgain) {
  const auto all = counts(
      "ld.global.u32 %r2, [%rd1];\nsetp.eq.u32 %p1, %r2, 0;\n@%p1 bra NEXT;\n"
      "ld.global.u32 %r3, [%rd1];\nNEXT:\nld.global.u32 %r4, [%rd1];");
  EXPECT_EQ(all.covered, 2u);
  EXPECT_EQ(all.checks, 1u);
}

TEST(FencePlanTest, WhatWasShownOnOneWayIsCheckedAgain) {
  const auto all = counts(
      "setp.eq.u32 %p1, %r1, 0;\n@%p1 bra NEXT;\n"
      "ld.global.u32 %r3, [%rd1];\nNEXT:\nld.global.u32 %r4, [%rd1];");
  EXPECT_EQ(all.covered, 0u);
  EXPECT_EQ(all.checks, 2u);
}

TEST(FencePlanTest, ACheckOfAReadServesAWriteButForParameters) {
  const auto checks = [](const std::string& beginning, const std::string& space) {
    return counts(beginning + "ld" + space + ".u32 %r2, [%rd1];\nsetp.eq.u32 %p1, %r2, 0;\n" +
                  "@%p1 bra NEXT;\nst" + space + ".u32 [%rd1], %r3;\nNEXT:")
        .checks;
  };
  EXPECT_EQ(checks("", ".global"), 1u);
  EXPECT_EQ(checks("", ""), 1u) << "generic";
  const std::string parameter = "mov.b64 %rd3, n;\ncvta.param.u64 %rd4, %rd3;\n";
  EXPECT_EQ(checks(parameter, ".global"), 1u);
  EXPECT_EQ(checks(parameter, ""), 2u) << "it may lead to a parameter, which is only read";
}

TEST(FencePlanTest, AGuardedReadServesNoOther) {
  EXPECT_EQ(counts("setp.eq.u32 %p1, %r1, 0;\n@%p1 ld.global.u32 %r2, [%rd1];\n@%p1 bra NEXT;\n"
                   "ld.global.u32 %r3, [%rd1];\nNEXT:")
                .checks,
            2u);
}

TEST(FencePlanTest, AddressesAreComputedInFrontOfASharedCheck) {
  const auto all = counts(
      "ld.global.u32 %r2, [%rd1];\nmul.wide.u32 %rd3, %r1, 4;\n"
      "add.s64 %rd4, %rd2, %rd3;\nst.global.u32 [%rd4], %r2;");
  EXPECT_EQ(all.checks, 2u);
  EXPECT_EQ(all.branches, 1u);
}

TEST(FencePlanTest, AnAddressFromMemoryWaitsForIt) {
  const auto all = counts("ld.global.u64 %rd3, [%rd1];\nst.global.u32 [%rd3], %r1;");
  EXPECT_EQ(all.branches, 2u);
}

TEST(FencePlanTest, LoadsAreUnderWayWhileALaterCheckWaits) {
  // Two elements by indices from memory: the second index does not wait for the first element.
  const std::string first =
      "ld.global.u32 %r2, [%rd1];\nmul.wide.u32 %rd3, %r2, 4;\nadd.s64 %rd4, %rd2, %rd3;\n"
      "ld.global.u32 %r3, [%rd4];\n";
  const std::string second =
      "ld.global.u32 %r4, [%rd1+4];\nmul.wide.u32 %rd5, %r4, 4;\nadd.s64 %rd6, %rd2, %rd5;\n"
      "ld.global.u32 %r5, [%rd6];\n";
  const auto all = counts(first + second);
  EXPECT_EQ(all.branches, 2u);
  EXPECT_EQ(all.early, 2u);
}

TEST(FencePlanTest, NoLoadMovesPastWhatMayOrderIt) {
  const auto early = [](std::string_view between, std::string_view load = "ld.global.u32") {
    return counts(std::string("ld.global.u32 %r2, [%rd1];\n") + std::string(between) + "\n" +
                      std::string(load) + " %r3, [%rd2];",
                  ".func f { ret; }\n")
        .early;
  };
  EXPECT_EQ(early(""), 1u);
  EXPECT_EQ(early("add.s32 %r4, %r2, 1;"), 1u);
  for (const std::string_view between :
       {"st.global.u32 [%rd1], %r1;", "st.shared.u32 [sh], %r1;", "membar.gl;", "bar.sync 0;",
        "bar.warp.sync -1;", "atom.global.add.u32 %r5, [%rd1], 1;", "call f;",
        "ld.global.cv.u32 %r5, [%rd1];", "ld.volatile.global.u32 %r5, [%rd1];",
        "ld.acquire.gpu.global.u32 %r5, [%rd1];"}) {
    EXPECT_EQ(early(between), 0u) << between;
  }
  EXPECT_EQ(early("", "ld.volatile.global.u32"), 0u);
  EXPECT_EQ(early("", "ld.relaxed.gpu.global.u32"), 0u);
  EXPECT_EQ(early("", "ld.global.cv.u32"), 0u);
  EXPECT_EQ(early("", "@%p1 ld.global.u32"), 0u);
  // Its address or its result would be another one.
  EXPECT_EQ(early("ld.global.u64 %rd2, [%rd1+8];"), 0u);
  EXPECT_EQ(early("mov.u32 %r6, %r3;"), 0u);
  EXPECT_EQ(early("mov.u32 %r3, 7;"), 0u);
}

TEST(FencePlanTest, NothingMovesInFrontOfACallOrPastAnEarlierRead) {
  EXPECT_EQ(counts("ld.global.u32 %r2, [%rd1];\ncall f;\nadd.s64 %rd3, %rd2, 4096;\n"
                   "ld.global.u32 %r3, [%rd3];",
                   ".func f { ret; }\n")
                .branches,
            2u);
  // The loop reads %rd3 of its last turn.
  const auto all = counts(
      "mov.u32 %r3, 0;\nLOOP:\nld.global.u32 %r2, [%rd1];\n"
      "setp.ne.u32 %p1, %r3, 0;\n@%p1 st.global.u64 [%rd1], %rd3;\n"
      "add.s64 %rd3, %rd2, 4096;\nld.global.u32 %r4, [%rd3];\n"
      "add.u32 %r3, %r3, 1;\nsetp.lt.u32 %p2, %r3, 9;\n@%p2 bra LOOP;");
  EXPECT_EQ(all.branches, 2u);
}

/// Two blocks that load by neighbouring indices, and what may run between them.
AccessCounts in_turn(std::string_view between) {
  return counts(std::string("mul.wide.u32 %rd3, %r1, 4;\nadd.s64 %rd4, %rd1, %rd3;\n"
                            "ld.global.nc.u32 %r2, [%rd4];\nsetp.ne.u32 %p1, %r2, 0;\n")
                    .append(between)
                    .append("\nON:\nadd.u32 %r3, %r1, 1;\nmul.wide.u32 %rd5, %r3, 4;\n"
                            "add.s64 %rd6, %rd1, %rd5;\nld.global.nc.u32 %r4, [%rd6];"),
                ".global .align 4 .b8 rows[64];\n.func f { ret; }\n");
}

TEST(FencePlanTest, BlocksThatRunInTurnShareACheck) {
  for (const std::string_view between :
       {"add.u32 %r5, %r5, 1;", "@%p1 bra ON;\nst.global.u32 [rows], %r2;",
        "@%p1 bra ELSE;\nmov.u32 %r5, 1;\nbra ON;\nELSE:\nmov.u32 %r5, 2;"}) {
    const AccessCounts found = in_turn(between);
    EXPECT_EQ(found.branches, 1u) << between;
    EXPECT_EQ(found.checks, 2u) << between;
    EXPECT_EQ(found.early, 1u) << between;
  }
}

/// The text of a kernel behind the fence.
std::string fenced(const std::string& text) {
  const auto module = ptx::parse(text);
  EXPECT_TRUE(module) << module.error().message;
  const auto found = fence(**module, {});
  EXPECT_TRUE(found) << found.error().message;
  return found ? found->ptx : std::string();
}

TEST(FencePlanTest, WhatNoCheckCanLookAtIsRefused) {
  // The table of accesses has 32 bits for an offset.
  EXPECT_NE(why_not("st.global.u32 [%rd1+4294967296], %r1;"), "");
  EXPECT_NE(why_not("st.global.u32 [%rd1+-2147483648], %r1;"), "");
  // Rows that lie 286,331,168 bytes apart.
  EXPECT_NE(why_not("wmma.store.d.sync.aligned.row.m16n16k16.global.f32 [%rd1], "
                    "{%f1,%f2,%f3,%f4,%f5,%f6,%f7,%f8}, 143165584;"),
            "");
  EXPECT_NE(why_not("tex.1d.v4.u32.s32 {%r2,%r3,%r4,%r5}, [t, {%r1}];", ".global .texref t;\n"),
            "");
}

TEST(FencePlanTest, ANameThatMeansTwoThingsIsRefused) {
  const std::string module = ".global .align 4 .b8 gv[1024];\n";
  const std::string access = "st.global.u32 [%rd1], %r1;\n";
  EXPECT_EQ(why_not(access, module), "");
  EXPECT_NE(why_not("{\n.reg .b64 gv;\nmov.b64 gv, %rd1;\n" + access + "}", module), "");
  EXPECT_NE(why_not("{\n.reg .b64 q;\nmov.b64 q, %rd1;\n" + access + "}"), "");
  EXPECT_NE(why_not("{\n.reg .b64 loc;\nmov.b64 loc, %rd1;\n" + access + "}"), "");
  // Registers and arguments may have one name in several places.
  EXPECT_EQ(why_not("{\n.reg .b64 x;\nmov.b64 x, %rd1;\n}\n{\n.reg .b64 x;\nmov.b64 x, %rd1;\n}"),
            "");
}

TEST(FencePlanTest, ALongAccessIsLookedAtToItsEnd) {
  const std::string copy = "cp.async.bulk.global.shared::cta.bulk_group [%rd1], [%r2], ";
  const std::string test = "setp.lt.or.u64 %__slate_fq, %__slate_ft, 65536, %__slate_fq;";
  EXPECT_TRUE(fenced(with_body("mov.u32 %r2, sh;\n" + copy + "65536;")).contains(test));
}

TEST(FencePlanTest, ArgumentsThatAreNotSurelyWrittenAreCleared) {
  const auto stores = [](std::string_view between) {
    const std::string text = fenced(
        with_body(std::string("{\n.param .b64 in;\n").append(between).append("call f, (in);\n}"),
                  ".func f(.param .b64 in)\n{\n.reg .b64 %rd<9>;\n"
                  "ld.param.b64 %rd1, [in];\nst.global.b64 [%rd1], %rd1;\nret;\n}\n"));
    std::size_t count = 0;
    for (std::size_t at = 0; (at = text.find("st.param", at)) != std::string::npos; ++at) ++count;
    return count;
  };
  const std::string store = "st.param.b64 [in], %rd1;\n";
  EXPECT_EQ(stores(store), 1u);
  EXPECT_EQ(stores("@%p1 bra OVER;\n" + store + "OVER:\n"), 2u);
  EXPECT_EQ(stores("call f, (in);\n" + store), 2u);
}

TEST(FencePlanTest, BlocksThatDoNotRunInTurnHaveChecksOfTheirOwn) {
  std::string longest = "@%p1 bra ON;";
  for (int i = 0; i < 33; ++i) longest += "\nadd.u32 %r5, %r5, 1;";
  for (const std::string_view between :
       {std::string_view("@%p1 ret;"), std::string_view("@%p1 bra ON;\ncall f;"),
        // A thread may stay in between: then it never loads.
        std::string_view("@%p1 bra SPIN;\nbra ON;\nSPIN:\nbra SPIN;"),
        std::string_view("TURN:\n@%p1 bra TURN;"),
        // The index is another one then.
        std::string_view("@%p1 bra ON;\nadd.u32 %r1, %r1, 1;"),
        // Longer than addresses are kept for.
        std::string_view(longest)}) {
    EXPECT_EQ(in_turn(between).branches, 2u) << between;
  }
  // The first block runs in each turn, the second one once.
  EXPECT_EQ(counts("mov.u32 %r5, 0;\nTURN:\nadd.u32 %r6, %r5, %r1;\nmul.wide.u32 %rd3, %r6, 4;\n"
                   "add.s64 %rd4, %rd1, %rd3;\nld.global.nc.u32 %r2, [%rd4];\n"
                   "add.u32 %r5, %r5, 1;\nsetp.lt.u32 %p1, %r5, 9;\n@%p1 bra TURN;\n"
                   "add.u32 %r3, %r6, 1;\nmul.wide.u32 %rd5, %r3, 4;\nadd.s64 %rd6, %rd1, %rd5;\n"
                   "ld.global.nc.u32 %r4, [%rd6];")
                .branches,
            2u);
}

TEST(FencePlanTest, WhatMovesOutOfAnEarlierTextComesBehindWhatItReads) {
  const auto module = ptx::parse(with_body(
      "mul.wide.u32 %rd3, %r1, 4;\nadd.s64 %rd4, %rd1, %rd3;\nbra.uni FIRST;\n"
      "SECOND:\nmul.wide.u32 %rd5, %r2, 4;\nadd.s64 %rd6, %rd1, %rd5;\n"
      "ld.global.nc.u32 %r4, [%rd6];\nbra.uni OUT;\n"
      "FIRST:\nld.global.nc.u32 %r3, [%rd4];\nxor.b32 %r2, %r1, 5;\nbra.uni SECOND;\nOUT:"));
  ASSERT_TRUE(module);
  const auto fenced = fence(**module, {});
  ASSERT_TRUE(fenced) << fenced.error().message;
  EXPECT_EQ(fenced->entries.front().counts.branches, 1u);
  EXPECT_LT(fenced->ptx.find("xor.b32 %r2"), fenced->ptx.find("mul.wide.u32 %rd5"));
}

TEST(FencePlanTest, WhatWasShownOfARegisterThatChangesHoldsInBlocksThatRunInTurn) {
  const auto checks = [](std::string_view between) {
    return counts(std::string("mov.u64 %rd3, %rd1;\nTURN:\nld.global.f64 %rd4, [%rd3];\n"
                              "setp.ne.u64 %p1, %rd4, 0;\n@%p1 bra ON;\n")
                      .append(between)
                      .append("\nON:\nld.global.u32 %r2, [%rd3+4];\nadd.u64 %rd3, %rd3, 8;\n"
                              "setp.lt.u64 %p2, %rd3, %rd2;\n@%p2 bra TURN;"))
        .checks;
  };
  EXPECT_EQ(checks("mov.u32 %r5, 1;"), 1u);
  EXPECT_EQ(checks("add.u64 %rd3, %rd3, 64;"), 2u);
}

TEST(FencePlanTest, AnyLoadButOfConstantsStaysBehindStoresOfOtherBlocks) {
  const auto early = [](std::string_view between, std::string_view load) {
    return counts(std::string("ld.global.nc.u32 %r2, [%rd1];\nsetp.ne.u32 %p1, %r2, 0;\n"
                              "@%p1 bra ON;\n")
                      .append(between)
                      .append("\nON:\n")
                      .append(load)
                      .append(" %r4, [%rd2];"),
                  ".global .align 4 .b8 rows[64];\n")
        .early;
  };
  EXPECT_EQ(early("add.u32 %r5, %r5, 1;", "ld.global.u32"), 1u);
  EXPECT_EQ(early("st.global.u32 [rows], %r5;", "ld.global.u32"), 0u);
  EXPECT_EQ(early("st.global.u32 [rows], %r5;", "ld.global.nc.u32"), 1u);
  EXPECT_EQ(early("st.relaxed.gpu.global.u32 [rows], %r5;", "ld.global.nc.u32"), 1u);
  for (const std::string_view orders :
       {"st.release.gpu.global.u32 [rows], %r5;", "ld.acquire.gpu.global.u32 %r5, [rows];",
        "membar.gl;", "atom.global.add.u32 %r5, [rows], 1;", "bar.sync 0;"}) {
    EXPECT_EQ(early(orders, "ld.global.nc.u32"), 0u) << orders;
  }
}

/// Comparisons of indices in the fenced text.
std::size_t compared(std::string_view body) {
  const auto module = ptx::parse(with_body(body));
  EXPECT_TRUE(module);
  const auto fenced = fence(**module, {});
  EXPECT_TRUE(fenced) << fenced.error().message;
  std::size_t count = 0;
  constexpr std::string_view kComparison = ", %__slate_fe";
  for (std::size_t at = 0; (at = fenced->ptx.find(kComparison, at)) != std::string::npos; ++at) {
    const std::size_t line = fenced->ptx.rfind('\n', at);
    count += fenced->ptx.compare(line + 1, 12, "\tsetp.ge.u32") == 0;
  }
  return count;
}

std::string loads_at(std::initializer_list<int> places, std::string_view widening = "u32") {
  std::string body;
  int number = 3;
  for (const int place : places) {
    body += "add.s32 %r" + std::to_string(number) + ", %r1, " + std::to_string(place) +
            ";\nmul.wide." + std::string(widening) + " %rd" + std::to_string(number) + ", %r" +
            std::to_string(number) + ", 4;\n";
    body +=
        "add.s64 %rd" + std::to_string(number + 3) + ", %rd1, %rd" + std::to_string(number) + ";\n";
    ++number;
  }
  for (int i = 3; i < number; ++i)
    body += "ld.global.f32 %f1, [%rd" + std::to_string(i + 3) + "];\n";
  return body;
}

TEST(FencePlanTest, TheLeastOfNeighbouringIndicesIsCompared) {
  EXPECT_EQ(compared(loads_at({0, 1, 2})), 1u);
  EXPECT_EQ(compared(loads_at({5, -1, 2}, "s32")), 1u);
  EXPECT_EQ(compared(loads_at({0, 1023})), 1u);
  EXPECT_EQ(compared(loads_at({0, 1024})), 2u) << "behind the slack";
  EXPECT_EQ(compared(loads_at({0, 900, 1800})), 2u) << "the third is far from what is compared";
  // Another index, or the same register before and behind a change.
  EXPECT_EQ(compared("mul.wide.u32 %rd3, %r1, 4;\nadd.s64 %rd4, %rd1, %rd3;\nadd.u32 %r2, %r3, 1;\n"
                     "mul.wide.u32 %rd5, %r2, 4;\nadd.s64 %rd6, %rd1, %rd5;\n"
                     "ld.global.f32 %f1, [%rd4];\nld.global.f32 %f1, [%rd6];"),
            2u);
  EXPECT_EQ(compared("mul.wide.u32 %rd3, %r1, 4;\nadd.s64 %rd4, %rd1, %rd3;\n"
                     "xor.b32 %r1, %r1, 77;\nadd.u32 %r2, %r1, 1;\nmul.wide.u32 %rd5, %r2, 4;\n"
                     "add.s64 %rd6, %rd1, %rd5;\nld.global.f32 %f1, [%rd4];\n"
                     "ld.global.f32 %f1, [%rd6];"),
            2u);
}

TEST(FencePlanTest, AnIndexFromAParameterIsComparedInPlaceOfItsAddress) {
  const auto indexed = [](std::string_view body) { return counts(body).indexed; };
  const std::string load = "ld.global.u32 %r3, [%rd4];";
  EXPECT_EQ(indexed("mul.wide.s32 %rd3, %r1, 4;\nadd.s64 %rd4, %rd1, %rd3;" + load), 1u);
  EXPECT_EQ(indexed("mul.wide.u32 %rd3, %r1, 4;\nadd.s64 %rd4, %rd3, %rd1;" + load), 1u);
  EXPECT_EQ(indexed("mad.wide.s32 %rd4, %r1, 8, %rd1;" + load), 1u);
  EXPECT_EQ(
      indexed("cvt.s64.s32 %rd3, %r1;\nshl.b64 %rd5, %rd3, 2;\nadd.s64 %rd4, %rd5, %rd2;" + load),
      1u);
  EXPECT_EQ(
      indexed("cvta.to.global.u64 %rd6, %rd1;\nadd.s64 %rd7, %rd6, 16;\ncvt.u64.u32 %rd3, %r1;\n"
              "add.s64 %rd4, %rd7, %rd3;" +
              load),
      1u);
  // Accesses by one base share a check, which the base serves up to the slack.
  EXPECT_EQ(indexed("mul.wide.s32 %rd3, %r1, 4;\nadd.s64 %rd4, %rd1, %rd3;"
                    "ld.global.u32 %r3, [%rd4+4092];" +
                    load),
            1u);
  EXPECT_EQ(indexed("mul.wide.s32 %rd3, %r1, 4;\nadd.s64 %rd4, %rd1, %rd3;"
                    "ld.global.u32 %r3, [%rd4+-4];" +
                    load),
            0u);
}

TEST(FencePlanTest, AnIndexThatALoadHasWidenedIsComparedInPlaceOfItsAddress) {
  const auto indexed = [](const std::string& type, const std::string& address) {
    return counts("ld.shared." + type + " %rd5, [sh];\n" + address + "ld.global.u32 %r2, [%rd4];")
        .indexed;
  };
  const std::string bytes = "add.s64 %rd4, %rd1, %rd5;\n",
                    words = "shl.b64 %rd6, %rd5, 2;\nadd.s64 %rd4, %rd6, %rd2;\n";
  for (const char* type : {"s32", "u32", "b32", "u16", "s8"}) {
    EXPECT_EQ(indexed(type, bytes), 1u) << type;
    EXPECT_EQ(indexed(type, words), 1u) << type;
  }
  EXPECT_EQ(indexed("u64", bytes), 0u) << "it may be any number";
  EXPECT_EQ(indexed("s32", "@%p1 mov.u64 %rd5, %rd2;\n" + bytes), 0u);
  EXPECT_EQ(indexed("s32", "add.s64 %rd6, %rd5, %rd5;\nadd.s64 %rd4, %rd6, %rd2;\n"), 0u);
}

TEST(FencePlanTest, WhatIsNoIndexFromAParameterIsComparedAsAnAddress) {
  const auto indexed = [](std::string_view body) { return counts(body).indexed; };
  const std::string load = "ld.global.u32 %r3, [%rd4];";
  // The pointer comes from memory, or may be one of two.
  EXPECT_EQ(indexed("ld.global.u64 %rd5, [%rd1];\nmul.wide.s32 %rd3, %r1, 4;\n"
                    "add.s64 %rd4, %rd5, %rd3;" +
                    load),
            0u);
  EXPECT_EQ(indexed("@%p1 mov.u64 %rd1, %rd2;\nmul.wide.s32 %rd3, %r1, 4;\n"
                    "add.s64 %rd4, %rd1, %rd3;" +
                    load),
            0u);
  // An element is no power of two; the sum of two indices; 64 bits; two pointers.
  EXPECT_EQ(indexed("mul.wide.s32 %rd3, %r1, 12;\nadd.s64 %rd4, %rd1, %rd3;" + load), 0u);
  EXPECT_EQ(
      indexed("mul.wide.s32 %rd3, %r1, 4;\nadd.s64 %rd5, %rd3, %rd3;\nadd.s64 %rd4, %rd1, %rd5;" +
              load),
      0u);
  EXPECT_EQ(indexed("shl.b64 %rd3, %rd2, 2;\nadd.s64 %rd4, %rd1, %rd3;" + load), 0u);
  EXPECT_EQ(indexed("add.s64 %rd4, %rd1, %rd2;" + load), 0u);
  // The address may be another turn's.
  EXPECT_EQ(
      indexed("NEXT:\n@%p1 bra LATER;\nmul.wide.s32 %rd3, %r1, 4;\nadd.s64 %rd4, %rd1, %rd3;\n"
              "LATER:\n" +
              load + "\nsetp.eq.u32 %p1, %r3, 0;\n@%p1 bra NEXT;"),
      0u);
}

TEST(FencePlanTest, ABaseThatDoesNotChangeInALoopIsLookedAtInFront) {
  const std::string_view loop =
      "mov.u32 %r3, 0;\nLOOP:\nld.global.u32 %r2, [{0}];\nadd.s64 %rd2, %rd2, 4;\n"
      "add.u32 %r3, %r3, 1;\nsetp.lt.u32 %p2, %r3, 9;\n@%p2 bra LOOP;";
  const auto with_base = [&](std::string_view base) {
    std::string text(loop);
    return text.replace(text.find("{0}"), 3, base);
  };
  EXPECT_EQ(counts(with_base("%rd1")).hoisted, 1u);
  EXPECT_EQ(counts(with_base("%rd2")).hoisted, 0u);
  EXPECT_EQ(counts("ld.global.u32 %r2, [%rd1];").hoisted, 0u);
}

TEST(FencePlanTest, ARegisterThatMayBeUndefinedIsNotTakenForAligned) {
  // On one way %rd3 holds anything.
  const std::string text = with_body(
      "setp.eq.u32 %p1, %r1, 0;\n@%p1 bra NEXT;\n"
      "mul.wide.u32 %rd3, %r1, 4;\nNEXT:\n"
      "add.s64 %rd4, %rd1, %rd3;\nld.global.u32 %r4, [%rd4];");
  const auto module = ptx::parse(text);
  ASSERT_TRUE(module);
  const auto fenced = fence(**module, {});
  ASSERT_TRUE(fenced);
  EXPECT_NE(fenced->ptx.find("cvt.u32.u64 %__slate_fd, %rd4;"), std::string::npos);
}

TEST(FencePlanTest, ShufflesInARowAskOnceWhichLanesThereAre) {
  const auto votes = [](const std::string& between, const std::string& mask = "-1") {
    const std::string shuffle = "shfl.sync.down.b32 %r2, %r2, 4, 31, ";
    const auto module = ptx::parse(
        with_body("mov.u32 %r4, %tid.x;\nsetp.gt.u32 %p1, %r4, 9;\n@%p1 ret;\nmov.u32 %r3, -1;\n"
                  "mov.u32 %r2, 1;\n" +
                  shuffle + mask + ";\n" + between + "\n" + shuffle + mask +
                  ";\nst.global.u32 [%rd1], %r2;"));
    EXPECT_TRUE(module) << module.error().message;
    const std::string text = fence(**module, {})->ptx;
    std::size_t count = 0;
    for (std::size_t at = 0; (at = text.find("vote.sync.ballot", at)) != text.npos; ++at) ++count;
    return count;
  };
  EXPECT_EQ(votes(""), 1u);
  EXPECT_EQ(votes("add.u32 %r2, %r2, %r1;\n@%p2 mov.u32 %r4, 3;"), 1u);
  EXPECT_EQ(votes("", "%r3"), 1u);
  EXPECT_EQ(votes("mov.u32 %r3, 15;", "%r3"), 2u);
  EXPECT_EQ(votes("@%p2 ret;"), 2u);
  EXPECT_EQ(votes("NEXT:"), 2u);
  EXPECT_EQ(votes("@%p2 bra NEXT;\nNEXT:"), 2u);
  EXPECT_EQ(votes("ld.global.u32 %r4, [%rd2];"), 2u) << "its check may end a lane";
  EXPECT_EQ(votes("shfl.sync.down.b32 %r2, %r2, 4, 31, 15;"), 3u) << "other lanes";
  EXPECT_EQ(votes("@%p2 shfl.sync.down.b32 %r4, %r2, 4, 31, -1;"), 3u) << "those of a guard";
}

TEST(FencePlanTest, OneComparisonServesTheArraysThatAnIndexIsFor) {
  const auto comparisons = [](const std::string& guard, const std::string& index) {
    const auto module = ptx::parse(
        with_body("mov.u32 %r2, %tid.x;\nshl.b32 %r3, %r2, 1;\nsetp.gt.u32 %p1, %r1, 9;\n"
                  "mul.wide.u32 %rd3, %r2, 4;\nadd.s64 %rd4, %rd1, %rd3;\n"
                  "mul.wide.u32 %rd5, " +
                  index +
                  ", 4;\nadd.s64 %rd6, %rd2, %rd5;\nadd.s64 %rd7, %rd2, %rd3;\n"
                  "ld.global.u32 %r4, [%rd4];\n" +
                  guard + "ld.global.u32 %r5, [" + (index == "%r2" ? "%rd7" : "%rd6") + "];"));
    EXPECT_TRUE(module) << module.error().message;
    const std::string text = fence(**module, {})->ptx;
    std::size_t count = 0;
    for (std::size_t at = 0; (at = text.find("%__slate_fx", at)) != text.npos; ++at) {
      const std::size_t line = text.rfind('\n', at) + 1;
      count += text.substr(line, at - line).contains("setp.ge") ? 1 : 0;
    }
    return count;
  };
  EXPECT_EQ(comparisons("", "%r2"), 1u);
  EXPECT_EQ(comparisons("", "%r3"), 2u) << "another index";
  EXPECT_EQ(comparisons("@%p1 ", "%r2"), 2u) << "under a guard";
}

TEST(FencePlanTest, AVariableOutsideTheModuleNeedsNoCheckWithinIt) {
  const auto module =
      ptx::parse(with_body("st.global.u32 [far+4], %r1;\nld.global.u32 %r2, [far+8];",
                           ".global .align 4 .b32 far[2];\n"));
  ASSERT_TRUE(module);
  std::vector<std::string> names;
  const auto text = tabulate_variables(**module, names);
  ASSERT_TRUE(text);
  FenceOptions options{.names = OwnNames::kExpected};
  EXPECT_EQ(judged(*text, options).counts.checks, 2u);
  options.tabled = {{.bytes = 8, .align = 4}};
  EXPECT_EQ(judged(*text, options).counts.checks, 1u);
  EXPECT_EQ(judged(*text, options).counts.proven, 1u);
}

TEST(FencePlanTest, AnElementOfSuchAVariableIsComparedWithItsBounds) {
  const auto module = ptx::parse(
      with_body("mov.u64 %rd1, far;\nmul.wide.u32 %rd2, %r1, 4;\nadd.u64 %rd1, %rd1, %rd2;\n"
                "ld.global.u32 %r2, [%rd1];",
                ".global .align 4 .b32 near;\n.global .align 4 .b32 far[8];\n"));
  ASSERT_TRUE(module);
  std::vector<std::string> names;
  const auto text = tabulate_variables(**module, names);
  ASSERT_TRUE(text);
  const auto tabled = ptx::parse(*text);
  ASSERT_TRUE(tabled);
  const auto fenced =
      fence(**tabled, {.names = OwnNames::kExpected,
                       .tabled = {{.bytes = 4, .align = 4}, {.bytes = 32, .align = 4}}});
  ASSERT_TRUE(fenced) << fenced.error().message;
  EXPECT_NE(fenced->ptx.find("ld.const.u64 %__slate_fl, [__slate_variables+8];\n"
                             "\tsub.u64 %__slate_fo, %rd1, %__slate_fl;\n"
                             "\tsetp.gt.u64 %__slate_fp, %__slate_fo, 28;"),
            std::string::npos)
      << fenced->ptx;
}

TEST(FencePlanTest, ARegisterOfInnerBracesIsNotNamedBehindThem) {
  const auto module =
      ptx::parse(with_body("{ .reg .b64 %inner; mov.b64 %inner, 4096; mov.b64 %rd1, %inner; }\n"
                           "st.global.u32 [%rd1], %r1;",
                           ""));
  ASSERT_TRUE(module);
  const auto fenced = fence(**module, {});
  ASSERT_TRUE(fenced) << fenced.error().message;
  EXPECT_EQ(fenced->ptx.find("sub.u64 %__slate_fo, %inner"), std::string::npos) << fenced->ptx;
  EXPECT_NE(fenced->ptx.find("sub.u64 %__slate_fo, %rd1"), std::string::npos) << fenced->ptx;
}

TEST(FencePlanTest, UnknownInstructionsAreRefused) {
  EXPECT_EQ(why_not("frobnicate.u32 %r1, %r2;"),
            "line 15: has the instruction frobnicate, which the fence does not know");
  EXPECT_NE(why_not("multimem.red.global.add.u32 [%rd1], %r1;"), "");
  EXPECT_NE(why_not("wgmma.fence.sync.aligned;"), "");
  EXPECT_NE(why_not("alloca.u64 %rd1, %rd2;"), "");
  EXPECT_NE(
      why_not("st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.u32 [%r1], %r2, [%r3];"),
      "");
  EXPECT_EQ(why_not("cp.async.bulk.tensor.1d.shared::cluster.global.mbarrier::complete_tx::bytes "
                    "[%r1], [%rd1, {%r2}], [%r3];"),
            "line 15: copies by a tensor map");
}

TEST(FencePlanTest, CallsThatLeaveTheModuleAreRefusedButForAsserts) {
  EXPECT_EQ(why_not("call other;", ".extern .func other;\n"),
            "line 16: calls other, which is not in the module");
  EXPECT_EQ(why_not("call %rd1, (), P;\nP: .callprototype ()_();"),
            "line 15: calls a function by its address");
  EXPECT_EQ(
      why_not("{ .param .b64 a, b, d, e; .param .b32 c;\n"
              "call __assertfail, (a, b, c, d, e); }",
              ".extern .func __assertfail(.param .b64 a, .param .b64 b, .param .b32 c, .param "
              ".b64 d, .param .b64 e);\n"),
      "");
}

TEST(FencePlanTest, FunctionsThatMayCallThemselvesAreRefused) {
  const std::string text = with_body("call f;", ".func f { call f; ret; }\n");
  EXPECT_EQ(judged(text).why_not, "calls f, which may call itself: its stack has no bound");
  EXPECT_EQ(judged(text, {.recursion = true}).why_not, "");
}

TEST(FencePlanTest, ClustersAreRefused) {
  EXPECT_EQ(why_not("", "", " .reqnctapercluster 2, 1, 1"), "is launched in clusters");
  EXPECT_EQ(why_not("", "", " .reqnctapercluster 1, 1, 1"), "");
}

TEST(FencePlanTest, ParametersAreReadByNameAndWithinThem) {
  EXPECT_EQ(why_not("ld.param.u32 %r2, [p+4];"), "");
  EXPECT_NE(why_not("ld.param.u64 %rd2, [p+4];"), "");
  EXPECT_NE(why_not("mov.b64 %rd3, p;\nld.param.u32 %r2, [%rd3];"), "");
}

/// How many loops of the body may wait for others. In it %r1, %rd1 and %rd2 are parameters.
std::uint32_t waits(std::string_view body) {
  return counts(body, ".func f { ret; }\n").waits;
}

/// A loop whose turn is this, and which goes on where %p1 is true.
std::uint32_t waits_in(std::string_view turn) {
  return waits(std::string("mov.u32 %r2, 0;\nmov.u32 %r3, 0;\nNEXT:\n")
                   .append(turn)
                   .append("\n@%p1 bra NEXT;"));
}

TEST(FencePlanTest, ALoopThatGoesOnByWhatItLoadsMayWait) {
  const std::string on = "\nsetp.eq.u32 %p1, %r3, 0;";
  for (const std::string_view load :
       {"ld.volatile.global.u32 %r3, [%rd1];", "ld.acquire.gpu.global.u32 %r3, [%rd1];",
        "ld.relaxed.gpu.u32 %r3, [%rd1];", "ld.global.u32 %r3, [%rd1];",
        "membar.gl;\nld.u32 %r3, [%rd1];", "ld.volatile.shared.u32 %r3, [sh];",
        "atom.global.cas.b32 %r3, [%rd1], 0, 1;", "atom.shared.or.b32 %r3, [sh], 0;",
        "shfl.sync.idx.b32 %r3, %r1, 0, 31, -1;", "call f;", "nanosleep.u32 20;",
        "mbarrier.test_wait.shared.b64 %p2, [sh], %rd2;\nselp.u32 %r3, 1, 0, %p2;",
        "vote.sync.ballot.b32 %r3, %p2, -1;"}) {
    EXPECT_EQ(waits_in(std::string(load) + on), 1u) << load;
  }
}

TEST(FencePlanTest, ALoopThatLearnsNothingFromOthersDoesNotWait) {
  const std::string on = "\nsetp.eq.u32 %p1, %r3, 0;";
  for (const std::string_view turn :
       {"mul.lo.u32 %r3, %r3, %r3;", "st.volatile.global.u32 [%rd1], %r1;",
        "red.global.add.u32 [%rd1], 1;", "ld.local.u32 %r3, [loc];", "ld.param.u32 %r3, [n];",
        "mov.u32 %r3, %clock;", "bar.sync 0;"}) {
    EXPECT_EQ(waits_in(std::string(turn) + on), 0u) << turn;
  }
}

TEST(FencePlanTest, ALoopWithACounterAndALimitDoesNotWait) {
  const std::string load = "ld.volatile.global.u32 %r5, [%rd1];\n";
  for (const std::string_view turn :
       {"add.s32 %r2, %r2, 1;\nsetp.lt.s32 %p1, %r2, %r1;",
        "add.s32 %r2, %r2, %r1;\nsetp.ne.s32 %p1, %r2, 100;",
        "setp.gt.s32 %p1, %r1, %r2;\nadd.s32 %r2, %r2, 4;",
        "shr.u32 %r1, %r1, 1;\nsetp.ne.u32 %p1, %r1, 0;",
        "shl.b32 %r2, %r2, 1;\nsetp.lt.u32 %p1, %r2, %r1;",
        "mov.u32 %r4, %ntid.x;\nadd.u32 %r2, %r2, %r4;\nmul.wide.u32 %rd3, %r2, 4;\n"
        "setp.lt.u64 %p1, %rd3, %rd2;",
        "add.s32 %r4, %r2, 1;\nsetp.lt.s32 %p1, %r4, %r1;\nmov.u32 %r2, %r4;",
        // The limit may lie in memory.
        "ld.global.u32 %r4, [%rd2];\nadd.s32 %r2, %r2, 1;\nsetp.lt.s32 %p1, %r2, %r4;",
        // Both have to hold for another turn.
        "add.s32 %r2, %r2, 1;\nsetp.lt.s32 %p2, %r2, %r1;\nsetp.eq.and.u32 %p1, %r5, 0, %p2;",
        "add.s32 %r2, %r2, 1;\nsetp.lt.s32 %p2, %r2, %r1;\nsetp.eq.u32 %p3, %r5, 0;\n"
        "and.pred %p1, %p2, %p3;"}) {
    EXPECT_EQ(waits_in(load + std::string(turn)), 0u) << turn;
  }
  // Where the branch in front of the turn leaves, or the turn ends the thread.
  EXPECT_EQ(waits("mov.u32 %r2, 0;\nNEXT:\nsetp.ge.u32 %p1, %r2, %r1;\n@%p1 bra OUT;\n"
                  "atom.global.add.u32 %r3, [%rd1], 1;\nadd.u32 %r2, %r2, 1;\nbra NEXT;\nOUT:"),
            0u);
  EXPECT_EQ(waits("mov.u32 %r2, 0;\nNEXT:\nld.global.u32 %r3, [%rd1];\nsub.u32 %r2, %r2, 1;\n"
                  "setp.eq.u32 %p1, %r2, %r1;\n@%p1 ret;\nbra NEXT;"),
            0u);
}

TEST(FencePlanTest, ACounterThatDoesNotSurelyEndTheLoopIsNone) {
  const std::string load = "ld.volatile.global.u32 %r5, [%rd1];\n";
  for (const std::string_view turn :
       {// Either is enough for another turn.
        "add.s32 %r2, %r2, 1;\nsetp.lt.s32 %p2, %r2, %r1;\nsetp.eq.or.u32 %p1, %r5, 0, %p2;",
        "add.s32 %r2, %r2, 1;\nsetp.lt.s32 %p2, %r2, %r1;\nsetp.eq.u32 %p3, %r5, 0;\n"
        "or.pred %p1, %p2, %p3;",
        // It does not move, or only as memory says.
        "setp.lt.s32 %p1, %r2, %r1;", "mov.u32 %r2, %r2;\nsetp.lt.s32 %p1, %r2, %r1;",
        "add.s32 %r2, %r2, %r5;\nsetp.lt.s32 %p1, %r2, %r1;",
        "setp.ne.u32 %p2, %r5, 0;\n@%p2 add.s32 %r2, %r2, 1;\nsetp.lt.s32 %p1, %r2, %r1;",
        "add.s32 %r2, %r2, 1;\nmov.u32 %r2, %r5;\nsetp.lt.s32 %p1, %r2, %r1;",
        // Its limit moves as others want.
        "add.s32 %r2, %r2, 1;\nsetp.lt.s32 %p1, %r2, %r5;",
        // It tells only how long the loop waits.
        "add.s32 %r2, %r2, 1;\nsetp.eq.u32 %p1, %r5, 0;"}) {
    EXPECT_EQ(waits_in(load + std::string(turn)), 1u) << turn;
  }
  // It is not compared in each turn.
  EXPECT_EQ(waits("mov.u32 %r2, 0;\nNEXT:\nadd.u32 %r2, %r2, 1;\nld.global.u32 %r3, [%rd1];\n"
                  "setp.eq.u32 %p1, %r3, 0;\n@%p1 bra NEXT;\nsetp.lt.u32 %p2, %r2, %r1;\n"
                  "@%p2 bra NEXT;"),
            1u);
}

TEST(FencePlanTest, EachCircleThatMayWaitHasALook) {
  // The inner loop ends, the outer one may not.
  EXPECT_EQ(waits("OUTER:\nmov.u32 %r2, 0;\nNEXT:\nld.global.u32 %r3, [%rd1];\n"
                  "add.u32 %r2, %r2, 1;\nsetp.lt.u32 %p1, %r2, 9;\n@%p1 bra NEXT;\n"
                  "setp.eq.u32 %p2, %r3, 0;\n@%p2 bra OUTER;"),
            1u);
  // Two ways lead in.
  EXPECT_EQ(waits("setp.eq.u32 %p1, %r1, 0;\n@%p1 bra MIDDLE;\nNEXT:\nld.global.u32 %r3, [%rd1];\n"
                  "setp.ne.u32 %p2, %r3, 0;\n@%p2 ret;\nMIDDLE:\nld.global.u32 %r3, [%rd2];\n"
                  "bra NEXT;"),
            1u);
  // By a table of jumps.
  EXPECT_EQ(waits("NEXT:\nld.global.u32 %r3, [%rd1];\nTABLE: .branchtargets NEXT, OUT;\n"
                  "brx.idx %r3, TABLE;\nOUT:"),
            1u);
}

/// What stands at the beginning of the loop of a fenced body.
std::string look_in(std::string_view body) {
  const auto module = ptx::parse(with_body(body, ".func f { ret; }\n"));
  EXPECT_TRUE(module);
  const auto fenced = fence(**module, {});
  EXPECT_TRUE(fenced);
  const std::size_t at = fenced->ptx.find("NEXT:");
  return fenced->ptx.substr(at, fenced->ptx.find(';', at) - at);
}

TEST(FencePlanTest, LongTurnsCountForMore) {
  const std::string head = "NEXT:\n\n\tadd.u32 %__slate_fturns, %__slate_fturns, ";
  const std::string on = "setp.eq.u32 %p1, %r2, 0;\n@%p1 bra NEXT;";
  EXPECT_EQ(look_in("NEXT:\nld.global.u32 %r2, [%rd1];\n" + on), head + "1");
  EXPECT_EQ(look_in("NEXT:\ncall f;\nld.global.u32 %r2, [%rd1];\n" + on), head + "32");
  EXPECT_EQ(look_in("NEXT:\nmov.u32 %r3, 0;\nINNER:\nadd.u32 %r3, %r3, 1;\n"
                    "setp.lt.u32 %p2, %r3, 9;\n@%p2 bra INNER;\nld.global.u32 %r2, [%rd1];\n" +
                    on),
            head + "32");
}

TEST(FencePlanTest, BarriersThatCannotBeAreRefused) {
  EXPECT_EQ(why_not("bar.sync 15;\nbar.sync 1, 64;\nbarrier.sync %r1, %r2;"), "");
  EXPECT_NE(why_not("bar.sync 16;"), "");
  EXPECT_NE(why_not("bar.sync 1, 33;"), "");
}

TEST(FencePlanTest, ReservedNamesAndOddPragmasAreRefused) {
  EXPECT_EQ(why_not("mov.u32 %r2, 0; // __slate_x"),
            "cannot be fenced: has names that begin with __slate_");
  EXPECT_EQ(why_not(".pragma \"enable_smem_spilling\";"),
            "cannot be fenced: has the pragma enable_smem_spilling");
  EXPECT_EQ(why_not(".pragma \"nounroll\";"), "");
}

TEST(FencePlanTest, AnEntryThatCannotBeFencedHasAnEmptyBody) {
  const auto module = ptx::parse(with_body("st.global.u32 [%rd1], %r1;\nalloca.u64 %rd1, %rd2;"));
  ASSERT_TRUE(module);
  const auto fenced = fence(**module, {});
  ASSERT_TRUE(fenced);
  EXPECT_FALSE(fenced->entries.front().legal());
  EXPECT_EQ(fenced->ptx.find("st.global"), std::string::npos);
  EXPECT_TRUE(ptx::parse(fenced->ptx));
}

}  // namespace
}  // namespace slate::injector
