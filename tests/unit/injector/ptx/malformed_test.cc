// Hostile text: whatever the bytes, parse() gives a module or an error with its line. Run under the
// sanitizers.
#include <gtest/gtest.h>
#include <malloc.h>

#include <random>

#include "dump.h"
#include "tests/fuzz/ptx_check.h"

namespace slate::ptx {
namespace {

TEST(MalformedTest, EveryTruncationGivesAModuleOrAnError) {
  const std::string text = read_data("asm_scopes.ptx");
  std::size_t errors = 0;
  for (std::size_t size = 0; size < text.size(); ++size) {
    errors += !fuzz_parse(text.substr(0, size));
  }
  EXPECT_GT(errors, text.size() / 2);
}

/// One to four changed, removed, doubled or swapped stretches of a real module.
std::string mutated(const std::string& text, std::mt19937& random) {
  std::string out = text;
  const auto below = [&](std::size_t limit) { return limit == 0 ? 0 : random() % limit; };
  for (std::size_t change = 0, changes = 1 + below(4); change < changes; ++change) {
    const std::size_t at = below(out.size());
    const std::size_t length = std::min(below(40), out.size() - at);
    switch (below(4)) {
      case 0:
        out[at] = static_cast<char>(random());
        break;
      case 1:
        out.erase(at, length);
        break;
      case 2:
        out.insert(at, out.substr(below(out.size()), length));
        break;
      default:
        out[at] = "{}[]()<>,;:@!|=+-.%_$0\"/*"[below(25)];
    }
  }
  return out;
}

TEST(MalformedTest, MutationsGiveAModuleOrAnError) {
  std::mt19937 random(20240607);
  std::size_t modules = 0;
  std::size_t errors = 0;
  for (const char* name : {"asm_scopes.ptx", "debug.ptx", "half_and_tensor.ptx", "calls.ptx"}) {
    const std::string text = read_data(name);
    for (int i = 0; i < 1000; ++i) ++(fuzz_parse(mutated(text, random)) ? modules : errors);
  }
  EXPECT_GT(modules, 100u);
  EXPECT_GT(errors, 100u);
}

/// Any tokens in any order reach states that changed real text does not.
TEST(MalformedTest, RandomTokensGiveAModuleOrAnError) {
  const char* words[] = {".entry",
                         ".func",
                         "f",
                         "(",
                         ")",
                         "{",
                         "}",
                         "[",
                         "]",
                         ".param",
                         ".b8",
                         ".u64",
                         ".global",
                         ".const",
                         ".reg",
                         "%r",
                         "<",
                         ">",
                         "5",
                         "0x7f",
                         "1.5",
                         ";",
                         ",",
                         "=",
                         "+",
                         "-",
                         "|",
                         "@",
                         "!",
                         ":",
                         "L",
                         "call",
                         "mov.u32",
                         "%r1",
                         "%tid.x",
                         "generic",
                         ".align",
                         ".v4",
                         ".section",
                         ".extern",
                         ".callprototype",
                         ".branchtargets",
                         ".loc",
                         ".pragma",
                         "\"s\"",
                         ".alias"};
  std::mt19937 random(7);
  for (int i = 0; i < 4000; ++i) {
    std::string text = kHeader;
    if (i % 2 == 0) text += ".entry f ( ) { ";
    for (std::size_t length = random() % 60; length > 0; --length) {
      text += words[random() % std::size(words)];
      text += ' ';
    }
    fuzz_parse(text);
  }
}

TEST(MalformedTest, BytesThatAreNoTextAreErrors) {
  std::mt19937 random(3);
  for (int i = 0; i < 1000; ++i) {
    std::string text(1 + random() % 200, '\0');
    for (char& c : text) c = static_cast<char>(random() | 1);
    EXPECT_FALSE(fuzz_parse(text));
  }
}

TEST(MalformedTest, MessagesShowNoUnprintableBytes) {
  const auto module = parse(kHeader + "\x1b\x07" + std::string(100000, 'x'));
  ASSERT_FALSE(module);
  EXPECT_EQ(module.error().message, "line 4: unexpected character at `?`");
  const auto long_name = parse(kHeader + std::string(100000, 'x'));
  ASSERT_FALSE(long_name);
  EXPECT_LT(long_name.error().message.size(), 100u);
}

/// Modules of about so many bytes that repeat what takes much more room than its text.
std::vector<std::string> bombs(std::size_t bytes) {
  const std::string head = ".version 7.0\n.target sm_70\n";
  const auto repeated = [&](std::string_view before, std::string_view unit,
                            std::string_view after) {
    std::string text = head + std::string(before);
    while (text.size() < bytes) text += unit;
    return text + std::string(after);
  };
  std::string many_names = head + ".entry k()\n{\n.reg .b32 r<100000000>;\n";
  std::string many_labels = head + ".entry k()\n{\n";
  for (int i = 0; many_names.size() < bytes; ++i) many_names += "x r" + std::to_string(i) + ";";
  for (int i = 0; many_labels.size() < bytes; ++i) many_labels += "l" + std::to_string(i) + ":";
  return {
      repeated(".entry k()\n{\n", "x;", "}\n"),
      repeated(".entry k()\n{\n", "x a;", "}\n"),
      repeated(".entry k()\n{\n", "x {a};", "}\n"),
      repeated(".entry k()\n{\n", "x [a];", "}\n"),
      repeated(".entry k()\n{\nx a", ",a", ";}\n"),
      repeated(".entry k()\n{\nx", ".a", ";}\n"),
      repeated(".entry k()\n{\n", "{.reg .b32 a,b,c,d;}", "}\n"),
      repeated("", ".func f;", ""),
      repeated("", ".global .b8 a;", ""),
      repeated("", ".alias a,b;", ""),
      repeated(".entry k() .maxntid 1", ",1", "{}\n"),
      repeated(".entry k()", ".a", "{}\n"),
      repeated(".global .b64 a[] = {b", ",b", "};\n"),
      repeated(".global .b128 a[] = {1", ",1", "};\n"),
      many_names + "}\n",
      many_labels + "}\n",
  };
}

TEST(MalformedTest, WhatTakesMoreRoomThanTheLimitIsRefused) {
  for (const std::string& text : bombs(400'000)) {
    const auto module = parse(text, {.tree_bytes = 1 << 20});
    ASSERT_FALSE(module) << text.substr(0, 80);
    EXPECT_EQ(module.error().code, ErrorCode::kLimit) << module.error().message;
    EXPECT_TRUE(module.error().message.starts_with("line "));
  }
}

TEST(MalformedTest, TextThatNobodyWantsAnyMoreIsNotReadToItsEnd) {
  std::string text = ".version 7.0\n.target sm_70\n.entry k()\n{\n";
  while (text.size() < 4 << 20) text += "x;";
  int asked = 0;
  ParseLimits limits;
  limits.is_over = [&asked] { return ++asked == 2; };
  for (const bool bodies : {true, false}) {
    asked = 0;
    limits.bodies = bodies;
    const auto module = parse(text + "}\n", limits);
    ASSERT_FALSE(module);
    EXPECT_EQ(module.error().code, ErrorCode::kIo);
    EXPECT_EQ(asked, 2);
  }
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
TEST(MalformedTest, NoTextTakesMuchMoreRoomThanIsSaid) {
  for (const std::string& text : bombs(400'000)) {
    const std::size_t before = mallinfo2().uordblks + mallinfo2().hblkhd;
    const auto module = parse(text);
    const std::size_t taken = mallinfo2().uordblks + mallinfo2().hblkhd - before;
    ASSERT_TRUE(module) << module.error().message;
    // Vectors may have twice the room that they need.
    EXPECT_LT(taken, 2 * (*module)->tree_bytes + 2 * text.size()) << text.substr(0, 80);
  }
}
#endif

TEST(MalformedTest, InProportionToTheTextCompilersTextFitsAndBombsDoNot) {
  const std::string text = read_data("calls.ptx");
  // No small text would be too large.
  std::string large = text.substr(0, text.find(".visible"));
  for (int i = 0; large.size() < 2 << 20; ++i) {
    large += ".func f" + std::to_string(i) + "()\n{\n";
    large += "\t.reg .b32 \t%r<4>;\n";
    for (int j = 0; j < 100; ++j) large += "\tadd.s32 \t%r1, %r2, %r3;\n";
    large += "\tret;\n}\n";
  }
  const auto module = parse(large, ParseLimits::for_text(large.size()));
  EXPECT_TRUE(module) << module.error().message;
  std::string bomb = ".version 7.0\n.target sm_70\n.entry k()\n{\n";
  while (bomb.size() < 2 << 20) bomb += "x;";
  EXPECT_FALSE(parse(bomb + "}\n", ParseLimits::for_text(bomb.size())));
}

TEST(MalformedTest, ARangeHasNoInitialValues) {
  const auto module = parse(
      ".version 7.0\n.target sm_70\n.entry k()\n{\n.local .b8 a<1000>[2] = {1, 2};\nx a1;\n}\n");
  ASSERT_FALSE(module) << "each of the thousand would have them";
  EXPECT_EQ(module.error().code, ErrorCode::kInvalidPtx);
}

}  // namespace
}  // namespace slate::ptx
