// The rules of scanner.l, one by one.
#include "injector/source/scanner.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "injector/source/files.h"
#include "injector/source/macros.h"

namespace slate::source {
namespace {

std::vector<std::string> words(std::string_view text) {
  std::vector<std::string> result;
  for (const Token& token : scan(text)) result.emplace_back(token.in(text));
  return result;
}

using Words = std::vector<std::string>;

TEST(SourceScannerTest, CommentsVanishAndKeepTokensApart) {
  EXPECT_EQ(words("a/* b { */c // d }\ne"), (Words{"a", "c", "e"}));
  EXPECT_EQ(words("a // goes on \\\n b\nc"), (Words{"a", "c"}));
  EXPECT_EQ(words("a /* ** * / **/ b"), (Words{"a", "b"}));
}

TEST(SourceScannerTest, BracesInLiteralsAreNoTokens) {
  EXPECT_EQ(words(R"("{ \" // }" '{' u8"}")"), (Words{R"("{ \" // }")", "'{'", "u8\"}\""}));
}

TEST(SourceScannerTest, RawStringEndsAtItsOwnDelimiter) {
  const std::string raw = "R\"x(a )\" )y\" \\ { /* )x\"";
  EXPECT_EQ(words(raw + ";"), (Words{raw, ";"}));
  EXPECT_EQ(words("LR\"()\" b"), (Words{"LR\"()\"", "b"}));
}

TEST(SourceScannerTest, OpenRawStringAndOpenCommentAreErrors) {
  EXPECT_EQ(scan("R\"x( )y\" ").back().kind, TokenKind::kError);
  EXPECT_EQ(scan("a /* b").back().kind, TokenKind::kError);
}

TEST(SourceScannerTest, DirectiveIsOneTokenWithItsContinuations) {
  const std::string text = "  #define F(x) { \\\n  x; /* two\n lines */ }\nint a;";
  const auto tokens = scan(text);
  ASSERT_EQ(tokens.size(), 4u);
  EXPECT_EQ(tokens[0].kind, TokenKind::kDirective);
  EXPECT_EQ(tokens[0].in(text), text.substr(0, text.find("\nint")));
}

TEST(SourceScannerTest, HashInsideALineIsNoDirective) {
  const std::string text = "a # b";
  EXPECT_EQ(scan(text).size(), 3u);
}

TEST(SourceScannerTest, LaunchOpensAsOneTokenAndClosesAsThree) {
  const std::string text = "k<<<1, 2>>>(x)";
  const auto tokens = scan(text);
  EXPECT_TRUE(tokens[1].is(op::kLaunch));
  EXPECT_EQ(words(text), (Words{"k", "<<<", "1", ",", "2", ">", ">", ">", "(", "x", ")"}));
}

TEST(SourceScannerTest, NumbersKeepSeparatorsAndExponents) {
  EXPECT_EQ(words("1'000 0x1p-3 1.e+5f .5"), (Words{"1'000", "0x1p-3", "1.e+5f", ".5"}));
}

TEST(SourceScannerTest, LinesAreCountedFromOffsets) {
  const auto file = make_file("f", "", "a\n\nb \\\n c");
  ASSERT_EQ(file->tokens.size(), 3u);
  EXPECT_EQ(file->line_of(file->tokens[0].begin), 1u);
  EXPECT_EQ(file->line_of(file->tokens[1].begin), 3u);
  EXPECT_EQ(file->line_of(file->tokens[2].begin), 4u);
}

TEST(SourceMacrosTest, MarksComeThroughMacros) {
  const auto file = make_file("f", "", "#define HD __host__ __device__\n#define K(x) HD x\n");
  MacroTable macros;
  for (const Token& token : file->tokens) macros.add(*file, token);
  EXPECT_EQ(macros.marks_of("K"), std::uint32_t{kHost | kDevice});
  EXPECT_EQ(macros.marks_of("other"), 0u);
}

TEST(SourceMacrosTest, SelfReferenceEnds) {
  const auto file = make_file("f", "", "#define A B A\n#define B A\n#define F(x) F(x) + 1\n");
  MacroTable macros;
  for (const Token& token : file->tokens) macros.add(*file, token);
  EXPECT_EQ(macros.marks_of("A"), 0u);
  EXPECT_EQ(macros.expanded("A"), "A A");
  EXPECT_EQ(macros.expanded("F(2)"), "F ( 2 ) + 1");
}

TEST(SourceMacrosTest, ArgumentsArePastedAndCommasInBracketsKept) {
  const auto file =
      make_file("f", "", "#define N(a, b) a##_##b b\n#define V(x, ...) x<__VA_ARGS__>\n");
  MacroTable macros;
  for (const Token& token : file->tokens) macros.add(*file, token);
  EXPECT_EQ(macros.expanded("N(one, f(1, 2))"), "one_f ( 1 , 2 ) f ( 1 , 2 )");
  EXPECT_EQ(macros.expanded("V(k, float, 4)"), "k < float , 4 >");
}

}  // namespace
}  // namespace slate::source
