#include "injector/forms/placed_variables.h"

#include <gtest/gtest.h>

namespace slate::injector {
namespace {

constexpr std::string_view kHead = ".version 9.0\n.target sm_90\n.address_size 64\n";

Result<std::string> place(const std::string& body, std::vector<PlacedVariable> placed) {
  const auto module = ptx::parse(std::string(kHead) + body);
  EXPECT_TRUE(module) << module.error().message;
  return place_variables(**module, placed);
}

TEST(PlacedVariablesTest, EveryUseBecomesTheAddressAndTheDeclarationGoes) {
  const auto placed = place(R"(.global .attribute(.managed) .align 4 .u32 x = 5;
.global .align 4 .u32 y;
.visible .entry k()
{
	.reg .pred %p<2>;
	.reg .b32 %r<4>;
	.reg .b64 %rd<3>;
	mov.u64 %rd1, x;
	ld.global.u32 %r1, [x+8];
	@%p1 st.global.u32 [x], %r1;
	st.global.u32 [y], %r1;
	ret;
}
)",
                            {{"x", 0x400000000000}});
  ASSERT_TRUE(placed) << placed.error().message;
  EXPECT_EQ(*placed, std::string(kHead) + R"(
.global .align 4 .u32 y;
.visible .entry k()
{
	.reg .pred %p<2>;
	.reg .b32 %r<4>;
	.reg .b64 %rd<3>;
	{ .reg .b64 %slate_placed0; mov.b64 %slate_placed0, 0x400000000000; mov.u64 %rd1, %slate_placed0; }
	{ .reg .b64 %slate_placed0; mov.b64 %slate_placed0, 0x400000000000; ld.global.u32 %r1, [%slate_placed0+8]; }
	{ .reg .b64 %slate_placed0; mov.b64 %slate_placed0, 0x400000000000; @%p1 st.global.u32 [%slate_placed0], %r1; }
	st.global.u32 [y], %r1;
	ret;
}
)");
  EXPECT_TRUE(ptx::parse(*placed));
}

TEST(PlacedVariablesTest, ALocalNameThatHidesItIsLeftAlone) {
  const auto placed = place(R"(.global .attribute(.managed) .u32 x;
.visible .entry k()
{
	.reg .b32 %r<2>;
	.shared .align 4 .u32 x;
	ld.shared.u32 %r1, [x];
	ret;
}
)",
                            {{"x", 4096}});
  ASSERT_TRUE(placed);
  EXPECT_NE(placed->find("ld.shared.u32 %r1, [x];"), std::string::npos);
}

TEST(PlacedVariablesTest, WhatCannotBePlacedIsRefused) {
  const auto code = [](const std::string& body, std::vector<PlacedVariable> placed) {
    const auto result = place(body, std::move(placed));
    return result ? ErrorCode::kNone : result.error().code;
  };
  EXPECT_EQ(code(".global .u32 x;\n", {{"z", 4096}}), ErrorCode::kSymbolNotFound);
  EXPECT_EQ(code(".const .u32 x;\n", {{"x", 4096}}), ErrorCode::kSymbolNotFound);
  EXPECT_EQ(code(".global .align 8 .u64 x;\n", {{"x", 4100}}), ErrorCode::kInvalidValue);
  EXPECT_EQ(code(".global .u32 x;\n.global .u64 p = x;\n", {{"x", 4096}}),
            ErrorCode::kNotSupported);
  EXPECT_EQ(code(".global .u32 y;\n.global .u64 x = generic(y);\n", {{"x", 4096}}),
            ErrorCode::kNotSupported);
  EXPECT_EQ(code(".global .u32 x, y;\n", {{"x", 4096}}), ErrorCode::kNotSupported);
  EXPECT_EQ(code(".global .u32 x, y;\n", {{"x", 4096}, {"y", 8192}}), ErrorCode::kNone);
}

}  // namespace
}  // namespace slate::injector
