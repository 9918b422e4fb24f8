// setp, set and testp: every comparison on every type, combined predicates, both destinations.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "tests/unit/sim_alu/alu_check.h"

namespace slate::sim {
namespace {

template <class T>
bool compare(const std::string& how, T a, T b) {
  if (how == "eq") return a == b;
  if (how == "ne") return a < b || a > b;
  if (how == "lt" || how == "lo") return a < b;
  if (how == "le" || how == "ls") return a <= b;
  if (how == "gt" || how == "hi") return a > b;
  if (how == "ge" || how == "hs") return a >= b;
  const bool unordered = a != a || b != b;
  if (how == "num") return !unordered;
  if (how == "nan") return unordered;
  return unordered || compare(how.substr(0, 2), a, b);
}

template <class T>
void check(const std::string& how, const std::string& type) {
  for (const AluTable* table : alu_tables()) {
    const AluOp* plain = table->find("setp." + how + "." + type);
    const AluOp* both = table->find("setp." + how + ".xor." + type);
    const AluOp* set = table->find("set." + how + ".and.u32." + type);
    ASSERT_NE(plain, nullptr) << how << type;
    ASSERT_NE(both, nullptr);
    ASSERT_NE(set, nullptr);
    AluInputs inputs(21);
    for (int n = 0; n < 50; ++n) {
      AluCall call;
      for (int k = 0; k < 2; ++k) call.s[k] = inputs.lanes(plain->s[k], sizeof(T));
      for (int i = 0; i < kWarpSize; i += 3)
        set_lane(call.s[1], sizeof(T), i, get_lane(call.s[0], sizeof(T), i));
      call.s[2] = inputs.lanes(ptx::Type::kPred, 0);
      const Mask c = *call.s[2].lanes<Mask>();
      Mask expected = 0;
      for (int i = 0; i < kWarpSize; ++i) {
        const bool yes = compare(how, from_bits<T>(get_lane(call.s[0], sizeof(T), i)),
                                 from_bits<T>(get_lane(call.s[1], sizeof(T), i)));
        expected |= static_cast<Mask>(yes) << i;
      }
      call.run(*plain, kAllLanes);
      ASSERT_EQ(*call.d.lanes<Mask>(), expected) << how << " " << type;
      ASSERT_EQ(*call.d2.lanes<Mask>(), ~expected) << how << " " << type;
      call.run(*both, kAllLanes);
      ASSERT_EQ(*call.d.lanes<Mask>(), expected ^ c);
      ASSERT_EQ(*call.d2.lanes<Mask>(), ~expected ^ c);
      call.run(*set, kAllLanes);
      for (int i = 0; i < kWarpSize; ++i) {
        ASSERT_EQ(get_lane(call.d, 4, i), (expected & c) >> i & 1 ? 0xffffffffu : 0u);
      }
    }
  }
}

TEST(AluCompareTest, EveryComparisonOfIntegers) {
  for (const char* how : {"eq", "ne", "lt", "le", "gt", "ge"}) {
    check<std::uint16_t>(how, "u16");
    check<std::int16_t>(how, "s16");
    check<std::uint32_t>(how, "u32");
    check<std::int32_t>(how, "s32");
    check<std::uint64_t>(how, "u64");
    check<std::int64_t>(how, "s64");
  }
  for (const char* how : {"lo", "ls", "hi", "hs"}) check<std::uint32_t>(how, "u32");
  check<std::uint64_t>("eq", "b64");
}

TEST(AluCompareTest, EveryComparisonOfFloatsOrderedAndUnordered) {
  for (const char* how : {"eq", "ne", "lt", "le", "gt", "ge", "equ", "neu", "ltu", "leu", "gtu",
                          "geu", "num", "nan"}) {
    check<float>(how, "f32");
    check<double>(how, "f64");
  }
}

TEST(AluCompareTest, FtzComparesDenormalsAsZero) {
  EXPECT_EQ(evaluate("setp.eq.ftz.f32", {0x80000001, 0x00000002}), kAllLanes);
  EXPECT_EQ(evaluate("setp.eq.f32", {0x80000001, 0x00000002}), 0u);
}

TEST(AluCompareTest, PairsCompareTheirHalvesApart) {
  const AluOp* op = alu_tables().back()->find("setp.lt.f16x2");
  AluCall call;
  for (int i = 0; i < kWarpSize; ++i) {
    set_lane(call.s[0], 4, i, 0x3c004000);  // {1, 2}
    set_lane(call.s[1], 4, i, 0x40003c00);  // {2, 1}
  }
  call.run(*op, kAllLanes);
  EXPECT_EQ(*call.d.lanes<Mask>(), 0u);          // the lower: 2 < 1
  EXPECT_EQ(*call.d2.lanes<Mask>(), kAllLanes);  // the upper: 1 < 2
  EXPECT_EQ(evaluate("set.lt.f16x2.f16x2", {0x3c004000, 0x40003c00}), 0x3c000000u);
  EXPECT_EQ(evaluate("set.lt.u32.bf16x2", {0x3f804000, 0x40003f80}), 0xffff0000u);
}

TEST(AluCompareTest, SetWritesOneInTheTypeOfItsDestination) {
  EXPECT_EQ(evaluate("set.gt.f32.s32", {2, 1}), 0x3f800000u);
  EXPECT_EQ(evaluate("set.gt.f16.f16", {0x4000, 0x3c00}), 0x3c00u);
  EXPECT_EQ(evaluate("set.gt.s16.bf16", {0x4000, 0x3f80}), 0xffffu);
  EXPECT_EQ(evaluate("set.gt.f32.s32", {1, 1}), 0u);
}

TEST(AluCompareTest, TestpSortsNumbers) {
  const std::pair<std::uint64_t, const char*> kKinds[] = {{0x7f800000, "infinite"},
                                                          {0x7fc00000, "notanumber"},
                                                          {0x00000001, "subnormal"},
                                                          {0x3f800000, "normal"},
                                                          {0x80000000, "normal"}};
  for (const auto& [bits, kind] : kKinds) {
    for (const char* name : {"infinite", "notanumber", "subnormal", "normal"}) {
      EXPECT_EQ(evaluate("testp." + std::string(name) + ".f32", {bits}),
                std::string(name) == kind ? kAllLanes : 0)
          << std::hex << bits << name;
    }
  }
  EXPECT_EQ(evaluate("testp.finite.f64", {0x0010000000000000}), kAllLanes);
  EXPECT_EQ(evaluate("testp.number.f64", {0xfff0000000000000}), kAllLanes);
}

}  // namespace
}  // namespace slate::sim
