// UnendedStarts: the starts of one session that have not ended, in order. Of those that cannot be
// resized it knows since when the oldest is the oldest: for so long they have shown no end. Thread:
// the owner serialises all calls.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "scheduler/policy.h"

namespace slate::daemon {

class UnendedStarts {
 public:
  struct One {
    std::uint64_t serial = 0;  // unique within the session
    std::uint64_t number = 0;  // number among all sessions' starts; may come again
    bool known = false;        // whether the kernel's time was known
    double filled = 1;         // part of the device that its blocks take at once
    bool lane = false;         // whether it is a resizable launch
  };

  /// Returns the start's serial.
  std::uint64_t add(std::uint64_t number, bool known, double filled, scheduler::Time now) {
    starts_.push_back({.serial = ++serial_, .number = number, .known = known, .filled = filled});
    note(now);
    return serial_;
  }
  /// The start turns out to be a resizable launch.
  void make_lane(std::uint64_t serial, scheduler::Time now) {
    const auto one = std::ranges::find(starts_, serial, &One::serial);
    if (one != starts_.end()) one->lane = true;
    note(now);
  }
  void end(std::span<const std::uint64_t> serials, scheduler::Time now) {
    std::erase_if(starts_, [&](const One& each) {
      return std::ranges::find(serials, each.serial) != serials.end();
    });
    note(now);
  }

  std::span<const One> all() const { return starts_; }
  /// Fills in what policies see of it.
  void show(scheduler::RunningWork& running) const {
    running.resizable = running.uncertain = false;
    running.fixed_filled = 0;
    for (const One& each : starts_) {
      running.resizable |= each.lane;
      running.uncertain |= !each.lane && !each.known;
      if (!each.lane) running.fixed_filled += each.filled;
    }
    running.fixed = fixed_ != 0;
    running.fixed_since = fixed_since_;
  }

 private:
  void note(scheduler::Time now) {
    const auto fixed = std::ranges::find(starts_, false, &One::lane);
    const std::uint64_t first_fixed = fixed == starts_.end() ? 0 : fixed->serial;
    if (first_fixed != std::exchange(fixed_, first_fixed)) fixed_since_ = now;
  }

  std::vector<One> starts_;
  std::uint64_t serial_ = 0;
  std::uint64_t fixed_ = 0;  // serial of the oldest that is not resizable; 0: none
  scheduler::Time fixed_since_{};
};

}  // namespace slate::daemon
