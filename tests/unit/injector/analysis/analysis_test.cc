// Which forms are legal, and the sentence for each that is not. One small kernel a rule.
#include "injector/analysis/analysis.h"

#include <gtest/gtest.h>

#include <string>

namespace slate::injector {
namespace {

struct Judged {
  std::unique_ptr<const ptx::Module> module;
  ModuleAnalysis analysis;
  const EntryAnalysis& operator*() const { return analysis.entries.back(); }
  const EntryAnalysis* operator->() const { return &analysis.entries.back(); }
};

Judged judge_module(const std::string& text) {
  auto module = ptx::parse(text);
  EXPECT_TRUE(module) << module.error().message;
  Judged judged;
  judged.module = std::move(*module);
  judged.analysis = analyse(*judged.module);
  EXPECT_FALSE(judged.analysis.entries.empty());
  return judged;
}

constexpr const char* kHeader = ".version 8.8\n.target sm_90\n.address_size 64\n";

/// A kernel with these instructions, `ret` behind them.
Judged judge(const std::string& body, const std::string& before = "",
             const std::string& directives = "") {
  return judge_module(std::string(kHeader) + before +
                      ".visible .entry k(.param .u64 a, .param .u32 n)" + directives +
                      "\n{\n.reg .pred %p<9>; .reg .b32 %r<30>; .reg .b64 %d<9>;\n"
                      ".shared .align 4 .b8 words[64];\n" +
                      body + "\nret;\n}\n");
}

void expect_refused(const Judged& judged, const std::string& worker, bool slice_too) {
  EXPECT_NE(judged->worker.why_not.find(worker), std::string::npos) << judged->worker.why_not;
  EXPECT_EQ(judged->slice.legal(), !slice_too) << judged->slice.why_not;
}

const std::string kTid = "mov.u32 %r1, %tid.x; ld.param.u32 %r2, [n];\n";
const std::string kLeaveByTid = kTid + "setp.ge.u32 %p1, %r1, %r2; @%p1 bra OUT;\n";
const std::string kLeaveByN = kTid + "setp.eq.u32 %p1, %r2, 0; @%p1 bra OUT;\n";

TEST(AnalysisTest, APlainKernelTakesBothForms) {
  const Judged judged = judge(kLeaveByTid + "st.shared.u32 [words], %r1;\nOUT:");
  EXPECT_TRUE(judged->worker.legal()) << judged->worker.why_not;
  EXPECT_TRUE(judged->slice.legal());
  EXPECT_FALSE(judged->drains);
  EXPECT_TRUE(judged->separates_blocks);
  EXPECT_TRUE(judged->independent_blocks);
}

TEST(AnalysisTest, LeavingTogetherBeforeABarrierNeedsNoDrain) {
  EXPECT_FALSE(judge(kLeaveByN + "bar.sync 0;\nOUT:")->drains);
}

TEST(AnalysisTest, LeavingOneByOneBeforeABarrierDrains) {
  const Judged judged = judge(kLeaveByTid + "bar.sync 0;\nOUT:");
  EXPECT_TRUE(judged->worker.legal()) << judged->worker.why_not;
  EXPECT_TRUE(judged->drains);
}

TEST(AnalysisTest, AnExitInTheMiddleCountsAsLeaving) {
  EXPECT_TRUE(judge(kTid + "setp.ge.u32 %p1, %r1, %r2; @%p1 ret; bar.sync 0;")->drains);
  EXPECT_TRUE(judge(kTid + "setp.ge.u32 %p1, %r1, %r2; @%p1 exit; bar.sync 0;")->drains);
}

TEST(AnalysisTest, MeetingAgainBeforeTheBarrierIsNoLeaving) {
  EXPECT_FALSE(judge(kLeaveByTid + "add.u32 %r3, %r1, 1;\nOUT: bar.sync 0;")->drains);
}

TEST(AnalysisTest, ATrapIsNoWayOut) {
  EXPECT_FALSE(judge(kTid + "setp.ge.u32 %p1, %r1, %r2; @%p1 trap; bar.sync 0;")->drains);
}

TEST(AnalysisTest, ABranchToNoLabelRefusesAllForms) {
  const std::string exit_code = kLeaveByTid + "bar.sync 0; ret;\nOUT: ";
  for (const char* stray :
       {"@%p1 bra;", "@%p1 bra 7;", "@%p1 bra g;", "@%p1 bra NOWHERE;", "brx.idx %r1, NOWHERE;",
        "brx.idx %r1, OUT;", "ret OUT;", "@%p1 exit %r1;"}) {
    const Judged judged = judge(exit_code + stray, ".global .u32 g;\n");
    expect_refused(judged, "no label", true);
    EXPECT_FALSE(judged->profile.legal()) << stray;
  }
  const Judged callee =
      judge("call.uni f;", ".func f\n{\n.reg .pred %p1;\nmov.pred %p1, 1; @%p1 bra;\nret;\n}\n");
  expect_refused(callee, "no label", true);
}

TEST(AnalysisTest, ATablesLabelsAreThoseOfItsScope) {
  const std::string table = "ts: .branchtargets A, B;\nbrx.idx ";
  const Judged judged =
      judge(kTid + "{\n" + table + "%r2, ts;\nA: mov.u32 %r4, 5;\nB: mov.u32 %r5, 6;\n}\n{\n" +
            table + "%r1, ts;\nA: ret;\nB: mov.u32 %r5, 6;\n}\nbar.sync 0;");
  EXPECT_TRUE(judged->drains);
}

TEST(AnalysisTest, AValueWrittenWhereThreadsArePartedDiffersAfterwards) {
  EXPECT_TRUE(judge(kTid + "mov.u32 %r5, 0; setp.ge.u32 %p1, %r1, 7; @%p1 bra ON; mov.u32 %r5, 1;\n"
                           "ON: setp.eq.u32 %p2, %r5, 1; @%p2 bra OUT; bar.sync 0;\nOUT:")
                  ->drains);
}

TEST(AnalysisTest, WhatIsLoadedFromAnAddressOfAllIsTheSameForAll) {
  const std::string load =
      "ld.param.u64 %d1, [a]; ld.global.u32 %r4, [%d1]; setp.eq.u32 %p1, %r4, 0;\n";
  EXPECT_FALSE(judge(load + "@%p1 bra OUT; bar.sync 0;\nOUT:")->drains);
  const std::string racing =
      "ld.param.u64 %d1, [a]; ld.volatile.global.u32 %r4, [%d1]; setp.eq.u32 %p1, %r4, 0;\n";
  EXPECT_TRUE(judge(racing + "@%p1 bra OUT; bar.sync 0;\nOUT:")->drains);
}

TEST(AnalysisTest, LocalMemoryBehindASharedAddressDiffers) {
  EXPECT_TRUE(judge(".local .align 4 .b8 depot[8]; mov.u64 %d1, depot; cvta.local.u64 %d2, %d1;\n"
                    "ld.u32 %r4, [%d2]; setp.eq.u32 %p1, %r4, 0; @%p1 bra OUT; bar.sync 0;\nOUT:")
                  ->drains);
}

/// Whether a thread may leave alone where `value` put 1 or something else into %r4.
bool differs(const std::string& value, const std::string& before = "") {
  return judge(kTid + value + "setp.eq.u32 %p1, %r4, 1; @%p1 bra OUT; bar.sync 0;\nOUT:", before)
      ->drains;
}

TEST(AnalysisTest, WhatAFunctionReturnsDiffers) {
  const std::string in_registers =
      ".func (.reg .b32 v) f(.reg .b32 a)\n{\nmov.u32 v, %tid.x;\nret;\n}\n";
  EXPECT_TRUE(differs("call (%r4), f, (%r2);", in_registers));
  EXPECT_TRUE(differs("call.uni (%r4), f, (%r2);", in_registers));
  const std::string in_parameters = ".func (.param .b32 v) f()\n{\nst.param.b32 [v], 1;\nret;\n}\n";
  for (const char* load : {"ld.param.b32", "ld.param::func.b32"}) {
    EXPECT_TRUE(differs("{ .param .b32 v; call (v), f; " + std::string(load) + " %r4, [v]; }\n",
                        in_parameters))
        << load;
  }
}

TEST(AnalysisTest, AReturnedRegisterDiffersInsideItsFunction) {
  const std::string f =
      ".func (.reg .b32 v) f()\n{\n.reg .pred %p1;\nmov.u32 v, %tid.x;\n"
      "setp.eq.u32 %p1, v, 1; @%p1 bra OUT;\nbar.sync 0;\nOUT: ret;\n}\n";
  expect_refused(judge("call (%r4), f;", f), "this barrier in a function", false);
}

TEST(AnalysisTest, WhereThreadsTakeTurnsLoadsOfOneAddressDiffer) {
  const std::string address = "ld.param.u64 %d1, [a]; ";
  const std::string functions =
      ".func lock()\n{\n.reg .b32 %x;\natom.shared.cas.b32 %x, [0], 0, 1;\nret;\n}\n";
  for (const std::string load : {"ld.global.u32", "ld.u32"}) {
    const std::string value = load + " %r4, [%d1];\n";
    EXPECT_FALSE(differs(address + value)) << load;
    for (const char* turn :
         {"atom.global.cas.b32 %r5, [%d1], 0, 1;", "atom.shared.cas.b32 %r5, [words], 0, 1;",
          "ld.acquire.gpu.global.u32 %r5, [%d1];", "ld.volatile.shared.u32 %r5, [words];",
          "bar.sync 1, 64;", "call lock;"}) {
      EXPECT_TRUE(differs(address + turn + value, functions)) << turn << value;
    }
  }
  EXPECT_TRUE(differs("bar.sync 1, 64; ld.shared.u32 %r4, [words];"));
  // Nobody writes there while the kernel runs.
  EXPECT_FALSE(
      differs(address + "atom.global.inc.u32 %r5, [%d1], 9; ld.global.nc.u32 %r4, [%d1];"));
  EXPECT_FALSE(
      differs("atom.shared.inc.u32 %r5, [words], 9; ld.const.u32 %r4, [c];", ".const .u32 c;\n"));
}

TEST(AnalysisTest, WhatTheCarryFlagHoldsDiffers) {
  EXPECT_TRUE(differs("add.cc.u32 %r3, %r2, %r1; addc.u32 %r4, %r2, 0;"));
  EXPECT_TRUE(differs("sub.cc.u32 %r3, %r2, %r1; subc.u32 %r4, %r2, 0;"));
  EXPECT_TRUE(differs("mad.lo.cc.u32 %r3, %r2, %r1, %r1; madc.hi.u32 %r4, %r2, %r2, 0;"));
  EXPECT_FALSE(differs("add.u32 %r4, %r2, %r2;"));
}

TEST(AnalysisTest, OnlyABarrierOfTheWholeBlockReducesForAll) {
  EXPECT_FALSE(differs("bar.red.popc.u32 %r4, 0, %p2;"));
  EXPECT_FALSE(differs("mov.u32 %r3, 2; bar.red.popc.u32 %r4, %r3, %p2;"));
  EXPECT_TRUE(differs("bar.red.popc.u32 %r4, %r1, %p2;"));
  EXPECT_TRUE(differs("bar.red.popc.u32 %r4, 1, 64, %p2;"));
}

TEST(AnalysisTest, DrainsCannotHoldReducingOrNamedBarriers) {
  expect_refused(judge(kLeaveByTid + "bar.sync 0; bar.red.popc.u32 %r4, 0, %p1;\nOUT:"), "reduces",
                 false);
  expect_refused(judge(kLeaveByTid + "bar.sync 1;\nOUT:"), "named or partial", false);
  expect_refused(judge(kLeaveByTid + "bar.sync 0, 64;\nOUT:"), "barrier 0", false);
  expect_refused(judge(kLeaveByTid + "bar.sync 1, 64;\nOUT:"), "named or partial", false);
  const std::string whole_warps = kTid + "setp.ge.u32 %p1, %r1, 64; @%p1 bra OUT;\n";
  EXPECT_TRUE(judge(whole_warps + "bar.sync 1, 64;\nOUT:")->worker.legal());
}

TEST(AnalysisTest, DrainsCannotHoldBarriersUnderAPredicate) {
  expect_refused(judge(kLeaveByTid + "setp.eq.u32 %p2, %r2, 7; @%p2 bar.sync 0; bar.sync 0;\nOUT:"),
                 "under a predicate", false);
}

TEST(AnalysisTest, APartialBarrierThatMayBeBarrierZeroRefusesTheWorker) {
  for (const char* barrier :
       {"bar.sync 0, 64;", "bar.sync %r1, 64;", "shr.u32 %r3, %r1, 6; bar.sync %r3, %r2;",
        "barrier.sync.aligned %r2, 64;", "mov.pred %p2, 1; bar.red.or.pred %p3, %r2, 64, %p2;"}) {
    expect_refused(judge(kTid + barrier), "may be barrier 0", false);
  }
  EXPECT_TRUE(judge("bar.sync 1, 64;")->worker.legal());
  EXPECT_TRUE(judge("mov.u32 %r3, 1; mov.u32 %r4, 64; bar.sync %r3, %r4;")->worker.legal());
  EXPECT_TRUE(judge("mov.pred %p2, 1; bar.red.or.pred %p3, 2, 64, %p2;")->worker.legal());
  const std::string f = ".func f(.reg .b32 id)\n{\nbar.sync id, 64;\nret;\n}\n";
  expect_refused(judge("call f, (1);", f), "may be barrier 0", false);
}

TEST(AnalysisTest, LanesThatLeaveBeforeAShuffleOfAllRefuseTheWorker) {
  const std::string shuffle = "shfl.sync.idx.b32 %r4, %r1, 0, 31, -1;\nOUT:";
  expect_refused(judge(kLeaveByTid + shuffle), "some lanes may have left", false);
  EXPECT_TRUE(judge(kLeaveByN + shuffle)->worker.legal());
}

TEST(AnalysisTest, WholeWarpsMayLeaveBeforeAShuffle) {
  const std::string shuffle = "@%p1 bra OUT; shfl.sync.idx.b32 %r4, %r1, 0, 31, -1;\nOUT:";
  const Judged first = judge(kTid + "setp.gt.u32 %p1, %r1, 31;" + shuffle);
  EXPECT_TRUE(first->worker.legal()) << first->worker.why_not;
  EXPECT_TRUE(first->needs_whole_rows);
  EXPECT_FALSE(judge(kTid + "setp.gt.u32 %p1, %r1, 30;" + shuffle)->worker.legal());
  EXPECT_TRUE(
      judge(kTid + "shr.u32 %r3, %r1, 5; setp.ne.u32 %p1, %r3, 0;" + shuffle)->worker.legal());
}

/// A kernel that makes the thread's number along the grid in %r5, and leaves before a shuffle where
/// `warp`, which makes %r7 of it, gives no less than a parameter.
Judged judge_number(const std::string& number, const std::string& warp) {
  return judge(kTid + "mov.u32 %r3, %ctaid.x; mov.u32 %r4, %ntid.x;" + number + warp +
               "setp.ge.u32 %p1, %r7, %r2; @%p1 bra OUT; shfl.sync.idx.b32 %r8, %r1, 0, 31, -1;\n"
               "OUT:");
}

TEST(AnalysisTest, WholeWarpsOfTheGridMayLeaveBeforeAShuffle) {
  const std::string by_32 = "shr.u32 %r7, %r5, 5;";
  const std::string signed_by_32 =
      "shr.s32 %r9, %r5, 31; shr.u32 %r10, %r9, 27; add.s32 %r11, %r5, %r10; shr.s32 %r7, %r11, 5;";
  for (const char* number : {"mad.lo.s32 %r5, %r3, %r4, %r1;", "mad.lo.s32 %r5, %r4, %r3, %r1;",
                             "mul.lo.s32 %r6, %r4, %r3; add.s32 %r5, %r1, %r6;"}) {
    SCOPED_TRACE(number);
    for (const std::string& warp : {by_32, signed_by_32}) {
      const Judged judged = judge_number(number, warp);
      EXPECT_TRUE(judged->worker.legal()) << judged->worker.why_not;
      EXPECT_TRUE(judged->needs_whole_warps);
    }
    EXPECT_FALSE(judge_number(number, "shr.u32 %r7, %r5, 4;")->worker.legal());
    EXPECT_FALSE(judge_number(number, "mov.u32 %r7, %r5;")->worker.legal());
  }
  // Not a number along the grid.
  for (const char* number : {"mad.lo.s32 %r5, %r3, %r2, %r1;", "mad.lo.s32 %r5, %r4, %r4, %r1;",
                             "mad.hi.s32 %r5, %r3, %r4, %r1;", "xor.b32 %r5, %r3, %r1;"}) {
    EXPECT_FALSE(judge_number(number, by_32)->worker.legal()) << number;
  }
}

TEST(AnalysisTest, ABlockSizeThatIsWrittenOutNeedsWholeRowsOnly) {
  for (const char* number :
       {"shl.b32 %r6, %r3, 8; or.b32 %r5, %r6, %r1;", "shl.b32 %r6, %r3, 5; add.s32 %r5, %r6, %r1;",
        "mad.lo.s32 %r5, %r3, 96, %r1;"}) {
    const Judged judged = judge_number(number, "shr.u32 %r7, %r5, 5;");
    EXPECT_TRUE(judged->worker.legal()) << number << judged->worker.why_not;
    EXPECT_TRUE(judged->needs_whole_rows);
    EXPECT_FALSE(judged->needs_whole_warps);
  }
  // Blocks that begin within a warp's 32 numbers, and a number whose sign nobody knows.
  for (const char* number :
       {"shl.b32 %r6, %r3, 4; or.b32 %r5, %r6, %r1;", "mad.lo.s32 %r5, %r3, 100, %r1;"}) {
    EXPECT_FALSE(judge_number(number, "shr.u32 %r7, %r5, 5;")->worker.legal()) << number;
  }
  EXPECT_FALSE(
      judge_number("mad.lo.s32 %r5, %r3, 96, %r1;", "div.s32 %r7, %r5, 32;")->worker.legal());
}

TEST(AnalysisTest, ANumberOfAnotherKindIsNoPlace) {
  const auto legal = [](const std::string& number) {
    return judge(kTid + ".reg .f32 %f<9>; .reg .b16 %h<9>;\n" + number +
                 "@%p1 bra OUT; shfl.sync.idx.b32 %r8, %r1, 0, 31, -1;\nOUT:")
        ->worker.legal();
  };
  const std::string by_32 = "shr.u32 %r4, %r3, 5; setp.ge.u32 %p1, %r4, %r2;";
  EXPECT_TRUE(legal("cvt.u64.u32 %d1, %r1; shr.u64 %d2, %d1, 5; setp.ge.u64 %p1, %d2, 2;"));
  EXPECT_TRUE(legal("mov.b32 %r3, %r1;" + by_32));
  EXPECT_FALSE(legal("cvt.rn.f32.u32 %f1, %r1; mov.b32 %r3, %f1;" + by_32));
  EXPECT_FALSE(legal("cvt.u16.u32 %h1, %r1; cvt.s32.s16 %r3, %h1;" + by_32));
  EXPECT_FALSE(legal("cvt.s32.s16 %r3, %r1;" + by_32));
  EXPECT_FALSE(legal("cvt.u64.u32 %d1, %r1; cvt.u32.u64 %r3, %d1;" + by_32));
  EXPECT_FALSE(
      legal("{ .reg .b16 %l; mov.b32 {%h1, %l}, %r1; }\n"
            "shr.s16 %h2, %h1, 5; setp.ge.s16 %p1, %h2, 2;"));
}

TEST(AnalysisTest, APlaceThatChangesInALoopIsNone) {
  const std::string loop = "LOOP: add.s32 %r6, %r5, 8; shfl.sync.bfly.b32 %r4, %r1, 1, 31, -1;\n";
  EXPECT_FALSE(judge(kTid + "mov.u32 %r5, %r1;\n" + loop +
                     "mov.u32 %r5, %r6; setp.lt.s32 %p1, %r6, 136; @%p1 bra LOOP;")
                   ->worker.legal());
}

TEST(AnalysisTest, AnOffsetMovesTheLimit) {
  const std::string shuffle = "@%p1 bra OUT; shfl.sync.idx.b32 %r4, %r1, 0, 31, -1;\nOUT:";
  const auto compare = [&](const std::string& offset, const std::string& limit) {
    return judge(kTid + "add.s32 %r3, %r1, " + offset + "; setp.gt.u32 %p1, %r3, " + limit + ";" +
                 shuffle)
        ->worker.legal();
  };
  EXPECT_TRUE(compare("31", "62"));  // tid / 32 != 0
  EXPECT_FALSE(compare("30", "62"));
  EXPECT_TRUE(compare("-32", "31"));
  EXPECT_FALSE(compare("-10", "21"));         // parts a warp at 10
  EXPECT_FALSE(compare("4294967286", "21"));  // the same
  EXPECT_FALSE(compare("2147483647", "30"));  // may overflow
}

TEST(AnalysisTest, AMaskOfPresentLanesNamesNobodyWhoLeft) {
  EXPECT_TRUE(
      judge(kLeaveByTid + "activemask.b32 %r5; shfl.sync.idx.b32 %r4, %r1, 0, 31, %r5;\nOUT:")
          ->worker.legal());
}

TEST(AnalysisTest, AMaskOfPresentLanesNamesThoseWhoDoNotTakePart) {
  expect_refused(judge(kTid + "activemask.b32 %r5; setp.lt.u32 %p2, %r1, 10;\n"
                              "@%p2 shfl.sync.idx.b32 %r4, %r1, 0, 31, %r5;"),
                 "lanes may have left", false);
}

TEST(AnalysisTest, SidesThatNeverMeetAgainNeedNotHaveAsManyWarpWideInstructions) {
  expect_refused(judge(kTid + "setp.lt.u32 %p1, %r1, 16; @%p1 bra LOW;\n"
                              "redux.sync.add.u32 %r4, %r1, 0xffff0000;\n"
                              "LOOP: redux.sync.add.u32 %r4, %r1, -1; setp.lt.u32 %p2, %r4, %r2;\n"
                              "@%p2 bra LOOP; ret;\n"
                              "LOW: redux.sync.add.u32 %r4, %r1, 0xffff; ret;"),
                 "lanes may have left", false);
}

TEST(AnalysisTest, AMaskMadeBeforeLanesLeaveNamesThoseWhoLeft) {
  const std::string shuffle = "shfl.sync.bfly.b32 %r4, %r1, 1, 31, %r5;\n";
  for (const std::string mask :
       {"activemask.b32 %r5;", "mov.pred %p2, 1; vote.sync.ballot.b32 %r5, %p2, -1;",
        "activemask.b32 %r6; and.b32 %r5, %r6, %r2;"}) {
    expect_refused(judge(kTid + mask + kLeaveByTid + shuffle + "OUT:"), "lanes may have left",
                   false);
  }
  const std::string mask = kLeaveByTid + "activemask.b32 %r6; and.b32 %r5, %r6, %r2;\n";
  EXPECT_TRUE(judge(mask + shuffle + "OUT:")->worker.legal());
  // Some of them go another way in between, but all come there.
  const std::string leader = "setp.eq.u32 %p3, %r1, 5; @%p3 bra ON; add.u32 %r7, %r1, 1;\nON: ";
  EXPECT_TRUE(judge(mask + leader + shuffle + "OUT:")->worker.legal());
  // The second time round some may be gone.
  const std::string again = "LOOP: " + shuffle + "setp.lt.u32 %p3, %r4, %r1; @%p3 bra LOOP;\n";
  EXPECT_FALSE(judge(mask + again + "OUT:")->worker.legal());
  EXPECT_FALSE(judge(kLeaveByTid + "@%p2 activemask.b32 %r5;" + shuffle + "OUT:")->worker.legal());
}

TEST(AnalysisTest, AVoteOfPartOfAWarpDiffersBetweenTheParts) {
  const std::string tail = " @%p2 bra OUT; bar.warp.sync -1;\nOUT:";
  const std::string part = kTid + "match.any.sync.b32 %r5, %r1, -1; setp.eq.u32 %p1, %r1, 3;";
  EXPECT_FALSE(judge(part + "vote.sync.any.pred %p2, %p1, %r5;" + tail)->worker.legal());
  EXPECT_TRUE(judge(part + "vote.sync.any.pred %p2, %p1, -1;" + tail)->worker.legal());
}

TEST(AnalysisTest, SidesWithAsManyShufflesWaitForOneAnother) {
  const std::string shuffle = "shfl.sync.idx.b32 %r4, %r1, 0, 31, -1;";
  EXPECT_TRUE(
      judge(kLeaveByTid + shuffle + "bra END;\nOUT: " + shuffle + "\nEND:")->worker.legal());
  EXPECT_FALSE(judge(kLeaveByTid + shuffle + shuffle + "bra END;\nOUT: " + shuffle + "\nEND:")
                   ->worker.legal());
}

TEST(AnalysisTest, FeaturesOfTheWholeGridRefuseBothForms) {
  expect_refused(judge("mov.u32 %r1, %cluster_ctaid.x;"), "clusters", true);
  expect_refused(judge("barrier.cluster.arrive;"), "clusters", true);
  expect_refused(judge("", "", ".reqnctapercluster 2, 1, 1"), "clusters", true);
  expect_refused(judge("mov.b32 %r1, %envreg2;"), "whole grid", true);
  expect_refused(judge("call.uni cudaDeviceSynchronize;", ".extern .func cudaDeviceSynchronize;\n"),
                 "device-side runtime", true);
}

TEST(AnalysisTest, AGlobalVariableOfABodyRefusesAllForms) {
  const std::string variable = ".global .u32 own = 5; atom.global.add.u32 %r1, [own], 1;";
  const std::string function = ".func f() { .reg .b32 %r<9>; { " + variable + " } ret; }\n";
  for (const Judged& judged : {judge(variable), judge("call f;", function)}) {
    expect_refused(judged, "declares a global variable in a body", true);
    EXPECT_FALSE(judged->profile.legal());
  }
  EXPECT_TRUE(judge(".extern .global .u32 other; ld.global.u32 %r1, [other];")->worker.legal());
  EXPECT_TRUE(judge(".const .u32 own = 5; ld.const.u32 %r1, [own];")->worker.legal());
}

TEST(AnalysisTest, WhatOutlastsABlockRefusesTheWorker) {
  expect_refused(judge("bar.arrive 1, 64;"), "without waiting", false);
  expect_refused(judge("mbarrier.init.shared.b64 [words], 32;"), "mbarrier", false);
  expect_refused(judge("setmaxnreg.inc.sync.aligned.u32 40;"), "setmaxnreg", false);
  expect_refused(judge("mov.u32 %r1, %total_smem_size;"), "size of its shared memory", false);
}

TEST(AnalysisTest, ExitInAFunctionRefusesTheWorker) {
  expect_refused(judge("call.uni f;", ".func f\n{\nexit;\n}\n"), "from within a function", false);
}

TEST(AnalysisTest, FunctionsMayReadTheBlockIndexUnlessAPointerLeadsToThem) {
  const std::string f =
      ".func (.param .b32 v) f\n{\n.reg .b32 %r1;\nmov.u32 %r1, %ctaid.x;\nst.param.b32 [v], "
      "%r1;\nret;\n}\n";
  const Judged direct = judge("{ .param .b32 v; call.uni (v), f; }", f);
  EXPECT_TRUE(direct->worker.legal()) << direct->worker.why_not;
  EXPECT_TRUE(direct->functions_read_block_index);
  expect_refused(judge("{ .param .b32 v; mov.u64 %d1, f; PROTO: .callprototype (.param .b32 _) _;\n"
                       "call (v), %d1, PROTO; }",
                       f),
                 "through a pointer", true);
}

TEST(AnalysisTest, ATableMayNameAFunctionByItsAlias) {
  const std::string call =
      "ld.global.u64 %d1, [table]; { PROTO: .callprototype ()_ (); call %d1, (), PROTO; }";
  const std::string functions =
      ".visible .func g()\n{\n.reg .b32 %r1;\nmov.u32 %r1, %ctaid.x;\nret;\n}\n"
      ".visible .func h();\n.alias h, g;\n.visible .global .align 8 .u64 table[1] = {";
  expect_refused(judge(call, functions + "g};\n"), "through a pointer", true);
  expect_refused(judge(call, functions + "h};\n"), "through a pointer", true);
}

TEST(AnalysisTest, WithoutRoomForOursThereIsNoWorker) {
  expect_refused(judge(".shared .align 4 .b8 much[49000]; mov.u32 %r1, much;"), "no room", false);
  const std::string callee = ".func f() { .reg .u32 i; mov.u32 i, %ctaid.x; ret; }\n";
  const std::string full = ".shared .align 4 .b8 much[49152]; mov.u32 %r1, much; ";
  expect_refused(judge(full + "call f;", callee), "no room", true);
  expect_refused(judge(full), "no room", false);
  const std::string inside =
      ".func f() { .shared .align 4 .b8 much[49000]; st.shared.u32 [much], 1; ret; }\n";
  expect_refused(judge("call f;", inside), "no room", false);
}

TEST(AnalysisTest, ParametersHaveLessRoomBeforePtx81) {
  const auto judge_bytes = [](const std::string& version, int bytes) {
    return judge_module(".version " + version +
                        "\n.target sm_90\n.address_size 64\n.entry k(.param .b8 a[" +
                        std::to_string(bytes) + "]) { ret; }\n");
  };
  for (const auto& [version, most] : {std::pair("8.0", 4352), std::pair("8.1", 32764)}) {
    EXPECT_TRUE(judge_bytes(version, most - 152)->worker.legal()) << version;
    const Judged crowded = judge_bytes(version, most - 100);
    expect_refused(crowded, std::to_string(most) + " are the most", true);
    EXPECT_TRUE(crowded->profile.legal()) << version;
    EXPECT_FALSE(judge_bytes(version, most - 12)->profile.legal()) << version;
  }
}

TEST(AnalysisTest, BlocksThatMayLearnOfOneAnotherAreNotIndependent) {
  const std::string address = "ld.param.u64 %d1, [a]; ";
  EXPECT_FALSE(judge(address + "atom.global.add.u32 %r1, [%d1], 1;")->independent_blocks);
  EXPECT_FALSE(judge(address + "ld.volatile.global.u32 %r1, [%d1];")->independent_blocks);
  EXPECT_FALSE(judge(address + "ld.global.cv.u32 %r1, [%d1];")->independent_blocks);
  EXPECT_FALSE(judge("membar.gl;")->independent_blocks);
  EXPECT_TRUE(judge(address + "red.global.add.u32 [%d1], 1;")->independent_blocks);
  EXPECT_TRUE(judge("atom.shared.add.u32 %r1, [words], 1;")->independent_blocks);
}

TEST(AnalysisTest, OldTargetsAndOurOwnNamesAreLeftAlone) {
  const std::string entry = ".visible .entry k()\n{\nret;\n}\n";
  expect_refused(judge_module(".version 6.0\n.target sm_60\n.address_size 64\n" + entry), "sm_60",
                 true);
  expect_refused(judge("", ".global .u32 __slate_x;\n"), "__slate_", true);
}

}  // namespace
}  // namespace slate::injector
