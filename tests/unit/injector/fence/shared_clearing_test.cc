// What of a block's shared memory a bounded copy clears, and which of its accesses need no check as
// the threads of the launch's block were followed.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "injector/fence/fence.h"
#include "tests/unit/injector/fence/bounded_kernel.h"

namespace slate::injector {
namespace {

constexpr std::uint64_t kClearedLow = 0x7f0000000000;
constexpr std::uint32_t kClearedThreads = 64;

/// A kernel's bounded copy for a launch of one row of 64 threads, where the pointer leads into the
/// main extent.
class Copy {
 public:
  /// Without `variables` it has no dynamic memory either. `shared`: of the launch.
  explicit Copy(std::string_view body,
                std::string_view variables = ".shared .align 16 .b8 sh[256];",
                std::uint32_t shared = 256) {
    const std::string text = fmt::format(
        ".version 8.7\n.target sm_90\n.address_size 64\n{}\n"
        ".visible .entry kernel(.param .u64 p, .param .u32 n)\n{{\n{}\n"
        ".reg .pred %p<9>;\n.reg .b16 %h<9>;\n.reg .b32 %r<30>, %t, %mine;\n.reg .b64 %rd<30>;\n"
        "mov.u32 %t, %tid.x;\nmov.u32 %mine, {};\nmad.lo.u32 %mine, %t, 4, %mine;\n"
        "ld.param.u64 %rd1, [p];\nld.param.u32 %r1, [n];\n"
        "cvta.to.global.u64 %rd1, %rd1;\nld.global.u32 %r2, [%rd1];\n{}\nOUT:\nret;\n}}\n",
        variables.empty() ? "" : ".extern .shared .align 16 .b8 dyn[];", variables,
        variables.empty() ? "0" : "sh", body);
    LaunchValues launch = values(kClearedThreads);
    launch.shared_bytes = shared;
    const BoundedKernel copy = bounded_kernel(text, &launch);
    verdict = copy.verdict;
    const PlanOptions options{.names = OwnNames::kExpected, .is_bounded = true, .launch = &launch};
    const Plan plan = make_plan(*copy.module, copy.module->functions.back(), options);
    is_whole = plan.clearing.is_whole;
    for (const SharedClearing::Part& part : plan.clearing.parts) {
      parts +=
          fmt::format("{}[{}..{}) by {}; ", part.variable->name, part.first, part.end, part.piece);
    }
    if (plan.clearing.expected) parts += fmt::format("all of {}; ", *plan.clearing.expected);
    if (plan.clearing.may_end_first) parts += "ends";
  }

  bool hold(std::uint32_t threads, std::uint32_t rows = 1, std::uint32_t shared = 256) const {
    LaunchValues launch = values(threads);
    launch.block[1] = rows;
    launch.shared_bytes = shared;
    return injector::hold(verdict.bounds, launch);
  }

  FenceVerdict verdict;
  bool is_whole = false;
  std::string parts;

 private:
  LaunchValues values(std::uint32_t threads) const {
    return {
        .parameters = parameters_, .block = {threads, 1, 1}, .low = kClearedLow, .bytes = 1 << 20};
  }

