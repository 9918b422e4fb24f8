// LinearValues: which registers hold the same number, however the compiler computed it. It knows
// sums of multiples of terms that are constant for a thread: parameters of the kernel, the thread's
// and the block's place, registers written outside of all loops. Immutable once built. Thread: any.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "injector/analysis/control_flow.h"
#include "injector/analysis/registers.h"
#include "injector/ptx/module.h"

namespace slate::injector {

class LinearValues {
 public:
  /// `writes`: for each register the number of instructions that write it.
  LinearValues(const ptx::Function& function, const ControlFlow& flow, const Registers& registers,
               const std::vector<std::uint32_t>& writes);

  /// The same number for registers that always hold the same value; nullopt for registers of
  /// unknown value.
  std::optional<std::uint32_t> of(std::uint32_t r) const { return numbers_[r]; }

 private:
  struct Sum {
    std::map<std::uint32_t, std::uint64_t> terms;  // factor of each term
    std::uint64_t constant = 0;
    std::uint32_t bytes = 4;  // the sum is modulo 2^(8 * bytes)
  };

  /// Sets the sum of the register that the instruction writes.
  void look_at(const ptx::Instruction& instruction, bool in_loop);
  std::optional<Sum> loaded_by(const ptx::Instruction& load);
  std::optional<Sum> made_by(const ptx::Instruction& instruction);
  std::optional<Sum> linear(const ptx::Instruction& instruction, std::uint32_t bytes) const;
  std::optional<Sum> opaque(const ptx::Instruction& instruction, std::uint32_t bytes);
  std::optional<Sum> of(const ptx::Operand& operand, std::uint32_t bytes) const;
  Sum term(const std::string& what, std::uint32_t bytes);
  Sum truncated(const Sum& sum) const;
  void set(const ptx::Operand& result, Sum sum);

  static std::string key_of(const Sum& sum);
  static std::optional<Sum> with_bits(const Sum& sum, const Sum& bits);
  static Sum added(Sum a, const Sum& b, std::uint64_t times = 1);

  const Registers& registers_;
  std::vector<std::optional<Sum>> sums_;               // by register
  std::vector<std::optional<std::uint32_t>> numbers_;  // by register
  std::map<std::string, std::uint32_t> numbered_;      // by key_of()
  std::map<std::string, std::uint32_t> terms_;         // number of each term by its text
  std::map<std::uint32_t, Sum> extended_;              // terms that are wider forms of sums
};

}  // namespace slate::injector
