#include "injector/fence/bound_values.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <limits>

namespace slate::injector {

/// The arithmetic of intervals.
template <typename Number>
class BoundMath {
 public:
  using Interval = IntervalOf<Number>;

  static constexpr bool kIsWide = sizeof(Number) > sizeof(std::int64_t);
  // Beyond it nothing is known. A narrow number never comes there.
  static constexpr Number kHuge = [] {
    if constexpr (kIsWide)
      return Number{1} << 100;
    else
      return std::numeric_limits<Number>::max();
  }();
  static constexpr Number kLimit = Number{1} << 62;  // what two may be multiplied up to
  static constexpr Interval kEverything{.low = -kHuge, .high = kHuge};
  static constexpr Interval kNothing{.low = 1, .high = 0};

  /// `is_lost`: becomes true where a number that is known is narrow, and not below kLimit.
  explicit BoundMath(bool& is_lost) : is_lost_(is_lost) {}

  static bool is_empty(Interval of) { return of.low > of.high; }
  static bool may_multiply(Number of) { return of >= -kLimit && of <= kLimit; }
  static bool may_multiply(Interval of) { return of.low >= -kLimit && of.high <= kLimit; }
  static bool is_everything(Interval of) { return of.low == -kHuge && of.high == kHuge; }
  static bool is_known(Interval of) { return of.low > -kHuge && of.high < kHuge; }

  /// What was not known stays so, and what is too large is not.
  Interval limited(Interval of) {
    if (is_empty(of)) return kNothing;
    if constexpr (kIsWide) return is_known(of) ? of : kEverything;
    if (of.low == -kHuge || of.high == kHuge) return kEverything;
    const bool fits = of.low > -kLimit && of.high < kLimit;
    is_lost_ |= !fits;
    return fits ? of : kEverything;
  }

  /// A number that is known. Narrow ones have one bit to spare for sums.
  Number small(Number number) {
    if constexpr (kIsWide) return number;
    const bool fits = number > -kLimit && number < kLimit;
    is_lost_ |= !fits;
    return fits ? number : 0;
  }

  Number from_unsigned(std::uint64_t number) {
    if constexpr (kIsWide) return number;
    const bool fits = number < static_cast<std::uint64_t>(kLimit);
    is_lost_ |= !fits;
    return fits ? static_cast<Number>(number) : 0;
  }

  Number multiplied(Number a, Number b) {
    if constexpr (kIsWide) return a * b;
    Number product = 0;
    const bool fits = !__builtin_mul_overflow(a, b, &product);
    is_lost_ |= !fits;
    return fits ? small(product) : 0;
  }

  /// `a` as a term of a sum, times its factor.
  Interval times_within(Interval a, Number factor) {
    return may_multiply(a) ? times(a, factor) : kEverything;
  }

  static constexpr Number two_to(unsigned bits) { return Number{1} << bits; }

  /// Of 64 bits only those that a known narrow number can be.
  static Interval range_of(const BoundStep& step, bool is_signed) {
    if constexpr (!kIsWide) {
      if (step.bits == 64) return {.low = is_signed ? -kHuge - 1 : 0, .high = kHuge - 1};
    }
    return is_signed ? Interval{.low = -two_to(step.bits - 1u), .high = two_to(step.bits - 1u) - 1}
                     : Interval{.low = 0, .high = two_to(step.bits) - 1};
  }
  static Interval range_of(const BoundStep& step) { return range_of(step, step.is_signed); }

  /// The same register's bits as a number of the step's type.
  Interval read(Interval of, const BoundStep& step, bool is_signed) {
    if (is_empty(of)) return of;
    const Interval all = range_of(step, is_signed);
    if constexpr (!kIsWide) {
      if (step.bits == 64) {
        const bool fits = is_known(of) && of.low >= all.low;
        is_lost_ |= !fits;
        return fits ? of : Interval{};
      }
    }
    if (!is_known(of)) return all;
    const Number turns = (of.low - all.low) >> step.bits;
    if (turns == 0) return of.high <= all.high ? of : all;
    const Number low = of.low - (turns << step.bits);
    const Number high = of.high - (turns << step.bits);
    return high <= all.high ? Interval{.low = low, .high = high} : all;
  }
  Interval read(Interval of, const BoundStep& step) { return read(of, step, step.is_signed); }

  static Interval shifted(Interval a, std::int64_t by) {
    return is_known(a) && by >= 0 && by < 64 ? Interval{a.low >> by, a.high >> by} : kEverything;
  }

