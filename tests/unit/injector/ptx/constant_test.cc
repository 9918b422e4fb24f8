#include "injector/ptx/constant.h"

#include <gtest/gtest.h>

#include <string>

namespace slate::ptx {
namespace {

std::string fold(const std::string& text) {
  Cursor cursor(text);
  const Constant value = parse_constant(cursor);
  if (cursor.failed()) return cursor.error();
  if (!cursor.at_end()) return "rest left";
  if (value.is_float()) return "f " + std::to_string(value.floating);
  if (value.kind == Constant::Kind::kUnsigned) return "u " + std::to_string(value.bits);
  return "s " + std::to_string(static_cast<std::int64_t>(value.bits));
}

TEST(ConstantTest, FoldsAsC) {
  const struct {
    const char* text;
    const char* value;
  } cases[] = {
      {"1+2*3", "s 7"},
      {"(1+2)*3", "s 9"},
      {"10-4-3", "s 3"},
      {"-7/2", "s -3"},
      {"-7 % 3", "s -1"},
      {"7 % 4", "s 3"},
      {"1<<4|1", "s 17"},
      {"-8>>1", "s -4"},
      {"(.u64)-8>>60", "u 15"},
      {"~0", "s -1"},
      {"!5+1", "s 1"},
      {"2>1&&0||1", "s 1"},
      {"1?2:3", "s 2"},
      {"0?2:0?4:5", "s 5"},
      {"-1<1U", "s 0"},
      {"-1<1", "s 1"},
      {"0x8000000000000000", "u 9223372036854775808"},
      {"(.s64)0xffffffffffffffff", "s -1"},
      {"9223372036854775807+1", "s -9223372036854775808"},
      {"(-9223372036854775807-1)/-1", "s -9223372036854775808"},
      {"(-9223372036854775807-1)%-1", "s 0"},
      {"1<<64", "s 0"},
      {"-1>>99", "s -1"},
      {"WARP_SZ-1", "s 31"},
      {"017+0b11", "s 18"},
      {"1.5+1", "f 2.500000"},
      {"-1.5*2.0", "f -3.000000"},
      {"1.5<2", "s 1"},
      {"-0f3F800000", "f -1.000000"},
      {"6^3&1==1", "s 7"},
  };
  for (const auto& one : cases) EXPECT_EQ(fold(one.text), one.value) << one.text;
}

TEST(ConstantTest, NegationKeepsTheExactBits) {
  Cursor cursor("-0f7FC00001");
  const Constant value = parse_constant(cursor);
  EXPECT_EQ(value.float_bits, 32);
  EXPECT_EQ(value.bits, 0xFFC00001u);
}

TEST(ConstantTest, SaysWhatIsWrong) {
  EXPECT_NE(fold("1/0").find("division by zero"), std::string::npos);
  EXPECT_NE(fold("1 %(2-2)").find("division by zero"), std::string::npos);
  EXPECT_NE(fold("1.5|1").find("integer operator"), std::string::npos);
  EXPECT_NE(fold("(1").find("expected `)`"), std::string::npos);
  EXPECT_NE(fold("1?2").find("expected `:`"), std::string::npos);
  EXPECT_NE(fold("99999999999999999999").find("beyond 64 bits"), std::string::npos);
  EXPECT_NE(fold("+").find("expected a constant"), std::string::npos);
}

TEST(ConstantTest, NestingIsBounded) {
  EXPECT_NE(fold(std::string(100000, '(') + "1").find("too deep"), std::string::npos);
  EXPECT_NE(fold(std::string(100000, '-') + "1").find("too deep"), std::string::npos);
  std::string casts;
  for (int i = 0; i < 100000; ++i) casts += "(.s64)";
  EXPECT_NE(fold(casts + "1").find("too deep"), std::string::npos);
  std::string choices;
  for (int i = 0; i < 100000; ++i) choices += "1?1:";
  EXPECT_NE(fold(choices + "1").find("too deep"), std::string::npos);
  std::string sum = "1";
  for (int i = 1; i < 1000; ++i) sum += "+1";
  EXPECT_EQ(fold(sum), "s 1000");
}

}  // namespace
}  // namespace slate::ptx
