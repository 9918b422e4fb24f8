// The worker form: a kernel whose blocks are workers, which pull tasks of consecutive blocks of the
// user's grid from a queue, as many on each SM as the control block allows, and leave when told to
// or when there is nothing left. What it emits is best read in tests/golden/worker/. The protocol:
//
//   admission   the leader (thread 0) counts itself in at its SM's word; beyond the SM's share it
//   leaves. task        a pair of words in shared memory, {first block, end}; two pairs alternate,
//   so that one
//               barrier a task is enough. The leader fetches the next task while the present one
//               runs, except near the end of the queue (LaunchParameters::prefetch_below).
//   retreat     with each fetch the leader looks at its SM's word: if more workers are present than
//               allowed, it finishes what it has and leaves.
//   the end     the worker that completes the count of ends either cleans the control block, if all
//   tasks
//               were handed out, or reports a retreat.
//
// `ret` goes to the end of the block's turn. Where threads may return before others reach a barrier
// (EntryAnalysis::drains), they are counted and take part in the others' barriers until all are
// there; each barrier of the kernel then becomes two, between which the count is read.
#pragma once

#include <string>
#include <vector>

#include "injector/analysis/analysis.h"
#include "injector/ptx/module.h"

namespace slate::injector {

struct EntryOptions {
  std::uint32_t most_registers =
      0;  // .maxnreg, so that the form keeps its native occupancy; 0: none
};

/// The text of the entry `name`. Requires: entry.worker.legal(). `copied`: functions_to_copy().
Result<std::string> worker_form(const ptx::Module& module, const EntryAnalysis& entry,
                                const std::vector<bool>& copied, std::string_view name,
                                const EntryOptions& options);

}  // namespace slate::injector
