// SharedUse: what a bounded copy knows of its block's shared memory, by a rehearsal with the block
// of a launch like those to come: which accesses stay within a variable, and what has to be
// cleared. Thread: one at a time.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "injector/fence/access_bounds.h"
#include "injector/fence/bound_finder.h"
#include "injector/fence/rehearsal.h"
#include "injector/fence/shared_clearing.h"
#include "injector/ptx/module.h"

namespace slate::injector {

class SharedUse {
 public:
  /// `effects`: by instruction. `launch`: null if none is known, and then nothing is. Requires: all
  /// outlive it.
  SharedUse(const ptx::Module& module, const ptx::Function& function, const ControlFlow& flow,
            const Registers& registers, std::span<const InstructionEffect> effects,
            const LaunchValues* launch);

  /// Whether the block was rehearsed. Without that nothing is noted, and no access stays within.
  bool is_rehearsed() const { return rehearsal_.has_value(); }
  /// Whether the block of such a launch has no shared memory.
  bool has_none() const;
  /// Notes an access. `variable`: that it stays in; null: it may go anywhere.
  void note(const Access& access, std::uint32_t at, const ptx::Variable* variable);
  /// Whether the access stays within a variable for each thread of the block. Then the copy is for
  /// such blocks only.
  bool stays_within(const Access& access, std::uint32_t at);
  /// What has to be cleared, with the claims that this takes. `ends`: by instruction, whether the
  /// fence may end a thread there. Requires: is_rehearsed(); all accesses were noted.
  SharedClearing clearing(const std::vector<bool>& ends, BoundFinder& finder,
                          std::vector<BoundClaim>& claims);

 private:
  void rehearse(const ControlFlow& flow, const Registers& registers);

  const ptx::Module& module_;
  const ptx::Function& function_;
  const std::span<const InstructionEffect> effects_;
  const LaunchValues* const launch_;
  const SharedVariables variables_;
  std::optional<Rehearsal> rehearsal_;
  std::vector<SharedRead> reads_;      // that may be of shared memory
  std::vector<std::uint32_t> stores_;  // that may go to shared memory
  bool is_for_block_ = false;          // whether anything counts on the launch's block
};

}  // namespace slate::injector