  Interval product(Interval a, Interval b) {
    if (!may_multiply(a) || !may_multiply(b)) return kEverything;
    if (b.low == b.high) return times(a, b.low);
    if (a.low == a.high) return times(b, a.low);
    const Number low = multiplied(a.low, b.low), high = multiplied(a.high, b.high);
    const Number one = multiplied(a.low, b.high), other = multiplied(a.high, b.low);
    return limited({.low = std::min(std::min(low, high), std::min(one, other)),
                    .high = std::max(std::max(low, high), std::max(one, other))});
  }

  /// Requires: none is beyond kLimit.
  Interval times(Interval a, Number number) {
    const Number one = multiplied(a.low, number), other = multiplied(a.high, number);
    return limited({.low = std::min(one, other), .high = std::max(one, other)});
  }

  /// How many bits a number from 0 on needs.
  static unsigned width(Number number) {
    if constexpr (kIsWide) {
      const auto upper = static_cast<std::uint64_t>(number >> 64);
      if (upper != 0) return 64u + static_cast<unsigned>(std::bit_width(upper));
    }
    return static_cast<unsigned>(std::bit_width(static_cast<std::uint64_t>(number)));
  }

  /// Of numbers from 0 on.
  static Interval any_bits(Interval a, Interval b) {
    if (a.low < 0 || b.low < 0) return kEverything;
    return {.low = 0, .high = two_to(width(std::max(a.high, b.high))) - 1};
  }

  /// The largest number up to `most` that has bits of `mask` only. Requires: both are 0 or more.
  static Number largest_of(Number mask, Number most) {
    const Number others = most & ~mask;
    if (others == 0) return most;
    const Number below = two_to(width(others) - 1) - 1;  // bits below the first that it cannot have
    return (most & mask & ~below) | (mask & below);
  }

  /// Whether the mask has all bits that the numbers have, but for some of the lowest.
  static bool rounds(Number mask, Interval of) {
    if (mask == 0 || !is_known(of)) return false;
    const Number filled = mask | ((mask & -mask) - 1);
    if (filled == -1) return true;
    const Number all = of.low < 0 ? Number{-1} : two_to(width(of.high)) - 1;
    return (filled & all) == all;
  }

  static Interval common_bits(Interval a, Interval b) {
    if (a.low == a.high && b.low == b.high) return {.low = a.low & b.low, .high = a.low & b.low};
    if (b.low == b.high && rounds(b.low, a)) return {.low = a.low & b.low, .high = a.high & b.low};
    if (a.low == a.high && rounds(a.low, b)) return {.low = b.low & a.low, .high = b.high & a.low};
    if (a.low < 0 && b.low < 0) return kEverything;
    if (a.low < 0) return {.low = 0, .high = b.high};
    if (b.low < 0) return {.low = 0, .high = a.high};
    Number most = std::min(a.high, b.high);
    if (a.low == a.high) most = std::min(most, largest_of(a.low, b.high));
    if (b.low == b.high) most = std::min(most, largest_of(b.low, a.high));
    return {.low = 0, .high = most};
  }

  static Interval quotient(Interval a, Interval b) {
    if (!is_known(a) || !is_known(b) || b.low <= 0) return kEverything;
    // A negative number is least by the least divisor, others by the largest.
    return {.low = a.low / (a.low < 0 ? b.low : b.high),
            .high = a.high / (a.high < 0 ? b.high : b.low)};
  }

  static Interval rest(Interval a, Interval b) {
    if (!is_known(b) || b.low <= 0) return kEverything;
    if (a.low >= 0 && a.high < b.low) return a;
    const Number most = b.high - 1;
    return {.low = a.low >= 0 ? 0 : -most, .high = most};
  }

  /// Requires: none is empty.
  Interval at_most(Interval a, Interval b, const BoundStep& step) {
    const Number most = read(b, step).high + static_cast<Number>(step.value);
    // Without a sign, what is negative is larger than any bound that could be negative.
    if (!step.is_signed && most <= range_of(step, true).high) {
      const Interval all = read(a, step, true);
      return {.low = std::max<Number>(all.low, 0), .high = std::min(all.high, most)};
    }
    const Interval all = read(a, step);
    return {.low = all.low, .high = std::min(all.high, most)};
  }

