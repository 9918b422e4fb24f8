// Measurement: the rates of a group's members under one arrangement, from launches that ended and
// from the progress of launches that do not end. A part of adaptive. It does not judge: search.h
// scores the rates. Thread: the policy's (policy.h).
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "scheduler/policy.h"
#include "scheduler/search.h"

namespace slate::scheduler {

/// Progress of one launch between two reports under one placement.
class ProgressSpan {
 public:
  struct Step {
    double ms = 0;     // ms since the last report; 0: no statement yet
    double grids = 0;  // part of the whole grid that was handed out in `ms`
  };
  /// Progress since the last report. It begins anew with another launch or placement, or after
  /// restart().
  /// Blocks count when they are handed out. Workers that have just come take a task each at once,
  /// which would look like progress, so a span begins 0.5 ms (kChange) later.
  Step next(const Progress& progress);
  void restart() { valid_ = false; }

 private:
  bool valid_ = false;
  Time begins_{};
  Progress last_;
};

/// Sums for each member. A member is its index in the group.
class Measurement {
 public:
  /// Forgets all sums. Requires: at most kMostMembers members.
  void begin(std::size_t members);
  /// Adds launches that ended. `alone`: the time that all of them would take by themselves.
  void add(std::size_t member, Milliseconds alone, const Completion& completion);
  /// Adds progress of a launch that goes on. `alone`: the time of one whole launch by itself.
  void add_progress(std::size_t member, const Progress& progress, Milliseconds alone);
  /// Whether every member has shown enough: `launches` launches, one launch that took `measure` or
  /// longer, or progress over `measure`.
  bool seen(std::uint32_t launches, Milliseconds measure) const;
  /// Whether the throughput of every member is known over `time`, or from one launch that took that
  /// long.
  bool covers(Milliseconds time) const;
  /// For each member the time alone of its timed launches over their device time (1: as if alone);
  /// 0: nothing was seen. Gaps between launches do not count.
  std::vector<double> rates() const;
  /// As rates(), but by the time that went by, with untimed launches and gaps, for members of which
  /// two batches have ended. Do not use it where every launch is timed: timing makes gaps.
  std::vector<double> throughputs() const;

 private:
  /// Sums of one member.
  struct Sum {
    double alone = 0, device = 0;  // ms of launches that were timed
    Milliseconds wall() const { return last - first; }
    double done = 0;  // ms alone, of all launches after the first batch
    std::uint32_t batches = 0, launches = 0;
    Time first{}, last{};  // ends of the first and the last batch
    double longest = 0;    // ms of the longest timed launch
    double followed = 0;   // ms over which progress was followed
    ProgressSpan span{};
  };
  std::array<Sum, kMostMembers> sums_{};
  std::size_t size_ = 0;
};

}  // namespace slate::scheduler
