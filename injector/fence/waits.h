// Waits: the loops in which a thread may wait for ever for what another one does. Such a loop may
// learn what others do, and nothing shows that it ends without that. A loop ends by itself if each
// of its turns compares a counter with a limit. The counter is changed in each turn, by what does
// not change in the loop. It errs towards "may wait". Thread: one.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "injector/analysis/control_flow.h"
#include "injector/analysis/registers.h"
#include "injector/fence/addresses.h"
#include "injector/fence/loops.h"
#include "injector/ptx/module.h"

namespace slate::injector {

/// A loop in which a thread may wait for others.
struct Wait {
  std::uint32_t at = 0;  // the instruction that it begins with
  /// Whether a turn may take long: there are further loops, calls or pauses in it.
  bool is_slow = false;
};

class Waits {
 public:
  /// `skips_own`: whether loops that begin at labels with kReservedPrefix alone are a form's own.
  /// Requires: the arguments outlive it.
  Waits(const ptx::Function& function, const ControlFlow& flow, const Registers& registers,
        const Addresses& addresses, const Loops& loops, bool skips_own);

  /// Such loops, in text order.
  std::vector<Wait> find();

 private:
  static constexpr std::uint32_t kNone = ControlFlow::kNone;
  static constexpr std::size_t kMostDepth = 16;         // of values that follow from one another
  static constexpr std::uint64_t kFreeSteps = 1 << 16;  // that any function may take
  static constexpr std::uint64_t kStepsEach = 64;       // that each instruction adds
  static constexpr std::uint64_t kStepsOfTest = 256;    // that one way out of a loop may take

  /// What is known of a value in the turns of a loop.
  struct Course {
    bool is_known = false;  // whether it depends only on how often the loop has turned
    bool moves = false;     // whether it is a counter, or comes from one
    /// The first of the registers under way that it comes from.
    std::size_t comes_from = kMostDepth;
  };

  bool may_learn(std::uint32_t loop) const;
  bool is_slow(std::uint32_t loop) const;
  bool ends(std::uint32_t loop);
  bool is_in_each_turn(std::uint32_t at, std::uint32_t loop);
  bool take(std::uint64_t steps);
  bool is_unchanging(const ptx::Operand& operand, std::uint32_t loop);
  std::optional<std::uint32_t> only_write(std::uint32_t number, std::uint32_t loop);
  Course course(const ptx::Operand& operand, std::uint32_t loop);
  Course course_of(std::uint32_t number, std::uint32_t loop);
  bool is_limit(const ptx::Operand& operand, std::uint32_t loop);
  bool comes_to(const ptx::Operand& predicate, bool value, std::uint32_t loop, std::size_t depth);
  bool compares_counter(const ptx::Instruction& comparison, std::uint32_t loop);

  const ptx::Function& function_;
  const ControlFlow& flow_;
  const Registers& registers_;
  const Addresses& addresses_;
  const Loops& loops_;
  std::vector<std::vector<std::uint32_t>> writes_;  // by register
  std::vector<bool> learns_;                        // by block: whether it learns what others do
  std::vector<bool> pauses_;                        // by block: whether it calls or pauses
  std::vector<bool> is_programs_;                   // by block: whether it may begin such a loop
  std::uint64_t steps_, steps_of_test_ = 0;         // that are left
  std::vector<std::uint32_t> under_way_;            // registers that course_of() looks at
  bool may_load_ = false;                           // whether course_of() goes through loads
};

}  // namespace slate::injector