  Interval at_least(Interval a, Interval b, const BoundStep& step) {
    const Interval all = read(a, step);
    const Number least = read(b, step).low + static_cast<Number>(step.value);
    return {.low = std::max(all.low, least), .high = all.high};
  }

  static Interval within(Interval a, Interval b, const BoundStep& step) {
    const Interval all = range_of(step);
    return a.low >= all.low && a.high <= all.high ? b : a;
  }

  Interval unequal(Interval a, Interval b, const BoundStep& step) {
    Interval found = read(a, step);
    const Interval other = read(b, step);
    if (other.low != other.high) return found;
    if (found.low == other.low) ++found.low;
    if (found.high == other.low) --found.high;
    return found;
  }

  /// The register that b and c stand for is its number of turns times a step: as long as all that
  /// it can be fits, it has not begun again at its type's other end.
  Interval tied(Interval a, Interval b, Interval c, const BoundStep& step) {
    const Interval all = range_of(step);
    const auto fits = [&](Interval of) { return of.low >= all.low && of.high <= all.high; };
    if (!is_known(a) || !fits(b) || !fits(c)) return kEverything;
    const auto by = static_cast<Number>(step.value);
    const Interval moved = product(c, {.low = by, .high = by});
    if (!is_known(moved)) return kEverything;
    return limited({.low = a.low + moved.low, .high = a.high + moved.high});
  }

  /// It must not come beyond its type: there it would begin again at the other end.
  Interval rising(Interval a, Interval b, Interval c, const BoundStep& step) {
    const Interval first = read(a, step), grown = read(b, step), all = range_of(step);
    const Number most = std::max(first.high, grown.high);
    if (c.low < 0 || !is_known(c) || most + c.high > all.high) return kEverything;
    return {.low = first.low, .high = most};
  }

  Interval falling(Interval a, Interval b, Interval c, const BoundStep& step) {
    const Interval first = read(a, step), grown = read(b, step), all = range_of(step);
    const Number least = std::min(first.low, grown.low);
    if (c.high > 0 || !is_known(c) || least + c.low < all.low) return kEverything;
    return {.low = least, .high = first.high};
  }

  /// It must not step over its last value, which is the same at any time. Of both the lowest
  /// `zeros` bits are 0.
  Interval counted(Interval a, Interval b, const BoundStep& step, unsigned zeros) {
    const Interval first = read(a, step), last = read(b, step);
    if (last.low != last.high) return kEverything;
    const auto by = static_cast<Number>(step.value);
    const auto meets = [&](Number length) {
      return length == 1 || (two_to(std::min(zeros, 61u)) % length == 0) ||
             (first.low == first.high && (last.low - first.low) % length == 0);
    };
    if (by > 0 && first.high < last.low && meets(by))
      return {.low = first.low, .high = last.low - by};
    if (by < 0 && first.low > last.low && meets(-by))
      return {.low = last.low - by, .high = first.high};
    return kEverything;
  }

  static Interval rounded(Interval a, std::int64_t zeros) {
    if (!is_known(a) || zeros < 0 || zeros > 61) return a;
    const Number less = two_to(static_cast<unsigned>(zeros)) - 1;
    return {.low = (a.low + less) & ~less, .high = a.high & ~less};
  }

  static bool holds(Interval outer, Interval inner) {
    return outer.low <= inner.low && inner.high <= outer.high;
  }

  /// A condition says what a register holds, but for multiples of 2^bits.
  static Interval closer(Interval a, Interval b, const BoundStep& step) {
    const bool is_one = is_known(a) && is_known(b) && holds(a, b) && step.bits < 64 &&
                        a.high - a.low < two_to(step.bits);
    return is_one ? b : a;
  }

  static Interval turns(Interval a, Interval b, Interval c) {
    if (!is_known(a) || !is_known(b) || !is_known(c)) return kEverything;
    if (c.low > 0) return {.low = 0, .high = std::max<Number>((b.high - a.low) / c.low, 0)};
    if (c.high < 0) return {.low = 0, .high = std::max<Number>((a.high - b.low) / -c.high, 0)};
    return kEverything;
  }

