// Which accesses the values of a launch bound, and whether launches keep to it.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstring>

#include "injector/fence/fence.h"
#include "tests/unit/injector/fence/bounded_kernel.h"

namespace slate::injector {
namespace {

constexpr std::uint64_t kLow = 0x7f0000000000;
constexpr std::uint32_t kBytes = 1 << 20;  // of the main extent

struct Launch {
  std::uint32_t n = 1000;
  std::uint32_t m = 64;
  std::uint64_t p = kLow;
  std::uint32_t grid = 4;
  std::uint32_t block = 256;
  std::uint32_t rows = 1;  // blocks' threads along y
};

/// The same as the host knows it.
struct HostLaunch {
  explicit HostLaunch(const Launch& launch)
      : values{.parameters = parameters,
               .grid = {launch.grid, 1, 1},
               .block = {launch.block, launch.rows, 1},
               .low = kLow,
               .bytes = kBytes} {
    std::memcpy(parameters, &launch.p, 8);
    std::memcpy(parameters + 8, &launch.n, 4);
    std::memcpy(parameters + 12, &launch.m, 4);
  }

  std::byte parameters[16];
  LaunchValues values;
};

/// A kernel's bounded copy.
class Bounded {
 public:
  explicit Bounded(std::string_view body, const LaunchValues* launch = nullptr) {
    const std::string text =
        std::string(
            ".version 8.7\n.target sm_90\n.address_size 64\n.global .align 4 .b32 v[8];\n"
            ".visible .entry kernel(.param .u64 p, .param .u32 n, .param .u32 m)\n{\n"
            ".reg .pred %p<9>;\n.reg .b16 %h<9>;\n.reg .b32 %r<30>;\n.reg .b64 %rd<30>;\n"
            ".shared .align 16 .b8 sh[1024];\n"
            "ld.param.u64 %rd1, [p];\nld.param.u32 %r1, [n];\nld.param.u32 %r2, [m];\n"
            "cvta.to.global.u64 %rd2, %rd1;\nmov.u32 %r3, %ctaid.x;\n"
            "mov.u32 %r4, %ntid.x;\nmov.u32 %r5, %tid.x;\nmov.u32 %r6, %tid.y;\n"
            "mad.lo.s32 %r7, %r3, %r4, %r5;\n")
            .append(body)
            .append("\nOUT:\nret;\n}\n");
    verdict = bounded_kernel(text, launch).verdict;
  }

  bool hold(const Launch& launch) const {
    return injector::hold(verdict.bounds, HostLaunch(launch).values);
  }

