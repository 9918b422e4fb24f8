#include "injector/fence/access_bounds.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

namespace slate::injector {

/// The arithmetic of intervals.
struct BoundMath {
  using Wide = BoundValues::Wide;
  using Interval = BoundValues::Interval;

  static constexpr Wide kHuge = Wide{1} << 100;  // beyond it nothing is known
  static constexpr Interval kEverything{.low = -kHuge, .high = kHuge};
  static constexpr Interval kNothing{.low = 1, .high = 0};

  static bool is_empty(const Interval& of) { return of.low > of.high; }

  static Wide two_to(unsigned bits) { return Wide{1} << bits; }

  /// What was not known stays so, and what is too large is not.
  static Interval limited(Interval of) {
    if (is_empty(of)) return kNothing;
    return of.low <= -kHuge || of.high >= kHuge ? kEverything : of;
  }

  static bool is_known(const Interval& of) { return of.low > -kHuge && of.high < kHuge; }

  static Wide floor_divided(Wide a, Wide b) {
    const Wide quotient = a / b;
    return a % b != 0 && (a < 0) != (b < 0) ? quotient - 1 : quotient;
  }

  static Interval range_of(const BoundStep& step) {
    return step.is_signed
               ? Interval{.low = -two_to(step.bits - 1u), .high = two_to(step.bits - 1u) - 1}
               : Interval{.low = 0, .high = two_to(step.bits) - 1};
  }

  /// The same register's bits as a number of the step's type.
  static Interval read(Interval of, const BoundStep& step) {
    if (is_empty(of)) return of;
    const Interval all = range_of(step);
    if (!is_known(of)) return all;
    const Wide turns = floor_divided(of.low - all.low, two_to(step.bits));
    const Wide low = of.low - turns * two_to(step.bits);
    const Wide high = of.high - turns * two_to(step.bits);
    return high <= all.high ? Interval{.low = low, .high = high} : all;
  }

  static Interval shifted(const Interval& a, std::int64_t by) {
    return is_known(a) && by >= 0 && by < 64 ? Interval{a.low >> by, a.high >> by} : kEverything;
  }

  static Interval product(const Interval& a, const Interval& b) {
    constexpr Wide kMost = Wide{1} << 62;
    const auto fits = [](const Interval& of) { return of.low >= -kMost && of.high <= kMost; };
    if (!fits(a) || !fits(b)) return kEverything;
    if (b.low == b.high) return times(a, b.low);
    if (a.low == a.high) return times(b, a.low);
    const auto all = {a.low * b.low, a.low * b.high, a.high * b.low, a.high * b.high};
    return limited({.low = std::min(all), .high = std::max(all)});
  }

  /// Requires: none is beyond 2^62.
  static Interval times(const Interval& a, Wide number) {
    const Wide one = a.low * number, other = a.high * number;
    return limited({.low = std::min(one, other), .high = std::max(one, other)});
  }

  /// Of numbers from 0 on.
  static Interval any_bits(const Interval& a, const Interval& b) {
    if (a.low < 0 || b.low < 0) return kEverything;
    Wide high = 1;
    while (high <= std::max(a.high, b.high) && high < kHuge) high *= 2;
    return limited({.low = 0, .high = high - 1});
  }

  /// The largest number up to `most` that has bits of `mask` only. Requires: both are 0 or more.
  static Wide largest_of(Wide mask, Wide most) {
    Wide found = 0;
    for (Wide bit = kHuge; bit != 0; bit >>= 1) {
      if ((most & bit) == 0) continue;
      if ((mask & bit) == 0) return found | (mask & (bit - 1));
      found |= bit;
    }
    return found;
  }

  static Interval common_bits(const Interval& a, const Interval& b) {
    if (a.low < 0 && b.low < 0) return kEverything;
    if (a.low >= 0 && b.low >= 0 && a.low == a.high)
      return {.low = 0, .high = largest_of(a.low, b.high)};
    if (a.low >= 0 && b.low >= 0 && b.low == b.high)
      return {.low = 0, .high = largest_of(b.low, a.high)};
    if (a.low < 0) return {.low = 0, .high = b.high};
    if (b.low < 0) return {.low = 0, .high = a.high};
    return {.low = 0, .high = std::min(a.high, b.high)};
  }

