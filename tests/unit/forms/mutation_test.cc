// Damaged modules: whatever still parses is analysed, injected and fenced or refused, and what
// comes out parses. Nothing crashes. A fixed number of inputs, the same every time.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>

#include "injector/fence/fence.h"
#include "injector/forms/inject.h"

namespace slate::injector {
namespace {

constexpr int kInputs = 4000;

std::vector<std::string> lines_of(const std::filesystem::path& path) {
  std::ifstream in(path);
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

/// Where some word of the line begins, and its length; 0: it has none.
std::pair<std::size_t, std::size_t> any_word(const std::string& line, std::mt19937& random) {
  constexpr const char* kBetween = " \t,;[]{}()";
  std::vector<std::pair<std::size_t, std::size_t>> words{{0, 0}};
  for (std::size_t at = line.find_first_not_of(kBetween); at != std::string::npos;
       at = line.find_first_not_of(kBetween, words.back().first + words.back().second)) {
    words.emplace_back(at, std::min(line.find_first_of(kBetween, at), line.size()) - at);
  }
  return words.size() == 1 ? words[0] : words[1 + random() % (words.size() - 1)];
}

/// A few lines removed, repeated, exchanged, or with a word of another line in them.
std::string mutate(std::vector<std::string> lines, std::mt19937& random) {
  const auto any = [&] { return static_cast<std::size_t>(random()) % lines.size(); };
  for (std::uint32_t i = 0; i < 1 + random() % 4; ++i) {
    const std::size_t at = any();
    const std::string other = lines[any()];
    switch (random() % 8) {
      case 0:
        lines[at].clear();
        break;
      case 1:
        lines[at] += "\n" + other;
        break;
      case 2:
        std::swap(lines[at], lines[any()]);
        break;
      case 3: {
        const std::size_t comma = lines[at].rfind(',');
        if (comma != std::string::npos) lines[at].resize(comma);
        lines[at] += ";";
        break;
      }
      case 4:
      case 5:
      case 6: {
        const auto [to, length] = any_word(lines[at], random);
        const auto [from, count] = any_word(other, random);
        lines[at].replace(to, length, random() % 8 == 0 ? "1" : other.substr(from, count));
        break;
      }
      default: {
        const std::size_t from = other.rfind(' ');
        const std::size_t to = lines[at].rfind(' ');
        if (from != std::string::npos && to != std::string::npos) {
          lines[at] = lines[at].substr(0, to) + other.substr(from);
        }
      }
    }
  }
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

TEST(MutationTest, DamagedModulesAreInjectedOrRefused) {
  std::vector<std::vector<std::string>> kernels;
  for (const auto& file : std::filesystem::directory_iterator(SLATE_GOLDEN "/kernels")) {
    if (file.path().extension() == ".ptx") kernels.push_back(lines_of(file.path()));
  }
  ASSERT_FALSE(kernels.empty());
  std::ranges::sort(kernels);  // the folder has an order of its own
  std::mt19937 random(7);
  int injected_count = 0;
  for (int i = 0; i < kInputs; ++i) {
    const std::string text = mutate(kernels[random() % kernels.size()], random);
    const auto module = ptx::parse(text);
    if (!module) continue;
    const auto injected =
        inject(**module, {.profile = true, .settle_sums = i % 2 == 0, .most_registers = {}});
    if (!injected) {
      EXPECT_EQ(injected.error().code, ErrorCode::kInternal) << text;
      continue;
    }
    ++injected_count;
    const auto again = ptx::parse(injected->ptx);
    ASSERT_TRUE(again) << again.error().message << "\n" << injected->ptx;
    const auto fenced = fence(**again, {.names = OwnNames::kExpected});
    if (!fenced) {
      EXPECT_EQ(fenced.error().code, ErrorCode::kNotSupported) << fenced.error().message;
      continue;
    }
    const auto last = ptx::parse(fenced->ptx);
    ASSERT_TRUE(last) << last.error().message << "\n" << fenced->ptx;
  }
  EXPECT_GT(injected_count, kInputs / 10);
}

}  // namespace
}  // namespace slate::injector
