// BoundValues: the intervals that the steps of AccessBounds have in a launch, and whether claims
// hold of them. Numbers are as wide as anything that steps can compute. Or they are as wide as a
// register of the host (NarrowValues): that is quicker, and says where it does not suffice.
// Thread: one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "injector/fence/access_bounds.h"

namespace slate::injector {

/// All numbers from `low` to `high`. None: `low` is larger.
template <typename Number>
struct IntervalOf {
  Number low = 0, high = 0;
  bool operator==(const IntervalOf&) const = default;
};

/// Numbers of a launch that a step may read.
struct InputRange {
  std::uint64_t low = 0, high = 0;
  unsigned zeros = 0;  // how many of the lowest bits are 0 in each of them
  bool operator==(const InputRange&) const = default;
};

/// The number that a step reads from the launch. Null: there is none.
std::optional<std::uint64_t> read_input(const BoundStep& step, const LaunchValues& launch);
/// The step of the address that a claim of the kind kAligned is about.
BoundStep address_of(const BoundClaim& claim);
/// How many of the number's lowest bits are 0: at most 63.
unsigned zeros_of(std::uint64_t number);

template <typename Number>
class BoundMath;

/// Number: a signed integer. It has more than 25 functions, as arithmetic has rules for intervals,
/// for sums and for lowest bits. Each number of a step has a column of its own: two in a row would
/// be written one by one and read at once, for which a processor waits until both are in its cache.
template <typename Number>
class BoundValuesOf {
 public:
  using Interval = IntervalOf<Number>;

  /// Requires: begin() is called first.
  BoundValuesOf() = default;
  /// Requires: `launch` outlives it.
  explicit BoundValuesOf(const LaunchValues& launch) : launch_(&launch) {}

  /// A new launch: all steps are to be added anew, or be gone beyond. Requires: `launch` outlives
  /// what is asked about it.
  void begin(const LaunchValues& launch);
  /// The next step has this number. Requires: those in front are there, as the launch makes them.
  void go_to(std::uint32_t step) { steps_ = step; }
  /// False: the step names later ones, or is none.
  bool add(const BoundStep& step);
  /// Whether its own numbers fit. Wide ones always do.
  static bool fits(const BoundStep& step);
  /// As add(). Requires: reserve() made room, the step names earlier ones, and fits.
  void add_sound(const BoundStep& step);
  /// A step that is one of the numbers of `input`, the same one at any time. Requires: reserve()
  /// made room.
  void add_input(const InputRange& input);
  bool holds(const BoundClaim& claim) const;
  /// Whether no thread comes to the step.
  bool is_empty(std::uint32_t step) const;
  /// Whether the step's interval has fewer than 2^31 numbers: an index that nothing bounds has
  /// more.
  bool is_narrow(std::uint32_t step) const;
  /// Whether the step's interval has fewer numbers than another one's.
  bool is_narrower(std::uint32_t step, std::uint32_t other) const;
  /// Whether the step's interval begins below another one's, or ends above it.
  bool begins_below(std::uint32_t step, std::uint32_t other) const {
    return lows_[step] < lows_[other];
  }
  bool ends_above(std::uint32_t step, std::uint32_t other) const {
    return highs_[step] > highs_[other];
  }
  /// How many of the lowest bits are 0 in each of the step's numbers.
  unsigned zeros(std::uint32_t step) const { return zeros_[step]; }
  /// Makes room for so many steps.
  void reserve(std::size_t steps);
  /// Whether a number did not fit, so that nothing that was found counts. BoundValues: never.
  bool is_lost() const { return is_lost_; }

 private:
  using Math = BoundMath<Number>;

  // A step may be a sum of others times numbers, plus a constant. The others' numbers are those of
  // the same thread at the same time, so what two steps have in common cancels out (affine
  // arithmetic).
  static constexpr std::uint32_t kMostTerms = 8;
  static constexpr std::uint8_t kNoSum = 0xff;

  struct Terms {
    std::uint32_t first = 0;
    std::uint8_t count = 0;
  };

  Interval found(std::uint32_t step) const { return {lows_[step], highs_[step]}; }
  Interval leaf(const BoundStep& step);
  Interval of(const BoundStep& step);
  Interval invariant(const BoundStep& step) const;
  Interval rest_of(std::uint32_t first, std::uint8_t count);
  unsigned zeros(const BoundStep& step, Interval now) const;
  // The sum of the step that comes next.
  std::uint32_t own_terms() const { return steps_ * kMostTerms; }
  bool has_sum(const BoundStep& step, Interval now);
  void set_sum_of(const BoundStep& step, Interval now);
  void set_sum(Number constant, std::uint32_t first, std::uint8_t count, Interval rest) {
    constants_[steps_] = constant;
    firsts_[steps_] = first;
    counts_[steps_] = count;
    rest_lows_[steps_] = rest.low;
    rest_highs_[steps_] = rest.high;
  }
  void set_no_sum() { counts_[steps_] = kNoSum; }
  void set_number(Number number) { set_sum(number, 0, 0, {}); }
  void set_same_terms(std::uint32_t step, Number constant) {
    set_sum(constant, firsts_[step], counts_[step], {rest_lows_[step], rest_highs_[step]});
  }
  void set_total(std::uint32_t a, std::uint32_t b, Number times);
  void set_merged(Number constant, Terms a, Terms b, Number times);
  bool may_add(std::uint32_t step) const;
  void set_product(std::uint32_t a, Number times);
  // The step that comes next.
  void put(Interval now, unsigned zeros) {
    lows_[steps_] = now.low;
    highs_[steps_] = now.high;
    zeros_[steps_] = static_cast<std::uint8_t>(zeros);
    ++steps_;
  }
  void put_itself(Interval now, unsigned zeros);

  const LaunchValues* launch_ = nullptr;
  bool is_lost_ = false;
  std::uint32_t steps_ = 0;
  // By step: the interval, how many of its lowest bits are surely 0, the sum's constant and terms,
  // and what those add up to.
  std::vector<Number> lows_, highs_;
  std::vector<std::uint8_t> zeros_;
  std::vector<Number> constants_, rest_lows_, rest_highs_;
  std::vector<std::uint32_t> firsts_;
  std::vector<std::uint8_t> counts_;
  // By term: kMostTerms for each step, which others may have too.
  std::vector<std::uint32_t> term_steps_;
  std::vector<Number> factors_;
};

__extension__ using WideNumber = __int128;
using BoundValues = BoundValuesOf<WideNumber>;
using NarrowValues = BoundValuesOf<std::int64_t>;

extern template class BoundValuesOf<WideNumber>;
extern template class BoundValuesOf<std::int64_t>;

}  // namespace slate::injector
