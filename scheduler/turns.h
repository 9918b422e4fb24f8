// Turns: one session at a time has the whole device for a quantum of device time, times its weight.
// The next turn goes to the session that received least. Launches are chained on the device
// (Start::alone), so a change of turn leaves no gap. A part of policies, not a policy. Thread: the
// policy's (policy.h).
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "scheduler/policy.h"
#include "scheduler/roster.h"
#include "scheduler/settings.h"

namespace slate::scheduler {

class Turns {
 public:
  /// How the turns go in one decide() call.
  struct Rules {
    Milliseconds quantum{5};  // length of a turn
    /// Length of a turn for work that must be taken off the device at its end.
    Milliseconds long_quantum{5};
    Milliseconds unknown_turn{};  // least turn of such work while nothing is known of it
    std::uint64_t tag = 0;        // tag of the starts
    bool alone = true;     // false: launches do not wait for the work of sessions outside of `who`
    bool sampled = false;  // whether a sample of the launches is timed
    /// Whether launches may repeat without decisions: no other session is there.
    bool repeats = false;
  };

  Turns(const Settings& settings, const ProfileTable& profiles)
      : settings_(settings), profiles_(profiles) {}

  /// Decides starts and resizes for turns among the sessions `who`: indices in the view and the
  /// roster.
  void decide(const View& view, Roster& roster, std::span<const std::uint32_t> who,
              const Rules& rules, Decisions& decisions);
  /// Corrects the time that the launches were expected to take. Requires: the profile does not know
  /// of them yet.
  void finished(Roster& roster, const Completion& completion);
  /// Forgets the device time received in earlier turns. A session that was served more than the
  /// poorest contender starts with that difference as received, up to `most_owed`.
  void reset(Roster& roster, Milliseconds most_owed = {});

  /// Session that has the turn, or had it last; 0: none so far.
  SessionId holder() const { return holder_; }
  /// Number that rises when the holder changes.
  std::uint64_t turn() const { return turn_; }

 private:
  struct Scene;  // arguments and state of one decide() call
  /// kStarted: a launch; kEnough: enough is on the device; kNothing: nothing waits.
  enum class Served { kStarted, kEnough, kNothing };

  /// Starts or resizes work of the holder.
  Served serve(Scene& scene, std::uint32_t index);
  /// Charges the holder for long work that was on the device since the last call.
  void charge_time(Scene& scene);
  /// Charges the slot for the device time until `until`.
  void charge(Slot& slot, Time until);
  /// Whether the session's running work is long and resizable, and so is charged by time.
  bool by_time(const SessionView& session) const;
  /// Whether it costs about a task's time to take the session's work off the device.
  bool has_price(const SessionView& session) const;
  Time known_at(const Scene& scene, const SessionView& session) const;
  bool is_kept(const Scene& scene, std::uint32_t holder) const;
  Time coming_until(const Scene& scene, std::uint32_t holder) const;
  /// Whether the session has a launch to start, or work that waits off the device.
  bool wants(const Scene& scene, std::uint32_t index) const;
  /// Whether one more launch of the session may be queued on the device.
  bool may_start(const Scene& scene, std::uint32_t index) const;
  /// Whether the session can start nothing because of work of its own that does not end.
  bool is_stuck(const Scene& scene, std::uint32_t index) const;
  /// Until when the session begins nothing because of others' work that nobody can take off the
  /// device; kNever: until an event. None: it may begin.
  std::optional<Time> held_until(const Scene& scene, std::uint32_t index) const;
  /// The session whose turn comes next; kNobody: none wants one.
  std::uint32_t next(const Scene& scene, std::uint32_t after) const;
  /// Whether the holder's turn ends now.
  bool over(const Scene& scene, std::uint32_t holder) const;
  void begin(Scene& scene, std::uint32_t index);
  void retreat_others(Scene& scene, std::uint32_t holder);

  const Settings& settings_;
  const ProfileTable& profiles_;
  SessionId holder_ = 0;
  bool held_ = false;
  double budget_ = 0;    // ms left of the turn
  double received_ = 0;  // least received of all when the last turn began, over weight in ms
  /// Beginning of the turn, and the time until which the holder was charged.
  Time began_{}, charged_until_{};
  std::uint64_t turn_ = 0;
};

}  // namespace slate::scheduler
