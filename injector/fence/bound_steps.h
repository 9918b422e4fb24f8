// BoundSteps: the steps of AccessBounds while they are found, and their numbers in two launches
// that say what is worth following. Thread: one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "injector/analysis/parameter_layout.h"
#include "injector/fence/access_bounds.h"
#include "injector/fence/bound_values.h"

namespace slate::injector {

/// A number, or an address: `step` gives the bytes from the beginning of a variable, which is named
/// or loaded from its row of the table. Null: from 0.
struct BoundNumber {
  const ptx::Operand* variable = nullptr;
  std::uint32_t step = 0;
};

class BoundSteps {
 public:
  static constexpr std::uint32_t kUnknown = 0;  // the step that is always there

  /// `launch`: one whose accesses are to be bounded; null: two small ones are tried. Requires: what
  /// it leads to outlives this.
  BoundSteps(const ptx::Function& function, const ParameterLayout& layout,
             const LaunchValues* launch);

  /// The step, or an earlier one that is the same number. kUnknown: there are too many.
  std::uint32_t add(BoundStep step);
  std::uint32_t number(std::int64_t value) { return add({.op = BoundOp::kNumber, .value = value}); }
  /// The step as a number of so many bits.
  std::uint32_t read(std::uint32_t step, unsigned bits, bool is_signed);
  BoundNumber sum(BoundNumber a, BoundNumber b);
  /// One of the numbers. Null: of none, or of addresses in several variables.
  std::optional<BoundNumber> any_of(const std::vector<BoundNumber>& numbers);
  /// The claim that the step is this number.
  BoundClaim is_number(std::uint32_t step, std::uint32_t number);

  std::uint32_t count() const { return static_cast<std::uint32_t>(steps_.size()); }
  /// Takes back what was added behind the first `count` steps. Requires: nobody names it any more.
  void go_back_to(std::uint32_t count);

  /// In the launch, or in the one with many threads.
  bool may_be_narrow(std::uint32_t step) const {
    return many_.is_empty(step) || many_.is_narrow(step);
  }
  bool is_narrower(std::uint32_t step, std::uint32_t other) const {
    return many_.is_narrower(step, other);
  }
  bool begins_below(std::uint32_t step, std::uint32_t other) const {
    return many_.begins_below(step, other);
  }
  bool ends_above(std::uint32_t step, std::uint32_t other) const {
    return many_.ends_above(step, other);
  }
  /// How many of the lowest bits are 0 there in each of the step's numbers.
  unsigned zeros(std::uint32_t step) const { return many_.zeros(step); }
  /// Whether no thread comes to the step, as far as the launches say.
  bool is_empty(std::uint32_t step) const {
    return many_.is_empty(step) && (!has_launch_ || one_.is_empty(step));
  }
  /// Whether the claim seems to hold for some launches. Where one does not, none of them helps.
  bool may_hold(const BoundClaim& claim) const;

  /// The steps without those that no claim needs. Those of the claims are numbered anew.
  AccessBounds bounds(std::vector<BoundClaim> claims) const;

 private:
  static constexpr std::size_t kMost = 8192;  // beyond it nothing is followed any more

  std::map<BoundStep, std::uint32_t> computed_;  // steps by what they compute
  std::vector<BoundStep> steps_;
  // Of two small launches, one with many threads and one with one. Or of the given launch, and of a
  // small one with its block.
  const std::vector<std::byte> parameters_;
  const bool has_launch_;
  const LaunchValues many_launch_, one_launch_;
  BoundValues many_, one_;
};

}  // namespace slate::injector
