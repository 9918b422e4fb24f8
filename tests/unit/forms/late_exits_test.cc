// Which kernels get late exits and how they are written; that the result is right to run is for
// sim_forms_test.cc.
#include "injector/forms/late_exits.h"

#include <gtest/gtest.h>

#include <string>

#include "injector/forms/inject.h"
#include "tests/unit/injector/split_entry.h"

namespace slate::injector {
namespace {

struct Late {
  std::unique_ptr<const ptx::Module> original;
  ModuleAnalysis analysis;
  std::unique_ptr<const ptx::Module> module;
  const EntryAnalysis* operator->() const { return &analysis.entries.at(0); }
  bool has(std::string_view text) const {
    return module != nullptr && module->text.find(text) != std::string::npos;
  }
};

/// `body` in a split_entry().
Late make(const std::string& body) {
  auto module = ptx::parse(test::split_entry(body));
  EXPECT_TRUE(module) << module.error().message;
  Late late{.original = std::move(*module), .analysis = {}, .module = {}};
  late.analysis = analyse(*late.original);
  auto made = make_exits_late(*late.original, late.analysis);
  EXPECT_TRUE(made) << made.error().message;
  if (made) late.module = std::move(*made);
  return late;
}

const std::string kLateStore = "st.shared.u32 [words], %r1;\n";

std::string repeated(const std::string& text, int times) {
  std::string all;
  for (int i = 0; i < times; ++i) all += text;
  return all;
}

TEST(LateExitsTest, SpareTheDrain) {
  const Late late = make("@%p1 bra OUT;\n" + kLateStore + "bar.sync 0;\nOUT:");
  ASSERT_NE(late.module, nullptr);
  EXPECT_TRUE(late->worker.legal());
  EXPECT_TRUE(late->late_exits);
  EXPECT_FALSE(late->drains);
  EXPECT_EQ(late->barriers, 1u) << "of the kernel itself";
}

TEST(LateExitsTest, AllowBarriersThatADrainCannotHold) {
  const std::string reduce = "@%p1 bra OUT;\nbar.red.popc.u32 %r3, 0, %p2;\nOUT:";
  const std::string named = "@%p1 bra OUT;\nbar.sync 2;\nOUT:";
  for (const std::string& body : {reduce, named}) {
    const Late late = make(body);
    EXPECT_TRUE(late->late_exits) << body;
    EXPECT_TRUE(late->worker.legal()) << late->worker.why_not;
  }
}

TEST(LateExitsTest, NothingIsDoneWithoutNeed) {
  EXPECT_EQ(make(kLateStore + "bar.sync 0;").module, nullptr);
  EXPECT_EQ(make("@%p2 bra OUT;\nbar.sync 0;\nOUT:").module, nullptr);
  EXPECT_EQ(make("@%p1 bra OUT;\n" + kLateStore + "OUT:").module, nullptr);
}

TEST(LateExitsTest, WhereTheyAreNotPossibleTheVerdictStays) {
  const Late data = make(
      "@%p1 bra OUT;\nld.shared.u32 %r3, [words]; setp.eq.u32 %p3, %r3, 5;\n@%p3 bra OUT;\n"
      "LOOP: bar.sync 0;\nld.shared.u32 %r4, [words]; setp.eq.u32 %p4, %r4, 5; @%p4 bra LOOP;\n"
      "OUT:");
  EXPECT_EQ(data.module, nullptr);
  EXPECT_TRUE(data->drains);
  EXPECT_TRUE(data->worker.legal());
  EXPECT_FALSE(data->late_exits);
  const Late shuffle =
      make("@%p1 bra OUT;\nbar.sync 0;\nshfl.sync.bfly.b32 %r3|%p3, %r1, 1, 31, -1;\nOUT:");
  EXPECT_FALSE(shuffle->worker.legal());
  EXPECT_FALSE(shuffle->late_exits);
}

TEST(LateExitsTest, ABranchToNoLabelIsRefused) {
  for (const char* stray : {"@%p2 bra;", "@%p2 bra 7;", "@%p2 bra words;"}) {
    const Late late = make("@%p1 bra AWAY;\nbar.sync 0;\nret;\nAWAY: " + std::string(stray));
    EXPECT_EQ(late.module, nullptr) << stray;
    EXPECT_FALSE(late->worker.legal()) << stray;
  }
}

TEST(LateExitsTest, ABarrierThatPartOfTheBlockComesToKeepsTheDrain) {
  // Not by leaving: by an `if` around it.
  const Late late = make("@%p1 bra OUT;\nsetp.eq.u32 %p3, %r1, 5; @%p3 bra OVER;\nbar.sync 0;\n" +
                         kLateStore + "OVER: bar.sync 0;\nOUT:");
  EXPECT_FALSE(late->late_exits);
}

TEST(LateExitsTest, AFewInstructionsAreDoneUnderAPredicate) {
  const Late late = make("@%p1 bra AWAY;\n" + kLateStore +
                         "bar.sync 0;\nret;\nAWAY: st.shared.u32 [words+4], %r1;");
  EXPECT_TRUE(late.has("@%__slate_own st.shared.u32 [words+4], %r1;"));
  EXPECT_FALSE(late.has("$__slate_leave_"));
}

TEST(LateExitsTest, TheOtherSideOfTheBranchMayBeTheExit) {
  const Late late = make("@%p1 bra STAY;\nst.shared.u32 [words+4], %r1;\nret;\nSTAY: bar.sync 0;");
  EXPECT_TRUE(late->late_exits);
  EXPECT_TRUE(late.has("setp.ge.and.u32 %__slate_alive|%__slate_own, %r1, %r2, %__slate_alive;"));
  EXPECT_TRUE(late.has("@%__slate_own st.shared.u32 [words+4], %r1;"));
}

TEST(LateExitsTest, AConditionIsTakenAsItIsIfItsComparisonWouldSayAnotherThing) {
  for (const std::string since : {"add.u32 %r1, %r1, 1;\n", "and.pred %p1, %p1, %p2;\n"}) {
    const Late late = make(since + "@%p1 bra OUT;\n" + kLateStore + "bar.sync 0;\nOUT:");
    EXPECT_TRUE(late.has("mov.pred %__slate_own, %p1;")) << since;
  }
}

TEST(LateExitsTest, TheKernelsOwnNamesAndConstantsGoInAsTheyAre) {
  const Late constant =
      make("setp.gt.u32 %p5, %r1, (~0xff&1)|3<<4>>1;\n@%p5 bra OUT;\nbar.sync 0;\nOUT:");
  EXPECT_TRUE(constant.has("%r1, (~0xff&1)|3<<4>>1, %__slate_alive;"));
  const Late name = make(
      ".reg .pred $p, $q; setp.gt.u32 $p, %r1, 3; and.pred $p, $p, %p2;\nmov.pred $q, $p;\n"
      "@$p bra OUT;\n@$q st.shared.u32 [words], %r1;\nbar.red.or.pred %p3, 0, $q;\n"
      "@$q bra OVER;\nst.shared.u32 [words], %r1;\nOVER: bar.sync 0;\nOUT:");
  EXPECT_TRUE(name.has("mov.pred %__slate_own, $p;"));
  EXPECT_TRUE(name.has("mov.pred %__slate_own, $q;"));
  EXPECT_TRUE(name.has("not.pred %__slate_own, $q;"));
  EXPECT_FALSE(name.has("$__slate_p,") || name.has("$__slate_q"));
}

TEST(LateExitsTest, APredicateOfThatNameInAScopeIsAnotherOne) {
  const Late late = make(
      "{ .reg .pred %p1; setp.lt.u32 %p1, %r1, 8; selp.u32 %r3, 5, 6, %p1; }\n"
      "@%p1 bra OUT;\nbar.sync 0;\nOUT:");
  EXPECT_TRUE(late->late_exits);
  EXPECT_TRUE(late.has("setp.ge.and.u32 %__slate_own|%__slate_alive, %r1, %r2, %__slate_alive;"));
  EXPECT_FALSE(late.has("setp.lt.and"));
  // Nor are the names of what a comparison in a scope compares known outside.
  const Late inside = make(
      "{ .reg .b32 %x; mov.u32 %x, %r1; setp.lt.u32 %p1, %x, 8; }\n"
      "@%p1 bra OUT;\nbar.sync 0;\nOUT:");
  EXPECT_TRUE(inside.has("mov.pred %__slate_own, %p1;"));
}

TEST(LateExitsTest, ExitCodeDoesNotMoveIntoAScope) {
  const std::string scope =
      "mov.u32 %r4, 9;\n{ .reg .b32 %r4; xor.b32 %r4, %r1, 3;\n@%p1 bra AWAY;\n"
      "add.u32 %r5, %r4, 1; }\nbar.sync 0;\nret;\nAWAY: ";
  const Late late = make(scope + "st.shared.u32 [words], %r4;");
  EXPECT_FALSE(late.has("@%__slate_own st.shared"));
  EXPECT_TRUE(late.has("$__slate_leave_"));
  EXPECT_TRUE(make(scope + "ret;").has("mov.pred %__slate_own, %p1;")) << "none to move";
}

TEST(LateExitsTest, ExitCodeDoesNotMoveToWhereItsNamesAreNotDeclaredYet) {
  const Late late = make(
      "@%p1 bra AWAY;\nbar.sync 0;\nret;\nAWAY: .reg .b32 late;\n"
      "add.u32 late, %r1, 5; st.shared.u32 [words], late;");
  EXPECT_FALSE(late.has("@%__slate_own st.shared"));
  EXPECT_TRUE(late.has("$__slate_leave_"));
}

TEST(LateExitsTest, OnlyWhatMovMaySetIsSetToZero) {
  const std::string start =
      ".reg .b8 c; .reg .v2 .b32 v; .reg .v2 .b16 h;\n"
      "@%p1 bra OUT;\nbar.sync 0;\nsetp.eq.u32 %p3, %r1, 5;\n@%p3 bra OVER;\n";
  const std::string end = "\nst.shared.u32 [words], %r5;\nOVER: bar.sync 0;\nOUT:";
  const Late byte = make(start + "ld.shared.u8 c, [words]; cvt.u32.u8 %r5, c;" + end);
  EXPECT_TRUE(byte.has("@%__slate_inside ld.shared.u8 c, [words];"));
  EXPECT_FALSE(byte.has(" c, 0;"));
  const Late vector = make(start + "ld.shared.v2.u32 v, [words]; mov.b32 %r5, v.x;" + end);
  EXPECT_TRUE(vector.has("@%__slate_inside ld.shared.v2.u32 v, [words];"));
  EXPECT_FALSE(vector.has(" v, 0;"));
  const Late halves = make(start + "ld.shared.v2.b16 h, [words]; mov.b32 %r5, h;" + end);
  EXPECT_FALSE(halves.has(" h, 0;"));
}

TEST(LateExitsTest, ABranchIntoAnEndlessLoopIsNotMadeAPredicate) {
  const Late late = make(
      "@%p1 bra OUT;\nbar.sync 0; setp.eq.u32 %p3, %r1, 5;\n"
      "@%p3 bra ON; bra.uni GO;\nON: EVER: bra.uni EVER;\nGO: " +
      kLateStore + "bar.sync 0;\nOUT:");
  EXPECT_EQ(late.module, nullptr);
}

TEST(LateExitsTest, ABarrierMayReduceANumber) {
  const Late late = make("@%p1 bra OUT;\nbar.red.or.pred %p3, 0, 1;\nOUT:");
  ASSERT_NE(late.module, nullptr);
  EXPECT_TRUE(late.has("mov.pred %__slate_own, 1;"));
}

TEST(LateExitsTest, ConstantsByAddressAreReadByThoseWhoAreMeantOnly) {
  const std::string load = "ld.const.u32 %r3, [%d2];\nst.shared.u32 [words], %r3;\n";
  const std::string address = "ld.param.u64 %d2, [a];\n";
  const Late leaving = make(address + "@%p1 bra AWAY;\nbar.sync 0;\nret;\nAWAY: " + load);
  EXPECT_TRUE(leaving.has("@%__slate_own ld.const.u32 %r3, [%d2];"));
  const Late staying = make(address + "@%p1 bra OUT;\n" + load + "bar.sync 0;\nOUT:");
  EXPECT_TRUE(staying.has("@%__slate_alive ld.const.u32 %r3, [%d2];"));
}

TEST(LateExitsTest, ACounterIsNotReadASecondTime) {
  const Late late =
      make("setp.gt.u32 %p5, %clock, 7;\n@%p5 bra OUT;\n" + kLateStore + "bar.sync 0;\nOUT:");
  EXPECT_TRUE(late.has("mov.pred %__slate_own, %p5;"));
}

TEST(LateExitsTest, ABranchPastADivisionStaysABranch) {
  const Late late = make(
      "@%p1 bra OUT;\nbar.sync 0;\nsetp.eq.u32 %p3, %r1, 5;\n@%p3 bra OVER;\n"
      "div.u32 %r3, %r1, %r2;\nOVER: bar.sync 0;\nOUT:");
  EXPECT_TRUE(late.has("@%__slate_own bra OVER;"));
}

TEST(LateExitsTest, ParkedThreadsComeAlongWithoutEffect) {
  const Late late = make("@%p1 bra OUT;\n" + kLateStore + "@%p2 st.shared.u32 [words], %r2;\n" +
                         "bar.sync 0;\nadd.u32 %r3, %r1, 1;\nbar.sync 0;\nOUT:");
  EXPECT_TRUE(late.has("@%__slate_alive " + kLateStore));
  EXPECT_TRUE(
      late.has("and.pred %__slate_own, %__slate_own, %__slate_alive;\n"
               "\t@%__slate_own st.shared.u32 [words], %r2;"));
  EXPECT_TRUE(late.has("bar.sync 0;\nadd.u32 %r3, %r1, 1;\nbar.sync 0;")) << "as it was";
  EXPECT_FALSE(late.has(":\n\tbar.sync")) << "a label to jump to";
}

TEST(LateExitsTest, ParkedThreadsJumpPastWhatIsNotForThem) {
  for (const std::string& between :
       {repeated(kLateStore, 30), std::string("membar.gl;\n"),
        std::string("@%p2 bra.uni OVER;\nadd.u32 %r3, %r1, 1;\nOVER:\n"),
        std::string("LOOP: add.u32 %r3, %r3, 1; setp.lt.u32 %p3, %r3, 9; @%p3 bra LOOP;\n")}) {
    const Late late = make("@%p1 bra OUT;\n" + between + "bar.sync 0;\nOUT:");
    EXPECT_TRUE(late.has("@!%__slate_alive bra $__slate_parked_")) << between;
  }
}

TEST(LateExitsTest, AShortBranchBecomesAPredicate) {
  const Late late = make(
      "@%p1 bra OUT;\nbar.sync 0;\nsetp.eq.u32 %p3, %r1, 5;\n@%p3 bra OVER;\n"
      "ld.shared.u32 %r3, [words]; add.u32 %r4, %r3, 1;\n"
      "setp.eq.u32 %p4, %r4, 9;\n@!%p4 bra OVER;\nadd.u32 %r5, %r3, %r4;\n"
      "OVER: st.shared.u32 [words], %r5;\nbar.sync 0;\nOUT:");
  EXPECT_TRUE(
      late.has("not.pred %__slate_own, %p3;\n"
               "\tand.pred %__slate_inside, %__slate_own, %__slate_alive;"));
  EXPECT_TRUE(late.has("mov.b32 %r3, 0;\n\t@%__slate_inside ld.shared.u32 %r3, [words];"));
  EXPECT_TRUE(late.has(" add.u32 %r4, %r3, 1;")) << "of no concern to others";
  EXPECT_TRUE(
      late.has("mov.pred %__slate_own, %p4;\n"
               "\tand.pred %__slate_inside, %__slate_own, %__slate_inside;"));
  EXPECT_TRUE(late.has("@%__slate_inside add.u32 %r5, %r3, %r4;")) << "read behind it";
  EXPECT_TRUE(late.has("@%__slate_alive st.shared.u32 [words], %r5;"));
  EXPECT_FALSE(late.has("bra OVER"));
}

TEST(LateExitsTest, ParkedThreadsTakeALongBranchPastEffects) {
  const std::string start = "@%p1 bra OUT;\nbar.sync 0;\nsetp.eq.u32 %p3, %r1, 5;\n";
  const Late taken =
      make(start + "@%p3 bra OVER;\n" + repeated(kLateStore, 20) + "OVER: bar.sync 0;\nOUT:");
  EXPECT_TRUE(
      taken.has("or.pred %__slate_own, %__slate_own, %__slate_parked;\n"
                "\t@%__slate_own bra OVER;"));
  const Late not_taken =
      make(start + "@%p3 bra AWAY;\nBACK: bar.sync 0;\nbra OUT;\nAWAY: " + kLateStore +
           "bra BACK;\nOUT:");
  EXPECT_FALSE(not_taken.has("@%p3 bra AWAY")) << "nobody parked stores";
}

TEST(LateExitsTest, MoreThanAFewGetACopyOfTheirOwn) {
  const Late late =
      make("@%p1 bra AWAY;\n" + kLateStore + "bar.sync 0;\nret;\nAWAY:" + repeated(kLateStore, 9));
  EXPECT_TRUE(late->late_exits);
  EXPECT_TRUE(late.has("$__slate_leave_"));
}

TEST(LateExitsTest, WhatIsNotPlainIsNotPutUnderAPredicate) {
  for (const std::string away :
       {"@%p2 st.shared.u32 [words], %r1;\n", "{ .reg .b32 %x; mov.u32 %x, 1; }\n"}) {
    const Late late = make("@%p1 bra AWAY;\n" + kLateStore + "bar.sync 0;\nret;\nAWAY: " + away);
    EXPECT_TRUE(late->late_exits) << away;
    EXPECT_TRUE(late.has("$__slate_leave_")) << away;
  }
}

TEST(LateExitsTest, TooMuchExitCodeKeepsTheDrain) {
  std::string body;
  for (int i = 0; i < 12; ++i) {
    body += "@%p1 bra AWAY" + std::to_string(i) + ";\n" + kLateStore + "bar.sync 0;\n";
  }
  body += "ret;\n";
  for (int i = 0; i < 12; ++i) body += "AWAY" + std::to_string(i) + ": " + repeated(kLateStore, 30);
  const Late late = make(body);
  EXPECT_FALSE(late->late_exits);
  EXPECT_TRUE(late->drains);
}

TEST(LateExitsTest, WhetherAnybodyIsLeftIsAskedInLoopsOnly) {
  EXPECT_FALSE(make("@%p1 bra OUT;\nbar.sync 0;\nOUT:").has("bar.red"));
  const Late late = make("mov.u32 %r3, 0;\n@%p1 bra OUT;\nLOOP: bar.sync 0;\n" + kLateStore +
                         "add.u32 %r3, %r3, 1; setp.lt.u32 %p3, %r3, %r2; @%p3 bra LOOP;\nOUT:");
  EXPECT_TRUE(late.has("bar.red.or.pred %__slate_some, 0, %__slate_alive;"));
}

TEST(LateExitsTest, ModulesThatAreLeftAloneStayRefused) {
  const std::string text =
      ".version 8.8\n.target sm_90\n.address_size 64\n.visible .entry k()\n{\n"
      ".reg .pred %p<9>; .reg .b32 %r<9>;\nmov.u32 %r1, %tid.x; setp.eq.u32 %p1, %r1, 0;\n"
      "@%p1 ret;\nbar.sync 0;\nret;\n}\n";
  std::string old = text, ours = text;
  old.replace(old.find("sm_90"), 5, "sm_60");
  ours.replace(ours.find("entry k"), 7, "entry __slate_alive");
  for (const std::string& refused : {old, ours}) {
    const auto module = ptx::parse(refused);
    ASSERT_TRUE(module);
    const auto verdict = judge(**module);
    ASSERT_TRUE(verdict);
    EXPECT_FALSE(verdict->entries.at(0).worker.legal()) << refused;
    EXPECT_FALSE(verdict->entries.at(0).late_exits) << refused;
  }
}

TEST(LateExitsTest, TheInjectorsVerdictIsTheOneThatCounts) {
  const Late late = make("@%p1 bra OUT;\n" + kLateStore + "bar.sync 0;\nOUT:");
  const auto verdict = judge(*late.original);
  ASSERT_TRUE(verdict);
  EXPECT_TRUE(verdict->entries.at(0).late_exits);
  const auto injected = inject(*late.original, {.profile = true, .most_registers = {}});
  ASSERT_TRUE(injected);
  const EntryAnalysis& analysis = injected->kernels.at(0).analysis;
  EXPECT_TRUE(analysis.late_exits);
  EXPECT_TRUE(analysis.slice.legal());
  EXPECT_TRUE(analysis.profile.legal());
}

}  // namespace
}  // namespace slate::injector
