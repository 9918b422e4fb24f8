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
  /// restart(). Blocks count when they are handed out: workers that have just come take a task each
  /// at once, which would look like progress. So a span begins when they are through with it.
  Step next(const Progress& progress);
  void restart() { valid_ = false; }

 private:
  bool valid_ = false;
  Time begins_{};
  Progress last_;
};

class Measurement {
 public:
  void begin(std::size_t members);
  /// Launches that would take `alone` by themselves, all of them.
  void add(std::size_t member, Milliseconds alone, const Completion& completion);
  void add_progress(std::size_t member, const Progress& progress, Milliseconds alone);
  /// Every member has something to show: `launches` of them, fewer of launches longer than
  /// `measure`, or progress for as long as that.
  bool seen(std::uint32_t launches, Milliseconds measure) const;
  /// What every member gets done is known over so long a time, or of one launch of that length.
  bool covers(Milliseconds time) const;
  /// Progress over progress alone, of each member, while its launches are on the device; 0 where
  /// nothing was seen. Of launches that were timed.
  std::vector<double> rates() const;
  /// The same by the time that went by, with all launches and the gaps between them, where at least
  /// two batches of a member have ended. Not where all are timed, which makes gaps.
  std::vector<double> throughputs() const;

 private:
  struct Sum {
    double alone = 0, device = 0;  // ms, of launches that were timed
    Milliseconds wall() const { return last - first; }
    double done = 0;  // ms, by themselves, of all launches after the first batch
    std::uint32_t batches = 0, launches = 0;
    Time first{}, last{};  // ends of batches
    double longest = 0;    // ms, of one launch that was timed
    double followed = 0;   // ms of progress
    ProgressSpan span{};
  };
  std::array<Sum, kMostMembers> sums_{};
  std::size_t size_ = 0;
};

}  // namespace slate::scheduler