  static Interval quotient(const Interval& a, const Interval& b) {
    if (!is_known(a) || !is_known(b) || b.low <= 0) return kEverything;
    const auto all = {a.low / b.low, a.low / b.high, a.high / b.low, a.high / b.high};
    return {.low = std::min(all), .high = std::max(all)};
  }

  static Interval rest(const Interval& a, const Interval& b) {
    if (!is_known(b) || b.low <= 0) return kEverything;
    if (a.low >= 0 && a.high < b.low) return a;
    const Wide most = b.high - 1;
    return {.low = a.low >= 0 ? 0 : -most, .high = most};
  }

  /// Requires: none is empty.
  static Interval at_most(const Interval& a, const Interval& b, const BoundStep& step) {
    const Wide most = read(b, step).high + step.value;
    BoundStep with_sign = step;
    with_sign.is_signed = true;
    // Without a sign, what is negative is larger than any bound that could be negative.
    if (!step.is_signed && most <= range_of(with_sign).high) {
      const Interval all = read(a, with_sign);
      return {.low = std::max<Wide>(all.low, 0), .high = std::min(all.high, most)};
    }
    const Interval all = read(a, step);
    return {.low = all.low, .high = std::min(all.high, most)};
  }

  static Interval at_least(const Interval& a, const Interval& b, const BoundStep& step) {
    const Interval all = read(a, step);
    return {.low = std::max(all.low, read(b, step).low + step.value), .high = all.high};
  }

  static Interval within(const Interval& a, const Interval& b, const BoundStep& step) {
    const Interval all = range_of(step);
    return a.low >= all.low && a.high <= all.high ? b : a;
  }

  static Interval unequal(const Interval& a, const Interval& b, const BoundStep& step) {
    Interval found = read(a, step);
    const Interval other = read(b, step);
    if (other.low != other.high) return found;
    if (found.low == other.low) ++found.low;
    if (found.high == other.low) --found.high;
    return found;
  }

  /// The register that b and c stand for is its number of turns times a step: as long as all that
  /// it can be fits, it has not begun again at its type's other end.
  static Interval tied(const Interval& a, const Interval& b, const Interval& c,
                       const BoundStep& step) {
    const Interval all = range_of(step);
    const auto fits = [&](const Interval& of) { return of.low >= all.low && of.high <= all.high; };
    if (!is_known(a) || !fits(b) || !fits(c)) return kEverything;
    const Interval moved = product(c, {.low = step.value, .high = step.value});
    return limited({.low = a.low + moved.low, .high = a.high + moved.high});
  }

  /// It must not come beyond its type: there it would begin again at the other end.
  static Interval rising(const Interval& a, const Interval& b, const Interval& c,
                         const BoundStep& step) {
    const Interval first = read(a, step), grown = read(b, step), all = range_of(step);
    const Wide most = std::max(first.high, grown.high);
    if (c.low < 0 || !is_known(c) || most + c.high > all.high) return kEverything;
    return {.low = first.low, .high = most};
  }

  static Interval falling(const Interval& a, const Interval& b, const Interval& c,
                          const BoundStep& step) {
    const Interval first = read(a, step), grown = read(b, step), all = range_of(step);
    const Wide least = std::min(first.low, grown.low);
    if (c.high > 0 || !is_known(c) || least + c.low < all.low) return kEverything;
    return {.low = least, .high = first.high};
  }

  /// It must not step over its last value, which is the same at any time.
  static Interval counted(const Interval& a, const Interval& b, const BoundStep& step) {
    const Interval first = read(a, step), last = read(b, step);
    if (last.low != last.high) return kEverything;
    const auto meets = [&](Wide by) {
      return by == 1 || (first.low == first.high && (last.low - first.low) % by == 0);
    };
    if (step.value > 0 && first.high < last.low && meets(step.value))
      return {.low = first.low, .high = last.low - step.value};
    if (step.value < 0 && first.low > last.low && meets(-Wide{step.value}))
      return {.low = last.low - step.value, .high = first.high};
    return kEverything;
  }

