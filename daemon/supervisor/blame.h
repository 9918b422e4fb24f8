// Blame: which users' sessions kept others from the device or ended an engine, and who is barred
// for it. Pure: the caller tells the time, and writes the log. Supervisor thread only.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "daemon/supervisor/poll_set.h"

namespace slate::daemon {

class Blame {
 public:
  /// The time for which an incident counts.
  static constexpr std::chrono::minutes kWindow{10};

  struct Limits {
    std::uint32_t bar_after = 0;  // incidents within kWindow that bar a user; 0: nobody is barred
    Clock::duration bar{};        // how long a user is barred
  };
  struct Barred {
    std::uint32_t uid = 0;
    std::chrono::seconds left{0};  // rounded up
    std::string last;              // what the newest incident was
  };
  struct Counted {
    std::uint32_t incidents = 0;  // of the user within kWindow, with this one
    bool barred = false;          // whether the user is barred from now on
  };

  /// Counts an incident against the user. Requires: he may be barred.
  Counted count(std::uint32_t uid, const std::string& what, const Limits& limits,
                Clock::time_point now);
  /// Until when the user's meetings are refused; none: he may come.
  std::optional<Barred> barred(std::uint32_t uid, Clock::time_point now) const;
  /// All users that are barred now.
  std::vector<Barred> all_barred(Clock::time_point now) const;

  /// What the slated that takes this one's process over goes on with: times are of the same clock.
  nlohmann::json hand_over() const;
  /// Requires: nothing was counted yet. Throws nlohmann::json::exception if `state` is not what
  /// hand_over() gave.
  void take_over(const nlohmann::json& state);

 private:
  struct User {
    std::deque<Clock::time_point> incidents;  // within kWindow of the newest
    Clock::time_point until{};                // end of the bar
    std::string last;
  };

  void forget_old(Clock::time_point now);

  std::map<std::uint32_t, User> users_;  // those with incidents that count, or barred
};

/// The reason that programs of a barred user get.
std::string bar_reason(const Blame::Barred& barred);

}  // namespace slate::daemon
