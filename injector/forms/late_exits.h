// Late exits: a kernel some of whose threads return before others reach a barrier, made into one
// with the same results whose threads all come to every barrier, together, and leave at the end. A
// thread that would return early is parked: a predicate says so, and it jumps from barrier to
// barrier (analysis/parked_walk.h). The worker form of such a kernel needs no exit drain.
//
// How it reads: tests/golden/worker/early_return_barrier.ptx.
#pragma once

#include <memory>

#include "injector/analysis/analysis.h"
#include "injector/ptx/module.h"

namespace slate::injector {

/// Tries it with the kernels that have barriers and no worker form but by a drain. Where it
/// succeeds, and the result has a worker form without one, `analysis` says so: EntryAnalysis::
/// late_exits. Returns the same functions in the same order, those in their new shape; null if
/// there are none. kInternal if what it writes is no PTX.
Result<std::unique_ptr<const ptx::Module>> make_exits_late(const ptx::Module& module,
                                                           ModuleAnalysis& analysis);

}  // namespace slate::injector
