// Which modules get printf and assert of our own. That those work, tests/programs/prints.cu shows.
#include "injector/link/printing.h"

#include <gtest/gtest.h>

#include "injector/ptx/module.h"

namespace slate::ptx {
namespace {

constexpr std::string_view kHead = ".version 8.0\n.target sm_90\n.address_size 64\n";
constexpr std::string_view kDeclaration =
    ".extern .func  (.param .b32 func_retval0) vprintf\n(\n\t.param .b64 vprintf_param_0,\n"
    "\t.param .b64 vprintf_param_1\n)\n;\n";
constexpr std::string_view kEntry =
    ".visible .entry k(.param .u64 p)\n{\n\t.reg .b64 %rd<2>;\n\tld.param.u64 %rd1, [p];\n\t{\n"
    "\t.param .b64 a; .param .b64 b; .param .b32 r;\n\tst.param.b64 [a], %rd1;\n"
    "\tst.param.b64 [b], 0;\n\tcall.uni (r), \n\tvprintf, \n\t(a, b);\n\t}\n\tret;\n}\n";

std::string text(std::initializer_list<std::string_view> parts) {
  std::string all;
  for (const std::string_view part : parts) all += part;
  return all;
}

TEST(PrintingTest, ModulesThatDoNotPrintStayAsTheyAre) {
  EXPECT_EQ(with_printing(text({kHead, ".visible .entry k() { ret; }\n"})), std::nullopt);
  EXPECT_EQ(with_printing(text({kHead, "// vprintf\n.visible .entry k() { ret; }\n"})),
            std::nullopt);
  EXPECT_EQ(with_printing(text({kHead, ".global .u32 vprintf_calls;\n"})), std::nullopt);
  EXPECT_EQ(with_printing(""), std::nullopt);
  EXPECT_EQ(with_printing("\" vprintf"), std::nullopt);
}

TEST(PrintingTest, CallsAreRedirectedAndNothingElseChanges) {
  const auto result = with_printing(text({kHead, kDeclaration, kEntry}));
  ASSERT_TRUE(result);
  const auto module = parse(*result);
  ASSERT_TRUE(module) << module.error().message;
  EXPECT_EQ((*module)->find_function("vprintf"), nullptr);
  ASSERT_NE((*module)->find_variable(kPrintRingVariable), nullptr);
  EXPECT_TRUE((*module)->find_function("__libslate_vprintf")->has_body);
  EXPECT_TRUE((*module)->find_function("__libslate_assertfail")->has_body);
  std::string entry(kEntry);
  entry.replace(entry.find("vprintf"), 7, "__libslate_vprintf");
  EXPECT_TRUE(result->ends_with(entry));
  EXPECT_TRUE(result->starts_with(kHead));
}

TEST(PrintingTest, DeclarationsMayComeTwiceAndOfBoth) {
  const std::string assertfail =
      ".extern .func __assertfail(.param .b64 a, .param .b64 b, .param .b32 c, .param .b64 d, "
      ".param .b64 e);\n";
  const auto result = with_printing(text({kHead, assertfail, kDeclaration, assertfail, kEntry}));
  ASSERT_TRUE(result);
  const auto module = parse(*result);
  ASSERT_TRUE(module) << module.error().message;
  EXPECT_EQ((*module)->find_function("__assertfail"), nullptr);
}

TEST(PrintingTest, AFunctionOfTheProgramsOwnIsLeftAlone) {
  EXPECT_EQ(with_printing(text({kHead, ".func vprintf() { ret; }\n",
                                ".visible .entry k() { call vprintf; ret; }\n"})),
            std::nullopt);
}

}  // namespace
}  // namespace slate::ptx
