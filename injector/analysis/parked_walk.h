// ParkedWalk: a plan for a thread that has returned early to go along with the others of its block,
// from barrier to barrier and past all other code, so that whole warps pass every barrier. Such a
// thread is parked. It stops
// - at barriers;
// - at branches that the block takes together and that decide which barrier comes next;
// - at instructions that compute their conditions, which it runs too.
// Between two stops it jumps.
//
// Only a plan: forms/late_exits.h writes it into the kernel. Whether the result is right (all
// threads reach all barriers) is for the analysis of the result. Pure functions. Thread: any.
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
    std::uint32_t stop = kEnd;  // instruction at which a thread goes on once it has returned
  };
  std::vector<Exit> exits;  // in text order
  /// Jumps of parked threads: a thread that comes to the first instruction goes on at the second.
  std::map<std::uint32_t, std::uint32_t> jumps;
  std::vector<std::uint32_t> barriers;          // barriers that parked threads may come to
  std::vector<std::uint32_t> looping_barriers;  // barriers among these that they may come to again
};

/// Plans the walk. `takes_turns`: Uniformity::Surroundings. Returns nullopt
/// - if no thread leaves before others reach a barrier;
/// - if the next barrier depends on something that a parked thread cannot know;
/// - if a barrier is guarded, counts threads or is named by a register;
/// - if `effort` is spent.
std::optional<ParkedWalk> plan_parked_walk(const ptx::Function& function, bool takes_turns,
                                           Effort& effort);

}  // namespace slate::injector
