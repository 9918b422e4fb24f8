// Invariants: what loops leave registers within that they change in any way, by induction over the
// turns. A register is assumed to be within an interval where a turn begins. If it then is so at
// the turn's end, too, it always is. The interval reaches from what the register begins with up to
// the nearest numbers with which the loop compares it. The launch looks at whether it is one
// (BoundOp::kInvariant). Errs only towards "not known". Requires: the arguments outlive it. Thread:
// one.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "injector/fence/bound_facts.h"
#include "injector/fence/bound_steps.h"

namespace slate::injector {

class BoundFinder;

class Invariants {
 public:
  Invariants(BoundFacts& facts, BoundSteps& steps, BoundFinder& finder)
      : facts_(facts), steps_(steps), finder_(finder) {}

  /// A register that several instructions write, at `at`: the first instruction of a block, or one
  /// behind a write. Null: no loop around it changes the register, or nothing is known.
  std::optional<BoundNumber> by_ways(std::uint32_t number, std::uint32_t at);

 private:
  static constexpr std::uint32_t kUnknown = BoundSteps::kUnknown;
  static constexpr int kMostTries = 4;     // to find an interval
  static constexpr int kMostAssumed = 32;  // by all searches: each may need others

  /// Steps that a loop's conditions leave a register at or above, and at or below.
  struct Limits {
    std::vector<std::uint32_t> low, high;
  };

  BoundNumber written_by(std::uint32_t write, std::uint32_t number);
  BoundNumber at_end_of(std::uint32_t block, std::uint32_t number);
  std::optional<Limit> limit_behind_sum(std::uint32_t number, std::uint32_t block,
                                        const Limit& limit) const;
  BoundNumber along(std::uint32_t number, std::uint32_t from, std::uint32_t to);
  std::optional<BoundNumber> any_along(std::uint32_t number, const std::vector<std::uint32_t>& from,
                                       std::uint32_t to);
  std::optional<BoundNumber> invariant(std::uint32_t loop, std::uint32_t number);
  Limits limits_in(std::uint32_t loop, std::uint32_t number);
  std::uint32_t up_to(const Limits& limits, std::uint32_t begins, std::uint32_t turn);

  BoundFacts& facts_;
  BoundSteps& steps_;
  BoundFinder& finder_;
  int assumptions_ = 0;  // so far
};

}  // namespace slate::injector