  static Interval turns(const Interval& a, const Interval& b, const Interval& c) {
    if (!is_known(a) || !is_known(b) || !is_known(c)) return kEverything;
    if (c.low > 0) return {.low = 0, .high = std::max<Wide>((b.high - a.low) / c.low, 0)};
    if (c.high < 0) return {.low = 0, .high = std::max<Wide>((a.high - b.low) / -c.high, 0)};
    return kEverything;
  }

  static Interval computed(const BoundStep& step, const Interval& a, const Interval& b,
                           const Interval& c) {
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
        return counted(a, b, step);
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
      default:
        return kEverything;
    }
  }
};

using Math = BoundMath;

bool BoundValues::add(const BoundStep& step) {
  const std::size_t next = found_.size();
  const auto is_earlier = [&](std::uint32_t other) {
    return other < next || (other == 0 && next == 0);
  };
  if (step.bits == 0 || step.bits > 64 || !is_earlier(step.a) || !is_earlier(step.b) ||
      !is_earlier(step.c)) {
    return false;
  }
  Interval found = Math::limited(of(step));
  const Form form = linear(step, found);
  if (form.is_known && !Math::is_empty(found)) {
    const Interval all = range(form);
    if (Math::is_known(all))
      found = {.low = std::max(found.low, all.low), .high = std::min(found.high, all.high)};
  }
  const unsigned its_zeros = zeros(step, found);
  found_.push_back(found);
  forms_.push_back(form);
  zeros_.push_back(its_zeros);
  return true;
}

std::span<const BoundValues::Term> BoundValues::terms(const Form& form) const {
  return std::span(terms_).subspan(form.first, form.count);
}

/// a + times * b. Not known if it has too many terms or too large numbers.
BoundValues::Form BoundValues::total(const Form& a, const Form& b, Wide times) {
  const auto fits = [](Wide of) { return of >= -kMostFactor && of <= kMostFactor; };
  if (!a.is_known || !b.is_known || !fits(times) || !fits(a.constant) || !fits(b.constant))
    return {};
  Form sum{.is_known = true,
           .constant = a.constant + times * b.constant,
           .first = static_cast<std::uint32_t>(terms_.size())};
  std::array<Term, 2 * kMostTerms> merged;
  const auto add = [&](std::uint32_t step, Wide factor) {
    if (!fits(factor))
      sum.is_known = false;
    else if (factor != 0)
      merged[sum.count++] = {step, static_cast<std::int64_t>(factor)};
  };
  const auto left = terms(a), right = terms(b);
  for (std::size_t i = 0, j = 0; i < left.size() || j < right.size();) {
    const bool is_left = j == right.size() || (i < left.size() && left[i].step < right[j].step);
    const bool is_both = !is_left && i < left.size() && left[i].step == right[j].step;
    const Wide here = is_left || is_both ? Wide{left[i].factor} : Wide{0};
    const std::uint32_t step = is_left ? left[i].step : right[j].step;
    add(step, is_left ? here : here + times * right[j].factor);
    i += is_left || is_both ? 1 : 0;
    j += is_left ? 0 : 1;
  }
  if (!sum.is_known || sum.count > kMostTerms) return {};
  terms_.insert(terms_.end(), merged.begin(), merged.begin() + sum.count);
  return sum;
}

