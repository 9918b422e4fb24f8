// Mentions: where a function names a register for the first and the last time, in text order.
// Immutable once built. Thread: any.
#pragma once

#include <cstdint>
#include <string_view>
#include <unordered_map>

#include "injector/ptx/module.h"

namespace slate::injector {

class Mentions {
 public:
  explicit Mentions(const ptx::Function& function);

  /// Whether the registers that the instruction writes are named only in the instructions [first,
  /// end). Registers of one name in different scopes count as one.
  bool stay_within(const ptx::Instruction& instruction, std::uint32_t first,
                   std::uint32_t end) const;
  /// Whether the instruction is the first to name this operand.
  bool begin_at(const ptx::Operand& operand, std::uint32_t instruction) const;

 private:
  struct Range {
    std::uint32_t first = 0, last = 0;
  };
  std::unordered_map<std::string_view, Range> ranges_;
};

}  // namespace slate::injector
