// BoundCheck: carries out AccessBounds for one launch after the other, as hold() does, but in
// narrow numbers, and only those steps whose numbers are others than at the last launch. It also
// does so for many launches at once: those whose numbers lie in ranges. Thread: one at a time.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "injector/fence/access_bounds.h"
#include "injector/fence/bound_values.h"

namespace slate::injector {

class BoundCheck {
 public:
  explicit BoundCheck(AccessBounds bounds);

  /// How many numbers of a launch the bounds depend on, beside the main extent.
  std::size_t inputs() const { return inputs_.size(); }
  /// Reads these numbers. False: the launch has too few parameters. Requires: `numbers` has as
  /// many.
  bool read(const LaunchValues& launch, std::span<std::uint64_t> numbers) const;
  /// As hold(). `numbers`: what read() found.
  bool hold(const LaunchValues& launch, std::span<const std::uint64_t> numbers);
  /// As hold(), from the beginning: for launches that read() cannot read.
  bool hold_anew(const LaunchValues& launch) const;
  /// Whether the bounds hold for each launch with numbers out of these ranges and with the extent
  /// of `launch`. Errs towards false.
  bool hold_within(const LaunchValues& launch, std::span<const InputRange> ranges);

 private:
  enum class Answer : std::uint8_t { kNo, kYes, kLost };

  /// A claim that a number of the launch is aligned.
  struct Alignment {
    std::uint32_t input = 0;
    unsigned zeros = 0;  // how many of its lowest bits have to be 0
  };
  static constexpr std::uint32_t kNoInput = ~std::uint32_t{0};

  static std::uint64_t bit_of(std::uint32_t input) {
    return std::uint64_t{1} << std::min(input, 63u);
  }
  std::uint64_t take(const LaunchValues& launch, std::span<const InputRange> ranges);
  Answer answer(const LaunchValues& launch, std::span<const InputRange> ranges);

  const AccessBounds bounds_;
  bool is_sound_ = true;   // whether steps and claims name earlier steps only
  bool is_narrow_ = true;  // whether narrow numbers may do
  std::vector<Alignment> alignments_;
  std::vector<BoundClaim> claims_;     // the others, by rising step
  std::vector<BoundStep> inputs_;      // what reads them
  std::vector<std::uint32_t> places_;  // by step: the input that it is; kNoInput: it is none
  std::vector<std::uint64_t> masks_;   // by step: the inputs that it is made of
  std::vector<InputRange> exact_;      // for one launch
  // What the first `done_` steps were made of. Their claims hold.
  std::vector<InputRange> taken_;
  std::uint64_t low_ = 0, bytes_ = 0;  // the main extent
  std::uint32_t done_ = 0;
  NarrowValues values_;
};

}  // namespace slate::injector
