// Conditions: the comparisons of integers that surely hold while a block of code runs, as every way
// there has taken the branch that they decide. Queries are kept. Requires: the arguments outlive
// it. Registers that are read before they are written are 0, as behind the fence. Thread: one.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "injector/fence/addresses.h"
#include "injector/fence/register_writes.h"

namespace slate::injector {

/// A comparison that gives true or false.
struct Condition {
  std::uint32_t comparison = 0;  // index of the setp
  bool is_true = true;
};

/// What a condition says of one register plus `offset`, as a number of the comparison's type.
struct Limit {
  enum class Kind : std::uint8_t { kAtMost, kAtLeast, kEqual, kUnequal };
  Kind kind = Kind::kUnequal;
  std::int64_t apart = 0;  // added to `other` for kAtMost and kAtLeast
  std::uint8_t bits = 32;
  bool is_signed = true;
  const ptx::Operand* other = nullptr;  // null: 0
  const ptx::Operand* less = nullptr;   // register subtracted from `other` (kUnequal); null: 0
  std::int64_t offset = 0;
  bool is_cut = false;       // whether only the lower half of the register was compared
  std::uint32_t reader = 0;  // the instruction that reads the register
};

class Conditions {
 public:
  Conditions(const ptx::Function& function, const ControlFlow& flow, const Registers& registers,
             const Addresses& addresses, const RegisterWrites& writes)
      : function_(function),
        flow_(flow),
        registers_(registers),
        addresses_(addresses),
        writes_(writes),
        known_(flow.blocks().size()) {}

  /// The conditions that hold in the block, the nearest first.
  const std::vector<Condition>& in(std::uint32_t block);
  /// The block above, or itself, in which all of these hold already.
  std::uint32_t begin_of(std::uint32_t block) const;
  /// The conditions that hold on the way from a block to its successor `next`.
  std::vector<Condition> between(std::uint32_t block, std::uint32_t next) const;
  /// What the condition says of the register.
  std::optional<Limit> limit_on(std::uint32_t number, const Condition& condition) const;

 private:
  static constexpr std::size_t kMost = 64;  // of one block
  static constexpr int kMostDepth = 16;     // of predicates made of predicates
  static constexpr int kMostSums = 4;       // between a register and the compared one

  const ptx::Instruction* last_of(std::uint32_t block) const;
  bool has_own(std::uint32_t block) const;
  std::optional<std::uint32_t> maker(std::uint32_t predicate, bool is_true, std::uint32_t at) const;
  void add(const ptx::Operand& predicate, bool is_true, std::uint32_t at,
           std::vector<Condition>& found, int depth) const;
  void add_comparison(std::uint32_t comparison, std::uint32_t number, bool is_true,
                      std::vector<Condition>& found, int depth) const;
  std::optional<Limit> limit_through(std::uint32_t number, const ptx::Operand& compared,
                                     const Limit& limit, std::uint32_t comparison) const;
  std::optional<Limit> limit_of_sum(std::uint32_t number, std::uint32_t compared,
                                    Limit limit) const;

  const ptx::Function& function_;
  const ControlFlow& flow_;
  const Registers& registers_;
  const Addresses& addresses_;
  const RegisterWrites& writes_;
  std::vector<std::optional<std::vector<Condition>>> known_;  // by block
};

}  // namespace slate::injector
