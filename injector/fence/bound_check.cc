#include "injector/fence/bound_check.h"

#include <algorithm>
#include <bit>
#include <map>
#include <tuple>
#include <utility>

namespace slate::injector {

BoundCheck::BoundCheck(AccessBounds bounds) : bounds_(std::move(bounds)) {
  std::map<std::tuple<BoundOp, std::uint8_t, std::int64_t>, std::uint32_t> places;
  const auto input_of = [&](const BoundStep& step) {
    const auto next = static_cast<std::uint32_t>(inputs_.size());
    const auto [place, is_new] = places.try_emplace({step.op, step.bits, step.value}, next);
    if (is_new) inputs_.push_back(step);
    return place->second;
  };
  for (std::uint32_t i = 0; i < bounds_.steps.size(); ++i) {
    const BoundStep& step = bounds_.steps[i];
    const std::uint32_t last = std::max({step.a, step.b, step.c});
    is_sound_ &= (last < i || last == 0) && step.bits > 0 && step.bits <= 64;
    is_narrow_ &= NarrowValues::fits(step);
    const bool is_input = step.op >= BoundOp::kParameter && step.op <= BoundOp::kShared;
    places_.push_back(is_input ? input_of(step) : kNoInput);
    std::uint64_t mask = is_input ? bit_of(places_.back()) : 0;
    if (!is_input && is_sound_ && i > 0) mask = masks_[step.a] | masks_[step.b] | masks_[step.c];
    masks_.push_back(mask);
  }
  for (const BoundClaim& claim : bounds_.claims) {
    if (claim.kind != BoundClaim::Kind::kAligned) {
      is_sound_ &= claim.step < bounds_.steps.size();
      claims_.push_back(claim);
      continue;
    }
    is_sound_ &= std::has_single_bit(claim.bytes);
    alignments_.push_back({.input = input_of(address_of(claim)),
                           .zeros = static_cast<unsigned>(std::countr_zero(claim.bytes))});
  }
  std::ranges::stable_sort(claims_, {}, &BoundClaim::step);
  exact_.resize(inputs_.size());
  taken_.resize(inputs_.size());
  values_.reserve(bounds_.steps.size());
}

bool BoundCheck::read(const LaunchValues& launch, std::span<std::uint64_t> numbers) const {
  for (std::size_t i = 0; i < inputs_.size(); ++i) {
    const auto number = read_input(inputs_[i], launch);
    if (!number) return false;
    numbers[i] = *number;
  }
  return true;
}

BoundCheck::Answer BoundCheck::answer(const LaunchValues& launch,
                                      std::span<const InputRange> ranges) {
  const bool are_aligned = std::ranges::all_of(alignments_, [&](const Alignment& alignment) {
    return ranges[alignment.input].zeros >= alignment.zeros;
  });
  if (!is_sound_ || !are_aligned) return Answer::kNo;
  if (!is_narrow_) return Answer::kLost;
  const std::uint64_t changed = take(launch, ranges);
  const std::uint32_t kept = done_;
  values_.begin(launch);
  auto claim = claims_.begin();
  for (done_ = 0; done_ < places_.size(); ++done_) {
    if (done_ < kept && (masks_[done_] & changed) == 0) continue;
    values_.go_to(done_);
    if (places_[done_] == kNoInput)
      values_.add_sound(bounds_.steps[done_]);
    else
      values_.add_input(ranges[places_[done_]]);
    if (values_.is_lost()) return Answer::kLost;
    while (claim != claims_.end() && claim->step < done_) ++claim;
    for (; claim != claims_.end() && claim->step == done_; ++claim) {
      if (!values_.holds(*claim)) return Answer::kNo;
    }
  }
  return Answer::kYes;
}

/// Returns which inputs are others than before.
std::uint64_t BoundCheck::take(const LaunchValues& launch, std::span<const InputRange> ranges) {
  std::uint64_t changed = 0;
  for (std::uint32_t i = 0; i < ranges.size(); ++i) {
    if (taken_[i] != ranges[i]) changed |= bit_of(i);
    taken_[i] = ranges[i];
  }
  if (low_ != launch.low || bytes_ != launch.bytes) done_ = 0;
  low_ = launch.low;
  bytes_ = launch.bytes;
  return changed;
}

bool BoundCheck::hold(const LaunchValues& launch, std::span<const std::uint64_t> numbers) {
  for (std::size_t i = 0; i < numbers.size(); ++i)
    exact_[i] = {.low = numbers[i], .high = numbers[i], .zeros = zeros_of(numbers[i])};
  const Answer found = answer(launch, exact_);
  return found == Answer::kLost ? injector::hold(bounds_, launch) : found == Answer::kYes;
}

bool BoundCheck::hold_anew(const LaunchValues& launch) const {
  return injector::hold(bounds_, launch);
}

bool BoundCheck::hold_within(const LaunchValues& launch, std::span<const InputRange> ranges) {
  return answer(launch, ranges) == Answer::kYes;
}

}  // namespace slate::injector
