// Roster: what a policy remembers of each session from one decision to the next, and which sessions
// contend now. Those are the active sessions of the highest priority, and sessions that have waited
// too long. Slots have the order of the view's sessions. A part of policies, not a policy. Thread:
// the policy's (policy.h).
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "scheduler/policy.h"
#include "scheduler/settings.h"
#include "scheduler/user_queues.h"

namespace slate::scheduler {

/// Tag of launches that started beside work that cannot be stopped: their times are not used.
inline constexpr std::uint64_t kBesideTag = 0;

/// What is remembered of one session.
struct Slot {
  SessionId id = 0;
  double weight = 1;      // share relative to all other sessions'
  bool active = false;    // waits or runs, or did so within Settings::linger
  bool contends = false;  // active, and not kept away by a higher priority
  Time active_since{};
  bool has_kernel = false;
  KernelId kernel = 0;     // family that takes most of the session's device time: the main kernel
  WaitingLaunch launch{};  // last launch seen of the main kernel
  // For Turns: device time received over weight in ms, and whether the session takes part now.
  double received = 0;
  bool in_turns = false;
  // For groups: work done over weight, as ms of time alone.
  double served = 0;
  double credited = 0;  // ms of work already counted in `served` for the running launch's progress
  bool member = false;  // whether the session is in the group
  std::uint32_t old_work = 0;  // launches of former arrangements that have not ended
  Time last_start{};           // time of the last launch that was started
  Time emptied = kNever;       // when the running work was taken off the device
  Time grace_until{};          // end of the time for which ageing lets the session through
  // Counts of recent launches: all, those that came after all before them had ended, and those that
  // came a while after that.
  double came = 0, came_behind = 0, came_to_nothing = 0;
  Time last_came{};  // arrival of the last launch counted
  struct KernelTime {
    KernelId kernel = 0;
    double ms = 0;
  };
  std::array<KernelTime, 4> mix{};  // recent device time by family

  /// Whether the program pauses: it waits for the ends of launches before it makes others.
  bool pauses = false;
  /// Whether the program waits for each launch before it makes the next one.
  bool waits_each = false;
  /// Mean time for which a launch of the session kept the device from others, beyond its time
  /// alone: it has to be brought there, and its end noticed.
  double overhead_ms = 0;
  double gap_ms = 0;  // mean time that such a program takes from a launch's end to the next launch
};

class Roster {
 public:
  Roster(const Settings& settings, const ProfileTable& profiles)
      : settings_(settings), profiles_(profiles) {}

  /// Updates slots and contenders to the view. Returns true if sessions came or went, so that
  /// indices have changed.
  bool update(const View& view);
  Slot& operator[](std::size_t i) { return slots_[i]; }
  const Slot& operator[](std::size_t i) const { return slots_[i]; }
  std::size_t size() const { return slots_.size(); }
  /// Null if there is no such session.
  Slot* find(SessionId id);
  /// Indices of the slots that contend, in rising order.
  std::span<const std::uint32_t> contenders() const { return contenders_; }
  /// When update() may have another result without an event; kNever: only after an event.
  Time next_change() const { return next_change_; }
  /// Whether an idle session has a higher priority than all contenders.
  bool may_be_preempted() const { return may_be_preempted_; }
  /// Counts work that has ended, or the progress of a launch that goes on, as served to its
  /// session.
  void finished(const Completion& completion);
  void progressed(const Progress& progress);
  /// Slot::overhead_ms where several users have sessions; else 0, as nobody else is kept waiting.
  Milliseconds overhead(const Slot& slot) const {
    return Milliseconds(for_several_users_ ? slot.overhead_ms : 0);
  }
  /// Time alone of a program that waits for each launch, from one launch to the next.
  Milliseconds cycle(const Slot& slot) const;
  /// Whether the user of the session with this slot may queue the launch that waits, if one does,
  /// beside other users' programs that wait for each launch.
  bool has_room(const SessionView& session, const Slot& slot) const;
  /// Whether sessions of several users are active.
  bool has_several_users() const { return users_.several(); }
  /// Whether no other session of the session's user is active.
  bool is_only_session(const SessionView& session) const { return users_.is_only(session); }
  /// Whether launches of the session may repeat without decisions: each one of a user's several
  /// sessions has to ask beside other users'.
  bool may_repeat(const SessionView& session) const {
    return !for_several_users_ || is_only_session(session);
  }
  /// Counts the session's waiting launch as queued, for further has_room() before the next
  /// update().
  void queued(const SessionView& session, const Slot& slot);
  /// Decides to take resizable work of sessions that do not contend off the device.
  void retreat_others(const View& view, Decisions& decisions) const;

 private:
  void account(Slot& slot, const Completion& completion, std::optional<Milliseconds> alone,
               Milliseconds work);
  bool align(const View& view);
  void note_arrival(Slot& slot, const SessionView& session) const;
  void choose_kernel(Slot& slot, const SessionView& session, Time now);
  bool aged(Slot& slot, const SessionView& session, Time now);
  void share_by_user(const View& view);
  void bound_queues(const View& view);
  Milliseconds cost(const WaitingLaunch& launch, const Slot& slot) const;
  void measure_overhead(Slot& slot, const Completion& completion);
  void later(Time at) { next_change_ = at < next_change_ ? at : next_change_; }

  const Settings& settings_;
  const ProfileTable& profiles_;
  std::vector<Slot> slots_, spare_;
  std::vector<std::uint32_t> contenders_;
  UserQueues users_;  // users of active sessions
  Time next_change_ = kNever;
  Time last_end_{};  // of all launches
  bool may_be_preempted_ = false;
  bool for_several_users_ = false;
  double least_served_ = 0;  // `served` of the contender that has least
};

}  // namespace slate::scheduler
