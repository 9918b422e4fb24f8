// timeslice: one session at a time has the device for a quantum, in turn, weighted; higher
// priorities strictly first. Running resizable work whose turn is over leaves the device.
#pragma once

#include "scheduler/policy.h"
#include "scheduler/roster.h"
#include "scheduler/settings.h"
#include "scheduler/turns.h"

namespace slate::scheduler {

class TimeslicePolicy final : public Policy {
 public:
  TimeslicePolicy(const Settings& settings, ProfileTable& profiles)
      : settings_(settings),
        profiles_(profiles),
        roster_(settings_, profiles),
        turns_(settings_, profiles_) {}

  std::string_view name() const override { return "timeslice"; }
  std::string arrangement_text(const Machine&) const override { return "taking turns"; }
  void decide(const View& view, Decisions& decisions) override;
  void finished(const Completion& completion) override;

 private:
  Settings settings_;
  ProfileTable& profiles_;
  Roster roster_;
  Turns turns_;
};

/// Work outside of `roster`'s contenders that nobody can stop and that will last: launches then
/// start beside it instead of waiting for its end.
bool long_outsider(const View& view, Roster& roster, const Settings& settings);

}  // namespace slate::scheduler
