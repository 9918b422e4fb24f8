// Hostile text: whatever the bytes, parse() gives a module or an error with its line. Run under the
// sanitizers.
#include <gtest/gtest.h>

#include <random>

#include "dump.h"
#include "tests/fuzz/ptx_fuzz.h"

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

}  // namespace
}  // namespace slate::ptx
