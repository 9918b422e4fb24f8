// TimeShare: one engine's share of the time of a device on which several engines run. The device
// gives engines turns of equal length, whatever their weights are. So an engine that has received
// more than its weight says holds its new launches until the others have caught up. This is
// start-time fair queueing (Goyal 1996): an engine that was idle begins where the others are.
// Pure: the caller says what the time is, and what the other engines show. Thread: one at a time.
#pragma once

#include <algorithm>
#include <cmath>
#include <optional>
#include <span>

#include "scheduler/profile.h"

namespace slate::scheduler {

/// What an engine shows to the others.
struct ShownTime {
  /// Time constant of `part`.
  static constexpr Milliseconds kRecent{1000};

  bool uses = false;       // whether the device's time goes to it, or is kept for it
  bool holds = false;      // whether it holds its new launches
  double received_ms = 0;  // device time received beside others, over the weight
  double part = 0;         // part of the device's time in about the last second, at `at`
  Time at{};               // time when the engine wrote this

  bool is_busy() const { return uses || holds; }
  /// The part at a later time, when an engine that has the device alone need not have written.
  double part_at(Time now, double gets = 1) const {
    const double so_far = uses ? gets : 0;
    const double age = Milliseconds(std::max(now, at) - at) / kRecent;
    return so_far + (part - so_far) * std::exp(-age);
  }
};

/// What an engine has now.
struct EngineLoad {
  double weight = 0;   // sum of the weights of users that have work; 0: as before
  bool runs = false;   // whether work of it is on the device
  bool waits = false;  // whether launches wait
};

class TimeShare {
 public:
  /// An engine that is ahead by so much of its own device time holds its launches. That is a few
  /// of the device's time slices of about 2 ms, and as long as a turn of resizable work, whose way
  /// off the device and back costs a task's time and a gap.
  static constexpr Milliseconds kLag{10};
  /// No engine is ahead by more of its own device time: what a kernel of a minute has received
  /// beyond that is forgotten, so that its program is not off the device for minutes.
  static constexpr Milliseconds kMostLead{1000};
  /// An engine stays busy after its work for as long as that took, within these bounds: a program
  /// that waits for each launch needs no longer to bring the next one.
  static constexpr Milliseconds kLeastLinger{0.1}, kMostLinger{2};
  /// No engine waits for one that has shown nothing for so long: it may hang. Nor does more count
  /// as received at once.
  static constexpr Milliseconds kSilent{100};
  /// How often a busy engine looks: when it holds launches, when others were busy within the last
  /// kRecent, and else.
  static constexpr Milliseconds kHeldTick{0.5}, kTick{1}, kSlowTick{10};

  /// Brings the share up to `now`. `others`: what the other engines of the device show.
  void update(Time now, const EngineLoad& load, std::span<const ShownTime> others);
  /// Whether new launches are to wait.
  bool holds() const { return shown_.holds; }
  const ShownTime& shown() const { return shown_; }
  /// When update() is due without an event; kNever: only after one.
  Time again() const { return again_; }

 private:
  void charge(Time now);
  void note_work(Time now, bool runs);
  void join(Time now, std::span<const ShownTime> others);
  void compare(Time now, std::span<const ShownTime> others);
  void plan(Time now, bool has_others);

  ShownTime shown_;
  double weight_ = 1;
  int sharers_ = 1;            // engines that the device's time went to, at the last update
  Time beside_ = Time::min();  // last time at which another engine was busy
  bool is_contended_ = false;  // whether one was at the last update
  std::optional<Time> runs_since_;
  Time lingers_until_ = Time::min();
  Time again_ = kNever;
};

}  // namespace slate::scheduler
