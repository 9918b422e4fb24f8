// The profile form: the kernel itself, the whole grid at once and with the same results, but with
// counters. In a sample of its blocks every thread adds to the counter of each basic block that it
// enters. Work that only some threads do there (under a predicate, or by an address that may not be
// of global memory) has counters of its own. A table says what one count stands for. So a kernel's
// FLOPs, bytes and instructions come from one launch, without the profiler's privileges. The Slate
// paper (IPDPS 2019) used nvprof at a kernel's first run for this.
//
// Device functions that were not inlined are counted in copies of them, which find the counters by
// a word of shared memory. Examples: tests/golden/profile/. Pure functions. Thread: any.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "injector/analysis/analysis.h"
#include "injector/forms/work.h"
#include "injector/ptx/module.h"

namespace slate::injector {

/// Most counters of a form. A kernel that needs more has no profile form: it would count more than
/// it works.
inline constexpr std::uint32_t kMostCounters = 2048;

/// Counters of functions. All forms of a module begin alike: counter 0 counts threads, then come
/// those of functions. `work` says what a count of each stands for.
struct CountedFunctions {
  std::vector<bool> copied;  // by index into Module::functions
  std::string text;          // declarations and copies; empty where no kernel needs one
  std::vector<Work> work;
};
/// The counters of functions reached from kernels with a legal profile form; none if they need too
/// many. Errors: kInternal.
Result<CountedFunctions> count_functions(const ptx::Module& module, const ModuleAnalysis& analysis);

struct ProfileForm {
  std::string text;
  std::vector<Work> work;  // by counter
};
/// The entry `name`; nullopt if it needs more than kMostCounters. Requires: entry.profile.legal().
/// Errors: kInternal.
Result<std::optional<ProfileForm>> profile_form(const ptx::Module& module,
                                                const EntryAnalysis& entry,
                                                const CountedFunctions& functions,
                                                std::string_view name);

/// Bytes of counters that a launch needs, zeroed.
std::uint64_t counter_bytes(std::span<const Work> work);
/// The work of a launch of `threads` threads that left `counters` (counter_bytes() bytes). nullopt:
/// no block was counted, so the kernel did not run.
std::optional<Work> launch_work(std::span<const Work> work, std::span<const std::uint64_t> counters,
                                double threads);

}  // namespace slate::injector
