// Effort: what the analysis of a module has cost so far, and what it may cost. Text can ask for far
// more than it has itself: every branch of a kernel can part the threads of all code behind it.
// Passes whose work is more than a small multiple of the text's length charge it here. One thread.
#pragma once

#include <cstdint>

namespace slate::injector {

class Effort {
 public:
  /// What any text may cost: a fraction of a second.
  static constexpr std::uint64_t kFree = std::uint64_t{1} << 23;
  /// What each of its bytes adds to that. Compilers' text takes a third of it at most.
  static constexpr std::uint64_t kPerByte = 16;

  Effort() = default;  // no limit
  explicit Effort(std::uint64_t most) : most_(most) {}
  static Effort for_text(std::uint64_t bytes) { return Effort(kFree + kPerByte * bytes); }

  /// One step is a look at an instruction, a block of code or a register. False if these are too
  /// many: the pass may stop at once, and its result counts for nothing.
  bool take(std::uint64_t steps) {
    steps_ += steps;
    return !is_spent();
  }
  bool is_spent() const { return steps_ > most_; }
  std::uint64_t steps() const { return steps_; }

 private:
  std::uint64_t most_ = ~std::uint64_t{0};
  std::uint64_t steps_ = 0;
};

}  // namespace slate::injector
