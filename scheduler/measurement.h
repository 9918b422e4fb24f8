// Measurement: the rates that the members of a group reach under one arrangement, from launches
// that ended and from the progress of those that do not. A part of adaptive.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "scheduler/policy.h"
#include "scheduler/search.h"

namespace slate::scheduler {

/// Progress between two reports under one placement.
class ProgressSpan {
 public:
  struct Step {
    double ms = 0;     // 0: nothing to be said yet
    double grids = 0;  // of the whole grid
  };
  /// What happened since the last report; starts anew with another launch or placement, or after
  /// restart().
  Step next(const Progress& progress);
  void restart() { valid_ = false; }

 private:
  bool valid_ = false;
  Progress last_;
};

class Measurement {
 public:
  void begin(std::size_t members, Time now);
  std::size_t size() const { return size_; }
  /// Launches of a kernel that takes `alone` by itself. Those that were not timed only count as
  /// work that was done.
  void add(std::size_t member, Milliseconds alone, const Completion& completion);
  void add_progress(std::size_t member, const Progress& progress, Milliseconds alone);
  /// Every member has something to show: `launches` of them, fewer of launches longer than
  /// `measure`, or progress for as long as that.
  bool seen(std::uint32_t launches, Milliseconds measure) const;
  /// Progress over progress alone, of each member; 0 where nothing was seen.
  std::vector<double> rates() const;
  /// The same, but no more than was done in the time that went by: with the gaps between a
  /// session's launches. Not for a few launches that are all timed, which itself makes gaps.
  std::vector<double> rates_with_gaps() const;

 private:
  Milliseconds wall() const;

  struct Sum {
    double alone = 0, device = 0;  // ms, of launches that were timed
    std::uint32_t launches = 0;
    double done = 0;  // ms, by themselves, of all launches
    std::uint32_t ended = 0;
    double longest = 0;   // ms, of one launch
    double followed = 0;  // ms of progress
    ProgressSpan span{};
  };
  std::array<Sum, kMostMembers> sums_{};
  std::size_t size_ = 0;
  Time begun_{}, from_ = kNever, until_{};  // the first start since then, and the last end
};

}  // namespace slate::scheduler
