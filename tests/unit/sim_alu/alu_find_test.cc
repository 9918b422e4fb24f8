// find_alu: which instructions it knows and how it reads their names.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "device/sim/alu.h"
#include "tests/unit/sim_alu/alu_check.h"

namespace slate::sim {
namespace {

/// "add.s32", with `operands` operands, the destination included.
std::optional<AluOp> find(const std::string& text, std::size_t operands,
                          const OperandWidths& widths = {}) {
  ptx::Instruction instruction;
  std::vector<std::string_view> parts;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find('.', begin), text.size());
    parts.emplace_back(std::string_view(text).substr(begin, end - begin));
    begin = end + 1;
  }
  instruction.opcode = parts.front();
  instruction.modifiers.assign(parts.begin() + 1, parts.end());
  instruction.operands.resize(operands);
  return find_alu(instruction, widths);
}

TEST(FindAluTest, WhatProgramsUseIsKnown) {
  // The arithmetic among the opcodes that CUDA samples, Rodinia and Parboil compile to, with their
  // types.
  const std::pair<const char*, std::size_t> kUsed[] = {{"mov.u32", 2},
                                                       {"mov.f64", 2},
                                                       {"mov.pred", 2},
                                                       {"mov.b128", 2},
                                                       {"add.s32", 3},
                                                       {"add.s64", 3},
                                                       {"add.f32", 3},
                                                       {"add.ftz.f32", 3},
                                                       {"add.rn.f32", 3},
                                                       {"add.rz.f32", 3},
                                                       {"add.rm.f64", 3},
                                                       {"add.rp.f64", 3},
                                                       {"mul.wide.s32", 3},
                                                       {"mul.wide.u16", 3},
                                                       {"mad.lo.s32", 4},
                                                       {"mad.wide.u32", 4},
                                                       {"setp.ge.s32", 3},
                                                       {"setp.ne.s16", 3},
                                                       {"setp.eq.b32", 3},
                                                       {"setp.lt.f64", 3},
                                                       {"setp.gt.ftz.f32", 3},
                                                       {"setp.ltu.f32", 3},
                                                       {"setp.nan.f32", 3},
                                                       {"setp.lt.and.s32", 4},
                                                       {"shl.b32", 3},
                                                       {"shr.u64", 3},
                                                       {"shr.s32", 3},
                                                       {"and.b16", 3},
                                                       {"or.pred", 3},
                                                       {"xor.b64", 3},
                                                       {"not.pred", 2},
                                                       {"sub.s64", 3},
                                                       {"cvt.u64.u32", 2},
                                                       {"cvt.rn.f32.s32", 2},
                                                       {"cvt.rzi.s32.f32", 2},
                                                       {"cvt.rni.f32.f32", 2},
                                                       {"cvt.sat.f32.f32", 2},
                                                       {"cvt.ftz.f64.f32", 2},
                                                       {"cvt.rna.tf32.f32", 2},
                                                       {"cvt.rn.bf16x2.f32", 3},
                                                       {"cvt.rn.f16.f32", 2},
                                                       {"cvt.f32.f16", 2},
                                                       {"mul.lo.s64", 3},
                                                       {"mul.hi.u32", 3},
                                                       {"mul.f32", 3},
                                                       {"mul.rn.f64", 3},
                                                       {"selp.b32", 4},
                                                       {"selp.f32", 4},
                                                       {"fma.rn.f32", 4},
                                                       {"fma.rn.ftz.f32", 4},
                                                       {"fma.rm.f64", 4},
                                                       {"neg.s32", 2},
                                                       {"neg.f64", 2},
                                                       {"div.s32", 3},
                                                       {"div.rn.f32", 3},
                                                       {"div.approx.ftz.f32", 3},
                                                       {"div.rm.f64", 3},
                                                       {"rem.u64", 3},
                                                       {"min.s32", 3},
                                                       {"max.f32", 3},
                                                       {"abs.ftz.f32", 2},
                                                       {"rcp.rn.f64", 2},
                                                       {"rcp.approx.ftz.f64", 2},
                                                       {"sqrt.rn.f32", 2},
                                                       {"bfi.b32", 5},
                                                       {"clz.b64", 2},
                                                       {"brev.b32", 2},
                                                       {"popc.b32", 2},
                                                       {"ex2.approx.ftz.f32", 2},
                                                       {"shf.l.wrap.b32", 4},
                                                       {"bfind.shiftamt.u32", 2},
                                                       {"rsqrt.approx.f32", 2},
                                                       {"bmsk.clamp.b32", 3},
                                                       {"cos.approx.f32", 2},
                                                       {"copysign.f64", 3},
                                                       {"lg2.approx.f32", 2},
                                                       {"prmt.b32", 4},
                                                       {"vabsdiff4.u32.u32.u32.add", 4},
                                                       {"sub.cc.u32", 3},
                                                       {"addc.cc.u32", 3},
                                                       {"mad.lo.cc.u32", 4},
                                                       {"madc.hi.u32", 4},
                                                       {"lop3.b32", 5},
                                                       {"lop3.or.b32", 6},
                                                       {"dp4a.s32.u32", 4},
                                                       {"fma.rn.relu.bf16x2", 4},
                                                       {"set.gt.f16x2.f16x2", 3},
                                                       {"testp.infinite.f64", 2},
                                                       {"tanh.approx.f32", 2},
                                                       {"cvt.rn.satfinite.e4m3x2.f32", 3},
                                                       {"cvt.pack.sat.s8.s32.b32", 4},
                                                       {"slct.f32.s32", 4},
                                                       {"fns.b32", 4},
                                                       {"szext.wrap.s32", 3}};
  for (const auto& [name, operands] : kUsed) {
    const auto op = find(name, operands);
    ASSERT_TRUE(op) << name;
    EXPECT_NE(op->fn, nullptr) << name;
    EXPECT_EQ(op->sources + 1u, operands) << name;
  }
}

