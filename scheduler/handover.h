// Handover: counts launches of the arrangement before that are still on the device when a new
// arrangement begins. Until they have ended, and for launches that ran beside them, times say
// nothing about the new one. Here an arrangement is also a pair of table, or its turns. A part of
// policies; the count of each session is Slot::old_work. Thread: the policy's (policy.h).
#pragma once

#include "scheduler/policy.h"
#include "scheduler/roster.h"
#include "scheduler/settings.h"

namespace slate::scheduler {

class Handover {
 public:
  /// Begins a new arrangement: what runs belongs to the old arrangement, except work that can be
  /// resized into the new one.
  void begin(const View& view, Roster& roster, const ProfileTable& profiles,
             const Settings& settings);
  /// Counts `launches` of the slot's resizable work to the old arrangement, too.
  void wait_for(Slot& slot, std::uint32_t launches);
  /// Counts launches of an older arrangement that have ended.
  void ended(Slot& slot, const Completion& completion);
  /// Corrects the counts by the view: one completion may cover launches of two arrangements, and
  /// sessions may have gone.
  void settle(const View& view, Roster& roster);
  /// Whether no work of the old arrangement is on the device.
  bool over() const { return old_work_ == 0; }
  /// When the last of the old arrangement's work ended. Requires: over().
  Time since() const { return old_end_; }
  /// Whether work of an older arrangement overlapped at most a tenth of the completion's time.
  bool clean(const Completion& completion) const;

 private:
  std::uint32_t old_work_ = 0;  // launches
  Time old_end_{};              // when the last launch of the old arrangement ended
};

}  // namespace slate::scheduler
