// Settings: every knob of the policies, with defaults and units. A plain value that the
// configuration fills before make_policy(); nothing here changes while a policy lives.
#pragma once

#include <array>
#include <cstdint>

#include "scheduler/profile.h"

namespace slate::scheduler {

/// The classes of Slate's Table I. Memory outranks compute: kLowCompute to kHighCompute are kernels
/// of low memory intensity.
enum class KernelClass : std::uint8_t {
  kLowCompute,
  kMediumCompute,
  kHighCompute,
  kMediumMemory,
  kHighMemory
};
inline constexpr std::size_t kClassCount = 5;

/// May the newcomer (column) run beside the running kernel (row)?
using CorunTable = std::array<std::array<bool, kClassCount>, kClassCount>;

struct Settings {
  // Queues. What is started but has not ended delays whoever comes next; too little leaves gaps.
  Milliseconds ahead{2};                   // of each session, while others are active
  std::uint32_t ahead_launches = 2;        // at least, of kernels shorter than that
  Milliseconds ahead_alone{8};             // of a session that is alone
  std::uint32_t ahead_alone_launches = 4;  // at least
  Milliseconds unknown_kernel{1};          // what a kernel counts as that was never measured

  // Sessions.
  Milliseconds linger{2};           // an idle session counts as active for so long
  Milliseconds priority_hold{0.2};  // an idle session keeps lower priorities away for so long
  Milliseconds ageing{10'000};  // who waited so long is let through whatever its priority; 0: never

  // Forms.
  Milliseconds long_kernel{10};             // longer ones run as workers, to be resized
  double worker_floor = 0.9;                // unless that form is slower than this part of native
  std::uint32_t unknown_worker_waves = 64;  // unknown kernels of so many waves start as workers
  std::uint32_t native_first = 3;           // native launches before the worker form is tried alone
  std::uint32_t form_tries = 2;             // launches that decide between forms
  std::uint32_t task_tries = 4;             // and between sizes of workers' tasks
  Milliseconds slice{2};           // of a long kernel that cannot be resized, started at a time
  std::uint32_t slice_waves = 16;  // likewise, before its speed is known
  Milliseconds native_try{50};     // a longer kernel is never tried natively: nobody could stop it

  // Turns.
  Milliseconds quantum{5};           // timeslice and table; times the session's weight
  Milliseconds adaptive_quantum{2};  // adaptive, where turns are the best that there is
  Milliseconds long_quantum{10};  // the same, of long resizable work: taking it off has its price

  // adaptive.
  std::uint32_t group = 8;          // sessions that share the device at a time, 1 to 8
  Milliseconds rotation{20};        // how long a group stays while others wait to get in, and
                                    // members alike stay in their places
  double floor = 0.5;               // the least part of its fair share that anybody gets
  double least_gain = 0.02;         // over what needs no arrangement: turns, or all together
  double cut = 1.15;                // candidates that look worse than this by the best are left
  double drift = 0.15;              // measured again when settled: so far off is a reason to search
  double search_loss = 0.01;        // of the time of a search, what candidates may cost
  Milliseconds measure{2};          // of each candidate, at least
  Milliseconds measure_alone{3};    // or form_tries launches
  Milliseconds search_ahead{0.5};   // in place of `ahead` while searching
  Milliseconds search_again{1000};  // at least between two searches of one group

  // table. The thresholds are fractions of the device's peaks; docs/scheduling.md says why these.
  double medium_compute = 0.005, high_compute = 0.04;
  double medium_memory = 0.35, high_memory = 0.85;
  CorunTable table = {{{true, true, false, true, true},
                       {true, true, false, false, true},
                       {false, false, false, false, true},
                       {true, false, true, false, false},
                       {true, true, false, false, false}}};
  // One launch of each kernel counts what it computes and how many bytes it asks for, unless this
  // is false; over what the device can do (0: as it says itself) these are the intensities.
  bool intensities = true;
  // Whether a kernel's first launch waits until its forms are made. Otherwise they are made behind
  // its launches, once it has run long enough to matter.
  bool forms_at_once = false;
  double peak_gflops = 0, peak_gbytes = 0;
  double near_full = 0.9;    // of its speed is enough for the memory-bound one of two
  double saturation = 0.36;  // of the SMs saturate the memory: 48 of 132 on an H200
};

}  // namespace slate::scheduler
