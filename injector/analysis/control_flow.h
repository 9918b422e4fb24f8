// ControlFlow: the basic blocks of one function, who follows whom, and where paths that part meet
// again (post-dominators). Knows branches and ways out, nothing of what else instructions do.
// Refers to the Function by index only. It does not change once built, but questions use common
// room: one thread at a time.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "injector/analysis/effort.h"
#include "injector/ptx/module.h"

namespace slate::injector {

/// True for `ret` and `exit`: in an entry, either ends the thread.
bool leaves(const ptx::Instruction& instruction);

/// The instruction that a `bra` leads to, which may be the number of them: the end. Nothing if its
/// operand is no label of the function.
std::optional<std::uint32_t> target_of(const ptx::Function& function,
                                       const ptx::Instruction& branch);
/// The first `bra` or `brx` that does not lead to labels of the function, or `ret` or `exit` that
/// names something; null if there is none. Where there is one, ControlFlow does not know all ways,
/// and the text does not assemble.
const ptx::Instruction* stray_branch(const ptx::Function& function);

class ControlFlow {
 public:
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};

  struct Block {
    std::uint32_t first = 0;  // instructions [first, end)
    std::uint32_t end = 0;
    bool exits = false;  // its last instruction may leave the function
    std::vector<std::uint32_t> successors;
    /// The block that every path to the function's end passes next; kNone: paths may leave the
    /// function before they meet, or never end. Paths into a trap do not count: nobody comes back.
    std::uint32_t meeting = kNone;
  };

  /// Questions are charged to `effort`, which outlives it; null: to nobody. Where that is spent
  /// their answers are wrong.
  explicit ControlFlow(const ptx::Function& function, Effort* effort = nullptr);

  /// A way on from a block: to a successor, or (kNone) out of the function.
  struct Edge {
    std::uint32_t block = 0;
    std::uint32_t to = kNone;
  };
  /// The same code if nobody ever took these ways.
  ControlFlow without(const std::vector<Edge>& edges) const;

  const std::vector<Block>& blocks() const { return blocks_; }
  std::uint32_t block_of(std::uint32_t instruction) const { return block_of_[instruction]; }
  std::vector<std::vector<std::uint32_t>> predecessors() const;
  /// Effort::take(), of whatever is done with the answers.
  bool charge(std::uint64_t steps) const { return effort_ == nullptr || effort_->take(steps); }
  /// By block: whether it can be reached from one of these, themselves included.
  std::vector<bool> reachable_from(const std::vector<std::uint32_t>& blocks) const;
  /// By block: whether it can be run before `block` is for the first time.
  std::vector<bool> reachable_before(std::uint32_t block) const;
  /// By block: whether one of those marked can be reached from it, or it is one.
  std::vector<bool> leading_to(std::vector<bool> marked) const;
  /// By block: whether a loop begins with it, seen from the function's beginning.
  std::vector<bool> loop_headers() const;
  /// The blocks that are run between the branch at the end of `block` and the place where its paths
  /// meet again, that place left out.
  std::vector<std::uint32_t> influence_of(std::uint32_t block) const;
  /// The part of it that lies on ways beginning with `successor`.
  std::vector<std::uint32_t> way_from(std::uint32_t block, std::uint32_t successor) const;
  /// Whether who has run `from` always comes to `to`, another block, before it can leave, and not a
  /// second time unless it runs `from` again.
  bool leads_once(std::uint32_t from, std::uint32_t to) const;
  /// The sum of `weights` (by block) on every path from `from` to the block `to` or out of the
  /// function, `to` left out; kNone if there is no path, or they differ, as in a loop with a
  /// weight.
  std::uint32_t only_weight(std::uint32_t from, std::uint32_t to,
                            const std::vector<std::uint32_t>& weights) const;

 private:
  void split(const ptx::Function& function);
  void link(const ptx::Function& function);
  void add_targets(const ptx::Function& function, const ptx::Instruction& branch, Block& block);
  void find_meetings();
  std::vector<std::uint32_t> reach(const std::vector<std::uint32_t>& from,
                                   std::uint32_t stop) const;

  std::vector<Block> blocks_;
  std::vector<std::uint32_t> block_of_;
  Effort* effort_;
  // Room for questions, so that each costs what it looks at and no more.
  mutable std::vector<std::uint32_t> seen_;  // by block: the question that came here last
  mutable std::uint32_t question_ = 0;
  mutable std::vector<std::uint32_t> sums_;  // by block, of only_weight()
};

}  // namespace slate::injector
