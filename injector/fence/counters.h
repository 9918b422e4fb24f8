// Counters: registers that one instruction sets in front of a loop, and one changes at the end of
// each turn. Requires: the arguments outlive it. Immutable once built. Thread: any.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "injector/fence/addresses.h"

namespace slate::injector {

struct Counter {
  std::uint32_t first = 0;    // the instruction that sets it
  std::uint32_t change = 0;   // the instruction that changes it
  std::uint32_t changed = 0;  // the register that has the new value first
  std::uint32_t added = 0;    // the instruction that adds
  const ptx::Operand* by = nullptr;
  bool is_less = false;  // whether `by` is subtracted
};

class Counters {
 public:
  Counters(const ptx::Function& function, const ControlFlow& flow, const Registers& registers,
           const Addresses& addresses);

  /// The register as a counter, if it is one.
  std::optional<Counter> find(std::uint32_t number) const;
  /// The block to which the branch behind each change has led, of all changes that the counter can
  /// have behind it at `at`. Nothing: there may have been another way.
  std::optional<std::uint32_t> way_on(const Counter& counter, std::uint32_t at) const;
  /// Whether the comparison comes behind what sets the counter, and in front of every change.
  bool is_in_front(const Counter& counter, std::uint32_t comparison) const;
  /// The instructions that write the register.
  const std::vector<std::uint32_t>& writes(std::uint32_t number) const { return writes_[number]; }
  /// Whether the register was written on every way to instruction `at`.
  bool is_surely_written(std::uint32_t number, std::uint32_t at) const;

 private:
  std::optional<Counter> changed_by(std::uint32_t number, std::uint32_t added) const;

  const ptx::Function& function_;
  const ControlFlow& flow_;
  const Registers& registers_;
  const Addresses& addresses_;
  std::vector<std::vector<std::uint32_t>> writes_;  // by register
};

}  // namespace slate::injector
