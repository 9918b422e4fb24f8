// Passages: stretches of a kernel between two stops of its parked threads (analysis/parked_walk.h)
// that these may run like other threads, if nothing that they do there has an effect. Where a
// stretch is short that is quicker than a jump past it, at which every warp would have to come
// together again. Thread: any.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "injector/analysis/control_flow.h"
#include "injector/analysis/mentions.h"
#include "injector/ptx/module.h"

namespace slate::injector {

/// A branch past a few instructions, made into predicates: no thread branches, and a thread that
/// would have branched runs them without effect. All lists are in text order.
struct Predicated {
  std::vector<std::uint32_t> branches;  // further branches to the same place
  std::vector<std::uint32_t> guarded;   // instructions with an effect
  /// Guarded loads of a register that no other code knows. It should be written in any case: ptxas
  /// makes a branch again where a load may leave what was there before.
  std::vector<std::uint32_t> fresh;
};

struct Passage {
  /// Instructions that parked threads must not run: they read or write memory.
  std::set<std::uint32_t> effects;
  /// Branches past such instructions, whose conditions parked threads need not compute; and whether
  /// they take them.
  std::map<std::uint32_t, bool> skips;
  /// Branches that need not be there, by the first branch.
  std::map<std::uint32_t, Predicated> predicated;
};

class PassageFinder {
 public:
  /// `flow`: the function's, without the ways out of it that no parked thread takes. Requires: the
  /// arguments outlive it.
  PassageFinder(const ptx::Function& function, const ControlFlow& flow, const Mentions& mentions)
      : function_(function), flow_(flow), mentions_(mentions) {}

  /// The passage from the instruction `from` to `stop`. Returns nullopt if a parked thread must not
  /// run the code there, if not every path leads to `stop`, or if it is too long.
  std::optional<Passage> find(std::uint32_t from, std::uint32_t stop) const;

 private:
  class Walk;

  std::optional<Predicated> predicate(std::uint32_t number) const;
  bool leads_only_to(std::uint32_t number, std::uint32_t meeting) const;
  bool is_fresh(std::uint32_t index) const;

  const ptx::Function& function_;
  const ControlFlow& flow_;
  const Mentions& mentions_;
};

}  // namespace slate::injector
