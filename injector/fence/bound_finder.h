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
#include "injector/fence/addresses.h"
#include "injector/fence/bound_steps.h"
#include "injector/fence/conditions.h"
#include "injector/fence/counters.h"
#include "injector/fence/drifts.h"

namespace slate::injector {

/// It has more than 25 functions, as they all call one another: a number leads to those that it is
/// made of, to the conditions on it, and to counters, whose beginnings and limits are such numbers.
class BoundFinder {
 public:
  /// `launch`: one whose accesses are to be bounded; null: two small ones are tried. Requires: the
  /// arguments outlive it.
  BoundFinder(const ptx::Function& function, const ControlFlow& flow, const Registers& registers,
              const Addresses& addresses, const Loops& loops, const LaunchValues* launch);

  /// An address: `step` gives the bytes from the beginning of a variable, which is named or loaded
  /// from its row of the table. Null: from 0.
  struct Value {
    const ptx::Operand* variable = nullptr;
    std::uint32_t step = 0;
  };
  /// Where the operand in brackets of instruction `at` leads.
  Value address(const ptx::Operand& operand, std::uint32_t at);
  /// As BoundSteps::may_hold().
  bool may_hold(const BoundClaim& claim) const { return steps_.may_hold(claim); }
  /// The claim that the block has so many threads along the axis.
  BoundClaim has_threads(std::uint32_t axis, std::uint32_t threads);
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

 private:
  static constexpr std::uint32_t kUnknown = BoundSteps::kUnknown;
  static constexpr int kMostDepth = 100;  // of values that follow from one another

  /// The steps of a counter in its loop: what it begins with, what is added, all its values.
  struct Course {
    std::uint32_t first = 0, by = 0, all = 0;
  };

  // The value of an operand of instruction `where`, as an instruction `at` behind it needs it.
  Value of(const ptx::Operand& operand, std::uint32_t where, std::uint32_t at);
  std::uint32_t step_of(const ptx::Operand& operand, std::uint32_t where, std::uint32_t at);
  Value of_register(std::uint32_t number, std::uint32_t where, std::uint32_t at);
  Value of_changing(std::uint32_t number, std::uint32_t at);
  Value made_by(std::uint32_t made, std::uint32_t at);
  Value loaded_by(const ptx::Instruction& instruction);
  Value converted_by(std::uint32_t made, std::uint32_t at);
  std::uint32_t computed_by(std::uint32_t made, std::uint32_t at);
  std::uint32_t product_by(std::uint32_t made, std::uint32_t at);
  std::uint32_t divided_by(std::uint32_t made, std::uint32_t at);
  std::uint32_t ratio(BoundOp op, std::uint32_t division, std::uint32_t at);
  std::uint32_t special(const ptx::Operand& operand);
  Value sum(Value a, Value b);
  std::uint32_t other_of(const Limit& limit, std::uint32_t comparison);
  std::uint32_t with_limit(std::uint32_t step, const Limit& limit, std::uint32_t comparison);
  std::uint32_t with_conditions(std::uint32_t step, std::uint32_t number, std::uint32_t at,
                                const Counter* counter);
  bool counts(std::uint32_t number, const Limit& limit, std::uint32_t at,
              const Counter* counter) const;
  std::optional<Limit> limit_on_changed(std::uint32_t number, const Counter& counter,
                                        const Condition& condition) const;
  std::optional<Limit> limit_in_turn(std::uint32_t number, const Counter& counter,
                                     const Condition& condition) const;
  std::uint32_t growth(const Counter& counter, unsigned bits);
  std::optional<Course> course(std::uint32_t number, const Counter& counter, std::uint32_t at);
  /// The registers that a block changes, but for this one.
  std::vector<std::uint32_t> changed_in(std::uint32_t block,
                                        std::optional<std::uint32_t> but = {}) const;
  /// The other registers that a counter's last block changes.
  std::vector<std::uint32_t> companions(std::uint32_t number, const Counter& counter) const {
    return changed_in(flow_.block_of(counter.change), number);
  }
  std::optional<std::uint32_t> turns(std::uint32_t number, const Counter& counter,
                                     std::uint32_t at);
  std::optional<std::uint32_t> most_shifts(std::uint32_t number, const Counter& shifted,
                                           std::uint32_t at);
  std::optional<std::uint32_t> tied(const Counter& counter, std::uint32_t other, std::uint32_t at);
  Value counted(std::uint32_t number, const Counter& counter, std::uint32_t at);
  std::optional<std::uint32_t> turns_of(std::uint32_t loop, std::uint32_t at);
  std::optional<Value> drifted(std::uint32_t number, std::uint32_t at);
  Value begun_by(std::uint32_t write, std::uint32_t at);
  std::optional<Value> any_of(const std::vector<Value>& values);
  std::uint32_t added(const std::vector<DriftSum>& sums, std::uint32_t times, unsigned bits);
  std::uint32_t where_reached(std::uint32_t step, std::uint32_t at);

  const ptx::Function& function_;
  const ControlFlow& flow_;
  const Registers& registers_;
  const Addresses& addresses_;
  const Loops& loops_;
  const RegisterWrites writes_;
  Conditions conditions_;
  const Counters counters_;
  Drifts drifts_;
  const ParameterLayout layout_;
  // Of registers that are written once, by where their conditions begin; of others, by instruction.
  std::map<std::pair<std::uint32_t, std::uint32_t>, Value> known_;
  std::map<std::uint32_t, std::uint32_t> reached_;  // by block: a step that no thread comes to
  BoundSteps steps_;
  int depth_ = 0;
};

}  // namespace slate::injector
