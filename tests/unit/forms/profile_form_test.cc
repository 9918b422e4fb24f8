// What the profile form counts: exactly, for kernels whose work is known, on sim. That its results
// are the kernel's own is sim_forms_test.cc's business.
#include <gtest/gtest.h>

#include <algorithm>

#include "device/device.h"
#include "tests/unit/forms/kernel_cases.h"

namespace slate::test {
namespace {

using injector::Work;

constexpr std::uint32_t kThreads = 64;  // of a block
constexpr std::uint32_t kBlocks = 6;

/// An entry `k` with (buffer, count) as %buffer and %count, %i its thread's number in the grid and
/// %at that thread's word of the buffer.
std::string kernel_text(const std::string& body, const std::string& before = "") {
  return ".version 8.0\n.target sm_90\n.address_size 64\n" + before + R"(
.visible .entry k(.param .u64 buffer, .param .u32 count)
{
	.reg .pred %p, %q;
	.reg .b32 %i, %count, %r, %t, %n;
	.reg .f32 %x, %y;
	.reg .b64 %buffer, %at, %offset;
	ld.param.u64 %buffer, [buffer];
	ld.param.u32 %count, [count];
	cvta.to.global.u64 %buffer, %buffer;
	mov.u32 %t, %tid.x;
	mov.u32 %r, %ctaid.x;
	mov.u32 %n, %ntid.x;
	mad.lo.u32 %i, %r, %n, %t;
	mul.wide.u32 %offset, %i, 4;
	add.u64 %at, %buffer, %offset;
	mov.f32 %x, 0f3F800000;
)" + body +
         "\n\tret;\n}\n";
}

class ProfileFormTest : public testing::Test {
 protected:
  void SetUp() override {
    auto opened = device::open_device("sim:sms=2,memory=256M");
    ASSERT_TRUE(opened) << opened.error().message;
    device_ = std::move(*opened);
  }

  Work measure(const std::string& ptx, const KernelCase& kernel,
               std::uint32_t sample = 0xffffffff) {
    FormRunner runner(*device_, ptx, 0);
    EXPECT_EQ(runner.forms(kernel.entry).analysis.profile.why_not, "");
    std::optional<Work> work;
    EXPECT_EQ(difference(runner.run_profile(kernel, &work, sample), runner.run_native(kernel)), "");
    EXPECT_TRUE(work) << "no block was counted";
    return work.value_or(Work{});
  }

  Work measure_text(const std::string& ptx, std::uint32_t blocks = kBlocks,
                    std::uint32_t sample = 0xffffffff) {
    const std::vector<std::uint32_t> words(blocks * kThreads, 7);
    KernelCase kernel{.name = "k",
                      .entry = "k",
                      .grid = {blocks, 1, 1},
                      .block = {kThreads, 1, 1},
                      .shared_bytes = 0,
                      .arguments = {Argument::buffer(words), Argument::value(blocks * kThreads)}};
    return measure(ptx, kernel, sample);
  }

  Work measure_program(const std::string& name) {
    const auto kernels = program_kernels();
    const auto found = std::ranges::find(kernels, name, &TestKernel::file);
    return measure(ptx_of(*found), found->kernel);
  }

