// PredicateGroups: predicates of a function that say the same about the same registers, one perhaps
// the opposite of the other. Compilers write a comparison twice rather than keep a register.
// Registers go by their numbers (registers.h). Immutable once built. Thread: any.
#pragma once

#include <cstdint>
#include <vector>

#include "injector/analysis/control_flow.h"
#include "injector/analysis/registers.h"
#include "injector/ptx/module.h"

namespace slate::injector {

class PredicateGroups {
 public:
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};

  PredicateGroups(const ptx::Function& function, const ControlFlow& flow,
                  const Registers& registers);

  /// Predicates that say the same about the same registers. Each is written by one comparison only.
  struct Group {
    std::vector<std::uint32_t> predicates;  // at least two
    std::vector<std::uint32_t> inputs;      // registers
  };
  const std::vector<Group>& groups() const { return groups_; }
  /// The group of a predicate; kNone if it has none.
  std::uint32_t group_of(std::uint32_t predicate) const { return group_of_[predicate]; }
  /// Whether the predicate says the opposite of others of its group.
  bool is_opposite(std::uint32_t predicate) const { return opposite_[predicate]; }

 private:
  std::vector<Group> groups_;
  std::vector<std::uint32_t> group_of_;  // by register
  std::vector<bool> opposite_;           // by register
};

}  // namespace slate::injector
