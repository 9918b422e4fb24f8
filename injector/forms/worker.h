// The worker form: a kernel whose blocks are workers. They pull tasks of consecutive blocks of the
// program's grid from a queue, as many on each SM as the control block allows. They leave when told
// to, or when there is nothing left. The Slate paper (IPDPS 2019) has the persistent workers, the
// queue and the retreat; smCompactor (SAC 2021) has the count for each SM. The result is best read
// in tests/golden/worker/. A pure function. Thread: any.
//
// - Admission: the leader (thread 0) counts itself in at its SM's word. Beyond the SM's share it
//   leaves.
// - A task is a pair of words in shared memory, {first block, end}. Two pairs alternate, so that
//   one barrier a task is enough. The leader fetches the next task while the present one runs,
//   except near the end of the queue (LaunchParameters::prefetch_below).
// - Retreat: with each fetch the leader reads its SM's word. If more workers are present than
//   allowed, it finishes its task and leaves.
// - The end: the worker that completes the count of ends cleans the control block if all tasks were
//   handed out. Otherwise it reports a retreat.
//
// `ret` goes to the end of the block's turn. Blocks that use shared memory are separated by a
// barrier. Where the kernel has just one barrier, which all threads reach in every block, two
// copies of its shared memory take turns instead (shared_copies.h). There the leader settles the
// next task before the last block's own barrier, which makes it known, and no thread waits between
// tasks.
//
// Where threads may return before others reach a barrier, their exits are made late (late_exits.h).
// Where that is not possible (EntryAnalysis::drains), they are counted and take part in the others'
// barriers until all are there. Each barrier of the kernel then becomes two, between which the
// count is read.
#pragma once

#include <string>
#include <vector>

#include "injector/analysis/analysis.h"
#include "injector/forms/shared_copies.h"
#include "injector/ptx/module.h"

namespace slate::injector {

struct WorkerOptions {
  /// .maxnreg, so that the form keeps its native occupancy; 0: none.
  std::uint32_t most_registers = 0;
  /// Whether nothing lives across a block except in shared memory, where that is possible.
  bool lean = false;
  /// Layout of the kernel's shared memory twice, so that blocks overlap; null: once. Requires: null
  /// if `lean`.
  const SharedCopies* copies = nullptr;
};

/// Returns the text of the entry `name`. `module`: the one with late exits, where the kernel's
/// exits are late. `copied`: functions_to_copy(). Requires: entry.worker.legal(). Errors:
/// kInternal.
Result<std::string> worker_form(const ptx::Module& module, const EntryAnalysis& entry,
                                const std::vector<bool>& copied, std::string_view name,
                                const WorkerOptions& options);

}  // namespace slate::injector