  /// `zeros`: how many of the lowest bits are 0 in each of a and b.
  [[gnu::always_inline]] Interval computed(const BoundStep& step, Interval a, Interval b,
                                           Interval c, unsigned zeros) {
    switch (step.op) {
      case BoundOp::kAdd:
        return is_known(a) && is_known(b) ? Interval{a.low + b.low, a.high + b.high} : kEverything;
      case BoundOp::kSubtract:
        return is_known(a) && is_known(b) ? Interval{a.low - b.high, a.high - b.low} : kEverything;
      case BoundOp::kMultiply:
        return product(a, b);
      case BoundOp::kDivide:
        return quotient(a, b);
      case BoundOp::kRest:
        return rest(a, b);
      case BoundOp::kShiftRight:
        return shifted(a, step.value);
      case BoundOp::kAnd:
        return common_bits(a, b);
      case BoundOp::kOr:
        return any_bits(a, b);
      case BoundOp::kMin:
        return {.low = std::min(a.low, b.low), .high = std::min(a.high, b.high)};
      case BoundOp::kMax:
        return {.low = std::max(a.low, b.low), .high = std::max(a.high, b.high)};
      case BoundOp::kIndex:
        return {.low = 0, .high = a.high - 1};
      case BoundOp::kRead:
        return read(a, step);
      case BoundOp::kAtMost:
        return at_most(a, b, step);
      case BoundOp::kAtLeast:
        return at_least(a, b, step);
      case BoundOp::kRising:
        return rising(a, b, c, step);
      case BoundOp::kFalling:
        return falling(a, b, c, step);
      case BoundOp::kCounted:
        return counted(a, b, step, zeros);
      case BoundOp::kTurns:
        return turns(a, b, c);
      case BoundOp::kUnequal:
        return unequal(a, b, step);
      case BoundOp::kTied:
        return tied(a, b, c, step);
      case BoundOp::kWhere:
        return a;
      case BoundOp::kWithin:
        return within(a, b, step);
      case BoundOp::kCloser:
        return closer(a, b, step);
      case BoundOp::kRounded:
        return rounded(a, step.value);
      default:
        return kEverything;
    }
  }

