#include "injector/forms/settled_sums.h"

#include <gtest/gtest.h>

#include "injector/analysis/contraction.h"
#include "injector/forms/inject.h"

namespace slate::injector {
namespace {

const std::string kSumsHead = ".version 9.0\n.target sm_90\n.address_size 64\n";

std::string kernel(const std::string& body) {
  return kSumsHead + ".visible .entry k(.param .u64 a)\n{\n\t.reg .pred %p<2>;\n" +
         "\t.reg .f32 %f<9>;\n\t.reg .b16 %h<9>;\n" + body + "\tret;\n}\n";
}

struct Settled {
  std::string text;
  bool open;
};

Settled settle(const std::string& text) {
  const auto module = ptx::parse(text);
  EXPECT_TRUE(module) << module.error().message;
  const auto settled = settle_sums(**module, std::vector<bool>((*module)->functions.size(), true));
  EXPECT_TRUE(settled) << settled.error().message;
  EXPECT_TRUE(ptx::parse(settled->ptx));
  return {settled->ptx, settled->open.back()};
}

void expect_settled(const std::string& before, const std::string& after,
                    const std::string& registers = "") {
  const Settled settled = settle(kernel(before));
  std::string expected = kernel(after);
  expected.insert(expected.find("{\n") + 1, registers);
  EXPECT_EQ(settled.text, expected);
  EXPECT_FALSE(settled.open);
}

TEST(SettledSumsTest, WhatPtxasFusesIsWrittenSo) {
  expect_settled("\tmul.f32 %f3, %f1, %f2;\n\tadd.f32 %f4, %f3, %f5;\n",
                 "\t\n\tfma.rn.f32 %f4, %f1, %f2, %f5;\n");
  expect_settled("\tmul.ftz.f32 %f3, %f1, %f2;\n\t@%p1 add.ftz.sat.f32 %f4, %f5, %f3;\n",
                 "\t\n\t@%p1 fma.rn.ftz.sat.f32 %f4, %f1, %f2, %f5;\n");
}

TEST(SettledSumsTest, OtherSumsNameTheirRounding) {
  expect_settled("\tadd.f32 %f4, %f3, %f5;\n\tsub.ftz.f32 %f6, %f4, %f5;\n",
                 "\tadd.rn.f32 %f4, %f3, %f5;\n\tsub.rn.ftz.f32 %f6, %f4, %f5;\n");
  // Neither integers nor what does already.
  expect_settled("\tadd.rz.f32 %f4, %f3, %f5;\n\tadd.s16 %h1, %h2, %h3;\n",
                 "\tadd.rz.f32 %f4, %f3, %f5;\n\tadd.s16 %h1, %h2, %h3;\n");
}

TEST(SettledSumsTest, SubtractionsNegateAnOperand) {
  expect_settled("\tmul.f32 %f3, %f1, %f2;\n\tsub.f32 %f4, %f5, %f3;\n",
                 "\t\n\tneg.f32 %slate_negated0, %f1;\n\t"
                 "fma.rn.f32 %f4, %slate_negated0, %f2, %f5;\n",
                 "\n\t.reg .f32 %slate_negated0;");
  expect_settled("\tmul.f32 %f3, %f1, %f2;\n\tsub.f32 %f4, %f3, %f5;\n",
                 "\t\n\tneg.f32 %slate_negated0, %f5;\n\t"
                 "fma.rn.f32 %f4, %f1, %f2, %slate_negated0;\n",
                 "\n\t.reg .f32 %slate_negated0;");
  expect_settled("\tmul.f16 %h3, %h1, %h2;\n\tsub.f16 %h4, %h5, %h3;\n",
                 "\t\n\tneg.f16 %slate_negated0, %h1;\n\t"
                 "fma.rn.f16 %h4, %slate_negated0, %h2, %h5;\n",
                 "\n\t.reg .b16 %slate_negated0;");
}

TEST(SettledSumsTest, OfLiteralsTheSignIsTurned) {
  expect_settled("\tmul.f32 %f3, %f1, 0f40000000;\n\tsub.f32 %f4, %f5, %f3;\n",
                 "\t\n\tfma.rn.f32 %f4, %f1, 0fC0000000, %f5;\n");
  expect_settled("\tmul.f32 %f3, %f1, %f2;\n\tsub.f32 %f4, %f3, 0fBF800000;\n",
                 "\t\n\tfma.rn.f32 %f4, %f1, %f2, 0f3F800000;\n");
}

TEST(SettledSumsTest, ACopiedProductStaysForItsCopies) {
  expect_settled("\tmul.f32 %f3, %f1, %f2;\n\tneg.f32 %f6, %f3;\n\tadd.f32 %f4, %f6, %f5;\n",
                 "\tmul.f32 %f3, %f1, %f2;\n\tneg.f32 %f6, %f3;\n\t"
                 "neg.f32 %slate_negated0, %f1;\n\tfma.rn.f32 %f4, %slate_negated0, %f2, %f5;\n",
                 "\n\t.reg .f32 %slate_negated0;");
}

TEST(SettledSumsTest, OpenSumsStayAndOtherProductsKeepOutOfThem) {
  const Settled settled =
      settle(kernel("\tdiv.full.f32 %f3, %f1, %f2;\n\tmul.f32 %f6, %f1, %f1;\n\t"
                    "add.f32 %f4, %f3, %f6;\n\tadd.f32 %f7, %f6, %f1;\n"));
  EXPECT_TRUE(settled.open);
  EXPECT_EQ(settled.text, kernel("\tdiv.full.f32 %f3, %f1, %f2;\n\tmul.rn.f32 %f6, %f1, %f1;\n\t"
                                 "add.f32 %f4, %f3, %f6;\n\tadd.rn.f32 %f7, %f6, %f1;\n"));
}

TEST(SettledSumsTest, WhatDoesNotAssembleIsNotMadeMoreOf) {
  for (const char* broken :
       {"mul.f32 %f3, %f1, %f2; add.f32 %f4, %f3;", "mul.f32 %f3, %f1; add.f32 %f4, %f3, %f1;",
        "mul.f32 %f3, %f1, %f2; add.f32 %f3;", "mul.f32; add.f32;", "add.f32 %f4, %f3, %f3, %f3;",
        "mul.f32 %f3, [%f1], %f2; add.f32 %f4, %f3, {%f1, %f2};", "rcp.approx.f32 %f3;",
        "mul.f32 %f3, 0f40000000, 0f40000000; add.f32 %f4, %f3, %f1;"}) {
    const auto module = ptx::parse(kernel(broken));
    if (!module) continue;
    EXPECT_TRUE(settle_sums(**module, {true})) << broken;
  }
}

TEST(SettledSumsTest, NoLooseSumIsLeftWhereNothingIsOpen) {
  const Settled settled = settle(
      kernel("\tmul.f32 %f3, %f1, %f2;\n\tadd.f32 %f4, %f3, %f5;\n\tmul.f32 %f6, %f4, %f4;\n\t"
             "@%p1 bra L;\n\tadd.f32 %f7, %f6, %f1;\nL:\n\tsub.f32 %f8, %f7, %f3;\n"));
  const auto module = ptx::parse(settled.text);
  ASSERT_TRUE(module);
  for (const auto& instruction : (*module)->functions.back().instructions) {
    EXPECT_EQ(loose_sum(instruction), "") << instruction.line;
  }
}

const std::string kTwo = kernel("\tmul.f32 %f3, %f1, %f2;\n\tadd.f32 %f4, %f3, %f5;\n") +
                         ".visible .entry plain()\n{\n\t.reg .f32 %f<4>;\n\t"
                         "add.f32 %f1, %f2, %f3;\n\tret;\n}\n";

TEST(SettledSumsTest, InjectSettlesKernelsThatNeedItAndNoOthers) {
  const auto module = ptx::parse(kTwo);
  ASSERT_TRUE(module);
  const auto injected =
      inject(**module, {.profile = true, .settle_sums = true, .most_registers = {}});
  ASSERT_TRUE(injected) << injected.error().message;
  ASSERT_EQ(injected->kernels.size(), 2u);
  EXPECT_EQ(injected->kernels[0].analysis.name, "k");
  EXPECT_NE(injected->kernels[0].analysis.may_fuse, "");
  EXPECT_FALSE(injected->kernels[0].sums_open);
  EXPECT_EQ(injected->kernels[1].analysis.may_fuse, "");
  EXPECT_EQ(injected->kernels[0].sm, 90u);
  const auto parsed = ptx::parse(injected->ptx);
  ASSERT_TRUE(parsed) << parsed.error().message;
  std::size_t fused = 0, loose = 0;
  for (const ptx::Function& function : (*parsed)->functions) {
    for (const auto& instruction : function.instructions) {
      fused += instruction.opcode == "fma" ? 1 : 0;
      loose += loose_sum(instruction).empty() ? 0 : 1;
    }
  }
  EXPECT_EQ(fused, 4u);  // the kernel's own and three forms
  EXPECT_EQ(loose, 4u);  // the other kernel's
}

TEST(SettledSumsTest, InjectLeavesTheTextAloneUnlessAsked) {
  const auto module = ptx::parse(kTwo);
  ASSERT_TRUE(module);
  const auto injected = inject(**module, {.most_registers = {}});
  ASSERT_TRUE(injected);
  EXPECT_TRUE(injected->ptx.starts_with(kTwo));
}

}  // namespace
}  // namespace slate::injector
