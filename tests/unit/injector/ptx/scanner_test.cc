#include "injector/ptx/scanner.h"

#include <gtest/gtest.h>

#include <string>

namespace slate::ptx {
namespace {

/// Kinds as one letter, then the bytes: "w:ld.global p:[".
std::string scan(std::string_view text) {
  Scanner scanner(text);
  std::string out;
  for (Token token = scanner.next(); token.kind != TokenKind::kEnd; token = scanner.next()) {
    out += out.empty() ? "" : " ";
    out += "ewdifsp!"[static_cast<int>(token.kind)];
    out += ':';
    out += text.substr(token.span.begin, token.span.end - token.span.begin);
  }
  return out;
}

struct Case {
  const char* text;
  const char* tokens;
};

TEST(ScannerTest, LinesThatSayWhereTheTextCameFromAreSkipped) {
  EXPECT_EQ(scan("# 1 \"a.cu\" 2\nret\n  #line 7 \"b.cu\"\n;"), "w:ret p:;");
  EXPECT_EQ(scan("#define A"), "!:# w:define w:A");
}

TEST(ScannerTest, NamesTokensOfEveryKind) {
  const Case cases[] = {
      {"ld.global.v4.f32 %f1, [%rd1+4];",
       "w:ld.global.v4.f32 w:%f1 p:, p:[ w:%rd1 p:+ i:4 p:] p:;"},
      {"$L__BB0_1:", "w:$L__BB0_1 p::"},
      {"_ %_ %tid.x", "w:_ w:%_ w:%tid.x"},
      {".reg .b32 %r<5>;", "d:.reg d:.b32 w:%r p:< i:5 p:> p:;"},
      {"0 017 0x1F 0b101 5U 0xffU", "i:0 i:017 i:0x1F i:0b101 i:5U i:0xffU"},
      {"1.5 2. .5 1e5 1.5e-3", "f:1.5 f:2. f:.5 f:1e5 f:1.5e-3"},
      {"0f3F800000 0d3FF0000000000000", "f:0f3F800000 f:0d3FF0000000000000"},
      {"st.shared::cluster.b32 .L2::128B .16x256b",
       "w:st.shared::cluster.b32 d:.L2::128B d:.16x256b"},
      {"\"a \\\" b\" << >> <= >= == != && ||",
       "s:\"a \\\" b\" p:<< p:>> p:<= p:>= p:== p:!= p:&& p:||"},
      {"p|q ! @", "w:p p:| w:q p:! p:@"},
  };
  for (const Case& one : cases) EXPECT_EQ(scan(one.text), one.tokens) << one.text;
}

TEST(ScannerTest, CommentsAreNoTokens) {
  EXPECT_EQ(scan("a // b\nc /* d \n * e **/ f /**/ g\n@@DWARF x y\nh"), "w:a w:c w:f w:g w:h");
}

TEST(ScannerTest, ErrorsAreTokens) {
  const Case cases[] = {
      {"a /* b", "w:a !:"},
      {"\"abc\nd", "!:\"abc w:d"},
      {"0x", "!:0x"},
      {"12abc", "!:12abc"},
      {"09", "!:09"},
      {"0f3F80000", "!:0f3F80000"},
      {"a \x01 b", "w:a !:\x01 w:b"},
      {"#", "!:#"},
      {"$", "!:$"},
  };
  for (const Case& one : cases) {
    const std::string found = scan(one.text);
    if (std::string_view(one.text) == "a /* b") {
      EXPECT_TRUE(found.starts_with("w:a !:")) << found;
    } else {
      EXPECT_EQ(found, one.tokens) << one.text;
    }
  }
}

TEST(ScannerTest, CountsLinesThroughComments) {
  Scanner scanner("a\nb /* \n\n */ c\n\n  d // x\n e");
  EXPECT_EQ(scanner.next().line, 1u);
  EXPECT_EQ(scanner.next().line, 2u);
  EXPECT_EQ(scanner.next().line, 4u);
  EXPECT_EQ(scanner.next().line, 6u);
  EXPECT_EQ(scanner.next().line, 7u);
}

TEST(ScannerTest, EndIsForEver) {
  Scanner scanner("a");
  scanner.next();
  EXPECT_EQ(scanner.next().kind, TokenKind::kEnd);
  EXPECT_EQ(scanner.next().kind, TokenKind::kEnd);
}

}  // namespace
}  // namespace slate::ptx
