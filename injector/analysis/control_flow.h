// ControlFlow: the basic blocks of one function, who follows whom, and where paths that part meet
// again (post-dominators). Knows branches and ways out, nothing of what else instructions do.
// Immutable once built; refers to the Function by index only.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "injector/ptx/module.h"

namespace slate::injector {

/// True for `ret` and `exit`: in an entry, either ends the thread.
bool leaves(const ptx::Instruction& instruction);

/// The instruction that a `bra` leads to, which may be the number of them: the end. Nothing if its
/// operand is no label of the function.
std::optional<std::uint32_t> target_of(const ptx::Function& function,
                                       const ptx::Instruction& branch);
/// The first `bra` or `brx` that does not lead to labels of the function; null if all do. Where
/// one does not, ControlFlow does not know all ways, and the text does not assemble.
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

  explicit ControlFlow(const ptx::Function& function);

  /// A way on from a block: to a successor, or (kNone) out of the function.
  struct Edge {
    std::uint32_t block = 0;
    std::uint32_t to = kNone;
  };
  /// The same code if nobody ever took these ways.
  ControlFlow without(const std::vector<Edge>& edges) const;

  const std::vector<Block>& blocks() const { return blocks_; }
  std::uint32_t block_of(std::uint32_t instruction) const { return block_of_[instruction]; }
  /// By block: whether it can be reached from one of these, themselves included.
  std::vector<bool> reachable_from(const std::vector<std::uint32_t>& blocks) const;
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
  std::vector<std::uint32_t> backwards_order(
      const std::vector<std::vector<std::uint32_t>>& predecessors) const;

  std::vector<Block> blocks_;
  std::vector<std::uint32_t> block_of_;
};

}  // namespace slate::injector
