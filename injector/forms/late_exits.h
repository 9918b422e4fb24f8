// Late exits: a kernel in which some threads return before others reach a barrier, made into one
// with the same results whose threads all come to every barrier and leave together at the end. A
// thread that would return early is parked: a predicate says so, and it jumps from barrier to
// barrier (analysis/parked_walk.h). The worker form of such a kernel needs no exit drain. A pure
// function. Thread: any.
//
// Example: tests/golden/worker/early_return_barrier.ptx.
#pragma once

#include <memory>

#include "injector/analysis/analysis.h"
#include "injector/ptx/module.h"

namespace slate::injector {

/// Tries it with the kernels that have barriers and a worker form only by a drain. Where the result
/// has a worker form without a drain, sets EntryAnalysis::late_exits in `analysis`. Returns the
/// same functions in the same order, changed ones in their new shape; null if none changed. Errors:
/// kInternal if the text that it writes is no PTX.
Result<std::unique_ptr<const ptx::Module>> make_exits_late(const ptx::Module& module,
                                                           ModuleAnalysis& analysis);

}  // namespace slate::injector
