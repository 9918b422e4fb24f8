// Passages: stretches of a kernel between two stops of its parked threads (analysis/parked_walk.h)
// that these may run as everybody does, provided that nothing they do there has an effect. Where a
// stretch is short that is quicker than a jump past it, at which every warp would have to come
// together again.
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

/// A branch past a few instructions, made into predicates: nobody branches, and who would have done
/// so runs them without effect. What follows is all in text order.
struct Predicated {
  std::vector<std::uint32_t> branches;  // further ones, to the same place
  std::vector<std::uint32_t> guarded;   // what has an effect
  /// Those of the latter that load a register of which nobody else knows. It should be written in
  /// any case: ptxas makes a branch again where a load may leave what was there before.
  std::vector<std::uint32_t> fresh;
};

struct Passage {
  /// Instructions that are not for parked threads: they read or write memory.
  std::set<std::uint32_t> effects;
  /// Branches past what is not for them either, which they need not look at; and whether they are
  /// to take them.
  std::map<std::uint32_t, bool> skips;
  /// Those that need not be there. By the first branch.
  std::map<std::uint32_t, Predicated> predicated;
};

class PassageFinder {
 public:
  /// `flow`: the function's, without those ways out of it that no parked thread takes. The
  /// arguments must outlive it.
  PassageFinder(const ptx::Function& function, const ControlFlow& flow, const Mentions& mentions)
      : function_(function), flow_(flow), mentions_(mentions) {}

  /// From the instruction `from` to `stop`. Nothing if a parked thread must not run what is there,
  /// if not every way leads onwards to `stop`, or if it is too long.
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
