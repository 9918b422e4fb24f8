// BoundFinder: which accesses of a kernel are bounded by the launch's own values, as the steps and
// claims of AccessBounds. It follows addresses back to parameters, sizes and indices of the launch,
// through conditions that hold on every way to the access, and through counters of loops. It errs
// only towards "not bounded". Thread: one.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "injector/analysis/parameter_layout.h"
#include "injector/fence/access_bounds.h"
#include "injector/fence/bound_facts.h"
#include "injector/fence/bound_steps.h"
#include "injector/fence/invariants.h"
#include "injector/fence/turn_bounds.h"

namespace slate::injector {

/// It has more than 25 functions, as they all call one another: a number leads to those that it is
/// made of, and to the conditions on it. What loops make of numbers has parts of its own.
class BoundFinder {
 public:
  /// `launch`: one whose accesses are to be bounded; null: two small ones are tried. Requires: the
  /// arguments outlive it.
  BoundFinder(const ptx::Function& function, const ControlFlow& flow, const Registers& registers,
              const Addresses& addresses, const Loops& loops, const LaunchValues* launch);
  BoundFinder(const BoundFinder&) = delete;
  BoundFinder& operator=(const BoundFinder&) = delete;

  /// Where the operand in brackets of instruction `at` leads.
  BoundNumber address(const ptx::Operand& operand, std::uint32_t at);
  /// As BoundSteps::may_hold().
  bool may_hold(const BoundClaim& claim) const { return steps_.may_hold(claim); }
  /// The claim that the block has so many threads along the axis.
  BoundClaim has_threads(std::uint32_t axis, std::uint32_t threads);
  /// The claim that the block has a multiple of 32 threads.
  BoundClaim has_whole_warps();
  /// The claim that the block has so many bytes of dynamic shared memory.
  BoundClaim has_shared(std::uint32_t bytes);
  /// The step with the number of 64 bits in a parameter that is named in brackets, plus `more`.
  std::uint32_t parameter(const ptx::Operand& operand, std::int64_t more);
  /// The first byte of a parameter that is named in brackets.
  std::uint32_t parameter_at(const ptx::Operand& operand) const;
  /// As BoundSteps::bounds().
  AccessBounds bounds(std::vector<BoundClaim> claims) const {
    return steps_.bounds(std::move(claims));
  }

  // For the parts that find numbers of loops:

  /// What an instruction writes, with the conditions that hold for its operands at `at`.
  BoundNumber made_by(std::uint32_t made, std::uint32_t at);
  /// What instruction `write` has written, as instruction `at` finds it: with the conditions there,
  /// if no thread can have come to others since.
  BoundNumber begun_by(std::uint32_t write, std::uint32_t at);
  /// A register that instruction `where` reads, as an instruction `at` behind it needs it.
  BoundNumber of_register(std::uint32_t number, std::uint32_t where, std::uint32_t at);
  /// The same of an operand that is a number, not an address in a variable.
  std::uint32_t step_of(const ptx::Operand& operand, std::uint32_t where, std::uint32_t at);
  /// What the register is compared with.
  std::uint32_t other_of(const Limit& limit, std::uint32_t comparison);
  std::uint32_t with_limit(std::uint32_t step, const Limit& limit, std::uint32_t comparison);
  /// `counter`: the register's, if it is one. Then `step` is what it begins with, and only what was
  /// compared before the loop counts.
  std::uint32_t with_conditions(std::uint32_t step, std::uint32_t number, std::uint32_t at,
                                const Counter* counter);
  /// Whether what was compared is the register's number at `at`. With `counter`, whether it is what
  /// the counter begins with.
  bool counts(std::uint32_t number, const Limit& limit, std::uint32_t at,
              const Counter* counter) const;
  /// What is found if the register is `value` whenever a thread comes to `at`. Nothing else counts
  /// that was found before, as it may depend on what is being looked for.
  template <typename Found>
  auto assuming(std::uint32_t number, std::uint32_t at, BoundNumber value, const Found& found) {
    assumed_.insert_or_assign({number, at}, value);
    auto known = std::exchange(known_, assumed_);
    auto result = found();
    known_ = std::move(known);
    assumed_.erase({number, at});
    return result;
  }

 private:
  static constexpr std::uint32_t kUnknown = BoundSteps::kUnknown;
  static constexpr int kMostDepth = 100;  // of values that follow from one another

  BoundNumber of(const ptx::Operand& operand, std::uint32_t where, std::uint32_t at);
  BoundNumber of_changing(std::uint32_t number, std::uint32_t at);
  BoundNumber loaded_by(const ptx::Instruction& instruction);
  BoundNumber converted_by(std::uint32_t made, std::uint32_t at);
  std::uint32_t computed_by(std::uint32_t made, std::uint32_t at);
  std::uint32_t product_by(std::uint32_t made, std::uint32_t at);
  std::uint32_t divided_by(std::uint32_t made, std::uint32_t at);
  std::uint32_t ratio(BoundOp op, std::uint32_t division, std::uint32_t at);
  std::optional<std::uint32_t> rounded_by(std::uint32_t made, std::uint32_t at);
  std::uint32_t special(const ptx::Operand& operand);
  std::uint32_t where_reached(std::uint32_t step, std::uint32_t at);

  BoundFacts facts_;
  const ParameterLayout layout_;
  // Of registers that are written once, by where their conditions begin; of others, by instruction.
  std::map<std::pair<std::uint32_t, std::uint32_t>, BoundNumber> known_;
  // What is assumed at present of registers at the beginning of loops' turns, as in `known_`.
  std::map<std::pair<std::uint32_t, std::uint32_t>, BoundNumber> assumed_;
  std::map<std::uint32_t, std::uint32_t> reached_;  // by block: a step that no thread comes to
  BoundSteps steps_;
  TurnBounds turns_;
  Invariants invariants_;
  int depth_ = 0;
};

}  // namespace slate::injector
