// Kernels that do nothing wrong, but nearly: the fence must let them run, on sim. A check that has
// moved too far would end them.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "device/device.h"
#include "tests/unit/forms/form_runner.h"

namespace slate::test {
namespace {

constexpr std::uint32_t kInnocentThreads = 64;

struct Innocent {
  std::string name;
  std::string body;
};

void PrintTo(const Innocent& innocent, std::ostream* out) {
  *out << innocent.name;
}

constexpr std::string_view kKernel = R"(.version 8.7
.target sm_90
.address_size 64
.const .align 4 .b32 table[4] = {{1, 2, 3, 4}};
.global .align 4 .b32 counter;
.visible .entry innocent(.param .u64 p_good, .param .u64 p_bad, .param .u64 p_last)
{{
	.reg .pred %p<8>;
	.reg .b32 %r<40>, %t;
	.reg .b64 %rd<20>, %good, %bad, %last;
	.shared .align 16 .b8 sh[256];
	.local .align 8 .b8 loc[64];
	ld.param.u64 %good, [p_good];
	ld.param.u64 %bad, [p_bad];
	ld.param.u64 %last, [p_last];
	mov.u32 %t, %tid.x;
	mov.u32 %r1, 1;
	mov.u32 %r2, 0;
	setp.eq.u64 %p1, %bad, 0;
	{}
	ret;
}}
)";

constexpr std::string_view kDiscards =
    "@%p1 discard.global.L2 [%bad], 128;\ndiscard.global.L2 [%good], 128;";

std::vector<Innocent> innocents() {
  return {
      {"GuardedAccessThatDoesNotHappen", "@%p1 st.global.u32 [%bad], %r1;"},
      {"GuardedBesideOneThatHappens",
       "ld.global.u32 %r3, [%good];\n@%p1 ld.global.u32 %r2, [%bad];\nst.global.u32 [%good], %r1;"},
      {"BranchThatIsNotTaken", "@!%p1 bra OUT;\nst.global.u32 [%bad], %r1;\nOUT:"},
      {"LoopThatDoesNotRun",
       "setp.eq.u32 %p2, %r2, 0;\n@%p2 bra OUT;\nLOOP:\nst.global.u32 [%bad], %r1;\n"
       "sub.u32 %r2, %r2, 1;\nsetp.ne.u32 %p3, %r2, 0;\n@%p3 bra LOOP;\nOUT:"},
      {"AccessInALoopThatDoesNotHappen",
       "mov.u32 %r3, 0;\nLOOP:\nld.global.u32 %r4, [%good];\n@!%p1 bra NEXT;\n"
       "st.global.u32 [%bad], %r1;\nNEXT:\nadd.u32 %r3, %r3, 1;\nsetp.lt.u32 %p3, %r3, 5;\n"
       "@%p3 bra LOOP;"},
      {"LoopThatEndsBeforeItWalksOut",
       "mov.u64 %rd1, %last;\nmov.u32 %r3, 0;\nLOOP:\nld.global.u32 %r4, [%rd1];\n"
       "add.u64 %rd1, %rd1, 4;\nadd.u32 %r3, %r3, 1;\nsetp.lt.u32 %p3, %r3, 4;\n@%p3 bra LOOP;"},
      {"LastBytes",
       "st.global.v4.u32 [%last], {%r1, %r1, %r1, %r1};\nld.global.u8 %r3, [%last+15];\n"
       "ld.global.u32 %r4, [%last+-4000];\nld.u64 %rd1, [%last+8];"},
      {"AFarOffsetThatComesBack", "add.u64 %rd1, %good, 80000;\nld.global.u32 %r3, [%rd1+-80000];"},
      {"MisalignedBaseOfAlignedAccesses",
       "add.u64 %rd1, %good, 3;\nld.global.u32 %r3, [%rd1+1];\nld.global.u8 %r4, [%rd1];"},
      {"OddParameterThatIsReadByBytes", "add.u64 %rd1, %bad, 1;\nld.global.u8 %r3, [%good+1];"},
      {"VariableByPointer",
       "mov.u64 %rd1, counter;\nselp.b64 %rd2, %good, %rd1, %p1;\nld.global.u32 %r3, [%rd2];\n"
       "atom.global.add.u32 %r4, [counter], 1;"},
      {"ConstantByPointer",
       "mov.u64 %rd1, table;\nmul.wide.u32 %rd2, %r1, 4;\nadd.u64 %rd3, %rd1, %rd2;\n"
       "ld.const.u32 %r3, [%rd3];\ncvta.const.u64 %rd4, %rd3;\nld.u32 %r4, [%rd4+8];"},
      {"GenericSharedAndLocal",
       "mov.u32 %r3, sh;\nmad.lo.u32 %r3, %t, 4, %r3;\ncvt.u64.u32 %rd1, %r3;\n"
       "cvta.shared.u64 %rd1, %rd1;\nst.u32 [%rd1], %t;\nmov.u64 %rd2, loc;\n"
       "cvta.local.u64 %rd3, %rd2;\nmul.wide.u32 %rd4, %r1, 8;\nadd.u64 %rd5, %rd3, %rd4;\n"
       "st.u64 [%rd5], %rd1;\nld.u64 %rd6, [%rd5];\nadd.u64 %rd7, %rd2, %rd4;\n"
       "ld.local.u32 %r4, [%rd7+52];"},
      {"ParameterByGenericAddress",
       "mov.b64 %rd1, p_good;\ncvta.param.u64 %rd1, %rd1;\nmul.wide.u32 %rd2, %r1, 8;\n"
       "add.u64 %rd1, %rd1, %rd2;\nld.u64 %rd3, [%rd1];"},
      {"HintBeyondTheEnd", "prefetch.global.L2 [%last+4096];\nprefetch.global.L1 [%bad];"},
      {"Discard", std::string(kDiscards)},
      {"CopyOfNothing",
       "mov.u32 %r3, sh;\ncp.async.cg.shared.global [%r3], [%bad], 16, %r2;\ncp.async.wait_all;"},
      {"CopyOfTheLastBytes",
       "mov.u32 %r3, sh;\nmov.u32 %r4, 8;\nadd.u64 %rd1, %last, 0;\n"
       "cp.async.cg.shared.global [%r3], [%rd1], 16, %r4;\ncp.async.wait_all;"},
      {"MatrixRowsOfOtherLanes",
       "mov.u32 %r3, %laneid;\nsetp.lt.u32 %p2, %r3, 8;\nmov.u32 %r4, sh;\n"
       "mad.lo.u32 %r4, %r3, 16, %r4;\nselp.b32 %r4, %r4, 0, %p2;\n"
       "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r5}, [%r4];"},
      {"TrapThatDoesNotHappen", "@%p1 trap;\n@%p1 brkpt;"},
      {"BarrierByRegister", "mov.u32 %r3, 15;\nmov.u32 %r4, 64;\nbarrier.sync %r3, %r4;"},
      {"JumpToTheLast",
       "TABLE: .branchtargets FIRST, SECOND;\nbrx.idx %r1, TABLE;\nFIRST:\ntrap;\nSECOND:"},
      {"BarrierInABranch",
       "setp.lt.u32 %p2, %t, 32;\n@%p2 bra OTHER;\nbar.sync 0;\nbra OUT;\nOTHER:\nbar.sync "
       "0;\nOUT:"},
  };
}

class FenceInnocentTest : public testing::TestWithParam<Innocent> {};

TEST_P(FenceInnocentTest, RunsToItsEnd) {
  auto device = device::open_device("sim:sms=2,memory=256M,seed=3,max_kernel_seconds=30");
  ASSERT_TRUE(device);
  FormRunner runner(**device, fmt::format(kKernel, GetParam().body), 0, true);
  for (const injector::FenceVerdict& entry : runner.fenced().entries)
    ASSERT_EQ(entry.why_not, "") << entry.name;
  const auto extent = runner.main_extent();
  const KernelCase kernel{.name = GetParam().name,
                          .entry = "innocent",
                          .grid = {6, 1, 1},
                          .block = {kInnocentThreads, 1, 1},
                          .arguments = {Argument::buffer(std::vector<std::uint32_t>(1024)),
                                        Argument::value(runner.beyond_extent().base + 64),
                                        Argument::value(extent.base + extent.bytes - 16)}};
  std::mt19937_64 random(7);
  const auto check = [&](std::string_view form) {
    const injector::FenceRecord record = runner.take_record();
    EXPECT_EQ(record.state, injector::FenceRecord::kFree)
        << form << ": kind " << record.kind << ", line " << record.line << ", address " << std::hex
        << record.address;
  };
  runner.run_native(kernel);
  check("native");
  if (!runner.forms("innocent").slice.empty()) runner.run_slices(kernel, random);
  check("slice");
  if (!runner.forms("innocent").profile.empty()) runner.run_profile(kernel);
  check("profile");
  if (!runner.forms("innocent").worker.empty()) runner.run_worker(kernel, random, {});
  check("worker");
}

/// What would be read then may be what memory had before it was cleared for the session.
TEST(FenceHintTest, NothingIsDiscarded) {
  const auto device = device::open_device("sim:sms=2,memory=256M");
  ASSERT_TRUE(device);
  FormRunner runner(**device, fmt::format(kKernel, kDiscards), 0, true);
  EXPECT_FALSE(runner.fenced().ptx.contains("discard"));
}

INSTANTIATE_TEST_SUITE_P(All, FenceInnocentTest, testing::ValuesIn(innocents()),
                         [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace slate::test
