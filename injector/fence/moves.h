// Moves: which instructions may be carried out earlier: in front of a check, so that it knows an
// address, or right behind one. The former only compute, and read nothing that changes in between.
// The latter are loads that no other thread orders: what waits for one of them would hold up all
// that stand behind it, as nothing moves past a check. They move within a chain: basic blocks that
// each thread runs in turn, with a few instructions between that it may run. Thread: one.
#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>
#include <utility>
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
        positions_(function.instructions.size()),
        times_(function.instructions.size()) {}

  /// Begins the block of instructions [first, end). `is_chained`: whether it goes on with the chain
  /// of the block before.
  void begin_block(std::uint32_t first, std::uint32_t end, bool is_chained);
  /// Notes an instruction that may run between the block before and the next one of the chain.
  void pass_aside(std::uint32_t at);
  /// Notes an instruction of the block, in order.
  void pass(std::uint32_t at);
  /// Whether the register has its value already in the check in front of instruction `at` of the
  /// chain.
  bool is_old(std::uint32_t number, std::uint32_t at) const;
  /// Whether what instruction `reader` finds in the register is what the check in front of
  /// instruction `at` would find there.
  bool reads_same(std::uint32_t number, std::uint32_t reader, std::uint32_t at) const;
  /// Whether it has its value there, or is given it: the instructions that are moved for that are
  /// added to `moved`, which stays in the order of the chain.
  bool move(std::uint32_t number, std::uint32_t at, std::vector<std::uint32_t>& moved);
  /// Moves load `load`, which was not passed yet, behind the check in front of instruction `at`, if
  /// it may be there.
  bool move_load(std::uint32_t load, std::uint32_t at);

 private:
  static constexpr std::size_t kMost = 12;  // instructions that one address may take

  /// What is carried out in front of an instruction, in this order, and itself. kAside: of what may
  /// run before its block.
  enum class Phase : std::uint8_t { kAside, kMoved, kCheck, kLoads, kUnmoved };
  /// The position of an instruction in front of which something happens, and what.
  using Time = std::pair<std::uint32_t, Phase>;
  struct Write {
    std::uint32_t instruction = 0;
    std::optional<Time> aside{};
  };

  bool is_in_chain(std::uint32_t at) const { return positions_[at] >= chain_; }
  Time check_at(std::uint32_t at) const { return {positions_[at], Phase::kCheck}; }
  Time time_of(const Write& write) const;
  void bar(const ptx::Instruction& instruction, std::uint32_t behind);
  bool collect(std::uint32_t number, std::uint32_t at, std::vector<std::uint32_t>& found) const;
  bool may_move(const ptx::Instruction& instruction) const;

  const ptx::Function& function_;
  const Registers& registers_;
  const Addresses& addresses_;
  std::vector<std::uint32_t> positions_;  // by instruction, as blocks are begun; 0: in none
  std::vector<Time> times_;               // by instruction: when it is carried out
  std::uint32_t next_ = 1;                // position of the next block's first instruction
  std::uint32_t chain_ = 1;               // that of the chain's
  // First positions that a load need not stay behind: any load, and one of what nobody writes.
  std::uint32_t free_from_ = 0;
  std::uint32_t constants_free_from_ = 0;
  std::unordered_map<std::uint32_t, Write> last_write_;  // in the chain, by register
};

}  // namespace slate::injector
