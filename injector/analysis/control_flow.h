// ControlFlow: the basic blocks of one function, their successors, and where paths that part meet
// again (post-dominators). It knows branches and exits, but not what other instructions do. It
// refers to the Function by index only. It does not change once built, but queries share scratch
// memory. Thread: one at a time.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "injector/analysis/effort.h"
#include "injector/ptx/module.h"

namespace slate::injector {

/// Whether it is `ret` or `exit`. In an entry either ends the thread.
bool leaves(const ptx::Instruction& instruction);

/// Index of the instruction that a `bra` leads to; the number of instructions for the end; nullopt
/// if its operand is no label of the function.
std::optional<std::uint32_t> target_of(const ptx::Function& function,
                                       const ptx::Instruction& branch);
/// The first `bra` or `brx` that does not lead to labels of the function, or `ret` or `exit` with
/// an operand; null if there is none. Where there is one, ControlFlow does not know all paths, and
/// the text does not assemble.
const ptx::Instruction* stray_branch(const ptx::Function& function);

class ControlFlow {
 public:
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};

  struct Block {
    std::uint32_t first = 0;  // instructions [first, end)
    std::uint32_t end = 0;
    bool exits = false;  // whether its last instruction may leave the function
    std::vector<std::uint32_t> successors;
    /// The block that every path to the function's end passes next. kNone: paths may leave the
    /// function before they meet, or never end. Paths into a trap do not count, as no thread comes
    /// back from there.
    std::uint32_t meeting = kNone;
  };

  /// Builds the blocks. Queries are charged to `effort`, which must outlive it; null: not charged.
  /// Where the effort is spent, answers are wrong.
  explicit ControlFlow(const ptx::Function& function, Effort* effort = nullptr);

  /// A way out of a block: to a successor, or (kNone) out of the function.
  struct Edge {
    std::uint32_t block = 0;
    std::uint32_t to = kNone;
  };
  /// The same code without these edges.
  ControlFlow without(const std::vector<Edge>& edges) const;

  const std::vector<Block>& blocks() const { return blocks_; }
  std::uint32_t block_of(std::uint32_t instruction) const { return block_of_[instruction]; }
  std::vector<std::vector<std::uint32_t>> predecessors() const;
  /// Charges `steps` as Effort::take() does, for work on the answers. True without an effort.
  bool charge(std::uint64_t steps) const { return effort_ == nullptr || effort_->take(steps); }
  /// For each block, whether one of `blocks` reaches it or is it.
  std::vector<bool> reachable_from(const std::vector<std::uint32_t>& blocks) const;
  /// For each block, whether it can run before `block` runs for the first time.
  std::vector<bool> reachable_before(std::uint32_t block) const;
  /// For each block, whether it reaches a marked block or is one.
  std::vector<bool> leading_to(std::vector<bool> marked) const;
  /// The ways on which a loop comes back to its beginning, seen from the function's beginning. Each
  /// way in a circle has one.
  std::vector<Edge> ways_back() const;
  /// For each block, whether a loop begins with it: whether one of ways_back() leads there.
  std::vector<bool> loop_headers() const;
  /// The blocks that run between the branch at the end of `block` and the block where its paths
  /// meet again, without that one.
  std::vector<std::uint32_t> influence_of(std::uint32_t block) const;
  /// The part of influence_of() on paths that begin with `successor`.
  std::vector<std::uint32_t> way_from(std::uint32_t block, std::uint32_t successor) const;
  /// Whether a thread that has run `from` always comes to `to`, another block, before it can leave,
  /// and comes there again only after it has run `from` again.
  bool leads_once(std::uint32_t from, std::uint32_t to) const;
  /// The blocks that may run between them, if each thread runs the two in turn: `from` first, and
  /// `to` before it can leave or run `from` again. Otherwise none.
  std::optional<std::vector<std::uint32_t>> between(std::uint32_t from, std::uint32_t to) const;
  /// The sum of `weights` (by block) on every path from `from` to the block `to`, without `to`, or
  /// out of the function. Returns kNone if there is no path, or if the sums differ, as in a loop
  /// with a weight.
  std::uint32_t only_weight(std::uint32_t from, std::uint32_t to,
                            const std::vector<std::uint32_t>& weights) const;

 private:
  void split(const ptx::Function& function);
  void link(const ptx::Function& function);
  void add_targets(const ptx::Function& function, const ptx::Instruction& branch, Block& block);
  void find_meetings();
  /// Blocks that are reached from `from` without passing `stop`.
  std::vector<std::uint32_t> reach(const std::vector<std::uint32_t>& from,
                                   std::uint32_t stop) const;

  std::vector<Block> blocks_;
  std::vector<std::uint32_t> block_of_;
  Effort* effort_;
  // Scratch memory of queries: a query costs only what it visits.
  mutable std::vector<std::uint32_t> seen_;  // number of the query that visited each block last
  mutable std::uint32_t question_ = 0;
  mutable std::vector<std::uint32_t> sums_;  // sum for each block, in only_weight()
};

}  // namespace slate::injector
