// BlockingWatch: which sessions keep other users' launches waiting for too long, and are to be
// ended for it. Pure: the caller tells the time, and what each session has on the device. It knows
// no device, and ends nothing by itself. Thread: one.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "scheduler/placement.h"
#include "scheduler/profile.h"

namespace slate::daemon {

/// What a session has on the device, and what it waits for.
struct SessionUse {
  std::uint64_t session = 0;
  std::uint32_t uid = 0;
  int priority = 0;
  /// The longest time that its work may keep other users' launches waiting; 0: no bound.
  std::chrono::milliseconds most_blocking{0};
  /// Since when its oldest work that nobody can take off the device is the oldest. That is a launch
  /// that cannot be resized, or workers that were told to leave. None: there is no such work.
  std::optional<scheduler::Time> holds_since{};
  bool leaves_room = false;          // whether that work leaves SMs free
  scheduler::Placement placement{};  // placement of its newest work
  /// Since when nothing of it runs although it has a launch; none: something runs, or it wants
  /// nothing.
  std::optional<scheduler::Time> waits_since{};
  /// Sessions whose work its oldest launch waits for on the device. Empty: it waits for the policy.
  std::vector<std::uint64_t> waits_for{};
  /// Since when its thread is in a call of the device that waits for all kernels, or behind one of
  /// another thread; none: it is not.
  std::optional<scheduler::Time> stalled_since{};
  /// Time that its unended launches take alone, where all of them are known; 0: not known.
  scheduler::Milliseconds expected{};
};

class BlockingWatch {
 public:
  /// The pause between two looks.
  static constexpr std::chrono::milliseconds kEvery{100};
  /// The time in which the work of an ended session has to leave the device.
  static constexpr std::chrono::seconds kGrace{2};
  /// Launches beside others' that take this many times as long as alone count as kept waiting.
  static constexpr double kStarved = 100;

  struct Verdict {
    std::uint64_t session = 0;  // the session that keeps others waiting
    std::uint64_t waiting = 0;  // a session that waits for it
    std::chrono::milliseconds waited{0};
    /// Whether the session was ended for it before, and its work cannot be stopped.
    bool stays = false;
  };

  /// The sessions that have gone beyond their bound. Each is told once, and once more as `stays`.
  std::vector<Verdict> look(scheduler::Time now, std::span<const SessionUse> sessions);

  /// Whether look() could find anything: sessions of several users are there.
  static bool is_needed(std::span<const SessionUse> sessions);

 private:
  struct Told {
    scheduler::Time at;
    bool stays = false;
  };
  std::map<std::uint64_t, Told> told_;  // sessions that were told of, while they are there
};

}  // namespace slate::daemon
