// Settings: every knob of the policies, with default and unit. A plain value that the configuration
// fills before make_policy(). Nothing here changes while a policy lives. Not here: the engine's own
// knobs, and constants that no user should change. Thread: any.
#pragma once

#include <array>
#include <cstdint>

#include "scheduler/profile.h"

namespace slate::scheduler {

/// The classes of kernels of the Slate paper's Table I. Memory outranks compute: the compute
/// classes are for kernels of low memory intensity.
enum class KernelClass : std::uint8_t {
  kLowCompute,
  kMediumCompute,
  kHighCompute,
  kMediumMemory,
  kHighMemory
};
inline constexpr std::size_t kClassCount = 5;

/// Table I: whether the newcomer (column) may run beside the running kernel (row).
using CorunTable = std::array<std::array<bool, kClassCount>, kClassCount>;

struct Settings {
  // Queues. Work that is started but has not ended delays other sessions; too little of it leaves
  // gaps.
  Milliseconds ahead{2};             // device time queued of each session while others are active
  std::uint32_t ahead_launches = 2;  // launches queued at least, of kernels shorter than `ahead`
  Milliseconds ahead_alone{8};       // device time queued of a session that is alone
  std::uint32_t ahead_alone_launches = 4;  // launches queued at least, of a session that is alone
  Milliseconds unknown_kernel{1};  // device time assumed of a kernel that was never measured

  // Sessions.
  Milliseconds linger{2};           // time for which an idle session counts as active
  Milliseconds priority_hold{0.2};  // time for which an idle session keeps lower priorities away
  Milliseconds ageing{10'000};      // waiting time after which priority is ignored; 0: never

  // Forms.
  Milliseconds long_kernel{10};  // time of a launch above which it runs as workers, to be resized
  double worker_floor = 0.9;     // least speed of that worker form over native
  /// Waves from which a launch of unknown time runs as workers.
  std::uint32_t unknown_worker_waves = 64;
  std::uint32_t native_first = 3;  // native launches before the worker form is tried alone
  std::uint32_t form_tries = 2;    // launches that decide between forms
  std::uint32_t task_tries = 4;    // launches that decide between task sizes
  Milliseconds slice{2};  // device time of one slice of a long kernel that cannot be resized
  std::uint32_t slice_waves = 16;  // waves of one slice while the kernel's time is unknown
  /// Longest time alone of a kernel that is tried natively, where nothing can stop it.
  Milliseconds native_try{50};

  // Turns.
  Milliseconds quantum{5};  // timeslice and table: length of a turn, times the session's weight
  Milliseconds adaptive_quantum{2};  // adaptive: length of a turn, times the session's weight
  /// Adaptive: the same, for long resizable work, which it costs to take off the device.
  Milliseconds long_quantum{10};
  /// Time after which others begin beside work that cannot be resized and leaves room.
  Milliseconds overdue{50};

  // adaptive.
  std::uint32_t group = 8;  // most sessions that share the device at a time, 1 to 8
  /// Stay of a group while others wait to join, and of members alike in their places.
  Milliseconds rotation{20};
  double floor = 0.5;         // least part of its fair share that a member gets
  double least_gain = 0.02;   // least gain over what needs no arrangement: turns, or all together
  double cut = 1.15;          // score over the best at which a candidate is cut short
  double drift = 0.15;        // change of the settled score that is a reason to search again
  double search_loss = 0.01;  // part of the time that candidates may cost
  Milliseconds measure{2};    // least time of measuring a candidate
  Milliseconds measure_alone{3};  // time alone that suffices to know a form, in place of form_tries
  Milliseconds search_ahead{0.5};   // `ahead` during a search
  Milliseconds search_again{1000};  // least time between two searches of one group

  // table. The thresholds are fractions of the device's peaks; docs/scheduling.md says why.
  double medium_compute = 0.005, high_compute = 0.04;
  double medium_memory = 0.35, high_memory = 0.85;
  // Table I of the Slate paper: rows running, columns newcomers, both in the order of KernelClass.
  CorunTable table = {{{true, true, false, true, true},
                       {true, true, false, false, true},
                       {false, false, false, false, true},
                       {true, false, true, false, false},
                       {true, true, false, false, false}}};
  // Whether one launch of each kernel counts FLOPs and bytes, from which intensities follow.
  bool intensities = true;
  // Whether a kernel's first launch waits until its forms are made. Otherwise they are made in the
  // background once the kernel has run long enough to matter.
  bool forms_at_once = false;
  // Peaks of the device in 10^9 FLOP/s and 10^9 bytes/s; 0: as the device itself says.
  double peak_gflops = 0, peak_gbytes = 0;
  /// Part of its full speed that is enough for the memory-bound kernel of a pair.
  double near_full = 0.9;
  double saturation = 0.36;  // part of the SMs that saturates the memory: 48 of 132 on an H200
};

}  // namespace slate::scheduler
