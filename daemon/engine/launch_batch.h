// LaunchBatch: launches that are marked, watched and accounted for together. The session's thread
// fills it. Its end is seen by that thread, the completer's or the executor's.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "daemon/engine/completer.h"
#include "daemon/engine/trace.h"
#include "scheduler/policy.h"

namespace slate::daemon {

/// Launches that ran one behind the other on one stream: of one kernel, or of several short ones
/// whose times are known. Its device time, if measured, is from its first launch's start to its
/// last one's end.
struct LaunchBatch {
  scheduler::Completion completion;
  std::shared_ptr<SharedEvent> start, end;  // null: not timed
  double expected_ms = 0, alone_ms = 0;     // times of all its launches, see Grant
  // Number and time of the launches that the policy's view counts; the others repeat these.
  std::uint32_t counted = 0;
  double counted_ms = 0;
  double filled = 0;             // part of the device that the view counts for it
  std::uint64_t repeats_at = 0;  // value of changes_ with which such launches need no decision
  double full_ms = 0;            // expected time at which the batch takes no more launches
  bool mixes = false;            // whether it may have launches of other kernels, too
  bool profiled = false;         // whether it is one launch in the profile form
  double main_ms = 0;            // lead of completion.main over other kernels, see add()
  std::vector<std::uint64_t> serials;  // of its starts, see UnendedStarts
  TraceLaunch trace;
  std::atomic<bool> ended{false};  // accounted for, as several threads may see a lane's end

  /// Adds a launch with these times.
  void add(scheduler::KernelId kernel, double expected, double alone);
  /// Adds a launch that the policy's view counts.
  void add_counted(scheduler::KernelId kernel, double expected, double alone);
  /// Whether it has enough for one measurement.
  bool is_full() const;
};

}  // namespace slate::daemon
