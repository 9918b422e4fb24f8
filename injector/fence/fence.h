// The fence: every access of a module's kernels to memory is checked before it happens. So a kernel
// touches only what its session may touch, and raises no fault that would end the CUDA context for
// all. Text in, text out. It runs last, on the text that has all forms, and behind
// tabulate_variables(). What it refuses, and what a check is: docs/injector.md. Pure functions.
// Thread: any.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "injector/analysis/analysis.h"
#include "injector/fence/plan.h"
#include "injector/ptx/module.h"

namespace slate::injector {

struct FenceOptions {
  /// kExpected: names with kReservedPrefix are ours, and accesses by them are not checked.
  /// Requires: inject() made the text, of a module whose text has no such name.
  OwnNames names = OwnNames::kRefused;
  /// Bytes of shared memory that the device keeps in front of each block's own
  /// (CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK).
  std::uint32_t reserved_shared = 0;
  /// Behind tabulate_variables(): the variables, in its order. Without them accesses by their names
  /// are checked like others.
  std::vector<TabledVariable> tabled{};
  /// Whether functions may call themselves. Their stack has no bound then, and a stack overflow is
  /// a fault of the device.
  bool recursion = false;
  /// A launch like those to come: a bounded copy keeps the checks of what this one does not bound.
  /// Null: of what small launches do not bound.
  const LaunchValues* launch = nullptr;
};

/// Of one entry with a body.
struct FenceVerdict {
  std::string name;
  std::string why_not;    // why it cannot be fenced; empty: it is
  AccessCounts counts;    // with those of the functions that it may call
  AccessBounds bounds{};  // of a bounded copy: what its launches have to keep to
  bool legal() const { return why_not.empty(); }
};

struct FencedModule {
  std::string ptx;
  std::vector<FenceVerdict> entries;   // in text order
  std::vector<std::string> functions;  // name by FenceRecord::function
};

/// The module behind the fence. What a host does with it:
/// - It launches no entry that has a reason in its verdict, and none that is not among the entries.
/// - After loading it writes a FenceConstants to the constant kFenceConstants (member_text.h).
/// - It keeps the session's FenceTable (fence_table.h): the main extent, and every other range that
///   the session may touch. These are its modules' variables, pinned and managed memory,
///   imports, and what slate's printf writes to. Control blocks, profile counters and the table
///   itself are not in it.
/// - It polls FenceRecord::state. Once that is kComplete, it waits for the kernel's own end; a
///   worker's signal comes earlier. After a bound it ends the kernel by force: threads may wait for
///   ever for one that was ended at a barrier with a count. Only then it may take memory away.
/// - It launches no fenced kernel in clusters of more than one block.
/// - It launches a bounded copy (with_bounded_copy()) only where the bounds in its verdict hold for
///   the launch. Memory that is unmapped later waits for the launch, as for any that has begun.
/// - It compiles again with .maxnreg where a fenced kernel would lose blocks on an SM.
/// Errors: kNotSupported for a module of which nothing can be fenced: reserved names that are not
/// expected, 32-bit addresses, a target before sm_70, pragmas that move registers, no room among
/// the constants. kInternal if the pass contradicts itself.
Result<FencedModule> fence(const ptx::Module& module, const FenceOptions& options);

/// The verdicts alone. Errors: as fence().
Result<std::vector<FenceVerdict>> judge_fence(const ptx::Module& module,
                                              const FenceOptions& options);

/// The module with a copy of an entry, whose name ends with kBoundedSuffix. fence() leaves out the
/// checks of what its bounds show; it leaves out the copy where there are none. Requires: there is
/// the entry.
Result<std::string> with_bounded_copy(const ptx::Module& module, std::string_view entry);

}  // namespace slate::injector
