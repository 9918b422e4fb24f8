// Whether a launch may be run again from its beginning, by its own pointers. One rule a test.
#include "injector/analysis/restart.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <string>

#include "injector/analysis/analysis.h"

namespace slate::injector {
namespace {

constexpr std::uint64_t kSize = 0x1000;
constexpr std::uint64_t kFirst = 0x7f0000000000;  // allocations 1 and 2, which touch, and 3
constexpr std::uint64_t kSecond = kFirst + kSize;
constexpr std::uint64_t kThird = kFirst + 4 * kSize;

Reach restart_reach_of(const std::string& body) {
  const auto module = ptx::parse(
      ".version 8.8\n.target sm_90\n.address_size 64\n"
      ".global .u32 v; .const .u32 w[4];\n"
      ".entry k(.param .u64 a, .param .u64 b, .param .u64 n,\n"
      " .param .align 8 .b8 s[24])\n{\n"
      ".reg .b32 %r<9>; .reg .b64 %a, %b, %n, %d<9>;\n"
      "ld.param.u64 %a, [a]; ld.param.u64 %b, [b];\n"
      "ld.param.u64 %n, [n];\n" +
      body + "\nret;\n}\n");
  EXPECT_TRUE(module) << module.error().message;
  return analyse(**module).entries.back().reach;
}

MemoryMap memory() {
  const auto allocation_at = [](std::uint64_t address) -> std::optional<AllocationId> {
    if (address >= kFirst && address < kFirst + kSize) return 1;
    if (address >= kSecond && address < kSecond + kSize) return 2;
    if (address >= kThird && address < kThird + kSize) return 3;
    return std::nullopt;
  };
  const auto image = [](std::uint64_t handle) -> std::optional<AllocationId> {
    return handle == 77 ? std::optional<AllocationId>(3) : std::nullopt;
  };
  return {allocation_at, image};
}

using Words = std::vector<std::uint64_t>;

std::vector<std::byte> bytes_of(const Words& words) {
  std::vector<std::byte> bytes(words.size() * 8);
  std::memcpy(bytes.data(), words.data(), bytes.size());
  return bytes;
}

std::string reason(const std::string& body, const Words& words) {
  return may_restart(restart_reach_of(body), bytes_of(words), memory()).why_not;
}

const std::string kCopy = "ld.global.u32 %r1, [%a];\nst.global.u32 [%b], %r1;";
const std::string kMix = "add.s64 %d1, %a, %n;\n";
constexpr std::uint64_t kInSecond = kSecond + 16;

TEST(RestartTest, WhatReadsOneAllocationAndWritesAnotherMayRunAgain) {
  EXPECT_EQ(reason(kCopy, {kFirst, kInSecond, 0}), "");
}

TEST(RestartTest, WhatReadsTheAllocationThatItWritesMayNot) {
  EXPECT_EQ(reason(kCopy, {kFirst, kFirst + 256, 0}),
            "line 11: reads parameter 0, which may be what it writes (line 12): parameter 1");
  EXPECT_EQ(reason("ld.global.u32 %r1, [%a];\nst.global.u32 [%a], %r1;", {kFirst, 0, 0}),
            "line 11: reads parameter 0, which it writes (line 12)");
}

TEST(RestartTest, APointerWhereOneAllocationEndsMayLeadIntoIt) {
  EXPECT_NE(reason(kCopy, {kFirst, kSecond, 0}), "");
  EXPECT_NE(reason(kCopy, {kFirst + kSize, kFirst, 0}), "");
  EXPECT_EQ(reason(kCopy, {kInSecond + 16, kThird + kSize, 0}), "");
}

TEST(RestartTest, APointerToNoAllocationMayLeadAnywhere) {
  EXPECT_NE(reason(kCopy, {kFirst, kThird + 2 * kSize, 0}), "");
  EXPECT_EQ(reason("st.global.u32 [%b], 1;", {0, kThird + 2 * kSize, 0}), "") << "it reads nothing";
  EXPECT_NE(reason(kCopy, {kFirst}), "") << "a parameter is missing";
}

TEST(RestartTest, NullLeadsNowhere) {
  EXPECT_EQ(reason(kCopy + "st.global.u32 [%a], 1;", {0, kFirst, 0}), "");
}

TEST(RestartTest, ANumberAddedToAPointerDoesNotMatter) {
  EXPECT_EQ(reason(kMix + "ld.global.u32 %r1, [%d1]; st.global.u32 [%b], 1;", {kFirst, kThird, 99}),
            "");
  EXPECT_NE(reason(kMix + "ld.global.u32 %r1, [%d1]; st.global.u32 [%b], 1;",
                   {kFirst, kThird, kInSecond}),
            "")
      << "the number is a pointer";
}

TEST(RestartTest, TheDifferenceOfPointersIntoOneAllocationIsANumber) {
  const std::string body =
      "sub.s64 %d1, %n, %a; add.s64 %d2, %d1, %a;\n"
      "ld.global.u32 %r1, [%d2]; st.global.u32 [%b], 1;";
  EXPECT_EQ(reason(body, {kFirst, kThird, kFirst + 64}), "");
  EXPECT_NE(reason(body, {kFirst, kThird, kThird + 64}), "");
}

TEST(RestartTest, OneOfTheNumbersOfASumMustBeAPointer) {
  EXPECT_NE(reason(kMix + "ld.global.u32 %r1, [%d1]; st.global.u32 [%b], 1;", {5, kThird, 6}), "");
}

TEST(RestartTest, APointerFromMemoryMayBeToWhatIsWritten) {
  const std::string load = "ld.global.u64 %d1, [%a];\n";
  EXPECT_EQ(reason(load + "ld.global.u32 %r1, [%d1];\nst.global.u32 [%b], 1;", {kFirst, kThird, 0}),
            "line 12: reads memory by a pointer that is not known, which may be what it writes "
            "(line 13): parameter 1");
  EXPECT_NE(reason(load + "st.global.u32 [%d1], 1;", {kFirst, kThird, 0}), "");
  EXPECT_EQ(reason(load + "ld.global.u32 %r1, [%d1];", {kFirst, kThird, 0}), "")
      << "it writes nothing";
}

TEST(RestartTest, AtomicsAndOrderedAccessesMayNot) {
  EXPECT_EQ(reason("red.global.add.u32 [%a], 1;", {kFirst, 0, 0}),
            "line 11: an atomic operation on parameter 0");
  EXPECT_NE(reason("st.release.sys.global.u32 [%a], 1;", {kFirst, 0, 0}), "");
  EXPECT_NE(reason("ld.volatile.global.u32 %r1, [%a];", {kFirst, 0, 0}), "");
}

TEST(RestartTest, VariablesThatAreReadAndWrittenMayNot) {
  EXPECT_NE(reason("ld.global.u32 %r1, [v]; st.global.u32 [v], 1;", {0, 0, 0}), "");
  EXPECT_EQ(reason("ld.global.u32 %r1, [v]; st.global.u32 [%b], 1;", {0, kFirst, 0}), "");
}

TEST(RestartTest, ConstantsAreNeverWhatIsWritten) {
  EXPECT_EQ(reason("ld.const.u32 %r1, [w]; st.global.u32 [%b], 1;", {0, 12345678901234, 0}), "");
}

TEST(RestartTest, TexturesAreWhatTheirHandleSays) {
  const std::string body =
      "tex.1d.v4.u32.s32 {%r1, %r2, %r3, %r4}, [%n, {0}]; st.global.u32 [%b], 1;";
  EXPECT_EQ(reason(body, {0, kFirst, 77}), "");
  EXPECT_NE(reason(body, {0, kThird, 77}), "");
  EXPECT_NE(reason(body, {0, kFirst, 78}), "") << "nobody knows this handle";
  MemoryMap without = memory();
  without.allocation_of_image = nullptr;
  EXPECT_FALSE(
      may_restart(restart_reach_of(body), bytes_of({0, kFirst, 77}), without).restartable());
}

TEST(RestartTest, AChosenPointerOfAStructMayBeAnyPointerInIt) {
  const std::string body =
      "mul.wide.u32 %d2, %r1, 8; mov.b64 %d1, s; add.s64 %d3, %d1, %d2;\n"
      "ld.param.u64 %d4, [%d3]; ld.global.u32 %r1, [%d4];\n"
      "st.global.u32 [%b], 1;";
  EXPECT_EQ(reason("mov.u32 %r1, %tid.x;" + body, {0, kFirst, 0, kInSecond, kThird, 12}), "");
  EXPECT_NE(reason("mov.u32 %r1, %tid.x;" + body, {0, kThird, 0, kInSecond, kThird, 12}), "");
  EXPECT_NE(reason("mov.u32 %r1, %tid.x;" + body, {0, kFirst, 0, kInSecond, 1ull << 40, 12}), "");
}

TEST(RestartTest, ReasonsOfTheKernelGoFirst) {
  EXPECT_EQ(may_restart_if_distinct(Reach{}).why_not,
            "what it reaches is not known: its analysis takes too long");
  EXPECT_EQ(reason("griddepcontrol.launch_dependents;", {0, 0, 0}),
            "line 11: lets the launch behind it start before it ends");
  EXPECT_EQ(reason("mov.u64 %d1, %clock64; st.global.u64 [%b], %d1;", {0, kFirst, 0}), "");
  EXPECT_NE(reason("add.u32 %r1, %r2, 1; st.global.u32 [%b], %r1;", {0, kFirst, 0}), "")
      << "reads a register that nothing has written";
}

TEST(RestartTest, DistinctPointersAreAssumedForTheTextAlone) {
  EXPECT_TRUE(may_restart_if_distinct(restart_reach_of(kCopy)).restartable());
  EXPECT_TRUE(may_restart_if_distinct(
                  restart_reach_of(kMix + "ld.global.u32 %r1, [%d1]; ld.global.u32 %r2, [%a];\n"
                                          "st.global.u32 [%b], 1;"))
                  .restartable());
  EXPECT_FALSE(
      may_restart_if_distinct(restart_reach_of(kCopy + "st.global.u32 [%a], 1;")).restartable());
}

TEST(RestartTest, TheReachOfALaunchNamesItsAllocations) {
  const LaunchReach reach = reach_of_launch(restart_reach_of(kCopy + "ld.global.u32 %r1, [v];"),
                                            bytes_of({kFirst, kInSecond, 0}), memory());
  EXPECT_FALSE(reach.everything);
  ASSERT_EQ(reach.allocations.size(), 2u);
  EXPECT_EQ(reach.allocations[0].allocation, 1u);
  EXPECT_TRUE(reach.allocations[0].read && !reach.allocations[0].written);
  EXPECT_EQ(reach.allocations[1].allocation, 2u);
  EXPECT_TRUE(!reach.allocations[1].read && reach.allocations[1].written);
  EXPECT_EQ(reach.variables, std::vector<std::string>{"v"});
  const std::string constant = "ld.const.u64 %d1, [w]; ld.const.u32 %r1, [%d1];";
  EXPECT_FALSE(
      reach_of_launch(restart_reach_of(constant), bytes_of({0, 0, 0}), memory()).everything)
      << "constants are in their own memory, wherever they are";
  EXPECT_TRUE(reach_of_launch(restart_reach_of("ld.global.u64 %d1, [%a]; st.global.u32 [%d1], 1;"),
                              bytes_of({kFirst, 0, 0}), memory())
                  .everything);
}

TEST(RestartTest, AVariableThatHasAnAddressIsAnAllocation) {
  MemoryMap map = memory();
  map.variable_named = [](const std::string& name) {
    return name == "v" ? std::optional<AllocationId>(2) : std::nullopt;
  };
  const auto parameters = bytes_of({kFirst, kInSecond, 0});
  const Reach reads = restart_reach_of("ld.global.u32 %r1, [v]; st.global.u32 [%b], %r1;");
  EXPECT_FALSE(may_restart(reads, parameters, map).restartable()) << "by a pointer to it";
  EXPECT_TRUE(may_restart(reads, parameters, memory()).restartable());
  EXPECT_TRUE(may_restart(reads, bytes_of({kFirst, kFirst, 0}), map).restartable());
  const LaunchReach reach = reach_of_launch(reads, parameters, map);
  EXPECT_TRUE(reach.variables.empty());
  ASSERT_EQ(reach.allocations.size(), 1u);
  EXPECT_TRUE(reach.allocations[0].read && reach.allocations[0].written);
}

/// Whatever may write there: a writer that is forgotten is lost where memory is swapped.
TEST(RestartTest, TheReachOfALaunchNamesWhatEachKindOfInstructionWrites) {
  const auto reach_of = [](const std::string& body) {
    return reach_of_launch(restart_reach_of(body), bytes_of({kFirst, kThird, 0}), memory());
  };
  for (const char* const body : {
           "st.global.u32 [%b], 1;",
           "st.u32 [%b+64], 1;",
           "st.global.v4.u32 [%b], {%r1, %r1, %r1, %r1};",
           "st.volatile.global.u32 [%b], 1;",
           "st.release.sys.global.u32 [%b], 1;",
           "atom.global.add.u32 %r1, [%b], 1;",
           "atom.global.cas.b32 %r1, [%b], 0, 1;",
           "red.global.add.u32 [%b], 1;",
           "red.async.relaxed.gpu.global.add.u32 [%b], 1;",
           "multimem.st.global.u32 [%b], 1;",
           "multimem.red.global.add.u32 [%b], 1;",
           "cp.async.bulk.global.shared::cta.bulk_group [%b], [%r1], 16;",
           "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%b], [%r1], 16;",
           "wmma.store.d.sync.aligned.row.m16n16k16.global.f32 [%b], "
           "{%r1, %r1, %r1, %r1, %r1, %r1, %r1, %r1};",
           "discard.global.L2 [%b], 128;",
       }) {
    const LaunchReach reach = reach_of(body);
    const auto place =
        std::ranges::find(reach.allocations, AllocationId{3}, &LaunchReach::Place::allocation);
    ASSERT_NE(place, reach.allocations.end()) << body;
    EXPECT_TRUE(place->written) << body;
    EXPECT_FALSE(reach.writes_everything) << body;
  }
  for (const char* const body : {
           "ld.global.u64 %d1, [%a]; st.global.u32 [%d1], 1;",
           "mov.u64 %d1, 0x7f0000000000; st.global.u32 [%d1], 1;",
           "cp.async.bulk.tensor.1d.global.shared::cta.tile.bulk_group [%b, {%r1}], [%r1];",
           "sust.b.1d.b32.trap [%b, {%r1}], {%r1};",
       }) {
    EXPECT_TRUE(reach_of(body).writes_everything) << body;
  }
}

TEST(RestartTest, ALaunchThatMayReadAnythingNeedNotWriteAnything) {
  const LaunchReach reach =
      reach_of_launch(restart_reach_of("ld.global.u64 %d1, [%a]; ld.global.u32 %r1, [%d1];\n"
                                       "st.global.u32 [%b], %r1;"),
                      bytes_of({kFirst, kThird, 0}), memory());
  EXPECT_TRUE(reach.everything);
  EXPECT_FALSE(reach.writes_everything);
  ASSERT_EQ(reach.allocations.size(), 2u);
  EXPECT_TRUE(reach.allocations[1].written);
}

TEST(RestartTest, AKernelThatLaunchesOthersMayWriteAnything) {
  const auto module = ptx::parse(
      ".version 8.8\n.target sm_90\n.address_size 64\n"
      ".extern .func (.param .b32 r) cudaLaunchDeviceV2(.param .b64 a, .param .b64 b);\n"
      ".entry k()\n{\n.reg .b32 %r<2>; .reg .b64 %d<2>;\n"
      "{\n.param .b64 p0; .param .b64 p1; .param .b32 q;\n"
      "call.uni (q), cudaLaunchDeviceV2, (p0, p1);\n}\nret;\n}\n");
  ASSERT_TRUE(module) << module.error().message;
  const Reach reach = analyse(**module).entries.back().reach;
  EXPECT_NE(reach.line(Effect::kLaunches), 0u);
  const LaunchReach launch = reach_of_launch(reach, {}, memory());
  EXPECT_TRUE(launch.everything && launch.writes_everything);
}

}  // namespace
}  // namespace slate::injector
