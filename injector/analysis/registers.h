// Registers of a function as numbers, and which of them an instruction reads and writes. Registers
// of old-style parameters have no numbers: the caller has set them. Names are views into the
// module's text. Immutable once built. Thread: any.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "injector/analysis/facts.h"
#include "injector/analysis/uniformity.h"
#include "injector/ptx/module.h"

namespace slate::injector {

class Registers {
 public:
  explicit Registers(const ptx::Function& function);

  /// Number of registers; each component of a vector counts.
  std::uint32_t count() const { return count_; }
  std::string_view name(std::uint32_t number) const { return names_[number]; }
  bool is_predicate(std::uint32_t number) const { return types_[number] == ptx::Type::kPred; }
  std::uint32_t bytes(std::uint32_t number) const { return ptx::type_bytes(types_[number]); }
  /// The number of a register with one component; nullopt for other operands.
  std::optional<std::uint32_t> of(const ptx::Operand& operand) const;
  /// Calls `use` with the number of each register that the operand names; with none of other
  /// operands.
  void for_each_in(const ptx::Operand& operand, auto&& use) const {
    const Range range = range_of(operand);
    for (std::uint32_t i = 0; i < range.count; ++i) use(range.first + i);
  }
  /// The predicate under which the instruction is carried out, if there is one.
  std::optional<std::uint32_t> guard_of(const ptx::Instruction& instruction) const {
    return instruction.guard ? of(*instruction.guard) : std::nullopt;
  }

  /// Calls `use` with the number of each register that the instruction reads, without its guard.
  void for_each_read(const ptx::Instruction& instruction, auto&& use) const;
  void for_each_write(const ptx::Instruction& instruction, auto&& use) const;
  /// Calls `use` with the registers that the caller gets at the function's end.
  void for_each_returned(auto&& use) const {
    for (const Range& range : returns_) {
      for (std::uint32_t i = 0; i < range.count; ++i) use(range.first + i);
    }
  }

 private:
  struct Range {
    std::uint32_t first = 0, count = 0;
  };
  Range range_of(const ptx::Operand& operand) const;
  void add(const std::vector<ptx::Variable>& variables, std::vector<Range>& ranges);

  std::vector<Range> variables_;  // by index into Function::variables
  std::vector<Range> returns_;    // by index into Function::returns
  std::vector<std::string_view> names_;
  std::vector<ptx::Type> types_;
  std::uint32_t count_ = 0;
};

void Registers::for_each_read(const ptx::Instruction& instruction, auto&& use) const {
  const auto read = [&](const ptx::Operand& operand) { for_each_in(operand, use); };
  // These add to the register, unless a constant tells them not to.
  const auto& operands = instruction.operands;
  const bool adds = instruction.opcode == "wgmma" && instruction.has("mma_async") &&
                    !(operands.size() > 3 && operands[3].kind == ptx::Operand::Kind::kInteger &&
                      operands[3].integer == 0);
  bool is_result = has_result(instruction) && !adds;
  for (const ptx::Operand& operand : operands) {
    if (!is_result || operand.kind == ptx::Operand::Kind::kAddress) {
      read(operand);
      for_each_operand(operand.parts, read);
    }
    is_result = false;
  }
}

void Registers::for_each_write(const ptx::Instruction& instruction, auto&& use) const {
  for_each_result(instruction, [&](const ptx::Operand& operand) { for_each_in(operand, use); });
}

}  // namespace slate::injector
