// Counters: registers that one instruction sets in front of a loop, and one changes at the end of
// each turn. Requires: the arguments outlive it. Immutable once built. Thread: any.
#pragma once

#include <cstdint>
#include <optional>

#include "injector/fence/addresses.h"
#include "injector/fence/register_writes.h"

namespace slate::injector {

struct Counter {
  std::uint32_t first = 0;           // the instruction that sets it
  std::uint32_t change = 0;          // the instruction that changes it
  std::uint32_t changed = 0;         // the register that has the new value first
  std::uint32_t added = 0;           // the instruction that adds
  const ptx::Operand* by = nullptr;  // what is added to it; null: a number
  bool is_less = false;              // whether `by` is subtracted
  std::int64_t growth = 0;           // the number that is added to it
};

class Counters {
 public:
  Counters(const ptx::Function& function, const ControlFlow& flow, const Registers& registers,
           const Addresses& addresses, const RegisterWrites& writes)
      : function_(function),
        flow_(flow),
        registers_(registers),
        addresses_(addresses),
        writes_(writes) {}

  /// The register as a counter, if at `at` it is one.
  std::optional<Counter> find(std::uint32_t number, std::uint32_t at) const;
  /// The same of a register without a sign that is shifted to the right by `growth` bits in each
  /// turn. `added` is the shift.
  std::optional<Counter> find_shifted(std::uint32_t number, std::uint32_t at) const;
  /// The sum by which instruction `change` changes the register, by way of another one perhaps. Its
  /// `first` means nothing.
  std::optional<Counter> sum_by(std::uint32_t number, std::uint32_t change) const {
    return changed_by(number, change, &Counters::added_by);
  }
  /// The block to which the branch behind each change has led, of all changes that the counter can
  /// have behind it at `at`. Nothing: there may have been another way.
  std::optional<std::uint32_t> way_on(const Counter& counter, std::uint32_t at) const;
  /// Whether both have changed as often whenever neither is about to: they are set in front of the
  /// same loop, and change in the same block.
  bool have_same_turns(const Counter& one, const Counter& other) const;
  /// Whether the comparison comes behind what sets the counter, and in front of every change.
  bool is_in_front(const Counter& counter, std::uint32_t comparison) const;

 private:
  std::optional<Counter> added_by(std::uint32_t number, std::uint32_t added) const;
  bool is_register(const ptx::Operand& operand, std::uint32_t number, std::uint32_t at) const;
  std::optional<Counter> shifted_by(std::uint32_t number, std::uint32_t shift) const;
  using Change = std::optional<Counter> (Counters::*)(std::uint32_t, std::uint32_t) const;
  std::optional<Counter> find_by(std::uint32_t number, std::uint32_t at, Change change) const;
  std::optional<Counter> changed_by(std::uint32_t number, std::uint32_t change,
                                    Change its_change) const;

  const ptx::Function& function_;
  const ControlFlow& flow_;
  const Registers& registers_;
  const Addresses& addresses_;
  const RegisterWrites& writes_;
};

}  // namespace slate::injector
