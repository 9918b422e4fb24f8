#include "injector/analysis/scopes.h"

#include <gtest/gtest.h>

#include <string>

namespace slate::injector {
namespace {

struct Found {
  std::unique_ptr<const ptx::Module> module;
  const ptx::Function& function() const { return module->functions.back(); }
  const std::vector<ptx::InnerScope>& scopes() const { return function().scopes; }
  std::string text(std::size_t i) const {
    const ptx::Span span = scopes().at(i).span;
    return module->text.substr(span.begin, span.end - span.begin);
  }
};

Found find(const std::string& body) {
  auto module = ptx::parse(
      ".version 8.8\n.target sm_90\n.address_size 64\n.visible .entry k()\n{\n"
      ".reg .b32 %r<9>;\n" +
      body + "\nret;\n}\n");
  EXPECT_TRUE(module) << module.error().message;
  return {std::move(*module)};
}

TEST(ScopesTest, AFunctionWithoutAnyHasNone) {
  EXPECT_TRUE(find("mov.u32 %r1, 0;").scopes().empty());
}

TEST(ScopesTest, TheOutermostOnesInOrderWithTheirInstructions) {
  const Found found = find(
      "mov.u32 %r1, 0;\n{ mov.u32 %r2, 1; { mov.u32 %r3, 2; } }\n"
      "mov.u32 %r4, 3;\n{ .reg .b32 %x; mov.u32 %x, 4; }");
  ASSERT_EQ(found.scopes().size(), 2u);
  EXPECT_EQ(found.text(0), "{ mov.u32 %r2, 1; { mov.u32 %r3, 2; } }");
  EXPECT_EQ(found.scopes()[0].first, 1u);
  EXPECT_EQ(found.scopes()[0].end, 3u);
  EXPECT_EQ(found.text(1), "{ .reg .b32 %x; mov.u32 %x, 4; }");
  EXPECT_EQ(scope_of(found.function(), 0), nullptr);
  EXPECT_EQ(scope_of(found.function(), 2), &found.scopes()[0]);
  EXPECT_EQ(scope_of(found.function(), 3), nullptr);
  EXPECT_EQ(scope_of(found.function(), 4), &found.scopes()[1]);
  EXPECT_EQ(scope_of(found.function(), 5), nullptr);
}

TEST(ScopesTest, ThoseWithoutInstructionsDoNotCount) {
  EXPECT_TRUE(find("{ }\nmov.u32 %r1, 0;\n{ .reg .b32 %x; }").scopes().empty());
}

TEST(ScopesTest, BracesOfVectorsCommentsAndStringsAreNone) {
  EXPECT_TRUE(find("// {\n@@DWARF {\n/* { */ .pragma \"{\";\n"
                   "mov.b64 %r1, {%r2, %r3};")
                  .scopes()
                  .empty());
}

}  // namespace
}  // namespace slate::injector