/// The step that is about to get `found`: a sum of others where it is one, else itself. A number
/// that is not known is in no sum: it need not be the same one twice.
BoundValues::Form BoundValues::linear(const BoundStep& step, const Interval& found) {
  if (found.low == found.high) return {.is_known = true, .constant = found.low};
  const Form none;
  const bool has_others = step.op > BoundOp::kShared && !forms_.empty();
  const Form a = has_others ? forms_[step.a] : none, b = has_others ? forms_[step.b] : none;
  const auto same = [](const Interval& one, const Interval& other) {
    return one.low == other.low && one.high == other.high;
  };
  const auto number_of = [&](std::uint32_t of) -> std::optional<Wide> {
    const Interval& its = found_[of];
    return its.low == its.high ? std::optional(its.low) : std::nullopt;
  };
  Form form;
  switch (step.op) {
    case BoundOp::kAdd:
      form = total(a, b, 1);
      break;
    case BoundOp::kSubtract:
      form = total(a, b, -1);
      break;
    case BoundOp::kMultiply:
      if (const auto times = number_of(step.b))
        form = total({.is_known = true}, a, *times);
      else if (const auto turned = number_of(step.a))
        form = total({.is_known = true}, b, *turned);
      break;
    case BoundOp::kRead:
    case BoundOp::kAtMost:
    case BoundOp::kAtLeast:
    case BoundOp::kUnequal:
    case BoundOp::kWithin:
      // Read as another type a register may be another number.
      if (same(found, found_[step.a])) form = a;
      break;
    case BoundOp::kWhere:
      form = a;
      break;
    default:
      break;
  }
  if (form.is_known || Math::is_empty(found) || !Math::is_known(found)) return form;
  form = {.is_known = true, .first = static_cast<std::uint32_t>(terms_.size()), .count = 1};
  terms_.push_back({static_cast<std::uint32_t>(found_.size()), 1});
  return form;
}

/// Requires: the form's steps are there. Its own interval, if it is its only term, is not.
BoundValues::Interval BoundValues::range(const Form& form) const {
  Interval all{.low = form.constant, .high = form.constant};
  for (const Term& term : terms(form)) {
    if (term.step >= found_.size()) return Math::kEverything;
    const Interval part =
        Math::product(found_[term.step], {.low = term.factor, .high = term.factor});
    if (!Math::is_known(part)) return Math::kEverything;
    all = {.low = all.low + part.low, .high = all.high + part.high};
  }
  return Math::limited(all);
}

/// The lowest bits do not depend on how often a register has wrapped.
unsigned BoundValues::zeros(const BoundStep& step, const Interval& found) const {
  static constexpr unsigned kAll = 63;
  const auto of_number = [](Wide number) {
    return number == 0
               ? kAll
               : std::min<unsigned>(kAll, std::countr_zero(static_cast<std::uint64_t>(number)));
  };
  if (found.low == found.high && Math::is_known(found)) return of_number(found.low);
  if (zeros_.empty()) return 0;
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
      return std::min(a + b, kAll);
    case BoundOp::kAnd:
      return std::max(a, b);
    case BoundOp::kShiftRight:
      return step.value >= 0 && a > step.value ? a - static_cast<unsigned>(step.value) : 0;
    case BoundOp::kRead:
    case BoundOp::kAtMost:
    case BoundOp::kAtLeast:
    case BoundOp::kUnequal:
    case BoundOp::kWhere:
    case BoundOp::kWithin:
      return a;
    case BoundOp::kRising:
    case BoundOp::kFalling:
      return std::min(a, c);
    case BoundOp::kCounted:
      return std::min(a, of_number(step.value));
    case BoundOp::kTied:
      return std::min(a, std::min(kAll, c + of_number(step.value)));
    default:
      return 0;
  }
}

bool BoundValues::is_empty(std::uint32_t step) const {
  return Math::is_empty(found_[step]);
}

bool BoundValues::is_narrow(std::uint32_t step) const {
  const Interval& found = found_[step];
  return !Math::is_empty(found) && Math::is_known(found) &&
         found.high - found.low < Math::two_to(31);
}

bool BoundValues::is_narrower(std::uint32_t step, std::uint32_t other) const {
  const Interval &mine = found_[step], &its = found_[other];
  return Math::is_known(mine) &&
         (!Math::is_known(its) || mine.high - mine.low < its.high - its.low);
}

void BoundValues::reserve(std::size_t steps) {
  found_.reserve(steps);
  forms_.reserve(steps);
  zeros_.reserve(steps);
  terms_.reserve(2 * steps);
}

