// ParkedWalk: how a thread that has returned early can go along with the others of its block, from
// barrier to barrier and past all else, so that every barrier is passed by whole warps. Such a
// thread is parked. It stops at barriers; at branches that the block takes together and that decide
// which barrier comes next; and at what computes their conditions, which it computes too. From one
// stop to the next it jumps.
//
// Only a plan: forms/late_exits.h writes it into the kernel. Whether the result is right to run
// (whether all barriers are then reached by all threads) is for the analysis of the result to say.
// Pure functions, any thread.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "injector/analysis/control_flow.h"
#include "injector/analysis/uniformity.h"
#include "injector/ptx/module.h"

namespace slate::injector {

struct ParkedWalk {
  /// A stop behind which there is no barrier: the thread may leave.
  static constexpr std::uint32_t kEnd = ~std::uint32_t{0};

  /// A way out of the kernel that some threads take while others go on to a barrier.
  struct Exit {
    ControlFlow::Edge way;
    std::uint32_t stop = kEnd;  // an instruction: where the thread goes once it has returned
  };
  std::vector<Exit> exits;                       // in text order
  std::map<std::uint32_t, std::uint32_t> jumps;  // a parked thread that comes to the first
                                                 // instruction goes on at the second
  std::vector<std::uint32_t> barriers;           // that parked threads may come to
  std::vector<std::uint32_t> looping_barriers;   // those of them that they may come to again
};

/// Nothing if no thread leaves before others reach a barrier, or if the walk cannot be planned:
/// which barrier is next depends on what a parked thread cannot know, or a barrier is guarded,
/// counts threads or is named by a register. `takes_turns`: Uniformity::Surroundings. Nothing,
/// too, if `effort` is spent.
std::optional<ParkedWalk> plan_parked_walk(const ptx::Function& function, bool takes_turns,
                                           Effort& effort);

}  // namespace slate::injector
