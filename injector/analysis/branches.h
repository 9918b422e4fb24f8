// Branches: what the branches of a function decide, for UndefinedWalk and TrackedFlags: which
// blocks run, and which writes are as good as a selection. Thread: one at a time.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "injector/analysis/control_flow.h"
#include "injector/analysis/effort.h"
#include "injector/analysis/register_accesses.h"
#include "injector/ptx/module.h"

namespace slate::injector {

class Branches {
 public:
  using List = std::vector<std::uint32_t>;

  /// Requires: the arguments outlive it. Where the effort is spent, answers are wrong.
  Branches(const ptx::Function& function, const ControlFlow& flow, const Registers& registers,
           Effort& effort);

  /// The blocks whose branches decide whether `block` runs: their paths meet behind it only.
  const List& deciding(std::uint32_t block) const { return deciding_[block]; }
  /// Whether the branch at the end of `block` may lead past a loop, to where paths meet. A loop is
  /// taken to run at least once: programs read behind it what it sets. Compilers write it with its
  /// test at the end, and another test that jumps past it.
  bool jumps_loop(std::uint32_t block) const { return jumps_loop_[block]; }
  /// The registers that are written on the paths of the branch at the end of `block` before they
  /// meet, if nothing else is done there: that is as good as a selection between values. Else null.
  const List* quiet_writes(std::uint32_t block);

 private:
  void find_deciding();
  void find_jumped_loops();
  bool leads_through_loop(std::uint32_t block, std::uint32_t successor) const;

  const ptx::Function& function_;
  const ControlFlow& flow_;
  const Registers& registers_;
  Effort& effort_;
  // By block.
  std::vector<List> deciding_;
  std::vector<bool> is_header_;  // whether a loop begins with it
  std::vector<bool> jumps_loop_;
  std::map<std::uint32_t, std::optional<List>> quiet_;
};

}  // namespace slate::injector