std::optional<std::uint64_t> BoundValues::parameter(std::uint64_t offset,
                                                    std::uint32_t bits) const {
  const std::uint32_t bytes = bits / 8;
  std::uint64_t value = 0;
  if (bytes == 0 || bytes > sizeof(value) || offset > launch_.parameters.size() ||
      bytes > launch_.parameters.size() - offset) {
    return std::nullopt;
  }
  std::memcpy(&value, launch_.parameters.data() + offset, bytes);
  return value;
}

BoundValues::Interval BoundValues::leaf(const BoundStep& step) const {
  const auto exactly = [](Wide value) { return Interval{.low = value, .high = value}; };
  const bool is_axis = step.value >= 0 && step.value < 3;
  switch (step.op) {
    case BoundOp::kNumber:
      return exactly(step.value);
    case BoundOp::kParameter: {
      const auto value = parameter(static_cast<std::uint64_t>(step.value), step.bits);
      return value ? exactly(*value) : Math::kEverything;
    }
    case BoundOp::kThreads:
      return is_axis ? exactly(launch_.block[step.value]) : Math::kEverything;
    case BoundOp::kBlocks:
      return is_axis ? exactly(launch_.grid[step.value]) : Math::kEverything;
    case BoundOp::kShared:
      return exactly(launch_.shared_bytes);
    default:
      return Math::kEverything;
  }
}

BoundValues::Interval BoundValues::of(const BoundStep& step) const {
  if (step.op <= BoundOp::kShared || found_.empty()) return leaf(step);
  const Interval &a = found_[step.a], &b = found_[step.b], &c = found_[step.c];
  if (step.op == BoundOp::kEither) {
    if (Math::is_empty(a) || Math::is_empty(b)) return Math::is_empty(a) ? b : a;
    return {.low = std::min(a.low, b.low), .high = std::max(a.high, b.high)};
  }
  if (Math::is_empty(a)) return Math::kNothing;
  // No thread comes to a second turn, but to the first.
  const bool is_counter =
      step.op == BoundOp::kRising || step.op == BoundOp::kFalling || step.op == BoundOp::kCounted;
  if (is_counter && (Math::is_empty(b) || Math::is_empty(c))) return Math::read(a, step);
  if (step.op == BoundOp::kTurns && (Math::is_empty(b) || Math::is_empty(c)))
    return {.low = 0, .high = 0};
  // No thread comes there.
  if (Math::is_empty(b) || Math::is_empty(c)) return Math::kNothing;
  return Math::computed(step, a, b, c);
}

bool BoundValues::holds(const BoundClaim& claim) const {
  if (claim.kind == BoundClaim::Kind::kAligned) {
    const auto value = parameter(claim.limit, 64);
    return value && std::has_single_bit(claim.bytes) && (*value & (claim.bytes - 1)) == 0;
  }
  if (claim.step >= found_.size()) return false;
  const Interval& found = found_[claim.step];
  if (Math::is_empty(found)) return true;  // no thread makes the access
  if (claim.kind == BoundClaim::Kind::kMultiple)
    return std::has_single_bit(claim.bytes) &&
           zeros_[claim.step] >= static_cast<unsigned>(std::countr_zero(claim.bytes));
  const bool is_extent = claim.kind == BoundClaim::Kind::kInExtent;
  const Wide low = is_extent ? Wide{launch_.low} : Wide{0};
  const Wide end = is_extent ? Wide{launch_.low} + launch_.bytes : Wide{claim.limit};
  return Math::is_known(found) && found.low >= low && found.high + claim.bytes <= end;
}

bool hold(const AccessBounds& bounds, const LaunchValues& launch) {
  BoundValues values(launch);
  values.reserve(bounds.steps.size());
  return std::ranges::all_of(bounds.steps,
                             [&](const BoundStep& step) { return values.add(step); }) &&
         std::ranges::all_of(bounds.claims,
                             [&](const BoundClaim& claim) { return values.holds(claim); });
}

}  // namespace slate::injector
