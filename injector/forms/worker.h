// The worker form: a kernel whose blocks are workers, which pull tasks of consecutive blocks of the
// user's grid from a queue, as many on each SM as the control block allows, and leave when told to
// or when there is nothing left. What it emits is best read in tests/golden/worker/. The protocol:
//
// Admission: the leader (thread 0) counts itself in at its SM's word; beyond the SM's share it
// leaves.
//
// A task: a pair of words in shared memory, {first block, end}; two pairs alternate, so that one
// barrier a task is enough. The leader fetches the next task while the present one runs, except
// near the end of the queue (LaunchParameters::prefetch_below).
//
// Retreat: with each fetch the leader looks at its SM's word: if more workers are present than
// allowed, it finishes what it has and leaves.
//
// The end: the worker that completes the count of ends either cleans the control block, if all
// tasks were handed out, or reports a retreat.
//
// `ret` goes to the end of the block's turn. Blocks that use shared memory are separated: by a
// barrier, or, where the kernel has just one that all threads come to in every block, by two copies
// of its shared memory that take turns (shared_copies.h). There the leader settles the next task
// before the last block's own barrier, which makes it known, and no thread waits between tasks.
//
// Where threads may return before others reach a barrier, their exits are made late
// (late_exits.h). Where that is not possible (EntryAnalysis::drains), they are counted and take
// part in the others' barriers until all are there; each barrier of the kernel then becomes two,
// between which the count is read.
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
  /// Nothing lives across a block but in shared memory, where that is possible.
  bool lean = false;
  /// How the kernel's shared memory is laid out twice, so that blocks overlap; null: it is there
  /// once. Requires: null if `lean`.
  const SharedCopies* copies = nullptr;
};

/// The text of the entry `name`. Requires: entry.worker.legal(). `module`: where the kernel's exits
/// are late, the one in which they are. `copied`: functions_to_copy().
Result<std::string> worker_form(const ptx::Module& module, const EntryAnalysis& entry,
                                const std::vector<bool>& copied, std::string_view name,
                                const WorkerOptions& options);

}  // namespace slate::injector
