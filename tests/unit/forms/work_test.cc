// What single instructions count as, by their text; and how many blocks are sampled.
#include "injector/forms/work.h"

#include <gtest/gtest.h>

#include "injector/forms/inject.h"
#include "injector/forms/launch_parameters.h"
#include "injector/forms/profile.h"

namespace slate::injector {
namespace {

std::unique_ptr<const ptx::Module> module_with(const std::string& body) {
  auto module = ptx::parse(
      ".version 8.6\n.target sm_100a\n.address_size 64\n.visible .entry k()\n{\n"
      "\t.reg .pred %p;\n\t.reg .b16 %h<9>;\n\t.reg .b32 %r<9>;\n\t.reg .f32 %f<99>;\n"
      "\t.reg .b64 %d<9>;\n\t.shared .b8 s[64];\n\t" +
      body + "\n\tret;\n}\n");
  EXPECT_TRUE(module) << body << ": " << module.error().message;
  return std::move(*module);
}

struct Case {
  const char* instruction;
  double flops, bytes;
  AccessSpace space = AccessSpace::kNone;
};

class WorkTest : public testing::TestWithParam<Case> {};

TEST_P(WorkTest, CountsAs) {
  const auto module = module_with(GetParam().instruction);
  const ptx::Function& function = module->functions.front();
  const InstructionWork found = work_of(function, function.instructions.front());
  EXPECT_EQ(found.work.flops, GetParam().flops);
  EXPECT_EQ(found.work.bytes, GetParam().bytes);
  EXPECT_EQ(found.work.instructions, 1);
  EXPECT_EQ(found.space, GetParam().space);
}

const Case kCases[] = {
    {"add.f32 %f1, %f2, %f3;", 1, 0},
    {"fma.rn.f64 %d1, %d2, %d3, %d4;", 2, 0},
    {"mad.f32 %f1, %f2, %f3, %f4;", 2, 0},
    {"fma.rn.f16x2 %r1, %r2, %r3, %r4;", 4, 0},
    {"add.rn.f32x2 %d1, %d2, %d3;", 2, 0},
    {"mul.bf16 %h1, %h2, %h3;", 1, 0},
    {"div.rn.f32 %f1, %f2, %f3;", 1, 0},
    {"ex2.approx.ftz.f32 %f1, %f2;", 1, 0},
    {"rsqrt.approx.f32 %f1, %f2;", 1, 0},
    {"setp.lt.f32 %p, %f1, %f2;", 0, 0},
    {"cvt.rn.f32.u32 %f1, %r1;", 0, 0},
    {"mad.lo.s32 %r1, %r2, %r3, %r4;", 0, 0},
    {"ld.global.f32 %f1, [%d1];", 0, 4, AccessSpace::kGlobal},
    {"ld.global.nc.L1::no_allocate.v4.u32 {%r1, %r2, %r3, %r4}, [%d1+16];", 0, 16,
     AccessSpace::kGlobal},
    {"st.global.v2.b64 [%d1], {%d2, %d3};", 0, 16, AccessSpace::kGlobal},
    {"ld.u8 %h1, [%d1];", 0, 1, AccessSpace::kGeneric},
    {"ld.shared.f32 %f1, [s];", 0, 0},
    {"st.local.f32 [%d1], %f1;", 0, 0},
    {"atom.global.add.f32 %f1, [%d1], %f2;", 1, 4, AccessSpace::kGlobal},
    {"red.global.add.noftz.f16x2 [%d1], %r1;", 2, 4, AccessSpace::kGlobal},
    {"red.global.add.u32 [%d1], 1;", 0, 4, AccessSpace::kGlobal},
    {"atom.shared.add.f32 %f1, [s], %f2;", 1, 0},
    {"cp.async.cg.shared.global [%r1], [%d1], 16;", 0, 16, AccessSpace::kGlobal},
    {"cp.async.commit_group;", 0, 0},
    {"mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f1, %f2, %f3, %f4}, "
     "{%r1, %r2, %r3, %r4}, {%r5, %r6}, {%f5, %f6, %f7, %f8};",
     2.0 * 16 * 8 * 16 / 32, 0},
    {"mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%r1, %r2, %r3, %r4}, "
     "{%r1, %r2, %r3, %r4}, {%r5, %r6}, {%r1, %r2, %r3, %r4};",
     0, 0},
    {"wmma.load.a.sync.aligned.row.m16n16k16.global.f16 {%r1, %r2, %r3, %r4, %r5, %r6, %r7, %r8}, "
     "[%d1], %r1;",
     0, 16 * 16 * 2 / 32.0, AccessSpace::kGlobal},
};
INSTANTIATE_TEST_SUITE_P(Instructions, WorkTest, testing::ValuesIn(kCases));

TEST(ProfileSampleTest, CountsAllOfFewBlocksAndAboutAsManyOfMany) {
  for (const std::uint64_t blocks : {1ull, 64ull, 256ull}) {
    EXPECT_EQ(profile_sample(blocks), 0xffffffff) << blocks;
  }
  for (const std::uint32_t blocks : {257u, 1000u, 4096u, 65536u, 1'000'003u}) {
    const std::uint32_t sample = profile_sample(blocks);
    std::uint32_t counted = 0;
    for (std::uint32_t block = 0; block < blocks; ++block) {
      counted += block * kProfileScatter <= sample;
    }
    EXPECT_GE(counted, 160u) << blocks;
    EXPECT_LE(counted, 230u) << blocks;
  }
}

TEST(ProfileRulesTest, TooManyCountersMeanNoProfileForm) {
  std::string body;
  for (std::uint32_t i = 0; i < kMostCounters; ++i) {
    body += "@%p bra l" + std::to_string(i) + ";\n\tadd.f32 %f1, %f1, %f1;\nl" + std::to_string(i) +
            ":\n\t";
  }
  const auto module = module_with(body);
  const auto injected =
      inject(*module, {.worker = false, .slice = false, .profile = true, .most_registers = {}});
  ASSERT_TRUE(injected) << injected.error().message;
  EXPECT_EQ(injected->kernels[0].profile, "");
  EXPECT_NE(injected->kernels[0].analysis.profile.why_not, "");
  EXPECT_EQ(injected->ptx, module->text);
}

TEST(ProfileRulesTest, OnlyWhatLeavesNoRoomIsRefused) {
  const auto verdict = [](const std::string& body) {
    return analyse(*module_with(body)).entries.front().profile.why_not;
  };
  EXPECT_EQ(verdict("mov.u32 %r1, %clusterid.x;"), "");
  EXPECT_EQ(verdict("mov.u32 %r1, %total_smem_size;"), "");
  EXPECT_NE(verdict("setmaxnreg.dec.sync.aligned.u32 40;"), "");
}

TEST(ProfileRulesTest, CallsThroughPointersAreSaidNotToBeCounted) {
  const auto module = module_with(
      "mov.u32 %r1, 1; mov.u64 %d1, 0;\n\t"
      "proto: .callprototype _ (.param .b32 _);\n\t{ .param .b32 a; st.param.b32 [a], %r1;\n\t"
      "call %d1, (a), proto; }");
  const EntryAnalysis entry = analyse(*module).entries.front();
  EXPECT_TRUE(entry.profile.legal());
  EXPECT_NE(entry.uncounted, "");
}

}  // namespace
}  // namespace slate::injector
