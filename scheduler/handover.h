// Handover: counts launches of the plan before that are still on the device when a new plan begins.
// Until they have ended, and for launches that ran beside them, times say nothing about the new
// plan. A part of policies; the count of each session is Slot::old_work.
#pragma once

#include "scheduler/policy.h"
#include "scheduler/roster.h"
#include "scheduler/settings.h"

namespace slate::scheduler {

class Handover {
 public:
  /// Begins a new plan: what runs belongs to the old plan, except work that can be resized into the
  /// new one.
  void begin(const View& view, Roster& roster, const ProfileTable& profiles,
             const Settings& settings);
  /// Counts `launches` of the slot's resizable work to the old plan, too.
  void wait_for(Slot& slot, std::uint32_t launches);
  /// Counts launches of an older plan that have ended.
  void ended(Slot& slot, const Completion& completion);
  /// Corrects the counts by the view: one completion may cover launches of two plans, and sessions
  /// may have gone.
  void settle(const View& view, Roster& roster);
  /// Whether no work of the old plan is on the device.
  bool over() const { return old_work_ == 0; }
  /// When the last of the old plan's work ended. Requires over().
  Time since() const { return old_end_; }
  /// Whether work of an older plan overlapped at most a tenth of the completion's time.
  bool clean(const Completion& completion) const;

 private:
  std::uint32_t old_work_ = 0;  // launches
  Time old_end_{};              // when the last launch of the old plan ended
};

}  // namespace slate::scheduler
