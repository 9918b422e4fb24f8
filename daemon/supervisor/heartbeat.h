// Heartbeat: whether an engine still answers. It is asked now and then while it says nothing, and
// counts as hung when it has said nothing for too long since. Pure: the caller tells the time.
// Thread: one.
#pragma once

#include <optional>

#include "daemon/supervisor/poll_set.h"

namespace slate::daemon {

class Heartbeat {
 public:
  /// Pause before a silent engine is asked.
  static constexpr std::chrono::seconds kEvery{2};

  /// `patience`: time that an answer may take; 0: for ever.
  explicit Heartbeat(Clock::duration patience) : patience_(patience) {}

  /// The engine said something. From the first time on it is watched.
  void heard(Clock::time_point now) {
    heard_ = now;
    asked_.reset();
  }
  /// Whether the engine is to be asked now. Then asked() must follow.
  bool should_ask(Clock::time_point now) const {
    return watches() && !asked_ && now >= *heard_ + kEvery;
  }
  void asked(Clock::time_point now) { asked_ = now; }
  bool is_hung(Clock::time_point now) const {
    return watches() && asked_ && now >= *asked_ + patience_;
  }
  /// When one of these answers changes; none: not by time.
  std::optional<Clock::time_point> next() const {
    if (!watches()) return std::nullopt;
    return asked_ ? *asked_ + patience_ : *heard_ + kEvery;
  }

 private:
  bool watches() const { return patience_.count() > 0 && heard_; }

  const Clock::duration patience_;
  std::optional<Clock::time_point> heard_, asked_;
};

}  // namespace slate::daemon
