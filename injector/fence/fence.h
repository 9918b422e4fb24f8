// The fence: every access of a module's kernels to memory is checked before it happens, so that a
// kernel touches only what its session may touch, and raises no fault that would end the CUDA
// context for all. Text in, text out; it runs last, behind the forms. Thread: any.
//
// How a host uses it:
// 1. It parses the text that is to be loaded, with the forms that inject() made.
// OwnNames::kExpected
//    only if inject() made that text, of a module whose text has no kReservedPrefix.
// 2. fence() gives the text to load. An entry with a reason in its verdict must not be launched:
// its
//    body is empty.
// 3. After loading it writes a FenceConstants to the module's constant kFenceConstants
//    (member_text.h), and keeps the session's FenceTable (fence_table.h). The table holds the main
//    extent first, and every other range that the session may touch: its modules' variables, pinned
//    and managed memory, imports, profile counters are not needed. Constants are readable.
// 4. It polls FenceRecord::state of the table. Once that is kComplete, the launch has violated the
//    fence: it waits until the kernel itself has ended (its event, not only the worker's signal),
//    or ends it by force after a bound: threads that wait for one that has been ended may wait for
//    ever. Only then may it take memory away.
// 5. A fenced kernel must not be launched in clusters of more than one block.
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
};

/// Of one entry with a body.
struct FenceVerdict {
  std::string name;
  std::string why_not;  // why it cannot be fenced; empty: it is
  AccessCounts counts;  // with those of the functions that it may call
  bool legal() const { return why_not.empty(); }
};

struct FencedModule {
  std::string ptx;
  std::vector<FenceVerdict> entries;   // in text order
  std::vector<std::string> functions;  // name by FenceRecord::function
};

/// Errors: kNotSupported for a module of which nothing can be fenced: reserved names that are not
/// expected, 32-bit addresses, a target before sm_70; kInternal if the pass contradicts itself.
Result<FencedModule> fence(const ptx::Module& module, const FenceOptions& options);

/// The verdicts alone. Errors: as fence().
Result<std::vector<FenceVerdict>> judge_fence(const ptx::Module& module,
                                              const FenceOptions& options);

}  // namespace slate::injector