TEST(FindAluTest, WhatIsNotArithmeticIsNotFound) {
  for (const char* name : {"ld.global.u32", "bra", "bar.sync", "shfl.sync.up.b32", "atom.add.u32",
                           "cvta.global.u64", "add.f33", "nonsense", "setp.lt", "add"}) {
    EXPECT_FALSE(find(name, 3)) << name;
  }
}

TEST(FindAluTest, AWrongNumberOfOperandsIsNotFound) {
  EXPECT_TRUE(find("add.s32", 3));
  EXPECT_FALSE(find("add.s32", 2));
  EXPECT_FALSE(find("fma.rn.f32", 3));
}

TEST(FindAluTest, RoundingToNearestIsTheDefaultOfSums) {
  EXPECT_EQ(find("add.rn.f32", 3)->fn, find("add.f32", 3)->fn);
  EXPECT_EQ(find("mul.rn.f16x2", 3)->fn, find("mul.f16x2", 3)->fn);
  EXPECT_NE(find("add.rz.f32", 3)->fn, find("add.f32", 3)->fn);
}

TEST(FindAluTest, MadOfFloatsIsFma) {
  EXPECT_EQ(find("mad.rn.f64", 4)->fn, find("fma.rn.f64", 4)->fn);
  EXPECT_EQ(find("mad.f32", 4)->fn, find("fma.rn.f32", 4)->fn);
  EXPECT_EQ(find("mad.rz.ftz.f32", 4)->fn, find("fma.rz.ftz.f32", 4)->fn);
}

TEST(FindAluTest, SaturationToIntegersIsImplied) {
  EXPECT_EQ(find("cvt.rzi.sat.s32.f32", 2)->fn, find("cvt.rzi.s32.f32", 2)->fn);
  EXPECT_NE(find("cvt.sat.s8.s32", 2)->fn, find("cvt.s8.s32", 2)->fn);
}

TEST(FindAluTest, MinimumOfThreeIsToldByItsOperands) {
  EXPECT_EQ(find("min.f32", 4)->sources, 3);
  EXPECT_EQ(find("min.f32", 3)->sources, 2);
  EXPECT_FALSE(find("min.s32", 4));
}

TEST(FindAluTest, ReluMayStandBehindTheType) {
  for (const std::string name : {"min", "max"}) {
    for (const std::string type : {"s32", "s16x2"}) {
      const auto relu = find(name + "." + type + ".relu", 3);
      ASSERT_TRUE(relu) << name << type;
      EXPECT_EQ(relu->fn, find(name + ".relu." + type, 3)->fn);
      EXPECT_NE(relu->fn, find(name + "." + type, 3)->fn);
    }
  }
  EXPECT_FALSE(find("add.s32.relu", 3));
  EXPECT_FALSE(find("max.u32.relu", 3));
}

TEST(FindAluTest, OnlyCvtTakesWiderRegisters) {
  OperandWidths widths;
  widths.d = 4;
  widths.s[0] = 4;
  EXPECT_TRUE(find("cvt.u8.s32", 2, widths));
  EXPECT_NE(find("cvt.u8.s32", 2, widths)->fn, find("cvt.u8.s32", 2)->fn);
  EXPECT_EQ(find("cvt.u32.s32", 2, widths)->fn, find("cvt.u32.s32", 2)->fn);
  EXPECT_FALSE(find("mov.u16", 2, widths));
  EXPECT_TRUE(find("mov.u32", 2, widths));
}

TEST(FindAluTest, TypesSayHowToReadLiterals) {
  const auto op = find("selp.f64", 4);
  EXPECT_EQ(op->d, ptx::Type::kF64);
  EXPECT_EQ(op->s[1], ptx::Type::kF64);
  EXPECT_EQ(op->s[2], ptx::Type::kPred);
  EXPECT_EQ(find("shl.b64", 3)->s[1], ptx::Type::kU32);
  EXPECT_EQ(find("setp.lt.s64", 3)->d, ptx::Type::kPred);
  EXPECT_EQ(find("cvt.rn.f32.s8", 2)->s[0], ptx::Type::kS8);
}

TEST(FindAluTest, CarryIsDeclared) {
  EXPECT_TRUE(find("add.cc.u32", 3)->writes_carry);
  EXPECT_FALSE(find("add.cc.u32", 3)->reads_carry);
  EXPECT_TRUE(find("addc.u32", 3)->reads_carry);
  EXPECT_FALSE(find("addc.u32", 3)->writes_carry);
  EXPECT_FALSE(find("add.u32", 3)->writes_carry);
}

}  // namespace
}  // namespace slate::sim