 private:
  bool& is_lost_;
};

namespace {

constexpr unsigned kMostZeros = 63;

std::optional<std::uint64_t> read_parameter(std::uint64_t offset, std::uint32_t bits,
                                            const LaunchValues& launch) {
  const std::uint32_t bytes = bits / 8;
  std::uint64_t value = 0;
  if (bytes == 0 || bytes > sizeof(value) || offset > launch.parameters.size() ||
      bytes > launch.parameters.size() - offset) {
    return std::nullopt;
  }
  std::memcpy(&value, launch.parameters.data() + offset, bytes);
  return value;
}

}  // namespace

BoundStep address_of(const BoundClaim& claim) {
  return {.op = BoundOp::kParameter, .value = static_cast<std::int64_t>(claim.limit)};
}

unsigned zeros_of(std::uint64_t number) {
  return std::min(kMostZeros, static_cast<unsigned>(std::countr_zero(number)));
}

std::optional<std::uint64_t> read_input(const BoundStep& step, const LaunchValues& launch) {
  const bool is_axis = step.value >= 0 && step.value < 3;
  switch (step.op) {
    case BoundOp::kParameter:
      return read_parameter(static_cast<std::uint64_t>(step.value), step.bits, launch);
    case BoundOp::kThreads:
      return is_axis ? std::optional(std::uint64_t{launch.block[step.value]}) : std::nullopt;
    case BoundOp::kBlocks:
      return is_axis ? std::optional(std::uint64_t{launch.grid[step.value]}) : std::nullopt;
    case BoundOp::kShared:
      return launch.shared_bytes;
    default:
      return std::nullopt;
  }
}

template <typename Number>
void BoundValuesOf<Number>::begin(const LaunchValues& launch) {
  launch_ = &launch;
  is_lost_ = false;
  steps_ = 0;
}

template <typename Number>
void BoundValuesOf<Number>::reserve(std::size_t steps) {
  if (steps <= lows_.size()) return;
  for (auto* const column : {&lows_, &highs_, &constants_, &rest_lows_, &rest_highs_})
    column->resize(steps);
  zeros_.resize(steps);
  firsts_.resize(steps);
  counts_.resize(steps);
  factors_.resize(steps * kMostTerms);
  term_steps_.resize(steps * kMostTerms);
}

template <typename Number>
bool BoundValuesOf<Number>::fits(const BoundStep& step) {
  if constexpr (Math::kIsWide) return true;
  constexpr std::int64_t kMost = std::int64_t{1} << 61;  // no sum becomes too large by it
  const bool is_input = step.op <= BoundOp::kShared;
  return (step.bits < 62 || step.bits == 64) &&
         (is_input || (step.value > -kMost && step.value < kMost));
}

template <typename Number>
bool BoundValuesOf<Number>::add(const BoundStep& step) {
  const auto is_earlier = [&](std::uint32_t other) {
    return other < steps_ || (other == 0 && steps_ == 0);
  };
  if (step.bits == 0 || step.bits > 64 || !is_earlier(step.a) || !is_earlier(step.b) ||
      !is_earlier(step.c)) {
    return false;
  }
  if (steps_ == lows_.size()) reserve(2 * lows_.size() + 8);
  is_lost_ |= !fits(step);
  add_sound(step);
  return true;
}

template <typename Number>
void BoundValuesOf<Number>::add_sound(const BoundStep& step) {
  Math math(is_lost_);
  Interval now = math.limited(of(step));
  if (!has_sum(step, now)) return put_itself(now, zeros(step, now));
  const Interval rest{.low = rest_lows_[steps_], .high = rest_highs_[steps_]};
  if (counts_[steps_] != kNoSum && !Math::is_empty(now) && !Math::is_everything(rest)) {
    const Number constant = constants_[steps_];
    const Interval all = math.limited({.low = constant + rest.low, .high = constant + rest.high});
    if (Math::is_known(all))
      now = {.low = std::max(now.low, all.low), .high = std::min(now.high, all.high)};
  }
  put(now, zeros(step, now));
}

template <typename Number>
void BoundValuesOf<Number>::add_input(const InputRange& input) {
  Math math(is_lost_);
  const Interval now{.low = math.from_unsigned(input.low), .high = math.from_unsigned(input.high)};
  if (now.low != now.high) return put_itself(now, input.zeros);
  set_number(now.low);
  put(now, zeros_of(input.low));
}

template <typename Number>
void BoundValuesOf<Number>::put_itself(Interval now, unsigned zeros) {
  term_steps_[own_terms()] = steps_;
  factors_[own_terms()] = 1;
  set_sum(0, own_terms(), 1, Math(is_lost_).times_within(now, 1));
  put(now, zeros);
}

/// Whether the step is a sum of which another may be made.
template <typename Number>
bool BoundValuesOf<Number>::may_add(std::uint32_t step) const {
  return counts_[step] != kNoSum && Math::may_multiply(constants_[step]);
}

/// The sum of `a` and `times` times `b`. None if there are too many terms or too large numbers.
template <typename Number>
void BoundValuesOf<Number>::set_total(std::uint32_t a, std::uint32_t b, Number times) {
  set_no_sum();
  if (!may_add(a) || !may_add(b) || !Math::may_multiply(times)) return;
  Math math(is_lost_);
  const Number constant = math.small(constants_[a] + math.multiplied(times, constants_[b]));
  if (counts_[b] == 0) return set_same_terms(a, constant);
  if (counts_[a] == 0 && times == 1) return set_same_terms(b, constant);
  set_merged(constant, {firsts_[a], counts_[a]}, {firsts_[b], counts_[b]}, times);
}

template <typename Number>
void BoundValuesOf<Number>::set_product(std::uint32_t a, Number times) {
  set_no_sum();
  if (!may_add(a) || !Math::may_multiply(times)) return;
  const Number constant = Math(is_lost_).multiplied(times, constants_[a]);
  if (counts_[a] == 0 || times == 1) return set_same_terms(a, constant);
  set_merged(constant, {}, {firsts_[a], counts_[a]}, times);
}

template <typename Number>
void BoundValuesOf<Number>::set_merged(Number constant, Terms a, Terms b, Number times) {
  Math math(is_lost_);
  std::uint8_t count = 0;
  const std::uint32_t a_end = a.first + a.count, b_end = b.first + b.count;
  for (std::uint32_t i = a.first, j = b.first; i < a_end || j < b_end;) {
    const bool is_a = i < a_end && (j == b_end || term_steps_[i] <= term_steps_[j]);
    const bool is_b = j < b_end && (i == a_end || term_steps_[j] <= term_steps_[i]);
    const std::uint32_t step = term_steps_[is_a ? i : j];
    Number factor = is_a ? factors_[i++] : 0;
    if (is_b) factor = math.small(factor + math.multiplied(times, factors_[j++]));
    if (!Math::may_multiply(factor)) return;
    if (factor == 0) continue;
    if (count == kMostTerms) return;
    term_steps_[own_terms() + count] = step;
    factors_[own_terms() + count++] = factor;
  }
  set_sum(constant, own_terms(), count, rest_of(own_terms(), count));
}

/// Whether the step that is about to get `now` is a sum of others, or none at all. Else it is one
/// of itself. A number that is not known is in no sum: it need not be the same one twice.
template <typename Number>
bool BoundValuesOf<Number>::has_sum(const BoundStep& step, Interval now) {
  if (now.low == now.high) {
    set_number(now.low);
    return true;
  }
  set_no_sum();
  if (step.op > BoundOp::kShared && steps_ != 0) set_sum_of(step, now);
  return counts_[steps_] != kNoSum || Math::is_empty(now) || !Math::is_known(now);
}

template <typename Number>
void BoundValuesOf<Number>::set_sum_of(const BoundStep& step, Interval now) {
  switch (step.op) {
    case BoundOp::kAdd:
      return set_total(step.a, step.b, 1);
    case BoundOp::kSubtract:
      return set_total(step.a, step.b, -1);
    case BoundOp::kMultiply:
      if (lows_[step.b] == highs_[step.b])
        set_product(step.a, lows_[step.b]);
      else if (lows_[step.a] == highs_[step.a])
        set_product(step.b, lows_[step.a]);
      return;
    case BoundOp::kRead:
    case BoundOp::kAtMost:
    case BoundOp::kAtLeast:
    case BoundOp::kUnequal:
    case BoundOp::kWithin:
      // Read as another type a register may be another number.
      if (now.low != lows_[step.a] || now.high != highs_[step.a]) return;
      [[fallthrough]];
    case BoundOp::kWhere:
    case BoundOp::kRounded:
      return set_same_terms(step.a, constants_[step.a]);
    default:
      return;
  }
}

/// What the terms add up to. Requires: their steps are there.
template <typename Number>
BoundValuesOf<Number>::Interval BoundValuesOf<Number>::rest_of(std::uint32_t first,
                                                               std::uint8_t count) {
  Math math(is_lost_);
  Interval all;
  for (std::uint32_t i = first; i < first + count; ++i) {
    const Interval part = math.times_within(found(term_steps_[i]), factors_[i]);
    if (!Math::is_known(part)) return Math::kEverything;
    all = {.low = math.small(all.low + part.low), .high = math.small(all.high + part.high)};
  }
  return all;
}

/// The lowest bits do not depend on how often a register has wrapped.
template <typename Number>
unsigned BoundValuesOf<Number>::zeros(const BoundStep& step, Interval now) const {
  const auto of_number = [](Number number) { return zeros_of(static_cast<std::uint64_t>(number)); };
  if (now.low == now.high && Math::is_known(now)) return of_number(now.low);
  if (steps_ == 0) return 0;
  const unsigned a = zeros_[step.a], b = zeros_[step.b], c = zeros_[step.c];
  switch (step.op) {
    case BoundOp::kAdd:
    case BoundOp::kSubtract:
    case BoundOp::kOr:
    case BoundOp::kMin:
    case BoundOp::kMax:
    case BoundOp::kEither:
      return std::min(a, b);
    case BoundOp::kMultiply:
      return std::min(a + b, kMostZeros);
    case BoundOp::kAnd:
      return std::max(a, b);
    case BoundOp::kElse:
      return Math::is_everything(found(step.a)) ? b : a;
    case BoundOp::kShiftRight:
      return step.value >= 0 && a > step.value ? a - static_cast<unsigned>(step.value) : 0;
    case BoundOp::kRead:
    case BoundOp::kAtMost:
    case BoundOp::kAtLeast:
    case BoundOp::kUnequal:
    case BoundOp::kWhere:
    case BoundOp::kWithin:
      return a;
    case BoundOp::kRounded:
      return std::max(a,
                      static_cast<unsigned>(std::clamp<std::int64_t>(step.value, 0, kMostZeros)));
    case BoundOp::kInvariant:
      return Math::is_everything(now) ? 0 : a;
    case BoundOp::kRising:
    case BoundOp::kFalling:
      return std::min(a, c);
    case BoundOp::kCounted:
      return std::min(a, of_number(step.value));
    case BoundOp::kTied:
      return std::min(a, std::min(kMostZeros, c + of_number(step.value)));
    default:
      return 0;
  }
}

template <typename Number>
bool BoundValuesOf<Number>::is_empty(std::uint32_t step) const {
  return Math::is_empty(found(step));
}

template <typename Number>
bool BoundValuesOf<Number>::is_narrow(std::uint32_t step) const {
  const Interval now = found(step);
  return !Math::is_empty(now) && Math::is_known(now) && now.high - now.low < Math::two_to(31);
}

template <typename Number>
bool BoundValuesOf<Number>::is_narrower(std::uint32_t step, std::uint32_t other) const {
  const Interval mine = found(step), its = found(other);
  return Math::is_known(mine) &&
         (!Math::is_known(its) || mine.high - mine.low < its.high - its.low);
}

template <typename Number>
BoundValuesOf<Number>::Interval BoundValuesOf<Number>::leaf(const BoundStep& step) {
  Math math(is_lost_);
  if (step.op == BoundOp::kNumber) {
    const Number number = math.small(step.value);
    return {.low = number, .high = number};
  }
  const auto value = read_input(step, *launch_);
  if (!value) return Math::kEverything;
  const Number number = math.from_unsigned(*value);
  return {.low = number, .high = number};
}

template <typename Number>
BoundValuesOf<Number>::Interval BoundValuesOf<Number>::of(const BoundStep& step) {
  if (step.op <= BoundOp::kShared || steps_ == 0) return leaf(step);
  const Interval a = found(step.a), b = found(step.b), c = found(step.c);
  if (step.op == BoundOp::kEither) {
    if (Math::is_empty(a) || Math::is_empty(b)) return Math::is_empty(a) ? b : a;
    return {.low = std::min(a.low, b.low), .high = std::max(a.high, b.high)};
  }
  if (Math::is_empty(a)) return Math::kNothing;
  Math math(is_lost_);
  // No thread comes to a second turn, but to the first.
  const bool is_counter =
      step.op == BoundOp::kRising || step.op == BoundOp::kFalling || step.op == BoundOp::kCounted;
  if (is_counter && (Math::is_empty(b) || Math::is_empty(c))) return math.read(a, step);
  if (step.op == BoundOp::kTurns && (Math::is_empty(b) || Math::is_empty(c)))
    return {.low = 0, .high = 0};
  if (step.op == BoundOp::kInvariant) return invariant(step);
  if (step.op == BoundOp::kElse) return Math::is_everything(a) ? b : a;
  // No thread comes there.
  if (Math::is_empty(b) || Math::is_empty(c)) return Math::kNothing;
  return math.computed(step, a, b, c, std::min<unsigned>(zeros_[step.a], zeros_[step.b]));
}

/// By induction over the turns: what was found of b counts only if it gives no more than was
/// assumed, also of the lowest bits.
template <typename Number>
BoundValuesOf<Number>::Interval BoundValuesOf<Number>::invariant(const BoundStep& step) const {
  const Interval assumed = found(step.a), begins = found(step.c);
  if (Math::is_empty(begins)) return Math::kNothing;
  const auto stays = [&](std::uint32_t other) {
    return Math::holds(assumed, found(other)) && zeros_[other] >= zeros_[step.a];
  };
  const bool is_one = stays(step.c) && (Math::is_empty(found(step.b)) || stays(step.b));
  return is_one ? assumed : Math::kEverything;
}

template <typename Number>
bool BoundValuesOf<Number>::holds(const BoundClaim& claim) const {
  if (claim.kind == BoundClaim::Kind::kAligned) {
    const auto value = read_input(address_of(claim), *launch_);
    return value && std::has_single_bit(claim.bytes) && (*value & (claim.bytes - 1)) == 0;
  }
  if (claim.step >= steps_) return false;
  const Interval now = found(claim.step);
  if (Math::is_empty(now)) return true;  // no thread makes the access
  if (claim.kind == BoundClaim::Kind::kMultiple)
    return std::has_single_bit(claim.bytes) &&
           zeros_[claim.step] >= static_cast<unsigned>(std::countr_zero(claim.bytes));
  const bool is_extent = claim.kind == BoundClaim::Kind::kInExtent;
  const WideNumber low = is_extent ? launch_->low : 0;
  const WideNumber end = is_extent ? WideNumber{launch_->low} + launch_->bytes : claim.limit;
  return Math::is_known(now) && now.low >= low && WideNumber{now.high} + claim.bytes <= end;
}

template class BoundValuesOf<WideNumber>;
template class BoundValuesOf<std::int64_t>;

}  // namespace slate::injector
