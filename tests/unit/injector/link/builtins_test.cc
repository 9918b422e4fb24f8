// Which modules get printf, assert, malloc and free of our own. That those work, tests/unit/heap
// and tests/programs/prints.cu show.
#include "injector/link/builtins.h"

#include <gtest/gtest.h>

#include "injector/link/heap.h"
#include "injector/link/printing.h"
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

constexpr std::string_view kMalloc =
    ".extern .func  (.param .b64 func_retval0) malloc\n(\n\t.param .b64 malloc_param_0\n)\n;\n";
constexpr std::string_view kFree = ".extern .func free\n(\n\t.param .b64 free_param_0\n)\n;\n";
constexpr std::string_view kAllocates =
    ".visible .entry a(.param .u64 p)\n{\n\t.reg .b64 %rd<2>;\n\tld.param.u64 %rd1, [p];\n\t{\n"
    "\t.param .b64 a; .param .b64 r;\n\tst.param.b64 [a], %rd1;\n\tcall.uni (r), \n\tmalloc, \n"
    "\t(a);\n\tst.param.b64 [a], %rd1;\n\tcall.uni \n\tfree, \n\t(a);\n\t}\n\tret;\n}\n";

std::string text(std::initializer_list<std::string_view> parts) {
  std::string all;
  for (const std::string_view part : parts) all += part;
  return all;
}

TEST(BuiltinsTest, ModulesThatDeclareNoneStayAsTheyAre) {
  for (const std::string_view body :
       {".visible .entry k() { ret; }\n", "// .extern vprintf\n.visible .entry k() { ret; }\n",
        ".extern .global .u32 vprintf_calls;\n", ".extern .global .u32 free;\n",
        ".extern .func other(.param .b64 malloc);\n",
        ".extern .func (.param .b64 free) other(.param .b64 a);\n", "\" .extern vprintf"}) {
    EXPECT_FALSE(with_builtins(text({kHead, body}))) << body;
  }
  EXPECT_FALSE(with_builtins(""));
}

TEST(BuiltinsTest, CallsAreRedirectedAndNothingElseChanges) {
  const auto result = with_builtins(text({kHead, kDeclaration, kEntry}));
  ASSERT_TRUE(result);
  EXPECT_TRUE(result->prints);
  EXPECT_FALSE(result->allocates);
  const auto module = parse(result->text);
  ASSERT_TRUE(module) << module.error().message;
  EXPECT_EQ((*module)->find_function("vprintf"), nullptr);
  ASSERT_NE((*module)->find_variable(kPrintRingVariable), nullptr);
  EXPECT_TRUE((*module)->find_function("__libslate_vprintf")->has_body);
  EXPECT_TRUE((*module)->find_function("__libslate_assertfail")->has_body);
  std::string entry(kEntry);
  entry.replace(entry.find("vprintf"), 7, "__libslate_vprintf");
  EXPECT_TRUE(result->text.ends_with(entry));
  EXPECT_TRUE(result->text.starts_with(kHead));
  EXPECT_EQ((*module)->find_variable(kHeapVariable), nullptr);
}

TEST(BuiltinsTest, MallocAndFreeAreRedirectedAsNvccDeclaresThem) {
  const auto result =
      with_builtins(text({kHead, kMalloc, kFree, ".visible .global .u32 freed;\n", kAllocates}));
  ASSERT_TRUE(result);
  EXPECT_FALSE(result->prints);
  EXPECT_TRUE(result->allocates);
  const auto module = parse(result->text);
  ASSERT_TRUE(module) << module.error().message;
  const Variable* const variable = (*module)->find_variable(kHeapVariable);
  ASSERT_NE(variable, nullptr);
  EXPECT_EQ(variable->bytes, 8u);
  EXPECT_EQ((*module)->find_function("malloc"), nullptr);
  EXPECT_EQ((*module)->find_function("free"), nullptr);
  EXPECT_TRUE((*module)->find_function("__libslate_malloc")->has_body);
  EXPECT_TRUE((*module)->find_function("__libslate_free")->has_body);
  EXPECT_NE((*module)->find_variable("freed"), nullptr);
  std::string entry(kAllocates);
  entry.replace(entry.find("malloc"), 6, "__libslate_malloc");
  entry.replace(entry.find("\tfree") + 1, 4, "__libslate_free");
  EXPECT_TRUE(result->text.ends_with(entry));
}

TEST(BuiltinsTest, OfThoseThatAreNotDeclaredTheNameStays) {
  const std::string own = ".func free(.param .b64 p) { ret; }\n";
  const auto result = with_builtins(text({kHead, kMalloc, own, kAllocates}));
  ASSERT_TRUE(result);
  const auto module = parse(result->text);
  ASSERT_TRUE(module) << module.error().message;
  EXPECT_NE((*module)->find_function("free"), nullptr);
  EXPECT_EQ((*module)->find_function("malloc"), nullptr);
}

TEST(BuiltinsTest, OneModuleMayPrintAndAllocate) {
  const auto result =
      with_builtins(text({kHead, kFree, kDeclaration, kMalloc, kEntry, kAllocates}));
  ASSERT_TRUE(result);
  EXPECT_TRUE(result->prints && result->allocates);
  const auto module = parse(result->text);
  ASSERT_TRUE(module) << module.error().message;
  EXPECT_NE((*module)->find_variable(kPrintRingVariable), nullptr);
  EXPECT_NE((*module)->find_variable(kHeapVariable), nullptr);
  EXPECT_FALSE(with_builtins(result->text)) << "what was linked in declares something again";
}

TEST(BuiltinsTest, DeclarationsMayComeTwiceAndOfBoth) {
  const std::string assertfail =
      ".extern .func __assertfail(.param .b64 a, .param .b64 b, .param .b32 c, .param .b64 d, "
      ".param .b64 e);\n";
  const auto result = with_builtins(text({kHead, assertfail, kDeclaration, assertfail, kEntry}));
  ASSERT_TRUE(result);
  const auto module = parse(result->text);
  ASSERT_TRUE(module) << module.error().message;
  EXPECT_EQ((*module)->find_function("__assertfail"), nullptr);
}

TEST(BuiltinsTest, AFunctionOfTheProgramsOwnIsLeftAlone) {
  EXPECT_FALSE(with_builtins(text({kHead, ".extern .func other();\n.func vprintf() { ret; }\n",
                                   ".visible .entry k() { call vprintf; ret; }\n"})));
}

}  // namespace
}  // namespace slate::ptx
