// Which sums an assembler may fuse with products, and which ptxas does. That ptxas agrees is shown
// by float_code_test.cc, which runs it.
#include "injector/analysis/contraction.h"

#include <gtest/gtest.h>

#include <fstream>
#include <memory>
#include <string>

#include "injector/analysis/analysis.h"

namespace slate::injector {
namespace {

constexpr const char* kContractionHeader =
    ".version 8.8\n.target sm_90\n.address_size 64\n.const .align 4 .f32 c[4];\n";

std::unique_ptr<const ptx::Module> fusing_kernel(const std::string& body) {
  auto module = ptx::parse(kContractionHeader +
                           std::string(".visible .entry k(.param .u64 a, .param .f32 n)\n{\n"
                                       ".reg .pred %p<9>; .reg .b32 %r<30>; .reg .b64 %rd<9>;\n"
                                       ".reg .f32 %f<30>; .reg .f64 %d<30>; .reg .b16 %h<9>;\n"
                                       "ld.param.u64 %rd1, [a]; ld.global.f32 %f1, [%rd1];\n"
                                       "ld.global.f32 %f2, [%rd1+4]; ld.global.f32 %f3, [%rd1+8];\n"
                                       "ld.global.b32 %r1, [%rd1+12]; setp.ne.s32 %p1, %r1, 0;\n") +
                           body + "\nret;\n}\n");
  EXPECT_TRUE(module) << module.error().message;
  return std::move(*module);
}

/// "sum+product" by the names of the results, in text order; "?" before those left open.
std::string fused(const std::string& body) {
  const auto module = fusing_kernel(body);
  const ptx::Function& function = module->functions.back();
  const Contraction found = find_contraction(function, ControlFlow(function));
  const auto result = [&](std::uint32_t i) {
    return std::string(function.instructions[i].operands[0].text);
  };
  std::string text;
  for (const Fusion& fusion : found.fusions) {
    text += (text.empty() ? "" : " ") + result(fusion.sum) + (fusion.negated ? "-" : "+") +
            result(fusion.product);
  }
  for (const Fusion& fusion : found.open) text += " ?" + result(fusion.sum);
  return text;
}

std::uint32_t meeting(const std::string& body) {
  const auto module = fusing_kernel(body);
  return find_meeting(module->functions.back()).line;
}

const std::string kProduct = "mul.f32 %f4, %f1, %f2;\n";
const std::string kSum = "add.f32 %f5, %f4, %f3; st.global.f32 [%rd1], %f5;\n";

TEST(ContractionTest, AProductAndItsOnlySumBecomeOne) {
  EXPECT_EQ(fused(kProduct + kSum), "%f5+%f4");
  EXPECT_EQ(fused(kProduct + "sub.f32 %f5, %f3, %f4;"), "%f5+%f4");
  EXPECT_EQ(fused("mul.f64 %d4, %d1, %d2; add.f64 %d5, %d4, %d3;"), "%d5+%d4");
  EXPECT_EQ(fused("mul.f16 %h4, %h1, %h2; add.f16 %h5, %h4, %h3;"), "%h5+%h4");
  EXPECT_EQ(fused(kProduct + "@%p1 add.f32 %f3, %f4, %f3;"), "%f3+%f4");
}

TEST(ContractionTest, WhatNamesItsRoundingIsLeftAlone) {
  EXPECT_EQ(fused("mul.rn.f32 %f4, %f1, %f2;\n" + kSum), "");
  EXPECT_EQ(fused(kProduct + "add.rn.f32 %f5, %f4, %f3;"), "");
  EXPECT_EQ(fused("mul.rz.f32 %f4, %f1, %f2; add.rz.f32 %f5, %f4, %f3;"), "");
}

TEST(ContractionTest, SaturatedProductsAndOtherFlushingsAreLeftAlone) {
  EXPECT_EQ(fused("mul.sat.f32 %f4, %f1, %f2;\n" + kSum), "");
  EXPECT_EQ(fused("mul.ftz.f32 %f4, %f1, %f2;\n" + kSum), "");
  EXPECT_EQ(fused("mul.ftz.f32 %f4, %f1, %f2; add.ftz.f32 %f5, %f4, %f3;"), "%f5+%f4");
  EXPECT_EQ(fused(kProduct + "add.sat.f32 %f5, %f4, %f3;"), "%f5+%f4");
}

TEST(ContractionTest, AProductThatIsNeededElsewhereStays) {
  EXPECT_EQ(fused(kProduct + kSum + "st.global.f32 [%rd1+4], %f4;"), "");
  EXPECT_EQ(fused(kProduct + kSum + "max.f32 %f6, %f4, %f1;"), "");
}

TEST(ContractionTest, AllSumsOfAProductAreFusedOrNone) {
  EXPECT_EQ(fused(kProduct + kSum + "sub.f32 %f6, %f1, %f4;"), "%f5+%f4 %f6+%f4");
  EXPECT_EQ(fused(kProduct + "add.f32 %f5, %f4, %f4;"), "");  // a doubling
}

TEST(ContractionTest, OfTwoProductsOfASumTheFirstOperandIsFused) {
  const std::string both = kProduct + "mul.f32 %f6, %f1, %f3;\n";
  EXPECT_EQ(fused(both + "add.f32 %f5, %f4, %f6;"), "%f5+%f4");
  EXPECT_EQ(fused(both + "add.f32 %f5, %f6, %f4;"), "%f5+%f6");
}

TEST(ContractionTest, ProductsWithOneUseComeBeforeThoseWithSeveral) {
  const std::string both = kProduct + "mul.f32 %f6, %f1, %f3;\nadd.f32 %f5, %f4, %f6;\n";
  EXPECT_EQ(fused(both + "add.f32 %f7, %f4, %f1;"), "%f5+%f6");
  EXPECT_EQ(fused(both + "add.f32 %f7, %f4, %f1; add.f32 %f8, %f6, %f1;"), "%f5+%f4 %f7+%f4");
}

TEST(ContractionTest, CopiesAndNegativesAreSeenThrough) {
  EXPECT_EQ(fused(kProduct + "neg.f32 %f6, %f4; add.f32 %f5, %f6, %f3;"), "%f5-%f4");
  EXPECT_EQ(fused(kProduct + "mov.b32 %r2, %f4; mov.b32 %f6, %r2; add.f32 %f5, %f6, %f3;"),
            "%f5+%f4");
  EXPECT_EQ(fused(kProduct + "abs.f32 %f6, %f4; add.f32 %f5, %f6, %f3;"), "");
}

TEST(ContractionTest, BranchesAndWhatPtxasSplitsAtKeepThemApart) {
  EXPECT_EQ(fused(kProduct + "@%p1 bra L; bar.sync 0; L:\n" + kSum), "");
  EXPECT_EQ(fused(kProduct + "@%p1 bra L;\n" + kSum + "L:"), "");
  for (const char* apart :
       {"membar.gl;", "div.rn.f32 %f7, %f3, %f1;", "sqrt.rn.f32 %f7, %f3;", "@%p1 bar.sync 0;",
        "rem.s32 %r2, %r1, %r1;", "@%p1 st.global.u32 [%rd1+4], %r1;"}) {
    EXPECT_EQ(fused(kProduct + apart + kSum), "") << apart;
  }
}

TEST(ContractionTest, BarriersAndStraightJumpsDoNot) {
  for (const char* between :
       {"bar.sync 0;", "bra L; L:", "L:", "atom.global.add.u32 %r2, [%rd1], 1;",
        "@%p1 add.f32 %f3, %f3, %f2;", "div.full.f32 %f7, %f3, %f1;"}) {
    EXPECT_EQ(fused(kProduct + between + kSum), "%f5+%f4") << between;
  }
}

TEST(ContractionTest, AConstantFactorFusesAcrossBlocks) {
  const std::string apart = "@%p1 bra L;\n" + kSum + "L:";
  EXPECT_EQ(fused("mul.f32 %f4, %f1, 0f40490FDB;\n" + apart), "%f5+%f4");
  EXPECT_EQ(fused("ld.param.f32 %f6, [n]; mul.f32 %f4, %f1, %f6;\n" + apart), "%f5+%f4");
  EXPECT_EQ(fused("ld.const.f32 %f6, [c+4]; mul.f32 %f4, %f6, %f1;\n" + apart), "%f5+%f4");
  EXPECT_EQ(fused("mov.f32 %f6, 0f40490FDB; mul.f32 %f4, %f1, %f6;\n" + apart), "%f5+%f4");
  EXPECT_EQ(fused("ld.param.f32 %f6, [n]; add.f32 %f7, %f6, %f6; mul.f32 %f4, %f1, %f7;\n" + apart),
            "");
  EXPECT_EQ(fused("mul.f32 %f4, %f1, 0f40490FDB; @%p1 bra L; mov.f32 %f4, %f3; L:\n" + kSum), "");
}

TEST(ContractionTest, AValueThatALoopCarriesIsNotOfItsBlock) {
  EXPECT_EQ(fused("mov.f32 %f4, %f1;\nL: add.f32 %f5, %f4, %f3; mul.f32 %f4, %f5, %f2;\n"
                  "@%p1 bra L; st.global.f32 [%rd1], %f5;"),
            "");
  EXPECT_EQ(fused("mov.f32 %f5, %f1;\nL: mul.f32 %f4, %f5, %f2; add.f32 %f5, %f4, %f3;\n"
                  "@%p1 bra L; st.global.f32 [%rd1], %f5;"),
            "%f5+%f4");
}

TEST(ContractionTest, ARegisterThatIsUsedAgainIsFollowedWithinItsBlock) {
  EXPECT_EQ(
      fused(kProduct + "add.f32 %f5, %f4, %f3; mul.f32 %f4, %f5, %f1; add.f32 %f6, %f4, %f2;"),
      "%f5+%f4 %f6+%f4");
  // Its value may come round.
  EXPECT_EQ(fused("mov.f32 %f4, %f1; L: add.f32 %f5, %f4, %f3; mul.f32 %f4, %f5, %f2;\n"
                  "add.f32 %f6, %f4, %f3; @%p1 bra L;"),
            "");
}

TEST(ContractionTest, WhatNoTextCanNameIsOpen) {
  EXPECT_EQ(fused("div.full.f32 %f4, %f1, %f2;\n" + kSum), " ?%f5");
  EXPECT_EQ(fused("rcp.approx.f32 %f4, %f1;\n" + kSum), " ?%f5");
  EXPECT_EQ(fused("rcp.approx.ftz.f32 %f4, %f1; add.ftz.f32 %f5, %f4, %f3;"), "");
  // Its factor is gone.
  EXPECT_EQ(fused("mov.f32 %f6, %f1; mul.f32 %f4, %f6, %f2; mov.f32 %f6, %f3;\n" + kSum), " ?%f5");
  EXPECT_EQ(fused("mov.f32 %f4, %f1; mul.f32 %f4, %f4, %f2;\n" + kSum), " ?%f5");
}

TEST(ContractionTest, MultiplyingByOneIsNoProduct) {
  EXPECT_EQ(fused("mul.f32 %f4, %f1, 0fBF800000;\n" + kSum), "");
  EXPECT_EQ(meeting("mul.f32 %f4, %f1, 0f3F800000;\n" + kSum), 0u);
}

TEST(ContractionTest, AMeetingIsSeenWhateverTheWay) {
  EXPECT_NE(meeting(kProduct + kSum), 0u);
  EXPECT_NE(meeting(kProduct + "@%p1 bra L; bar.sync 0; L:\n" + kSum), 0u);
  EXPECT_NE(meeting(kProduct + "selp.f32 %f6, %f4, %f1, %p1; add.f32 %f5, %f6, %f3;"), 0u);
  EXPECT_NE(meeting("mov.f32 %f4, %f1; L: add.f32 %f5, %f4, %f3;\n" + kProduct + "@%p1 bra L;"),
            0u);
  EXPECT_NE(meeting("div.approx.f32 %f4, %f1, %f2;\n" + kSum), 0u);
  EXPECT_NE(meeting("mul.f16 %h4, %h1, %h2; mov.b32 %r2, {%h4, %h1}; add.f16x2 %r3, %r2, %r2;"),
            0u);
}

TEST(ContractionTest, WhatDoesNotMeetIsNoMeeting) {
  EXPECT_EQ(meeting(kProduct + "add.f32 %f5, %f1, %f3;"), 0u);
  EXPECT_EQ(meeting(kProduct + "add.rn.f32 %f5, %f4, %f3;"), 0u);
  EXPECT_EQ(meeting("mul.rn.f32 %f4, %f1, %f2;\n" + kSum), 0u);
  EXPECT_EQ(meeting(kProduct + "cvt.f64.f32 %d4, %f4; add.f64 %d5, %d4, %d3;"), 0u);
  EXPECT_EQ(meeting("fma.rn.f32 %f4, %f1, %f2, %f3;\n" + kSum), 0u);
}

TEST(ContractionTest, TheAnalysisNamesTheLine) {
  const auto module = fusing_kernel(kProduct + kSum);
  const ModuleAnalysis analysis = analyse(*module);
  EXPECT_EQ(analysis.entries.back().may_fuse,
            "line 13: an assembler may make one instruction of this addition and a multiplication");
  const auto plain = fusing_kernel("add.f32 %f5, %f1, %f3;");
  EXPECT_EQ(analyse(*plain).entries.back().may_fuse, "");
}

TEST(ContractionTest, AProductOfOneFunctionMayMeetASumOfAnother) {
  const std::string functions =
      ".func (.param .f32 r) twice(.param .f32 a) {\n.reg .f32 %f<4>; ld.param.f32 %f1, [a];\n"
      "add.f32 %f2, %f1, 0f3F800000; st.param.f32 [r], %f2; ret;\n}\n";
  const auto judged = [&](const std::string& product) {
    const auto module =
        ptx::parse(kContractionHeader + functions +
                   ".visible .entry k()\n{\n.reg .f32 %f<4>; .param .f32 x, y;\n" + product +
                   " st.param.f32 [x], %f1; call.uni (y), twice, (x); ret;\n}\n");
    EXPECT_TRUE(module) << module.error().message;
    return !analyse(**module).entries.back().may_fuse.empty();
  };
  EXPECT_TRUE(judged("mul.f32 %f1, %f2, %f3;"));
  EXPECT_FALSE(judged("mul.rn.f32 %f1, %f2, %f3;"));
}

}  // namespace
}  // namespace slate::injector