  FenceVerdict verdict;
};

/// The element of 4 bytes by an index, behind what the index is made of.
std::string element(std::string_view index, std::string_view opcode = "mul.wide.s32") {
  return std::string(opcode)
      .append(" %rd10, ")
      .append(index)
      .append(", 4;\nadd.s64 %rd11, %rd2, %rd10;\nst.global.u32 [%rd11], %r1;\n");
}

const std::string kGuard = "setp.ge.s32 %p1, %r7, %r1;\n@%p1 bra OUT;\n";

TEST(AccessBoundsTest, AnElementBelowAParameterNeedsNoCheck) {
  const Bounded kernel(kGuard + element("%r7"));
  EXPECT_TRUE(kernel.verdict.legal());
  EXPECT_EQ(kernel.verdict.counts.bounded, 1u);
  EXPECT_EQ(kernel.verdict.counts.checks, 0u);
  EXPECT_TRUE(kernel.hold({}));
  EXPECT_TRUE(kernel.hold({.n = 5000, .grid = 20}));
  EXPECT_TRUE(kernel.hold({.n = kBytes / 4, .grid = 5000}));
  EXPECT_TRUE(kernel.hold({.n = 0}));
}

TEST(AccessBoundsTest, OneElementTooManyDoesNotHold) {
  const Bounded kernel(kGuard + element("%r7"));
  EXPECT_FALSE(kernel.hold({.n = kBytes / 4 + 1, .grid = 5000}));
  EXPECT_FALSE(kernel.hold({.p = kLow + kBytes - 3996}));
  EXPECT_TRUE(kernel.hold({.p = kLow + kBytes - 4000}));
  EXPECT_FALSE(kernel.hold({.p = kLow - 4}));
  EXPECT_FALSE(kernel.hold({.p = 0}));
  EXPECT_FALSE(kernel.hold({.p = ~std::uint64_t{0} - 3}));
}

TEST(AccessBoundsTest, AMisalignedPointerDoesNotHold) {
  const Bounded kernel(kGuard + element("%r7"));
  EXPECT_FALSE(kernel.hold({.p = kLow + 2}));
  EXPECT_TRUE(kernel.hold({.p = kLow + 4}));
}

TEST(AccessBoundsTest, WhatReadsOtherLanesIsForWholeWarps) {
  for (const std::string_view reads : {"movmatrix.sync.aligned.m8n8.trans.b16 %r8, %r7;\n",
                                       "shfl.sync.idx.b32 %r8, %r7, 20, 31, -1;\n"}) {
    const Bounded kernel(std::string(reads) + kGuard + element("%r7"));
    EXPECT_TRUE(kernel.hold({.block = 64})) << reads;
    EXPECT_TRUE(kernel.hold({.block = 48, .rows = 2})) << reads;
    EXPECT_FALSE(kernel.hold({.block = 48})) << reads;
  }
  EXPECT_TRUE(Bounded(kGuard + element("%r7")).hold({.block = 48}));
}

TEST(AccessBoundsTest, WithoutAConditionTheGridBoundsTheIndex) {
  const Bounded kernel(element("%r7"));
  EXPECT_TRUE(kernel.hold({.n = 0, .grid = 1024}));
  EXPECT_FALSE(kernel.hold({.n = 0, .grid = 1025}));
}

TEST(AccessBoundsTest, AnIndexBeyond32BitsBeginsAgain) {
  // 2^24 blocks of 256 threads: the product comes back to 0, and is negative before.
  const Bounded kernel(element("%r7"));
  EXPECT_FALSE(kernel.hold({.grid = 1u << 24}));
  EXPECT_FALSE(Bounded(kGuard + element("%r7")).hold({.grid = 1u << 24}));
  // Without a sign it cannot be below n but within it.
  EXPECT_TRUE(Bounded("setp.ge.u32 %p1, %r7, %r1;\n@%p1 bra OUT;\n" + element("%r7"))
                  .hold({.grid = 1u << 24}));
}

TEST(AccessBoundsTest, OnlyConditionsOnEveryWayCount) {
  EXPECT_EQ(Bounded("ld.global.u32 %r10, [%rd2];\n" + element("%r10")).verdict.counts.bounded, 1u);
  const std::string load = "ld.global.u32 %r10, [%rd2];\n";
  const std::string below = "setp.lt.u32 %p1, %r10, %r1;\n";
  EXPECT_EQ(Bounded(load + below + "@!%p1 bra OUT;\n" + element("%r10", "mul.wide.u32"))
                .verdict.counts.bounded,
            2u);
  // The other way leads there, too.
  EXPECT_EQ(Bounded(load + below + "@!%p1 bra NEXT;\nadd.u32 %r11, %r1, 1;\nNEXT:\n" +
                    element("%r10", "mul.wide.u32"))
                .verdict.counts.bounded,
            1u);
  // The wrong way.
  EXPECT_EQ(Bounded(load + below + "@%p1 bra OUT;\n" + element("%r10", "mul.wide.u32"))
                .verdict.counts.bounded,
            1u);
  // Another register.
  EXPECT_EQ(Bounded(load + "setp.lt.u32 %p1, %r7, %r1;\n@!%p1 bra OUT;\n" +
                    element("%r10", "mul.wide.u32"))
                .verdict.counts.bounded,
            1u);
  // A sign where it matters.
  EXPECT_EQ(Bounded(load + "setp.lt.s32 %p1, %r10, %r1;\n@!%p1 bra OUT;\n" + element("%r10"))
                .verdict.counts.bounded,
            1u);
  EXPECT_EQ(Bounded(load +
                    "setp.lt.s32 %p1, %r10, %r1;\nsetp.gt.s32 %p2, %r10, -1;\n"
                    "and.pred %p3, %p1, %p2;\n@!%p3 bra OUT;\n" +
                    element("%r10"))
                .verdict.counts.bounded,
            2u);
  EXPECT_EQ(Bounded(load +
                    "setp.lt.s32 %p1, %r10, %r1;\nsetp.gt.s32 %p2, %r10, -1;\n"
                    "or.pred %p3, %p1, %p2;\n@!%p3 bra OUT;\n" +
                    element("%r10"))
                .verdict.counts.bounded,
            1u);
}

TEST(AccessBoundsTest, AConditionOnAnEarlierValueDoesNotCount) {
  // %r10 is compared, then loaded anew.
  const Bounded kernel(
      "mov.u32 %r11, 0;\nLOOP:\nsetp.ge.u32 %p1, %r10, %r1;\n@%p1 bra OUT;\n"
      "ld.global.u32 %r10, [%rd2];\n" +
      element("%r10", "mul.wide.u32") +
      "add.u32 %r11, %r11, 1;\nsetp.lt.u32 %p2, %r11, 9;\n@%p2 bra LOOP;");
  EXPECT_EQ(kernel.verdict.counts.bounded, 1u);
}

/// A loop over %r10 from %r7 on, with its body and its end.
std::string loop(std::string_view body, std::string_view end) {
  return std::string("mov.u32 %r10, %r7;\nLOOP:\n")
      .append(body)
      .append(end)
      .append("\n@%p2 bra LOOP;");
}

TEST(AccessBoundsTest, ACounterIsBoundedByTheConditionOfItsLoop) {
  const Bounded kernel(
      kGuard + loop(element("%r10"), "add.s32 %r10, %r10, %r2;\nsetp.lt.s32 %p2, %r10, %r1;"));
  EXPECT_EQ(kernel.verdict.counts.bounded, 1u);
  EXPECT_TRUE(kernel.hold({}));
  EXPECT_TRUE(kernel.hold({.n = kBytes / 4}));
  EXPECT_FALSE(kernel.hold({.n = kBytes / 4 + 1}));
  // What is added may be negative, or carry it beyond 2^31.
  EXPECT_FALSE(kernel.hold({.m = ~0u}));
  EXPECT_FALSE(kernel.hold({.m = 0x7fffffff}));
}

TEST(AccessBoundsTest, ACounterMayChangeByWayOfACopy) {
  const std::string copy = "mov.u32 %r11, %r10;\n", change = "add.s32 %r10, %r11, %r2;\n";
  const std::string compare = "setp.lt.s32 %p2, %r10, %r1;";
  for (const std::string_view by : {"%r2", "3"}) {
    const Bounded kernel(kGuard + loop(copy + element("%r11"),
                                       "add.s32 %r10, %r11, " + std::string(by) + ";\n" + compare));
    EXPECT_EQ(kernel.verdict.counts.bounded, 1u) << by;
    EXPECT_TRUE(kernel.hold({.n = kBytes / 4})) << by;
    EXPECT_FALSE(kernel.hold({.n = kBytes / 4 + 1})) << by;
  }
  // The register has changed since it was copied: it is no counter, but stays below n in turns.
  const Bounded later(kGuard +
                      loop(copy + "add.s32 %r10, %r10, 1;\n" + element("%r10"), change + compare));
  EXPECT_TRUE(later.hold({.n = kBytes / 4 - 1}));
  EXPECT_FALSE(later.hold({.n = kBytes / 4}));
  EXPECT_FALSE(later.hold({.m = ~0u}));
  EXPECT_FALSE(later.hold({.m = 0x7fffffff}));
}

/// A search: %r10 goes up from m, unless what is loaded says otherwise, and down from n on. It does
/// not go on below m. `up` ends where it goes down, or over to the end.
std::string search(std::string_view up, std::string_view end) {
  return std::string("mov.u32 %r10, %r2;\nLOOP:\n")
      .append(element("%r10"))
      .append("ld.global.u32 %r20, [%rd2+1024];\nsetp.eq.s32 %p3, %r20, 0;\n@%p3 bra DOWN;\n")
      .append(up)
      .append("DOWN:\nadd.s32 %r10, %r10, -1;\nEND:\n")
      .append(end)
      .append("\n@%p2 bra LOOP;\n");
}

/// Its bounded copy, as for a first launch with n of 1000 and m of 64.
Bounded bounded_search(std::string_view up, std::string_view end = "setp.ge.s32 %p2, %r10, %r2;") {
  const HostLaunch launch{Launch()};
  return Bounded(search(up, end), &launch.values);
}

const std::string kUp =
    "add.s32 %r10, %r10, 1;\nsetp.ne.s32 %p4, %r10, %r1;\n@%p4 bra END;\nmov.u32 %r10, %r1;\n";

TEST(AccessBoundsTest, ARegisterThatGoesUpAndDownStaysBetweenWhatItIsComparedWith) {
  const Bounded kernel = bounded_search(kUp);
  EXPECT_EQ(kernel.verdict.counts.checks, 0u);
  EXPECT_TRUE(kernel.hold({.n = kBytes / 4}));
  EXPECT_FALSE(kernel.hold({.n = kBytes / 4 + 1}));
  // Its lowest number is m.
  EXPECT_TRUE(kernel.hold({.m = 64, .p = kLow - 4 * 64}));
  EXPECT_FALSE(kernel.hold({.m = 64, .p = kLow - 4 * 65}));
  EXPECT_FALSE(kernel.hold({.m = ~0u}));
  // It never is n where it begins there.
  EXPECT_FALSE(kernel.hold({.n = 64, .m = 64}));
  EXPECT_FALSE(kernel.hold({.n = 63, .m = 64}));
}

TEST(AccessBoundsTest, ARegisterThatNothingKeepsBetweenNumbersHasNoBound) {
  const std::string compare = "setp.ne.s32 %p4, %r10, %r1;\n@%p4 bra END;\n";
  const std::string end = "setp.ge.s32 %p2, %r10, %r2;";
  const std::vector<std::pair<std::string, std::string>> kernels = {
      // Up by two it steps over n, and what is not set back is n once.
      {"add.s32 %r10, %r10, 2;\n" + compare + "mov.u32 %r10, %r1;\n", end},
      {"add.s32 %r10, %r10, 1;\nbra END;\n", end},
      {kUp, "setp.ne.s32 %p2, %r20, 7;"},
      // It changes behind the comparison by a number that nobody knows, or in two steps.
      {kUp, end + "\nadd.s32 %r10, %r10, %r20;"},
      {kUp, end + "\nadd.s32 %r10, %r10, -1;\nadd.s32 %r10, %r10, 0;"},
      {kUp, "add.s32 %r21, %r10, -4;\nadd.s32 %r10, %r10, 8;\n" + end + "\nmov.u32 %r10, %r21;"},
      {kUp, end + "\nmov.u32 %r10, %r20;"}};
  for (const auto& [up, turn] : kernels)
    EXPECT_EQ(bounded_search(up, turn).verdict.counts.checks, 1u) << up << turn;
}

TEST(AccessBoundsTest, ARegisterMayChangeByASumBehindTheComparison) {
  for (const std::string_view by_copy : {"", "copy"}) {
    const std::string change = by_copy.empty()
                                   ? "setp.gt.s32 %p2, %r10, %r2;\nadd.s32 %r10, %r10, -4;"
                                   : "add.s32 %r21, %r10, -4;\nsetp.gt.s32 %p2, %r10, %r2;\n"
                                     "mov.u32 %r10, %r21;";
    const Bounded kernel = bounded_search(kUp, change);
    // Above m it goes down by four.
    EXPECT_TRUE(kernel.hold({.m = 64, .p = kLow - 4 * 61})) << by_copy;
    EXPECT_FALSE(kernel.hold({.m = 64, .p = kLow - 4 * 62})) << by_copy;
  }
}

TEST(AccessBoundsTest, WhatARegisterBeganWithIsNotWhatItIsInLaterTurns) {
  // It begins as a thread's index below 16. Later it is what is loaded, or twice that less the
  // index.
  const std::string body = "mov.u32 %r10, %r5;\nLOOP:\n" + element("%r10") +
                           "ld.global.u32 %r20, [%rd2];\nand.b32 %r21, %r20, 15;\n"
                           "setp.eq.s32 %p3, %r20, 0;\n@%p3 bra OTHER;\nmov.u32 %r10, %r21;\n"
                           "bra END;\nOTHER:\nadd.s32 %r22, %r10, %r10;\nsub.s32 %r10, %r22, %r5;\n"
                           "END:\nsetp.ne.s32 %p2, %r20, 7;\n@%p2 bra LOOP;\n";
  EXPECT_GT(Bounded(body).verdict.counts.checks, 0u);
}

/// How many checks a kernel's bounded copy keeps.
std::uint32_t checks(const std::string& body) {
  return Bounded(body).verdict.counts.checks;
}

TEST(AccessBoundsTest, ABackEdgeToTheFunctionsBeginningIsNoConditionThere) {
  // The function's first block has one branch that leads to it, and its beginning.
  const std::string text =
      ".version 8.7\n.target sm_90\n.address_size 64\n"
      ".visible .entry kernel(.param .u64 p)\n{\n"
      ".reg .pred %p<9>;\n.reg .b32 %r<30>;\n.reg .b64 %rd<30>;\nSTART:\n"
      "ld.param.u64 %rd1, [p];\ncvta.to.global.u64 %rd2, %rd1;\nld.global.u32 %r21, [%rd2];\n"
      "mul.wide.s32 %rd10, %r21, 4;\nadd.s64 %rd11, %rd2, %rd10;\nst.global.u32 [%rd11], %r21;\n"
      "setp.lt.u32 %p1, %r21, 10;\n@%p1 bra START;\nret;\n}\n";
  EXPECT_GT(bounded_kernel(text, nullptr).verdict.counts.checks, 0u);
}

TEST(AccessBoundsTest, TurnsAreNotCountedByAnotherSignsNumber) {
  // %r10 goes from m down to -50, %r11 up by what is loaded. Below 0 %r10 is large without a sign.
  const HostLaunch launch(Launch{.n = 100, .m = 10});
  const std::string body =
      "mov.u32 %r10, %r2;\nmov.u32 %r11, 0;\nLOOP:\nld.global.u32 %r20, [%rd2];\n"
      "setp.eq.s32 %p3, %r20, 0;\n@%p3 bra SKIP;\nadd.s32 %r11, %r11, 1;\nSKIP:\n"
      "setp.ge.u32 %p5, %r10, %r1;\n@!%p5 bra TAIL;\n" +
      element("%r11") +
      "TAIL:\nadd.s32 %r10, %r10, -1;\nsetp.ge.s32 %p2, %r10, -50;\n@%p2 bra LOOP;\n";
  const Bounded kernel(body, &launch.values);
  const std::uint64_t last = kLow + kBytes - 4 * 61;
  EXPECT_FALSE(kernel.verdict.counts.checks == 0 && kernel.hold({.n = 100, .m = 10, .p = last}));
  EXPECT_TRUE(kernel.hold({.n = 100, .m = 10}));
}

TEST(AccessBoundsTest, AnyConstantButZeroIsATruePredicate) {
  // The store by a loaded address is carried out, as ptxas takes 2 for true.
  const HostLaunch launch{Launch()};
  for (const std::string made :
       {"mov.pred %p1, 2;\n", "mov.pred %p1, 1;\n", "mov.pred %p1, 4294967296;\n",
        "setp.eq.s32 %p2, 0, 0;\nand.pred %p1, %p2, 2;\n"}) {
    const std::string body =
        "mov.u32 %r20, sh;\nst.shared.u32 [%r20], %r1;\n"
        "ld.global.u64 %rd20, [%rd2];\n" +
        made + "@!%p1 bra OUT;\n";
    for (const std::string store : {"st.u32 [%rd20], 77;\n", "st.shared.u32 [%r20+4000], 77;\n"})
      EXPECT_GT(Bounded(body + store, &launch.values).verdict.counts.checks, 0u) << made << store;
  }
}

TEST(AccessBoundsTest, ARestIsOneOfTheSameNumbersOnly) {
  const std::string load = "ld.global.u32 %r20, [%rd2];\n", end = element("%r23");
  const std::string division = "div.u32 %r21, %r20, 10;\n";
  const std::string product = "mul.lo.u32 %r22, %r21, 10;\n";
  const std::string difference = "sub.u32 %r23, %r20, %r22;\n";
  EXPECT_EQ(checks(load + division + product + difference + end), 0u);
  // What was divided is of the last turn.
  const std::string turn = "setp.ne.s32 %p1, %r20, 0;\n@%p1 bra LOOP;\n";
  EXPECT_EQ(checks("LOOP:\n" + load + division + product + difference + end + turn), 0u);
  EXPECT_GT(checks("LOOP:\n" + division + load + product + difference + end + turn), 0u);
  // The same registers as numbers with a fraction.
  EXPECT_GT(checks(load + "div.rn.f32 %r21, %r20, %r1;\nmul.lo.u32 %r22, %r21, %r1;\n" +
                   difference + end),
            0u);
  EXPECT_GT(
      checks(load + "div.u32 %r21, %r20, %r1;\nmul.rn.f32 %r22, %r21, %r1;\n" + difference + end),
      0u);
}

TEST(AccessBoundsTest, OnlyTheLargerOfIntegersBoundsBoth) {
  const std::string loads = "ld.global.u32 %r20, [%rd2];\nld.global.u32 %r21, [%rd2+4];\n";
  const std::string below = "setp.lt.u32 %p1, %r22, %r1;\n@!%p1 bra OUT;\n" + element("%r20");
  EXPECT_EQ(checks(loads + "max.u32 %r22, %r20, %r21;\n" + below), 0u);
  EXPECT_GT(checks(loads + "max.f32 %r22, %r20, %r21;\n" + below), 0u);
  const std::string between =
      "setp.lt.s32 %p1, %r22, 0;\n@%p1 bra OUT;\nsetp.ge.s32 %p2, %r20, %r1;\n@%p2 bra OUT;\n" +
      element("%r20");
  EXPECT_EQ(checks(loads + "min.s32 %r22, %r20, %r21;\n" + between), 0u);
  // It is at least 0 whatever both are.
  EXPECT_GT(checks(loads + "min.relu.s32 %r22, %r20, %r21;\n" + between), 0u);
}

TEST(AccessBoundsTest, SumsKeepARegisterAMultiple) {
  const std::string access =
      "cvt.s64.s32 %rd10, %r10;\nadd.s64 %rd11, %rd2, %rd10;\nst.global.u32 [%rd11], %r1;\n"
      "ld.global.u32 %r20, [%rd2];\n";
  // Bytes: from 64 on, up by four, down by `down`.
  const auto kernel = [&](int down) {
    return Bounded("mov.u32 %r10, 64;\nLOOP:\n" + access +
                   "setp.eq.s32 %p3, %r20, 0;\n@%p3 bra DOWN;\n"
                   "add.s32 %r10, %r10, 4;\nsetp.lt.s32 %p4, %r10, 99;\n@%p4 bra END;\n"
                   "mov.u32 %r10, 96;\nDOWN:\nadd.s32 %r10, %r10, -" +
                   std::to_string(down) + ";\nEND:\nsetp.gt.s32 %p2, %r10, 31;\n@%p2 bra LOOP;\n");
  };
  EXPECT_EQ(kernel(4).verdict.counts.checks, 0u);
  EXPECT_TRUE(kernel(4).hold({}));
  EXPECT_FALSE(kernel(4).hold({.p = kLow - 4}));
  EXPECT_GT(kernel(2).verdict.counts.checks, 0u);
  // From a thread's index on, by bits of what is loaded.
  const auto checks = [&](int mask) {
    return Bounded("shl.b32 %r10, %r5, 2;\nLOOP:\n" + access + "and.b32 %r10, %r20, " +
                   std::to_string(mask) + ";\nsetp.ne.s32 %p2, %r20, 7;\n@%p2 bra LOOP;\n")
        .verdict.counts.checks;
  };
  EXPECT_EQ(checks(28), 0u);
  EXPECT_GT(checks(30), 0u);
}

TEST(AccessBoundsTest, APointerThatLeadsToTheExtentHasALimitForItsIndices) {
  // An index from memory: its check counts on the pointer, which the launch bounds.
  const std::string body = "ld.global.u32 %r10, [%rd2];\n" + element("%r10");
  const Bounded kernel(body);
  EXPECT_EQ(kernel.verdict.counts.bounded, 1u);
  EXPECT_EQ(kernel.verdict.counts.indexed, 1u);
  EXPECT_TRUE(kernel.hold({}));
  EXPECT_FALSE(kernel.hold({.p = kLow - 4096}));
  EXPECT_FALSE(kernel.hold({.p = kLow + 2}));
  EXPECT_FALSE(kernel.hold({.p = kLow + kBytes - 4})) << "the limit would be below 0";
}

TEST(AccessBoundsTest, WhatIsReadBehindTheChangeIsLarger) {
  const Bounded kernel(
      kGuard + loop("add.s32 %r10, %r10, 1;\n" + element("%r10"), "setp.lt.s32 %p2, %r10, %r1;"));
  EXPECT_EQ(kernel.verdict.counts.bounded, 1u);
  EXPECT_TRUE(kernel.hold({.n = kBytes / 4 - 1}));
  EXPECT_FALSE(kernel.hold({.n = kBytes / 4}));
}

TEST(AccessBoundsTest, WhatIsReadBehindTheLoopIsOneChangeFurther) {
  const Bounded kernel(kGuard + loop("", "add.s32 %r10, %r10, %r2;\nsetp.lt.s32 %p2, %r10, %r1;") +
                       "\n" + element("%r10"));
  EXPECT_EQ(kernel.verdict.counts.bounded, 1u);
  EXPECT_TRUE(kernel.hold({.n = kBytes / 4 - 64, .m = 64}));
  EXPECT_FALSE(kernel.hold({.n = kBytes / 4 - 63, .m = 64}));
}

TEST(AccessBoundsTest, TheFirstTurnComesThoughNoOtherCan) {
  // %tid.y is 0, and nothing without a sign is below it.
  const Bounded kernel(
      "mov.u32 %r10, 51;\nmov.b64 %rd12, %rd2;\nLOOP:\nst.global.u32 [%rd12], %r1;\n" +
      element("%r10") +
      "add.s64 %rd12, %rd12, -8;\nadd.s32 %r10, %r10, 2;\nsetp.lt.u32 %p2, %r10, %r6;\n"
      "@%p2 bra LOOP;");
  EXPECT_EQ(kernel.verdict.counts.bounded, 2u);
  EXPECT_TRUE(kernel.hold({.p = kLow + kBytes - 4 * 52}));
  EXPECT_FALSE(kernel.hold({.p = kLow + kBytes - 4 * 51}));
  EXPECT_FALSE(kernel.hold({.p = kLow - 4}));
}

TEST(AccessBoundsTest, WhatIsComparedMayBeTheCounterPlusANumber) {
  // The loop's end compares the lower half of what the counter was, less 4, as nvcc does.
  const auto kernel = [](std::string_view compared) {
    return Bounded(kGuard + "cvt.s64.s32 %rd12, %r7;\nadd.s64 %rd12, %rd12, 5;\nLOOP:\n" +
                   "add.s64 %rd13, %rd12, -5;\nshl.b64 %rd14, %rd13, 2;\n"
                   "add.s64 %rd15, %rd2, %rd14;\nst.global.u32 [%rd15], %r1;\n" +
                   std::string(compared) +
                   "cvt.u32.u64 %r10, %rd16;\nadd.s64 %rd12, %rd12, 1;\n"
                   "setp.lt.s32 %p2, %r10, %r1;\n@%p2 bra LOOP;");
  };
  const Bounded before = kernel("add.s64 %rd16, %rd12, -4;\n");
  EXPECT_EQ(before.verdict.counts.bounded, 1u);
  EXPECT_TRUE(before.hold({.n = kBytes / 4, .grid = 2000}));
  EXPECT_FALSE(before.hold({.n = kBytes / 4 + 1, .grid = 2000}));
  EXPECT_FALSE(before.hold({.n = 0x7fffffff, .grid = 1}));
  // One turn more.
  const Bounded later = kernel("add.s64 %rd16, %rd12, -5;\n");
  EXPECT_TRUE(later.hold({.n = kBytes / 4 - 1, .grid = 2000}));
  EXPECT_FALSE(later.hold({.n = kBytes / 4, .grid = 2000}));
}

TEST(AccessBoundsTest, TheLowerHalfOfASmallNumberIsTheNumber) {
  const std::string access =
      "add.s64 %rd13, %rd12, 5;\ncvt.u32.u64 %r10, %rd13;\nsetp.lt.s32 %p1, %r10, 0;\n"
      "setp.ge.s32 %p2, %r10, %r1;\nor.pred %p3, %p1, %p2;\n@%p3 bra OUT;\n"
      "shl.b64 %rd14, %rd13, 2;\nadd.s64 %rd15, %rd2, %rd14;\nst.global.u32 [%rd15], %r1;";
  const Bounded small("cvt.s64.s32 %rd12, %r7;\n" + access);
  EXPECT_EQ(small.verdict.counts.bounded, 1u);
  EXPECT_TRUE(small.hold({.n = kBytes / 4, .grid = 5000}));
  EXPECT_FALSE(small.hold({.n = kBytes / 4 + 1, .grid = 5000}));
  // 2^32 further the lower half is the same.
  const Bounded large("mul.wide.s32 %rd12, %r7, 0x10000000;\n" + access);
  EXPECT_EQ(large.verdict.counts.bounded, 0u);
}

TEST(AccessBoundsTest, WhatIsChangedBehindItsComparisonIsNoLongerWhatWasCompared) {
  const std::string kernel =
      "mov.u32 %r10, %r7;\nsetp.ge.u32 %p1, %r10, %r1;\n@%p1 bra OUT;\n"
      "add.s32 %r10, %r10, 300000;\n" +
      element("%r10");
  EXPECT_FALSE(Bounded(kernel).hold({.n = 1000})) << "beyond the extent, not where no thread comes";
}

TEST(AccessBoundsTest, WhatIsComparedBeforeACounterIsSetSaysNothingOfIt) {
  const Bounded bounded(
      "mov.u32 %r10, %r2;\nsetp.gt.s32 %p1, %r10, 9;\n@%p1 bra OUT;\nmov.u32 %r10, "
      "%r1;\nLOOP:\n" +
      element("%r10") + "add.s32 %r10, %r10, 1;\nsetp.lt.s32 %p2, %r10, 1000;\n@%p2 bra LOOP;");
  EXPECT_EQ(bounded.verdict.counts.bounded, 1u);
  EXPECT_TRUE(bounded.hold({.n = 500, .m = 5}));
  EXPECT_FALSE(bounded.hold({.n = kBytes / 4, .m = 5}));
}

TEST(AccessBoundsTest, TheFirstTurnCountsWhereNoThreadComesToTheGrowth) {
  const Bounded bounded("mov.u32 %r10, %r1;\nmov.u32 %r11, 0;\nLOOP:\n" + element("%r10") +
                        "setp.ge.s32 %p1, %r5, 0;\n@%p1 bra OUT;\nadd.s32 %r10, %r10, %r5;\n"
                        "add.s32 %r11, %r11, 1;\nsetp.lt.u32 %p2, %r11, %r2;\n@%p2 bra LOOP;");
  EXPECT_EQ(bounded.verdict.counts.bounded, 1u);
  EXPECT_TRUE(bounded.hold({.n = kBytes / 4 - 1}));
  EXPECT_FALSE(bounded.hold({.n = kBytes / 4}));
}

TEST(AccessBoundsTest, ARegisterThatMayNotHaveBeenWrittenIs0Then) {
  const std::string narrow = "setp.lt.s32 %p1, %r5, 3;\n";
  const auto expect_up_to_5 = [](const std::string& text) {
    const Bounded kernel(text);
    EXPECT_EQ(kernel.verdict.counts.bounded, 1u);
    EXPECT_TRUE(kernel.hold({.p = kLow + kBytes - 24}));
    EXPECT_FALSE(kernel.hold({.p = kLow + kBytes - 20}));
    EXPECT_FALSE(kernel.hold({.p = kLow - 4})) << "where it is 0";
  };
  expect_up_to_5(narrow + "@%p1 mov.u32 %r10, 5;\n" + element("%r10"));
  expect_up_to_5(narrow + "@%p1 bra NEXT;\nmov.u32 %r10, 5;\nNEXT:\n" + element("%r10") +
                 "mov.u32 %r10, 6;\n");
}

TEST(AccessBoundsTest, WhatAnEarlierTurnHasLeftDoesNotKeepToTheConditionsOfThisOne) {
  const auto in_loop = [](const std::string& text) {
    return Bounded(
               "mov.u32 %r10, 0;\nmov.u32 %r12, 0;\nLOOP:\nld.global.u32 %r11, [%rd2];\n"
               "setp.lt.u32 %p2, %r11, 100;\nsetp.gt.s32 %p3, %r12, 0;\n" +
               text +
               "NEXT:\nadd.s32 %r12, %r12, 1;\nsetp.lt.s32 %p5, %r12, %r2;\n@%p5 bra LOOP;\n")
        .verdict.counts.bounded;
  };
  // The number of the first turn, where that of a later one is small.
  EXPECT_EQ(
      in_loop("@%p3 bra SKIP;\nmov.u32 %r10, %r11;\nSKIP:\n@!%p2 bra NEXT;\n" + element("%r10")),
      1u)
      << "the load";
  // The number of a later turn, where that of the first one was small.
  EXPECT_EQ(in_loop("@%p3 bra SKIP;\nand.pred %p4, %p2, %p2;\nSKIP:\n@!%p4 bra NEXT;\n" +
                    element("%r11")),
            1u)
      << "the load";
}

/// A loop of m turns. In each, threads below n add twice to an index, in two registers in turn.
struct Marching {
  std::string first = "mov.u32 %r10, %r7;\n";
  std::string half = "";  // behind the first sum
  std::string end = "";   // of a turn

