#include "injector/link/registers.h"

#include <gtest/gtest.h>

#include <optional>

#include "injector/ptx/module.h"

namespace slate::ptx {
namespace {

const std::string kRegistersHead = ".version 8.0\n.target sm_80\n.address_size 64\n";

/// What `.maxnreg` the kernel `k` of this head has with a limit of 32.
std::optional<std::uint64_t> limit_of(const std::string& head) {
  const auto text = limit_registers(kRegistersHead + head + "{ ret; }\n", 32);
  EXPECT_TRUE(text) << head;
  if (!text) return std::nullopt;
  const auto module = parse(*text);
  EXPECT_TRUE(module) << *text;
  if (!module) return std::nullopt;
  const auto* const directive = (*module)->find_entry("k")->directive("maxnreg");
  return directive == nullptr ? std::nullopt : std::optional(directive->values.at(0));
}

// As ptxas does with -maxrregcount, tried with that of CUDA 13.0.
TEST(RegistersTest, TheLimitIsForKernelsThatSayNothingThemselves) {
  EXPECT_EQ(limit_of(".visible .entry k()"), 32u);
  EXPECT_EQ(limit_of(".visible .entry k(.param .b64 p) // {\n"), 32u);
  EXPECT_EQ(limit_of(".entry k"), 32u);
  EXPECT_EQ(limit_of(".entry k() .minnctapersm 2"), 32u);
  EXPECT_EQ(limit_of(".entry k() .maxnreg 40"), 40u);
  EXPECT_EQ(limit_of(".entry k() .maxntid 128"), std::nullopt);
  EXPECT_EQ(limit_of(".entry k() .reqntid 128, 2, 1"), std::nullopt);
}

TEST(RegistersTest, AllKernelsAndNoFunctionsHaveIt) {
  const auto text = limit_registers(
      kRegistersHead +
          ".entry a();\n.func f() { ret; }\n.entry a() { ret; }\n.entry b() { ret; }\n",
      24);
  ASSERT_TRUE(text);
  std::size_t found = 0;
  for (std::size_t at = text->find(".maxnreg 24"); at != text->npos;
       at = text->find(".maxnreg 24", at + 1)) {
    ++found;
  }
  EXPECT_EQ(found, 2u);
  EXPECT_NE(text->find(".entry a();"), text->npos);
  EXPECT_NE(text->find(".func f() {"), text->npos);
}

TEST(RegistersTest, TextThatIsNoPtxIsRefused) {
  EXPECT_EQ(limit_registers("nothing", 32).error().code, ErrorCode::kInvalidPtx);
}

}  // namespace
}  // namespace slate::ptx
