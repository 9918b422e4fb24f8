// Turns: one session at a time has the whole device for a quantum of device time, weighted; the
// next turn goes to whoever received least. Launches are chained on the device (Start::alone), so a
// change of turn leaves no gap. A part of policies, not a policy.
#pragma once

#include <cstdint>
#include <span>

#include "scheduler/policy.h"
#include "scheduler/roster.h"
#include "scheduler/settings.h"

namespace slate::scheduler {

class Turns {
 public:
  struct Rules {
    Milliseconds quantum{5};
    Milliseconds long_quantum{5};  // of work that has to be taken off the device when its turn ends
    Milliseconds unknown_turn{};   // at least, of such work of which nothing is known yet
    std::uint64_t tag = 0;
    bool alone = true;     // false: do not wait for the work of sessions outside of `who`
    bool sampled = false;  // not every launch has to be measured
    bool repeats = false;  // there are no turns: nobody else is there
  };

  Turns(const Settings& settings, const ProfileTable& profiles)
      : settings_(settings), profiles_(profiles) {}

  /// Turns among the sessions `who`, indices of the view and of the roster.
  void decide(const View& view, Roster& roster, std::span<const std::uint32_t> who,
              const Rules& rules, Decisions& decisions);
  /// Corrects what the launches were expected to take. Call before the profile learns of them.
  void finished(Roster& roster, const Completion& completion);
  /// Forgets who received what in earlier turns. Who was served more than another since then, owes
  /// it that, up to `most_owed`.
  void reset(Roster& roster, Milliseconds most_owed = {});

  SessionId holder() const { return holder_; }
  /// Rises when the holder changes.
  std::uint64_t turn() const { return turn_; }

 private:
  struct Scene;  // one decide() call
  enum class Served { kStarted, kEnough, kNothing };

  Served serve(Scene& scene, std::uint32_t index);
  void charge_time(Scene& scene);
  void charge(Slot& slot, Time until);
  bool by_time(const SessionView& session) const;
  bool has_price(const SessionView& session) const;
  Time known_at(const Scene& scene, const SessionView& session) const;
  Time coming_until(const Scene& scene, std::uint32_t holder) const;
  bool wants(const Scene& scene, std::uint32_t index) const;
  std::uint32_t next(const Scene& scene, std::uint32_t after) const;
  bool over(const Scene& scene, std::uint32_t holder) const;
  void begin(Scene& scene, std::uint32_t index);
  void retreat_others(Scene& scene, std::uint32_t holder);

  const Settings& settings_;
  const ProfileTable& profiles_;
  SessionId holder_ = 0;
  bool held_ = false;
  double budget_ = 0;               // ms left of the turn
  double received_ = 0;             // by whoever had received least when the last turn began
  Time began_{}, charged_until_{};  // the turn
  std::uint64_t turn_ = 0;
};

}  // namespace slate::scheduler
