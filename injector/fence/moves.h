// Moves: which instructions of a basic block may be carried out earlier, so that an address is
// known in front of them. They only compute, and read nothing that changes in between. Thread: one.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "injector/analysis/registers.h"
#include "injector/fence/addresses.h"
#include "injector/ptx/module.h"

namespace slate::injector {

/// Whether the instruction lies in inner braces, where names may mean something else.
bool is_in_scope(const ptx::Function& function, std::uint32_t at);

/// Whether an instruction may name the function's variable: it is declared before, and not in inner
/// braces that are closed by then.
bool is_declared(const ptx::Function& function, const ptx::Variable& variable, std::uint32_t at);

class Moves {
 public:
  /// Requires: the arguments outlive it.
  Moves(const ptx::Function& function, const Registers& registers, const Addresses& addresses)
      : function_(function),
        registers_(registers),
        addresses_(addresses),
        moved_(function.instructions.size(), false) {}

  void begin_block() { last_write_.clear(); }
  /// Notes an instruction of the block, in order.
  void pass(std::uint32_t at);
  /// Whether the register has its value already in front of instruction `at` of the block.
  bool is_old(std::uint32_t number, std::uint32_t at) const;
  /// Whether it has, or is given it: the instructions that are moved for that are added to `moved`,
  /// which stays in text order. Requires: `at` is not in front of an earlier `at`.
  bool move(std::uint32_t number, std::uint32_t at, std::vector<std::uint32_t>& moved);

 private:
  static constexpr std::size_t kMost = 12;  // instructions that one address may take

  bool collect(std::uint32_t number, std::uint32_t at, std::vector<std::uint32_t>& found) const;
  bool may_move(const ptx::Instruction& instruction) const;

  const ptx::Function& function_;
  const Registers& registers_;
  const Addresses& addresses_;
  std::vector<bool> moved_;                                      // by instruction
  std::unordered_map<std::uint32_t, std::uint32_t> last_write_;  // in the block, by register
};

}  // namespace slate::injector
