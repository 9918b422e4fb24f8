// SideBySide: sessions of several users whose kernels fit on the device together. They take no
// turns: each launch starts at once, beside whatever runs, as often as its user may launch
// (UserQueues). A part of policies, not a policy. Thread: the policy's (policy.h).
#pragma once

#include <cstdint>
#include <vector>

#include "scheduler/policy.h"
#include "scheduler/roster.h"
#include "scheduler/settings.h"

namespace slate::scheduler {

class SideBySide {
 public:
  SideBySide(const Settings& settings, const ProfileTable& profiles)
      : settings_(settings), profiles_(profiles) {}

  /// Starts what waits, if sessions of several users contend and all of it fits on the device, as
  /// it did in each decision of the last Settings::rotation. Else returns false, and decides
  /// nothing. Requires: the roster is up to date.
  bool decide(const View& view, Roster& roster, Decisions& decisions);
  /// Whether the last decide() returned true.
  bool active() const { return active_; }

 private:
  bool all_fit(const View& view, const Roster& roster) const;
  /// Whether the session and its next launch can run beside others: it is short, of known time, and
  /// cannot be anything but native.
  bool may_be_beside(const SessionView& session, const Slot& slot) const;
  void start(const View& view, std::uint32_t index, Roster& roster, Decisions& decisions);

  const Settings& settings_;
  const ProfileTable& profiles_;
  std::vector<std::uint32_t> order_;  // waiting sessions, least recently started first
  Time again_from_{};  // end of the time for which all have to fit before they are let again
  bool active_ = false;
};

}  // namespace slate::scheduler
