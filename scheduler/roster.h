// Roster: what a policy remembers of each session from one decision to the next, and which sessions
// have a say now: the active ones of the highest priority, and those who waited too long. Slots are
// in the order of the view's sessions.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "scheduler/policy.h"
#include "scheduler/settings.h"

namespace slate::scheduler {

struct Slot {
  SessionId id = 0;
  double weight = 1;
  bool active = false;    // waits or runs, or did until a moment ago
  bool contends = false;  // active, and no higher priority keeps it away
  Time active_since{};
  bool has_kernel = false;
  KernelId kernel = 0;     // the family on which the session spends most of its device time
  WaitingLaunch launch{};  // the last one seen of it
  // For Turns: device time received over weight, and whether it takes part now.
  double received = 0;
  bool in_turns = false;
  // For groups: work done, in time alone, over weight; and whether it is a member.
  double served = 0;
  double credited = 0;  // ms of that, for what the running launch has done so far
  bool member = false;
  std::uint32_t old_work = 0;  // launches of former plans that have not ended
  Time last_start{};           // of a launch
  Time emptied = kNever;       // since when its running work is off the device
  Time grace_until{};          // let through in spite of its priority
  // Of recent launches, how many came a while after all before them had ended.
  double came = 0, came_to_nothing = 0;
  Time last_came{};
  struct KernelTime {
    KernelId kernel = 0;
    double ms = 0;
  };
  std::array<KernelTime, 4> mix{};  // recent device time by family

  /// Its program waits for the ends of launches before it makes others.
  bool pauses = false;
};

class Roster {
 public:
  Roster(const Settings& settings, const ProfileTable& profiles)
      : settings_(settings), profiles_(profiles) {}

  /// Follows the view. True if sessions came or went, so that indices have changed.
  bool update(const View& view);
  Slot& operator[](std::size_t i) { return slots_[i]; }
  const Slot& operator[](std::size_t i) const { return slots_[i]; }
  std::size_t size() const { return slots_.size(); }
  Slot* find(SessionId id);
  /// Indices of the slots that contend.
  std::span<const std::uint32_t> contenders() const { return contenders_; }
  /// When update() may have another result without an event; kNever if not.
  Time next_change() const { return next_change_; }
  /// A session of higher priority than all contenders is there, idle.
  bool may_be_preempted() const { return may_be_preempted_; }
  /// Work that has ended, or is done so far by a launch that goes on: its session was served.
  void finished(const Completion& completion);
  void progressed(const Progress& progress);
  /// Takes the resizable work of sessions that do not contend off the device.
  void retreat_others(const View& view, Decisions& decisions) const;

 private:
  void account(Slot& slot, const Completion& completion, std::optional<Milliseconds> alone,
               Milliseconds work);
  bool align(const View& view);
  void note_arrival(Slot& slot, const SessionView& session) const;
  void choose_kernel(Slot& slot, const SessionView& session, Time now);
  bool aged(Slot& slot, const SessionView& session, Time now);
  void later(Time at) { next_change_ = at < next_change_ ? at : next_change_; }

  const Settings& settings_;
  const ProfileTable& profiles_;
  std::vector<Slot> slots_, spare_;
  std::vector<std::uint32_t> contenders_;
  Time next_change_ = kNever;
  bool may_be_preempted_ = false;
  double least_served_ = 0;  // by the poorest of the contenders
};

/// A duration as the caller's clock counts.
inline Time::duration ticks(Milliseconds time) {
  return std::chrono::duration_cast<Time::duration>(time);
}

}  // namespace slate::scheduler
