// TrackedFlags: the flags whose values UndefinedWalk tells apart, as they decide whether something
// is written to a register. A flag is a predicate, or an integer that holds a condition. Thread:
// one at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "injector/analysis/branches.h"
#include "injector/analysis/control_flow.h"
#include "injector/analysis/effort.h"
#include "injector/analysis/predicate_groups.h"
#include "injector/analysis/register_accesses.h"
#include "injector/analysis/register_list.h"
#include "injector/analysis/registers.h"
#include "injector/ptx/module.h"

namespace slate::injector {

/// Whether it compares an integer with a constant, and nothing more.
bool compares_with_constant(const ptx::Instruction& setp);
/// Whether it makes integers of integers.
bool converts_integers(const ptx::Instruction& cvt);

class TrackedFlags {
 public:
  using List = std::vector<std::uint32_t>;

  /// Requires: the arguments outlive it. Where the effort is spent, flags are missing.
  TrackedFlags(const ptx::Function& function, const ControlFlow& flow, const Registers& registers,
               const PredicateGroups& groups, const RegisterUses& uses, const Branches& branches,
               Effort& effort);

  /// Tracks at most so many in place of the present ones: the predicates that decide whether the
  /// `decisive` instructions are reached and the suspects are written, nearest first, and those
  /// that are made of them or say the same.
  void choose(const List& suspects, const List& decisive, std::size_t most);

  bool has(std::uint32_t r) const { return tracked_.has(r); }
  /// The flag's place in all(). Requires: has(flag).
  std::uint32_t at(std::uint32_t flag) const { return tracked_.at(flag); }
  const List& all() const { return tracked_.all(); }

 private:
  void find_flags();
  void track(std::uint32_t flag);
  void track_compared_by(const ptx::Instruction& setp);
  void track_controls_of(std::uint32_t instruction);
  void track_flags_in(std::uint32_t block);

  const ptx::Function& function_;
  const ControlFlow& flow_;
  const Registers& registers_;
  const PredicateGroups& predicate_groups_;
  const RegisterUses& uses_;
  const Branches& branches_;
  Effort& effort_;
  std::vector<bool> is_flag_;  // by register
  RegisterList tracked_;
  std::size_t most_ = 0;
};

}  // namespace slate::injector