  // The pointer, without a sign and from its lowest byte on; n is 0.
  std::vector<std::byte> parameters_ = [] {
    std::vector<std::byte> bytes(12);
    for (int i = 0; i < 8; ++i) bytes[i] = static_cast<std::byte>(kClearedLow >> (8 * i));
    return bytes;
  }();
};

const std::string kStore = "st.shared.u32 [%mine], %r2;\n";
const std::string kBarrier = "bar.sync 0;\n";
/// What another thread has put there.
const std::string kRead = "ld.shared.u32 %r4, [sh+20];\nld.shared.u32 %r5, [%mine];\n";

TEST(SharedClearingTest, NothingIsClearedOfWhatTheBlockFills) {
  const Copy copy(kStore + kBarrier + kRead);
  EXPECT_FALSE(copy.is_whole);
  EXPECT_EQ(copy.parts, "");
  EXPECT_EQ(copy.verdict.counts.checks, 0u);
  EXPECT_TRUE(copy.hold(kClearedThreads));
  EXPECT_FALSE(copy.hold(kClearedThreads - 1)) << "a block that does not fill it";
  EXPECT_FALSE(copy.hold(kClearedThreads + 1));
  EXPECT_FALSE(copy.hold(kClearedThreads, 2));
}

TEST(SharedClearingTest, ThePartThatIsReadHasToBeFilled) {
  const Copy copy(kStore + kBarrier + kRead, ".shared .align 16 .b8 sh[260];");
  EXPECT_FALSE(copy.is_whole);
  EXPECT_EQ(copy.parts, "");
}

TEST(SharedClearingTest, WhatIsStoredBehindTheBarrierFillsNothing) {
  const Copy copy(kBarrier + kStore + kBarrier + kRead);
  EXPECT_EQ(copy.parts, "sh[0..256) by 16; ");
}

TEST(SharedClearingTest, ALoopMayFillIt) {
  const std::string loop =
      "mov.u32 %r6, %t;\nNEXT:\nshl.b32 %r7, %r6, 2;\nmov.u32 %r8, sh;\nadd.u32 %r8, %r8, %r7;\n"
      "st.shared.u32 [%r8], %r2;\nadd.u32 %r6, %r6, 64;\nsetp.lt.s32 %p1, %r6, {};\n"
      "@%p1 bra NEXT;\n";
  const std::string read = "ld.shared.u32 %r4, [%mine+512];\n";
  const std::string variable = ".shared .align 16 .b8 sh[768];";
  EXPECT_EQ(Copy(fmt::format(fmt::runtime(loop), 192) + kBarrier + read, variable).parts, "");
  EXPECT_EQ(Copy(fmt::format(fmt::runtime(loop), 191) + kBarrier + read, variable).parts,
            "sh[764..768) by 4; ")
      << "the last thread ends a turn earlier";
  EXPECT_TRUE(Copy(fmt::format(fmt::runtime(loop), "%r1") + kBarrier + read, variable).is_whole)
      << "a number of turns that is not known";
}

TEST(SharedClearingTest, BothWaysOfABranchHaveToFillIt) {
  const std::string branch = "setp.eq.u32 %p1, %r2, 0;\n@%p1 bra OTHER;\n";
  const Copy both(branch + kStore + "bra OVER;\nOTHER:\n" + kStore + "OVER:\n" + kBarrier + kRead);
  EXPECT_EQ(both.parts, "");
  const Copy one(branch + kStore + "OTHER:\n" + kBarrier + kRead);
  EXPECT_EQ(one.parts, "sh[0..256) by 4; ") << "each thread clears what it may store to";
  const Copy load(branch + "ld.global.u32 %r2, [%rd1+4];\nOTHER:\n" + kStore + kBarrier + kRead);
  EXPECT_EQ(load.parts, "");
}

TEST(SharedClearingTest, AThreadThatMayEndFillsNothing) {
  const Copy copy("setp.eq.u32 %p1, %r2, 0;\n@%p1 bra OUT;\n" + kStore + kBarrier + kRead);
  EXPECT_EQ(copy.parts, "sh[0..256) by 4; ends");
  const Copy trap("setp.eq.u32 %p1, %r2, 0;\n@%p1 trap;\n" + kStore + kBarrier + kRead);
  EXPECT_EQ(trap.parts, "sh[0..256) by 4; ends");
}

TEST(SharedClearingTest, ACheckInFrontMayEndAThread) {
  const std::string wild =
      "mul.wide.u32 %rd2, %r2, 4;\nadd.s64 %rd2, %rd1, %rd2;\n"
      "ld.global.u32 %r9, [%rd2];\n";
  EXPECT_EQ(Copy(wild + kStore + kBarrier + kRead).parts, "sh[0..256) by 4; ends");
  const std::string matrix = "@%p8 movmatrix.sync.aligned.m8n8.trans.b16 %r6, %r1;\n";
  EXPECT_EQ(Copy(matrix + kStore + kBarrier + kRead).parts, "sh[0..256) by 4; ends");
  EXPECT_EQ(Copy(kStore + kBarrier + wild + kRead).parts, "");
}

TEST(SharedClearingTest, NoThreadClearsWhatAnotherOneStores) {
  const std::string others =
      "mov.u32 %r6, sh;\nxor.b32 %r7, %t, 1;\nmad.lo.u32 %r6, %r7, 4, %r6;\n"
      "setp.eq.u32 %p1, %r2, 0;\n@%p1 st.shared.u32 [%r6], %r2;\n";
  EXPECT_TRUE(Copy(others + kBarrier + kRead).is_whole);
  const std::string four =
      "mov.u32 %r6, sh;\nmad.lo.u32 %r6, %t, 16, %r6;\n"
      "setp.eq.u32 %p1, %r2, 0;\n@%p1 st.shared.u32 [%r6+8], %r2;\n";
  EXPECT_EQ(Copy(four + kBarrier + kRead, ".shared .align 16 .b8 sh[1024];").parts,
            "sh[0..256) by 16; ");
  const std::string anywhere =
      "mov.u32 %r6, sh;\nmad.lo.u32 %r6, %r2, 4, %r6;\n"
      "st.shared.u32 [%r6], %r2;\n";
  EXPECT_TRUE(Copy(anywhere + kBarrier + kRead).is_whole);
  EXPECT_EQ(Copy(kBarrier + anywhere + kBarrier + kRead).parts, "sh[0..256) by 16; ");
}

TEST(SharedClearingTest, WhatIsReadInFrontOfTheFirstBarrierIsCleared) {
  EXPECT_TRUE(Copy(kStore + kRead).is_whole);
  EXPECT_TRUE(Copy(kStore + "atom.shared.add.u32 %r3, [%mine], 1;\n" + kBarrier + kRead).is_whole);
  const std::string maybe = "setp.eq.u32 %p1, %r2, 0;\n@%p1 bra OVER;\n" + kBarrier + "OVER:\n";
  EXPECT_TRUE(Copy(kStore + maybe + kRead).is_whole) << "a barrier that may not be passed";
  EXPECT_TRUE(Copy(kStore + "bar.sync 1, 32;\n" + kRead).is_whole) << "a barrier of a part";
  EXPECT_TRUE(Copy(kStore + "bar.arrive 1, 64;\n" + kBarrier + kRead).is_whole);
  EXPECT_TRUE(Copy(kStore + "bar.sync %r2;\n" + kRead).is_whole) << "a barrier of any number";
}

TEST(SharedClearingTest, WhatAReadMayFindAnywhereIsAllOfTheBlocks) {
  const std::string anywhere =
      "mov.u32 %r6, sh;\nmad.lo.u32 %r6, %r2, 4, %r6;\n"
      "ld.shared.u32 %r7, [%r6];\n";
  EXPECT_EQ(Copy(kStore + kBarrier + anywhere).parts, "all of 256; ");
  EXPECT_EQ(Copy(kStore + kBarrier + anywhere, ".shared .align 16 .b8 sh[260];").parts,
            "sh[256..260) by 4; all of 260; ");
}

TEST(SharedClearingTest, WhereSomethingMayLieBetweenVariablesAllIsCleared) {
  const std::string anywhere =
      "mov.u32 %r6, sh;\nmad.lo.u32 %r6, %r2, 4, %r6;\nst.shared.u32 [more], %r2;\n"
      "ld.shared.u32 %r7, [%r6];\n";
  const auto with = [&](std::string_view more) {
    return Copy(kStore + kBarrier + anywhere,
                fmt::format(".shared .align 4 .b8 sh[256];\n{}", more));
  };
  EXPECT_FALSE(with(".shared .align 4 .b8 more[68];").is_whole);
  EXPECT_TRUE(with(".shared .align 8 .b8 more[68];").is_whole);
  EXPECT_FALSE(with(".shared .align 8 .b8 more[72];").is_whole);
  EXPECT_TRUE(with(".shared .align 1 .b8 more[67];").is_whole);
}

TEST(SharedClearingTest, DynamicMemoryHasTheLaunchsSize) {
  const std::string element = "mov.u32 %r6, dyn;\nmad.lo.u32 %r6, %t, 4, %r6;\n";
  const std::string store = element + "st.shared.u32 [%r6], %r2;\n";
  const Copy filled(store + kBarrier + "ld.shared.u32 %r7, [%r6];\n");
  EXPECT_EQ(filled.parts, "");
  EXPECT_EQ(filled.verdict.counts.checks, 0u);
  EXPECT_TRUE(filled.hold(kClearedThreads));
  EXPECT_FALSE(filled.hold(kClearedThreads, 1, 255));
  EXPECT_FALSE(filled.hold(kClearedThreads, 1, 512));
  const Copy beyond(store + kBarrier + "ld.shared.u32 %r7, [%r6+4];\n");
  EXPECT_EQ(beyond.verdict.counts.checks, 1u);
  EXPECT_EQ(beyond.parts, "sh[0..256) by 16; all of 512; ");
  EXPECT_TRUE(Copy(kStore + kBarrier + kRead).hold(kClearedThreads, 1, 0))
      << "a kernel that names no dynamic memory";
}

TEST(SharedClearingTest, ABlockWithoutSharedMemoryIsNotLookedAt) {
  const std::string rest =
      "ld.global.u32 %r2, [%rd1+4];\nmul.wide.u32 %rd2, %r2, 4;\n"
      "add.s64 %rd2, %rd1, %rd2;\nld.u32 %r3, [%rd2];\n";
  const Copy none(rest, "", 0);
  EXPECT_FALSE(none.is_whole);
  EXPECT_TRUE(none.hold(kClearedThreads, 1, 0));
  EXPECT_TRUE(none.hold(kClearedThreads - 1, 2, 0)) << "any block";
  EXPECT_FALSE(none.hold(kClearedThreads, 1, 4));
  EXPECT_TRUE(Copy(rest, "", 4).is_whole);
  EXPECT_TRUE(Copy(rest, ".shared .align 16 .b8 sh[256];", 0).is_whole);
}

TEST(SharedClearingTest, GenericAddressesCount) {
  const std::string generic =
      "mov.u64 %rd3, sh;\ncvta.shared.u64 %rd3, %rd3;\n"
      "mul.wide.u32 %rd4, %t, 4;\nadd.s64 %rd3, %rd3, %rd4;\n";
  const Copy copy(generic + "st.u32 [%rd3], %r2;\n" + kBarrier + "ld.u32 %r3, [%rd3];\n" + kRead);
  EXPECT_EQ(copy.parts, "");
  EXPECT_EQ(copy.verdict.counts.checks, 0u);
  EXPECT_TRUE(Copy(generic + kStore + "ld.u32 %r3, [%rd3];\n" + kBarrier + kRead).is_whole);
}

TEST(SharedClearingTest, CallsAreNotFollowed) {
  EXPECT_TRUE(Copy(kStore + kBarrier + kRead +
                   "TABLE: .branchtargets OUT, OUT;\n"
                   "brx.idx %r1, TABLE;\n")
                  .is_whole);
}

TEST(SharedClearingTest, AnIndexThatArithmeticKeepsInNeedsNoCheck) {
  // Of elements that a loop of steps of four and a remainder goes through.
  const std::string body =
      "max.s32 %r3, %t, 112;\nadd.s32 %r3, %r3, 31;\nsub.s32 %r3, %r3, %t;\nshr.u32 %r4, %r3, 5;\n"
      "add.s32 %r4, %r4, 1;\nand.b32 %r5, %r4, 3;\nmov.u32 %r6, %t;\nsetp.eq.s32 %p1, %r5, 0;\n"
      "@%p1 bra FOURS;\nREST:\nst.shared.u32 [%mine], %r2;\nadd.s32 %mine, %mine, 128;\n"
      "add.s32 %r6, %r6, 32;\nadd.s32 %r5, %r5, -1;\nsetp.ne.s32 %p2, %r5, 0;\n@%p2 bra REST;\n"
      "FOURS:\nsetp.lt.u32 %p3, %r3, 96;\n@%p3 bra OVER;\nNEXT:\nst.shared.u32 [%mine], %r2;\n"
      "st.shared.u32 [%mine+128], %r2;\nst.shared.u32 [%mine+256], %r2;\n"
      "st.shared.u32 [%mine+384], %r2;\nadd.s32 %mine, %mine, 512;\nadd.s32 %r6, %r6, 128;\n"
      "setp.lt.s32 %p4, %r6, 144;\n@%p4 bra NEXT;\nOVER:\n";
  EXPECT_EQ(Copy(body, ".shared .align 4 .b8 sh[576];").verdict.counts.checks, 0u);
  EXPECT_NE(Copy(body, ".shared .align 4 .b8 sh[572];").verdict.counts.checks, 0u)
      << "the last thread's last element is beyond";
}

TEST(SharedClearingTest, ARegisterOfALoopIsNotKnownWhereItsTurnsAreNot) {
  const std::string body =
      "mov.u32 %r6, 0;\nNEXT:\nst.shared.u32 [%mine], %r2;\nadd.s32 %mine, %mine, 4;\n"
      "add.s32 %r6, %r6, 1;\nsetp.lt.u32 %p1, %r6, %r2;\n@%p1 bra NEXT;\n";
  EXPECT_NE(Copy(body, ".shared .align 4 .b8 sh[1024];").verdict.counts.checks, 0u);
}

}  // namespace
}  // namespace slate::injector
