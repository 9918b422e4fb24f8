// TimeslicePolicy: one session at a time has the device for a quantum, times its weight; higher
// priorities go strictly first. Running resizable work whose turn is over leaves the device.
// Compare GPUScheduler (Garg, Kothapalli, Purini; HiPC 2017), whose micro-kernels are slate's
// slices.
//
// Thread: none of its own; the caller serialises all calls (policy.h).
#pragma once

#include "scheduler/policy.h"
#include "scheduler/roster.h"
#include "scheduler/settings.h"
#include "scheduler/side_by_side.h"
#include "scheduler/turns.h"

namespace slate::scheduler {

class TimeslicePolicy final : public Policy {
 public:
  TimeslicePolicy(const Settings& settings, ProfileTable& profiles)
      : settings_(settings),
        profiles_(profiles),
        roster_(settings_, profiles),
        turns_(settings_, profiles_),
        side_by_side_(settings_, profiles_) {}

  std::string_view name() const override { return "timeslice"; }
  std::string arrangement_text(const Machine&) const override {
    return side_by_side_.active() ? "side by side" : "taking turns";
  }
  void decide(const View& view, Decisions& decisions) override;
  void finished(const Completion& completion) override;

 private:
  Settings settings_;
  ProfileTable& profiles_;
  Roster roster_;
  Turns turns_;
  SideBySide side_by_side_;
};

/// Whether launches start beside work on the device that cannot be resized, instead of waiting for
/// its end. That is work of one of these:
/// - a session that does not contend, if it lasts longer than Settings::ahead;
/// - a session beside which others contend, if it is overdue (overdue_at()).
bool goes_beside(const View& view, Roster& roster, const Settings& settings);

}  // namespace slate::scheduler
