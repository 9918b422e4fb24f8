// Handover: when one plan follows another, launches of the old one are still on the device. Until
// they have ended, and for what ran beside them, times say nothing about the new plan.
#pragma once

#include "scheduler/policy.h"
#include "scheduler/roster.h"
#include "scheduler/settings.h"

namespace slate::scheduler {

class Handover {
 public:
  /// A new plan begins: what runs belongs to the old one, but for what can be resized.
  void begin(const View& view, Roster& roster, const ProfileTable& profiles,
             const Settings& settings);
  /// So much of what could be resized belongs to the old one, too.
  void wait_for(Slot& slot, std::uint32_t launches);
  /// Work of an older plan has ended.
  void ended(Slot& slot, const Completion& completion);
  /// Follows the view: a completion may have covered launches of two plans.
  void settle(const View& view, Roster& roster);
  bool over() const { return old_work_ == 0; }
  /// When the last of the old plan's work ended. Requires over().
  Time since() const { return old_end_; }
  /// A launch of the present plan ran beside hardly any old work.
  bool clean(const Completion& completion) const;

 private:
  std::uint32_t old_work_ = 0;  // launches
  Time old_end_{};
};

}  // namespace slate::scheduler
