// TurnBounds: the numbers of registers that a loop changes by sums, from how often it turns. That
// follows from counters, whose beginnings and limits BoundFinder knows. Requires: the arguments
// outlive it. Thread: one.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "injector/fence/bound_facts.h"
#include "injector/fence/bound_steps.h"

namespace slate::injector {

class BoundFinder;

class TurnBounds {
 public:
  TurnBounds(BoundFacts& facts, BoundSteps& steps, BoundFinder& finder)
      : facts_(facts), steps_(steps), finder_(finder) {}

  /// A register that is the counter at `at`.
  BoundNumber counted(std::uint32_t number, const Counter& counter, std::uint32_t at);
  /// A register that a loop changes by sums on some of its ways. Null: nothing is known.
  std::optional<BoundNumber> drifted(std::uint32_t number, std::uint32_t at);

 private:
  static constexpr std::uint32_t kUnknown = BoundSteps::kUnknown;

  /// The steps of a counter in its loop: what it begins with, what is added, all its values.
  struct Course {
    std::uint32_t first = 0, by = 0, all = 0;
  };

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
    return changed_in(facts_.flow.block_of(counter.change), number);
  }
  std::optional<std::uint32_t> turns(std::uint32_t number, const Counter& counter,
                                     std::uint32_t at);
  std::optional<std::uint32_t> most_shifts(std::uint32_t number, const Counter& shifted,
                                           std::uint32_t at);
  std::optional<std::uint32_t> tied(const Counter& counter, std::uint32_t other, std::uint32_t at);
  std::optional<std::uint32_t> turns_of(std::uint32_t loop, std::uint32_t at);
  std::uint32_t added(const std::vector<DriftSum>& sums, std::uint32_t times, unsigned bits);

  BoundFacts& facts_;
  BoundSteps& steps_;
  BoundFinder& finder_;
};

}  // namespace slate::injector
