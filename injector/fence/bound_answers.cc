#include "injector/fence/bound_answers.h"

#include <algorithm>
#include <utility>

namespace slate::injector {
namespace {

/// Whether the ranges have the numbers.
bool have(const std::vector<InputRange>& ranges, const std::vector<std::uint64_t>& numbers) {
  if (ranges.empty()) return false;
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const InputRange& range = ranges[i];
    const std::uint64_t below = (std::uint64_t{1} << range.zeros) - 1;
    if (numbers[i] < range.low || numbers[i] > range.high || (numbers[i] & below) != 0)
      return false;
  }
  return true;
}

/// The range with a number, and beyond it with as much as it is long, less by `shift` bits.
InputRange grown(InputRange range, std::uint64_t number, unsigned shift) {
  constexpr std::uint64_t kMost = std::uint64_t{1} << 62;
  range.zeros = std::min(range.zeros, zeros_of(number));
  if (number > range.high) {
    const std::uint64_t room = number < kMost ? kMost - number : 0;
    range.high = number + std::min((number - range.low) >> shift, room);
  } else if (number < range.low) {
    range.low = number - std::min((range.high - number) >> shift, number);
  }
  return range;
}

}  // namespace

BoundAnswers::BoundAnswers(AccessBounds bounds)
    : check_(std::move(bounds)), launch_(check_.inputs() + 2) {}

bool BoundAnswers::hold(const LaunchValues& launch) {
  const std::size_t inputs = check_.inputs();
  if (!check_.read(launch, std::span(launch_).first(inputs))) return check_.hold_anew(launch);
  launch_[inputs] = launch.low;
  launch_[inputs + 1] = launch.bytes;
  if (launch_ == last_) return last_answer_;
  last_answer_ = find(launch);
  last_ = launch_;
  return last_answer_;
}

bool BoundAnswers::find(const LaunchValues& launch) {
  if (have(known_, launch_)) return true;
  const auto* const bytes = reinterpret_cast<const char*>(launch_.data());
  std::string key(bytes, launch_.size() * sizeof(launch_[0]));
  if (const auto found = answers_.find(key); found != answers_.end()) return found->second;
  if (widen(launch)) return true;
  const bool answer = compute(launch);
  if ((answers_.size() + 1) * key.size() > kMostBytes) answers_.clear();
  answers_.emplace(std::move(key), answer);
  return answer;
}

/// The answer for this launch alone. If it is yes, the ranges begin anew there.
bool BoundAnswers::compute(const LaunchValues& launch) {
  ++computed_;
  if (!check_.hold(launch, numbers())) return false;
  known_.clear();
  for (const std::uint64_t number : launch_)
    known_.push_back({.low = number, .high = number, .zeros = zeros_of(number)});
  return true;
}

/// Takes the launch into the ranges, with others to come if possible. Programs count up and down:
/// so the ranges grow to twice their length, or by less once that failed.
bool BoundAnswers::widen(const LaunchValues& launch) {
  const std::size_t inputs = check_.inputs();
  const bool has_extent =
      !known_.empty() && known_[inputs].low == launch.low && known_[inputs + 1].low == launch.bytes;
  if (!has_extent) return false;
  if (pause_ > 0) {
    --pause_;
    return false;
  }
  if (reach_out(launch, shift_)) {
    shift_ -= shift_ > 0 ? 1 : 0;
    return true;
  }
  shift_ = std::min(shift_ + 2, kMostShift);
  if (reach_out(launch, kNoReach)) return true;
  pause_ = 1u << failures_;
  failures_ = std::min(failures_ + 1, kMostPause);
  return false;
}

bool BoundAnswers::reach_out(const LaunchValues& launch, unsigned shift) {
  tried_ = known_;
  for (std::size_t i = 0; i < check_.inputs(); ++i) tried_[i] = grown(known_[i], launch_[i], shift);
  ++computed_;
  if (!check_.hold_within(launch, std::span(tried_).first(check_.inputs()))) return false;
  known_.swap(tried_);
  failures_ = 0;
  return true;
}

}  // namespace slate::injector