  std::unique_ptr<device::Device> device_;
};

constexpr double kAll = kBlocks * kThreads;

TEST_F(ProfileFormTest, AddingVectorsIsOneOperationAndTwelveBytesAnElement) {
  const Work work = measure_program("vector_add");
  EXPECT_EQ(work.flops, 12700);
  EXPECT_EQ(work.bytes, 12.0 * 12700);
  EXPECT_GT(work.instructions, 10.0 * 12700);
}

TEST_F(ProfileFormTest, MultiplyingMatricesIsTwoOperationsAnElementOfTheProduct) {
  const double n = 96, tiles = 3;
  const Work work = measure_program("sgemm");
  EXPECT_EQ(work.flops, 2 * n * n * n);
  EXPECT_EQ(work.bytes, n * n * 4 * (2 * tiles + 1));
}

TEST_F(ProfileFormTest, BothSidesOfADivergentBranchCountTheirOwnThreads) {
  const Work work = measure_text(kernel_text(R"(
	setp.lt.u32 %p, %t, 10;
	@%p bra few;
	add.f32 %x, %x, %x;
	bra meet;
few:
	fma.rn.f32 %x, %x, %x, %x;
	ld.global.f32 %y, [%at];
meet:
	st.global.f32 [%at], %x;)"));
  EXPECT_EQ(work.flops, kBlocks * (54 * 1 + 10 * 2));
  EXPECT_EQ(work.bytes, kBlocks * (64 * 4 + 10 * 4));
}

TEST_F(ProfileFormTest, PredicatedWorkCountsWhereThePredicateHolds) {
  const Work work = measure_text(kernel_text(R"(
	setp.lt.u32 %p, %t, 10;
	@%p st.global.f32 [%at], %x;
	@!%p mul.f32 %x, %x, %x;
	@%p add.f32 %x, %x, %x;
	setp.lt.u32 %p, %t, 3;
	@%p add.f32 %x, %x, %x;
	@%p st.global.v2.u8 [%at], {3, 4};)"));
  EXPECT_EQ(work.flops, kBlocks * (54 + 10 + 3));
  EXPECT_EQ(work.bytes, kBlocks * (10 * 4 + 3 * 2));
}

TEST_F(ProfileFormTest, LoopsCountEveryRound) {
  const Work work = measure_text(kernel_text(R"(
	and.b32 %n, %t, 7;
again:
	fma.rn.f32 %x, %x, %x, %x;
	setp.eq.u32 %p, %n, 0;
	@%p bra over;
	sub.u32 %n, %n, 1;
	bra again;
over:
	st.global.f32 [%at], %x;)"));
  EXPECT_EQ(work.flops, 2 * kAll * 4.5);  // 1 to 8 rounds
  EXPECT_EQ(work.bytes, 4 * kAll);
  EXPECT_EQ(work.instructions, kAll * (11 + 4.5 * 3 + 3.5 * 2 + 2));
}

TEST_F(ProfileFormTest, ThreadsThatLeaveEarlyDoNothingMore) {
  const Work work = measure_text(kernel_text(R"(
	setp.ge.u32 %p, %i, 100;
	@%p exit;
	add.f32 %x, %x, %x;
	st.global.f32 [%at], %x;)"));
  EXPECT_EQ(work.flops, 100);
  EXPECT_EQ(work.bytes, 400);
}

TEST_F(ProfileFormTest, AKernelThatComesBackToItsStartCountsItsThreadsOnce) {
  const std::string text = R"(.version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 buffer, .param .u32 count)
{
	.reg .pred %p;
	.reg .f32 %x;
	.reg .b32 %n;
start:
	add.f32 %x, %x, %x;
	add.u32 %n, %n, 1;
	setp.lt.u32 %p, %n, 5;
	@%p bra start;
	ret;
}
)";
  EXPECT_EQ(measure_text(text).flops, 5 * kAll);
}

TEST_F(ProfileFormTest, GenericAccessesCountWhereTheyAreOfGlobalMemory) {
  const Work work = measure_text(kernel_text(R"(
	.shared .align 4 .b8 mine[256];
	.reg .b64 %here, %there;
	cvta.global.u64 %there, %at;
	mov.u64 %here, mine;
	cvta.shared.u64 %here, %here;
	mul.wide.u32 %offset, %t, 4;
	add.u64 %here, %here, %offset;
	st.f32 [%here], %x;
	ld.f32 %y, [%there];
	setp.lt.u32 %p, %t, 10;
	@!%p st.f32 [%there], %y;)"));
  EXPECT_EQ(work.bytes, kBlocks * (64 + 54) * 4);
}

TEST_F(ProfileFormTest, FunctionsCountForTheirCallers) {
  const std::string function = R"(
.func (.param .f32 out) twice(.param .f32 in)
{
	.reg .f32 %x;
	ld.param.f32 %x, [in];
	fma.rn.f32 %x, %x, %x, %x;
	st.param.f32 [out], %x;
	ret;
}
)";
  const Work work = measure_text(kernel_text(R"(
	setp.ge.u32 %p, %t, 20;
	@%p bra done;
	{
	.param .f32 given;
	.param .f32 back;
	st.param.f32 [given], %x;
	call.uni (back), twice, (given);
	ld.param.f32 %x, [back];
	}
done:
	st.global.f32 [%at], %x;)",
                                             function));
  EXPECT_EQ(work.flops, kBlocks * 20 * 2);
  EXPECT_EQ(work.bytes, kAll * 4);
}

TEST_F(ProfileFormTest, ASampleStandsForTheWholeGrid) {
  const std::string text = kernel_text("\tadd.f32 %x, %x, %x;\n\tst.global.f32 [%at], %x;");
  constexpr std::uint32_t kMany = 2000;
  const Work work = measure_text(text, kMany, injector::profile_sample(kMany));
  EXPECT_NEAR(work.flops, kMany * kThreads, 1e-6 * kMany * kThreads);
  EXPECT_NEAR(work.bytes, 4.0 * kMany * kThreads, 1e-6 * kMany * kThreads);
}

TEST_F(ProfileFormTest, ASampleIsSpreadOverTheGrid) {
  // Of rows of 64 blocks only the first of each row works.
  const std::string text = kernel_text(R"(
	and.b32 %n, %r, 63;
	setp.ne.u32 %p, %n, 0;
	@%p ret;
	add.f32 %x, %x, %x;
	st.global.f32 [%at], %x;)");
  constexpr std::uint32_t kMany = 4096;
  const Work work = measure_text(text, kMany, injector::profile_sample(kMany));
  EXPECT_NEAR(work.flops, 64 * kThreads, 0.5 * 64 * kThreads);
}

}  // namespace
}  // namespace slate::test