  Bounded kernel() const {
    return Bounded("setp.ge.s32 %p1, %r7, %r1;\n" + first +
                   "mov.u32 %r12, 0;\nLOOP:\nmov.u32 %r11, %r10;\n@%p1 bra HALF;\n"
                   "add.s32 %r11, %r10, %r1;\nHALF:\n" +
                   half + "mov.u32 %r10, %r11;\n@%p1 bra END;\nadd.s32 %r10, %r11, %r1;\n" +
                   element("%r11") + "END:\n" + end +
                   "add.s32 %r12, %r12, 1;\nsetp.lt.s32 %p2, %r12, %r2;\n@%p2 bra LOOP;\n");
  }
};

TEST(AccessBoundsTest, WhatALoopAddsOnSomeOfItsWaysIsBounded) {
  // The last access is to element n - 1 + (2 m - 1) n.
  const Bounded kernel = Marching().kernel();
  EXPECT_EQ(kernel.verdict.counts.bounded, 1u);
  EXPECT_TRUE(kernel.hold({.n = 1000, .m = 64, .p = kLow + kBytes - 4 * 128'000}));
  EXPECT_FALSE(kernel.hold({.n = 1000, .m = 64, .p = kLow + kBytes - 4 * 127'999}));
  EXPECT_TRUE(kernel.hold({.n = 1000, .m = 1, .p = kLow + kBytes - 4 * 2000}));
  EXPECT_FALSE(kernel.hold({.n = 1000, .m = 1, .p = kLow + kBytes - 4 * 1999}));
}

TEST(AccessBoundsTest, AnythingElseInSuchALoopIsABeginning) {
  const Bounded again =
      Marching{.end = "setp.eq.s32 %p3, %r12, 3;\n@%p3 mov.u32 %r10, 5000;\n"}.kernel();
  EXPECT_EQ(again.verdict.counts.bounded, 1u);
  EXPECT_FALSE(again.hold({.n = 1000, .m = 64, .p = kLow + kBytes - 4 * 128'000}));
  EXPECT_TRUE(again.hold({.n = 1000, .m = 64, .p = kLow + kBytes - 4 * 132'001}));
  const Bounded loaded = Marching{.end = "@%p2 ld.global.u32 %r10, [%rd2];\n"}.kernel();
  EXPECT_EQ(loaded.verdict.counts.bounded, 1u) << "the load itself";
}

TEST(AccessBoundsTest, SumsThatATurnMayRepeatAreNotBounded) {
  const std::string inner =
      "INNER:\nadd.s32 %r10, %r10, 1;\nadd.s32 %r13, %r13, 1;\n"
      "setp.lt.s32 %p3, %r13, %r1;\n@%p3 bra INNER;\n";
  EXPECT_EQ((Marching{.end = inner}.kernel().verdict.counts.bounded), 0u);
  EXPECT_EQ((Marching{.end = "@%p1 bra LOOP;\n"}.kernel().verdict.counts.bounded), 0u)
      << "a turn without the counter";
  EXPECT_EQ((Marching{.half = "add.s32 %r11, %r11, %r12;\n"}.kernel().verdict.counts.bounded), 0u)
      << "of two that change it may be either";
  EXPECT_EQ((Marching{.first = "mov.u32 %r10, %r7;\nOUTER:\n",
                      .end = "setp.eq.s32 %p3, %r12, 7;\n@%p3 bra OUTER;\n"}
                 .kernel()
                 .verdict.counts.bounded),
            0u)
      << "an outer loop that does not begin anew";
}

TEST(AccessBoundsTest, APredicateThatIsElseFalseSaysWhatItsOneWriteSays) {
  const auto kernel = [](const std::string& other, const std::string& more = "") {
    return Bounded(
        "setp.lt.s32 %p1, %r5, 3;\n@%p1 bra OTHER;\nsetp.lt.s32 %p2, %r7, %r1;\n"
        "setp.gt.s32 %p3, %r7, -1;\nand.pred %p4, %p2, %p3;\nbra.uni BOTH;\nOTHER:\n" +
        other + "BOTH:\n" + more + "@!%p4 bra OUT;\n" + element("%r7"));
  };
  for (const char* const other : {"mov.pred %p4, 0;\n", ""}) {
    const Bounded kept = kernel(other);
    EXPECT_EQ(kept.verdict.counts.bounded, 1u);
    EXPECT_TRUE(kept.hold({.n = 1000, .grid = 1u << 24, .block = 256}));
  }
  const Bounded unknown = kernel("setp.eq.s32 %p4, %r6, 7;\n");
  EXPECT_FALSE(unknown.hold({.n = 1000, .grid = 1u << 24, .block = 256}));
  const Bounded turned = kernel("mov.pred %p4, -1;\n");
  EXPECT_FALSE(turned.hold({.n = 1000, .grid = 1u << 24, .block = 256}));
}

TEST(AccessBoundsTest, ACounterMayBeComparedWhereItIsUsed) {
  // A pointer and an index that grow together: the index is compared at the access.
  const auto kernel = [](std::string_view begin, std::string_view inside, std::string_view growth) {
    return Bounded(std::string("mov.u32 %r10, %r5;\nmul.wide.s32 %rd10, %r5, 4;\n"
                               "add.s64 %rd12, %rd2, %rd10;\nmov.u32 %r11, 0;\n")
                       .append(begin)
                       .append("LOOP:\nsetp.ge.s32 %p1, %r10, %r1;\n@%p1 bra NEXT;\n")
                       .append(inside)
                       .append("st.global.u32 [%rd12], %r1;\nNEXT:\nadd.s64 %rd12, %rd12, 128;\n"
                               "add.s32 %r10, %r10, ")
                       .append(growth)
                       .append(";\nadd.s32 %r11, %r11, 1;\nsetp.lt.u32 %p2, %r11, %r2;\n"
                               "@%p2 bra LOOP;"));
  };
  const Bounded good = kernel("", "", "32");
  EXPECT_EQ(good.verdict.counts.bounded, 1u);
  EXPECT_TRUE(good.hold({.n = kBytes / 4, .m = 1 << 20}));
  EXPECT_FALSE(good.hold({.n = kBytes / 4 + 1, .m = 1 << 20}));
  EXPECT_FALSE(good.hold({.n = 1000, .m = 1 << 27})) << "the index begins again below 0";
  // Only by the turns, if the pointer grows by no whole times of what the index grows by.
  EXPECT_FALSE(kernel("", "", "48").hold({.n = 1000, .m = 1 << 14}));
  EXPECT_TRUE(kernel("", "", "48").hold({.n = 1000, .m = 1 << 12}));
  // Set again between the comparison and the access.
  const Bounded moved = kernel("", "ld.global.u32 %r10, [%rd2];\n", "32");
  EXPECT_FALSE(moved.hold({.n = 1000, .m = 1 << 14}));
}

TEST(AccessBoundsTest, OnlyWhatComesToARegisterCounts) {
  // Afterwards the register has something else.
  const Bounded kernel("and.b32 %r10, %r5, 255;\n" + element("%r10") +
                       "@%p1 bra NEXT;\nld.global.u32 %r10, [%rd2];\nNEXT:\n" + element("%r10"));
  EXPECT_EQ(kernel.verdict.counts.bounded, 2u);
  EXPECT_EQ(kernel.verdict.counts.accesses, 3u);
  EXPECT_TRUE(kernel.hold({.p = kLow + kBytes - 1024}));
}

TEST(AccessBoundsTest, ARegisterOf32BitsIsShiftedAwayInAsManyTurns) {
  const std::string body = "mov.u32 %r10, 0;\nmov.u32 %r11, %r1;\nLOOP:\n" + element("%r10") +
                           "add.s32 %r10, %r10, 1;\nshr.{} %r11, %r11, 3;\n"
                           "setp.ne.s32 %p2, %r11, 0;\n@%p2 bra LOOP;";
  const auto with = [&](std::string_view type) {
    std::string text = body;
    return Bounded(text.replace(text.find("{}"), 2, type));
  };
  const Bounded kernel = with("u32");
  EXPECT_EQ(kernel.verdict.counts.bounded, 1u);
  EXPECT_TRUE(kernel.hold({.p = kLow + kBytes - 4 * 11}));
  EXPECT_FALSE(kernel.hold({.p = kLow + kBytes - 4 * 10}));
  // A negative number never becomes 0.
  EXPECT_EQ(with("s32").verdict.counts.bounded, 0u);
}

TEST(AccessBoundsTest, WhatNoThreadComesToNeedsNoBound) {
  const Bounded kernel("setp.lt.s32 %p1, %r4, %r1;\n@%p1 bra OUT;\n" + element("%r7"));
  EXPECT_TRUE(kernel.hold({.n = 1000, .p = 0x1000 + kLow, .grid = 1 << 20, .block = 256}));
  EXPECT_FALSE(kernel.hold({.n = 256, .grid = 1 << 20, .block = 256}));
}

TEST(AccessBoundsTest, WhatTwoNumbersShareCancelsOut) {
  // a + 4 (x - y) with y = x - 3: without x it is one address.
  const Bounded kernel("add.s32 %r10, %r7, -3;\nsub.s32 %r11, %r7, %r10;\n" + element("%r11"));
  EXPECT_TRUE(kernel.hold({.p = kLow + kBytes - 16}));
  EXPECT_FALSE(kernel.hold({.p = kLow + kBytes - 12}));
  EXPECT_TRUE(kernel.hold({.p = kLow - 12}));
}

TEST(AccessBoundsTest, NumbersOfTwoTurnsShareNothing) {
  // %r11 is what %r10 was in the turn before: the difference is anything from -255 to 255.
  const Bounded kernel(
      "mov.u32 %r11, 0;\nmov.u32 %r12, 0;\nLOOP:\nld.global.u32 %r9, [%rd2+1024];\n"
      "and.b32 %r10, %r9, 255;\nsub.s32 %r13, %r10, %r11;\nadd.s32 %r13, %r13, 255;\n" +
      element("%r13") +
      "mov.u32 %r11, %r10;\nadd.s32 %r12, %r12, 1;\nsetp.lt.u32 %p2, %r12, %r2;\n"
      "@%p2 bra LOOP;");
  EXPECT_EQ(kernel.verdict.counts.bounded, 2u);
  EXPECT_TRUE(kernel.hold({.p = kLow}));
  EXPECT_FALSE(kernel.hold({.p = kLow - 4}));
  EXPECT_TRUE(kernel.hold({.p = kLow + kBytes - 4 * 511}));
  EXPECT_FALSE(kernel.hold({.p = kLow + kBytes - 4 * 510}));
}

TEST(AccessBoundsTest, ALaunchShowsThatRowsAreAligned) {
  const Bounded kernel(
      "mul.lo.s32 %r10, %r3, %r1;\nmul.wide.s32 %rd10, %r10, 4;\nadd.s64 %rd11, %rd2, %rd10;\n"
      "st.global.v4.u32 [%rd11], {%r1, %r1, %r1, %r1};");
  EXPECT_EQ(kernel.verdict.counts.bounded, 1u);
  EXPECT_TRUE(kernel.hold({.n = 64}));
  EXPECT_FALSE(kernel.hold({.n = 66}));
  EXPECT_FALSE(kernel.hold({.n = 64, .p = kLow + 8}));
}

TEST(AccessBoundsTest, OnlyBitsOfAMaskAreLeft) {
  const Bounded kernel("and.b32 %r10, %r5, 96;\n" + element("%r10"));
  EXPECT_TRUE(kernel.hold({.p = kLow + kBytes - 4 * 97, .block = 128}));
  EXPECT_FALSE(kernel.hold({.p = kLow + kBytes - 4 * 96, .block = 128}));
  EXPECT_TRUE(kernel.hold({.p = kLow + kBytes - 4 * 65, .block = 96}));
  EXPECT_FALSE(kernel.hold({.p = kLow + kBytes - 4 * 64, .block = 96}));
}

TEST(AccessBoundsTest, AGivenLaunchDecidesWhichAccessesHaveAClaim) {
  const std::byte parameters[16] = {};
  const LaunchValues launch{.parameters = parameters, .low = 0, .bytes = 4096};
  EXPECT_EQ(Bounded(element("%r7") + element("%r1"), &launch).verdict.counts.bounded, 2u);
  const LaunchValues beyond{
      .parameters = parameters, .grid = {64, 1, 1}, .block = {256, 1, 1}, .low = 0, .bytes = 4096};
  EXPECT_EQ(Bounded(element("%r7") + element("%r1"), &beyond).verdict.counts.bounded, 1u);
}

TEST(AccessBoundsTest, ACounterThatIsComparedForBeingDifferentMustMeetItsEnd) {
  const Bounded kernel("mov.u32 %r10, 0;\nLOOP:\n" + element("%r10") +
                       "add.s32 %r10, %r10, 4;\nsetp.ne.s32 %p2, %r10, %r1;\n@%p2 bra LOOP;");
  EXPECT_EQ(kernel.verdict.counts.bounded, 1u);
  EXPECT_TRUE(kernel.hold({.n = 1000}));
  EXPECT_FALSE(kernel.hold({.n = 1001}));
  EXPECT_FALSE(kernel.hold({.n = 0}));
}

TEST(AccessBoundsTest, TheSumOfACounterAndAnotherRegisterMayBeCompared) {
  const auto kernel = [](const std::string& apart, const std::string& in_loop = "") {
    return Bounded("and.b32 %r13, %r1, 3;\n" + apart + "mov.u32 %r10, 0;\nLOOP:\n" +
                   element("%r10") + in_loop +
                   "add.s32 %r10, %r10, 4;\nadd.s32 %r12, %r11, %r10;\n"
                   "setp.ne.s32 %p2, %r12, 0;\n@%p2 bra LOOP;");
  };
  const Bounded rest = kernel("sub.s32 %r11, %r13, %r1;\n");
  EXPECT_EQ(rest.verdict.counts.bounded, 1u);
  EXPECT_TRUE(rest.hold({.n = 1000}));
  EXPECT_TRUE(rest.hold({.n = 1003}));
  EXPECT_TRUE(rest.hold({.n = 1003, .p = kLow + kBytes - 4 * 997}));
  EXPECT_FALSE(rest.hold({.n = 1003, .p = kLow + kBytes - 4 * 996}));
  EXPECT_FALSE(rest.hold({.n = 3})) << "it wraps";
  const Bounded all = kernel("neg.s32 %r11, %r1;\n");
  EXPECT_TRUE(all.hold({.n = 1000}));
  EXPECT_FALSE(all.hold({.n = 1001})) << "it does not meet its end";
  EXPECT_EQ(kernel("sub.s32 %r11, %r5, %r1;\n").verdict.counts.bounded, 0u)
      << "another end for each thread";
  EXPECT_EQ(kernel("neg.s32 %r11, %r1;\n", "add.s32 %r11, %r11, 1;\n").verdict.counts.bounded, 0u)
      << "another end for each turn";
}

TEST(AccessBoundsTest, ACounterThatFallsIsBoundedByItsBeginning) {
  const Bounded kernel("mov.u32 %r10, %r1;\nLOOP:\n" + element("%r10") +
                       "add.s32 %r10, %r10, -1;\nsetp.gt.s32 %p2, %r10, 0;\n@%p2 bra LOOP;");
  EXPECT_EQ(kernel.verdict.counts.bounded, 1u);
  EXPECT_TRUE(kernel.hold({.n = kBytes / 4 - 1}));
  EXPECT_FALSE(kernel.hold({.n = kBytes / 4}));
  EXPECT_FALSE(kernel.hold({.n = 0x80000000}));
}

TEST(AccessBoundsTest, APointerThatMovesWithACounterIsBounded) {
  const std::string_view kBody =
      "mov.u32 %r10, 0;\nmov.b64 %rd12, %rd2;\n{0}LOOP:\nst.global.u32 [%rd12], %r1;\n"
      "add.s64 %rd12, %rd12, 8;\nadd.s32 %r10, %r10, 2;\nsetp.lt.s32 %p2, %r10, %r1;\n"
      "@%p2 bra LOOP;\n{1}";
  const auto with = [&](std::string_view before, std::string_view behind) {
    std::string text(kBody);
    text.replace(text.find("{0}"), 3, before);
    return text.replace(text.find("{1}"), 3, behind);
  };
  const Bounded kernel(with("", ""));
  EXPECT_EQ(kernel.verdict.counts.bounded, 1u);
  EXPECT_TRUE(kernel.hold({.n = kBytes / 4}));
  EXPECT_FALSE(kernel.hold({.n = kBytes / 4 + 3}));
  // A loop around it begins the counter anew, but not the pointer.
  const Bounded outer(
      "mov.b64 %rd12, %rd2;\nmov.u32 %r12, 0;\nAGAIN:\nmov.u32 %r10, 0;\nLOOP:\n"
      "st.global.u32 [%rd12], %r1;\nadd.s64 %rd12, %rd12, 8;\nadd.s32 %r10, %r10, 2;\n"
      "setp.lt.s32 %p2, %r10, %r1;\n@%p2 bra LOOP;\nadd.u32 %r12, %r12, 1;\n"
      "setp.lt.u32 %p3, %r12, 9;\n@%p3 bra AGAIN;");
  EXPECT_EQ(outer.verdict.counts.bounded, 0u);
}

TEST(AccessBoundsTest, AnElementOfASharedVariableIsBoundedByTheBlock) {
  const Bounded kernel(
      "mov.u32 %r10, sh;\nmad.lo.s32 %r11, %r6, 32, %r5;\nshl.b32 %r12, %r11, 2;\n"
      "add.s32 %r13, %r10, %r12;\nst.shared.u32 [%r13], %r1;\nld.shared.u32 %r14, [%r13+4];");
  EXPECT_EQ(kernel.verdict.counts.bounded, 2u);
  EXPECT_TRUE(kernel.hold({.block = 32, .rows = 7}));
  EXPECT_FALSE(kernel.hold({.block = 32, .rows = 8}));  // the element behind the last
  EXPECT_FALSE(kernel.hold({.block = 512}));
}

TEST(AccessBoundsTest, BitsAndDivisionsBoundAnIndex) {
  const std::string load = "ld.global.u32 %r10, [%rd2];\n";
  for (const std::string_view made :
       {"and.b32 %r11, %r10, 255;\n", "rem.u32 %r11, %r10, 256;\n", "shr.u32 %r11, %r10, 24;\n",
        "min.u32 %r11, %r10, 255;\n", "cvt.u16.u32 %h1, %r10;\ncvt.u32.u8 %r11, %h1;\n"}) {
    const Bounded kernel(load + std::string(made) + element("%r11", "mul.wide.u32"));
    EXPECT_EQ(kernel.verdict.counts.bounded, 2u) << made;
    EXPECT_TRUE(kernel.hold({.p = kLow + kBytes - 1024})) << made;
    EXPECT_FALSE(kernel.hold({.p = kLow + kBytes - 1020})) << made;
  }
  EXPECT_EQ(Bounded(load + "rem.s32 %r11, %r10, 256;\n" + element("%r11")).hold({.p = kLow + 1016}),
            false);
}

TEST(AccessBoundsTest, WhatADivisionLeavesIsBelowItsDivisor) {
  const std::string load = "ld.global.u32 %r10, [%rd2];\n";
  const auto bounded = [&](std::string_view text) {
    return Bounded(load + std::string(text) + element("%r13")).verdict.counts.bounded;
  };
  const Bounded kernel(load +
                       "div.u32 %r11, %r10, %r1;\nmul.lo.u32 %r12, %r11, %r1;\n"
                       "sub.s32 %r13, %r10, %r12;\n" +
                       element("%r13"));
  EXPECT_EQ(kernel.verdict.counts.bounded, 2u);
  EXPECT_TRUE(kernel.hold({.n = kBytes / 4}));
  EXPECT_FALSE(kernel.hold({.n = kBytes / 4 + 1}));
  EXPECT_FALSE(kernel.hold({.n = 0})) << "what a division by 0 gives is not defined";
  // The factors the other way around; a number; a dividend that has a sign, but is not negative.
  EXPECT_EQ(bounded("div.u32 %r11, %r10, %r1;\nmul.lo.u32 %r12, %r1, %r11;\n"
                    "sub.u32 %r13, %r10, %r12;\n"),
            2u);
  EXPECT_EQ(bounded("div.u32 %r11, %r10, 100;\nmul.lo.s32 %r12, %r11, 100;\n"
                    "sub.s32 %r13, %r10, %r12;\n"),
            2u);
  EXPECT_EQ(bounded("and.b32 %r14, %r10, 0xfffff;\ndiv.s32 %r11, %r14, %r1;\n"
                    "mul.lo.s32 %r12, %r11, %r1;\nsub.s32 %r13, %r14, %r12;\n"),
            2u);
  // One that may be negative leaves what may be.
  const Bounded with_sign(load +
                          "div.s32 %r11, %r10, %r1;\nmul.lo.s32 %r12, %r11, %r1;\n"
                          "sub.s32 %r13, %r10, %r12;\n" +
                          element("%r13"));
  EXPECT_FALSE(with_sign.hold({.n = 100}));
  EXPECT_FALSE(with_sign.hold({.n = 100, .p = kLow + 392}));
  EXPECT_TRUE(with_sign.hold({.n = 100, .p = kLow + 396}));
  for (const std::string_view other :
       {"div.u32 %r11, %r7, %r1;\nmul.lo.u32 %r12, %r11, %r1;\nsub.s32 %r13, %r10, %r12;\n",
        "div.u32 %r11, %r10, %r1;\nmul.lo.u32 %r12, %r11, %r2;\nsub.s32 %r13, %r10, %r12;\n",
        "div.u32 %r11, %r10, 100;\nmul.lo.u32 %r12, %r11, 99;\nsub.s32 %r13, %r10, %r12;\n",
        "div.u32 %r11, %r10, %r1;\nmul.hi.u32 %r12, %r11, %r1;\nsub.s32 %r13, %r10, %r12;\n",
        "div.u32 %r11, %r10, %r1;\nmul.lo.u32 %r12, %r11, %r1;\nsub.s32 %r13, %r12, %r10;\n",
        "div.u32 %r11, %r10, %r1;\nadd.u32 %r10, %r10, 1;\nmul.lo.u32 %r12, %r11, %r1;\n"
        "sub.s32 %r13, %r10, %r12;\n",
        "div.u32 %r11, %r10, %r1;\nadd.u32 %r11, %r11, 1;\nmul.lo.u32 %r12, %r11, %r1;\n"
        "sub.s32 %r13, %r10, %r12;\n"}) {
    EXPECT_EQ(bounded(other), 1u) << other;
  }
}

TEST(AccessBoundsTest, ALaunchOfFewThreadsChecksMoreInOnePlace) {
  std::string body = "ld.global.u64 %rd10, [%rd2];\n";
  for (int i = 11; i < 25; ++i)
    body += fmt::format("add.s64 %rd{0}, %rd{1}, %rd10;\nst.global.u32 [%rd{0}], %r1;\n", i, i - 1);
  const auto branches = [&](std::uint32_t grid) {
    std::byte parameters[16]{};
    const LaunchValues launch{.parameters = parameters,
                              .grid = {grid, 1, 1},
                              .block = {256, 1, 1},
                              .low = kLow,
                              .bytes = kBytes};
    return Bounded(body, &launch).verdict.counts.branches;
  };
  EXPECT_EQ(branches(129), branches(1u << 31));
  EXPECT_LT(branches(128), branches(129));
}

TEST(AccessBoundsTest, ANarrowResultFillsAWiderRegister) {
  // From 256 on, the byte begins at 0 again.
  const Bounded kernel("add.u32 %r10, %r5, 256;\ncvt.u8.u32 %r11, %r10;\n" +
                       element("%r11", "mul.wide.u32"));
  EXPECT_TRUE(kernel.hold({.p = kLow, .block = 16}));
  EXPECT_FALSE(kernel.hold({.p = kLow - 1024, .block = 16}));
}

TEST(AccessBoundsTest, ANegativeResultThatIsCutOffIsNotFollowed) {
  EXPECT_EQ(Bounded("sub.s32 %r10, %r5, 2000;\nmax.relu.s32 %r11, %r10, -1000;\n" + element("%r11"))
                .verdict.counts.bounded,
            0u);
}

TEST(AccessBoundsTest, SignsAreReadOffBitsPutTogether) {
  // x >= 0 and y >= 0, as compilers write it.
  const Bounded kernel(
      "ld.global.u32 %r10, [%rd2];\nld.global.u32 %r11, [%rd2+4];\nor.b32 %r12, %r10, %r11;\n"
      "setp.lt.s32 %p1, %r12, 0;\nsetp.ge.s32 %p2, %r10, %r1;\nor.pred %p3, %p1, %p2;\n"
      "@%p3 bra OUT;\n" +
      element("%r10"));
  EXPECT_EQ(kernel.verdict.counts.bounded, 3u);
  EXPECT_TRUE(kernel.hold({}));
}

TEST(AccessBoundsTest, StepsThatNameLaterOnesHoldNothing) {
  AccessBounds bounds{.steps = {{}, {.op = BoundOp::kAdd, .a = 2}, {}}, .claims = {}};
  EXPECT_FALSE(hold(bounds, {}));
  bounds = {.steps = {{}}, .claims = {{.step = 1, .bytes = 4}}};
  EXPECT_FALSE(hold(bounds, {}));
  bounds = {.steps = {{}}, .claims = {{.step = 0, .bytes = 4}}};
  EXPECT_FALSE(hold(bounds, {.bytes = ~std::uint64_t{0}}));
}

}  // namespace
}  // namespace slate::injector
