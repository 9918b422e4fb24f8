// Moves: which instructions of a basic block may be carried out earlier: in front of a check, so
// that it knows an address, or right behind one. The former only compute, and read nothing that
// changes in between. The latter are loads that no other thread orders: what waits for one of them
// would hold up all that stand behind it, as nothing moves past a check. Thread: one.
#pragma once

#include <cstdint>
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
        times_(function.instructions.size()) {
    for (std::uint32_t i = 0; i < times_.size(); ++i) times_[i] = {i, Phase::kUnmoved};
  }

  void begin_block(std::uint32_t first);
  /// Notes an instruction of the block, in order.
  void pass(std::uint32_t at);
  /// Whether the register has its value already in the check in front of instruction `at` of the
  /// block.
  bool is_old(std::uint32_t number, std::uint32_t at) const;
  /// Whether it has, or is given it: the instructions that are moved for that are added to `moved`,
  /// which stays in text order.
  bool move(std::uint32_t number, std::uint32_t at, std::vector<std::uint32_t>& moved);
  /// Moves load `load`, which was not passed yet, behind the check in front of instruction `at`, if
  /// it may be there.
  bool move_load(std::uint32_t load, std::uint32_t at);

 private:
  static constexpr std::size_t kMost = 12;  // instructions that one address may take

  /// What is carried out in front of an instruction, in this order, and itself.
  enum class Phase : std::uint8_t { kMoved, kCheck, kLoads, kUnmoved };
  /// An instruction in front of which something happens, and what.
  using Time = std::pair<std::uint32_t, Phase>;

  bool collect(std::uint32_t number, std::uint32_t at, std::vector<std::uint32_t>& found) const;
  bool may_move(const ptx::Instruction& instruction) const;

  const ptx::Function& function_;
  const Registers& registers_;
  const Addresses& addresses_;
  std::vector<Time> times_;      // by instruction: when it is carried out
  std::uint32_t free_from_ = 0;  // first instruction of the block that no load need stay behind
  std::unordered_map<std::uint32_t, std::uint32_t> last_write_;  // in the block, by register
};

}  // namespace slate::injector
