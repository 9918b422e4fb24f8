// Effort: what the analysis of a module has cost so far, and its limit. Text can ask for far more
// work than its length: every branch of a kernel can part the threads of all code behind it. Passes
// with more work than a small multiple of the text's length charge it here. Thread: one at a time.
#pragma once

#include <cstdint>

namespace slate::injector {

class Effort {
 public:
  /// Steps that any text may cost: a fraction of a second.
  static constexpr std::uint64_t kFree = std::uint64_t{1} << 23;
  /// Steps that each byte of the text adds. Text of compilers takes a third of them at most.
  static constexpr std::uint64_t kPerByte = 16;

  Effort() = default;  // no limit
  explicit Effort(std::uint64_t most) : most_(most) {}
  static Effort for_text(std::uint64_t bytes) { return Effort(kFree + kPerByte * bytes); }

  /// Charges `steps`: visits of an instruction, a block of code or a register. Returns false beyond
  /// the limit: the pass may stop at once, and its result is not used.
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
