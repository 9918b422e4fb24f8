// RandomText: random choices, and the text of a kernel that is made of them. A base of generators.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <cstdlib>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace slate::test {

/// Kernels of each test; SLATE_TEST_RANDOM_KERNELS in the environment says otherwise.
inline int random_kernels() {
  const char* const wanted = std::getenv("SLATE_TEST_RANDOM_KERNELS");
  return wanted != nullptr ? std::atoi(wanted) : SLATE_RANDOM_KERNELS;
}

class RandomText {
 protected:
  explicit RandomText(std::uint64_t seed) : random_(seed) {}

  int pick(int below) { return std::uniform_int_distribution(0, below - 1)(random_); }
  bool chance(int of) { return pick(of) == 0; }
  template <typename T>
  const T& one_of(const std::vector<T>& all) {
    return all[static_cast<std::size_t>(pick(static_cast<int>(all.size())))];
  }
  /// A register's name that was not used yet.
  std::string fresh(std::string_view kind) { return fmt::format("%{}{}", kind, next_++); }
  template <typename... T>
  void line(fmt::format_string<T...> format, T&&... values) {
    body_ += fmt::format(format, std::forward<T>(values)...) + "\n";
  }

  /// A branch where `condition` holds, past what `write` writes; one in `of` to another way, which
  /// it writes too.
  void branch_past(const std::string& condition, int of, auto&& write) {
    const std::string other = fmt::format("OTHER{}", next_++), end = fmt::format("END{}", next_++);
    line("@{} bra {};", condition, other);
    write();
    if (chance(of)) {
      line("bra {};\n{}:", end, other);
      write();
      line("{}:", end);
    } else {
      line("{}:", other);
    }
  }

  std::mt19937_64 random_;
  std::string body_;
  int next_ = 20;  // of the next register
};

}  // namespace slate::test
