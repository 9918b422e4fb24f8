// Drifts: registers that a loop changes by sums alone, on all of its ways or on some: directly, or
// by copies in other registers. So what such a register is follows from what it began with, and
// from how often each sum can have been carried out. Requires: the arguments outlive it. It errs
// only towards none: also once it has searched for too long. Thread: one at a time.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "injector/fence/loops.h"
#include "injector/fence/register_writes.h"

namespace slate::injector {

/// What an instruction adds.
struct DriftSum {
  std::uint32_t at = 0;              // the instruction
  const ptx::Operand* by = nullptr;  // register; null: `number`
  std::int64_t number = 0;
  bool is_less = false;  // whether `by` is subtracted
};

struct Drift {
  std::uint32_t loop = 0;  // as Loops numbers it
  /// Instructions that write what the register can begin with. `beginnings` stand in front of the
  /// loop, the others in it.
  std::vector<std::uint32_t> beginnings, restarts;
  bool may_be_unset = false;  // whether it can also begin as what no instruction has written
  /// The sums that each turn can carry out, and those that the present one can have. None is
  /// carried out twice in a turn.
  std::vector<DriftSum> of_turns, of_present;
};

class Drifts {
 public:
  Drifts(const ptx::Function& function, const ControlFlow& flow, const Registers& registers,
         const RegisterWrites& writes, const Loops& loops)
      : function_(function), flow_(flow), registers_(registers), writes_(writes), loops_(loops) {}

  /// Of the register at instruction `at`, by the smallest loop around it that changes it.
  std::optional<Drift> find(std::uint32_t number, std::uint32_t at);
  /// Whether an instruction of the loop writes the register.
  bool changes_in(std::uint32_t loop, std::uint32_t number) const;

 private:
  static constexpr std::size_t kMostWrites = 64;            // of one drift
  static constexpr std::uint64_t kMostVisits = 1ull << 26;  // of instructions, by all searches

  /// What is found on the way back to the beginning of a turn.
  struct Trace {
    std::set<std::uint32_t> registers;  // which the number can come from, there
    std::set<std::uint32_t> writes;     // instructions looked at
    std::vector<DriftSum> sums;
    std::vector<std::uint32_t> restarts;
  };
  using Waiting = std::vector<std::pair<std::uint32_t, std::uint32_t>>;  // registers, places

  std::optional<Drift> in(std::uint32_t loop, std::uint32_t number, std::uint32_t at);
  bool trace(std::uint32_t loop, Waiting waiting, Trace& trace);
  bool trace_turns(std::uint32_t loop, const Trace& present, Trace& turns);
  bool look_at(std::uint32_t loop, std::uint32_t write, Trace& trace, Waiting& waiting) const;
  std::optional<std::uint32_t> copied_by(const ptx::Instruction& instruction) const;
  bool begins(std::uint32_t loop, std::uint32_t number, Drift& drift);
  bool is_once_a_turn(std::uint32_t loop, const DriftSum& sum) const;

  const ptx::Function& function_;
  const ControlFlow& flow_;
  const Registers& registers_;
  const RegisterWrites& writes_;
  const Loops& loops_;
  std::uint64_t visits_ = 0;  // so far
};

}  // namespace slate::injector
