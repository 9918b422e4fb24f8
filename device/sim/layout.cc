// The order in which diverged threads of a warp are run: blocks in reverse post-order of the
// control flow, a loop's exits after all of its body, so that threads that wait at the
// lowest-ranked place are always caught up with by the others.
#include <algorithm>
#include <limits>

#include "device/sim/decode.h"

namespace slate::sim {
namespace {

constexpr std::uint64_t kLoopWork = 20'000'000;  // bound for hostile control flow

bool ends_block(const Op& op) {
  switch (op.kind) {
    case Kind::kBranch:
    case Kind::kBranchIndex:
    case Kind::kReturn:
    case Kind::kExit:
    case Kind::kTrap:
      return true;
    default:
      return false;
  }
}

class Ranker {
 public:
  explicit Ranker(const std::vector<BasicBlock>& blocks) : blocks_(blocks) {}

  /// Block numbers, first to be run first.
  std::vector<std::uint32_t> order() {
    find_back_edges();
    for (auto& [header, latches] : latches_) find_exits(header, latches);
    return reverse_post_order();
  }

 private:
  struct Step {
    std::uint32_t block;
    std::size_t next;
  };

  void find_back_edges() {
    enum : std::uint8_t { kNew, kOpen, kDone };
    std::vector<std::uint8_t> state(blocks_.size(), kNew);
    predecessors_.resize(blocks_.size());
    for (std::uint32_t b = 0; b < blocks_.size(); ++b) {
      for (const std::uint32_t to : blocks_[b].successors) predecessors_[to].push_back(b);
    }
    std::vector<Step> stack = {{0, 0}};
    state[0] = kOpen;
    while (!stack.empty()) {
      Step& step = stack.back();
      const BasicBlock& block = blocks_[step.block];
      if (step.next == block.successors.size()) {
        state[step.block] = kDone;
        stack.pop_back();
        continue;
      }
      const std::uint32_t to = block.successors[step.next++];
      if (state[to] == kOpen) latches_[to].push_back(step.block);
      if (state[to] != kNew) continue;
      state[to] = kOpen;
      stack.push_back({to, 0});
    }
  }

  void find_exits(std::uint32_t header, std::vector<std::uint32_t>& latches) {
    std::vector<std::uint32_t> body = {header};
    std::vector<std::uint32_t> pending = latches;
    inside_.assign(blocks_.size(), false);
    inside_[header] = true;
    work_ += blocks_.size() / 8;
    while (!pending.empty()) {
      const std::uint32_t b = pending.back();
      pending.pop_back();
      if (inside_[b]) continue;
      inside_[b] = true;
      body.push_back(b);
      pending.insert(pending.end(), predecessors_[b].begin(), predecessors_[b].end());
      work_ += 1 + predecessors_[b].size();
      if (work_ > kLoopWork) return;
    }
    for (const std::uint32_t b : body) {
      for (const std::uint32_t to : blocks_[b].successors) {
        if (!inside_[to]) exits_[header].push_back(to);
      }
    }
  }

  std::vector<std::uint32_t> reverse_post_order() {
    // A loop's exits are visited from its header before its body, hence finished, hence ranked
    // later. Among the others the one that comes later in the text goes first.
    std::vector<std::vector<std::uint32_t>> next(blocks_.size());
    for (std::uint32_t b = 0; b < blocks_.size(); ++b) {
      next[b] = blocks_[b].successors;
      std::ranges::sort(next[b], std::greater());
      if (const auto found = exits_.find(b); found != exits_.end()) {
        std::ranges::sort(found->second, std::greater());
        next[b].insert(next[b].begin(), found->second.begin(), found->second.end());
      }
    }
    std::vector<bool> seen(blocks_.size());
    std::vector<std::uint32_t> order;
    std::vector<Step> stack = {{0, 0}};
    seen[0] = true;
    while (!stack.empty()) {
      Step& step = stack.back();
      if (step.next == next[step.block].size()) {
        order.push_back(step.block);
        stack.pop_back();
        continue;
      }
      const std::uint32_t to = next[step.block][step.next++];
      if (seen[to]) continue;
      seen[to] = true;
      stack.push_back({to, 0});
    }
    std::ranges::reverse(order);
    for (std::uint32_t b = 0; b < blocks_.size(); ++b) {
      if (!seen[b]) order.push_back(b);
    }
    return order;
  }

  const std::vector<BasicBlock>& blocks_;
  std::vector<std::vector<std::uint32_t>> predecessors_;
  std::map<std::uint32_t, std::vector<std::uint32_t>> latches_;  // by loop header
  std::map<std::uint32_t, std::vector<std::uint32_t>> exits_;
  std::vector<bool> inside_;
  std::uint64_t work_ = 0;
};

}  // namespace

std::vector<BasicBlock> find_blocks(const Code& code, const FunctionCode& out) {
  const std::uint32_t count = out.end - out.first;
  std::vector<bool> leads(count + 1);
  leads[0] = leads[count] = true;
  const auto targets = [&](const Op& op, auto&& visit) {
    if (op.kind == Kind::kBranch) visit(op.target);
    if (op.kind != Kind::kBranchIndex) return;
    for (std::int64_t i = 0; i < op.imm; ++i) visit(code.branch_tables[op.target + i]);
  };
  for (std::uint32_t pc = out.first; pc < out.end; ++pc) {
    const Op& op = code.ops[pc];
    if (ends_block(op)) leads[pc + 1 - out.first] = true;
    targets(op, [&](std::uint32_t to) { leads[to - out.first] = true; });
  }
  std::vector<BasicBlock> blocks;
  std::vector<std::uint32_t> block_at(count + 1);
  for (std::uint32_t i = 0; i < count; ++i) {
    if (leads[i]) blocks.push_back({out.first + i, 0, {}});
    block_at[i] = static_cast<std::uint32_t>(blocks.size() - 1);
    blocks.back().end = out.first + i + 1;
  }
  for (BasicBlock& block : blocks) {
    const Op& last = code.ops[block.end - 1];
    const bool falls = !ends_block(last) || last.guard != kNoRef;
    if (falls && block.end < out.end) block.successors.push_back(block_at[block.end - out.first]);
    targets(last, [&](std::uint32_t to) { block.successors.push_back(block_at[to - out.first]); });
    std::ranges::sort(block.successors);
    const auto repeated = std::ranges::unique(block.successors);
    block.successors.erase(repeated.begin(), repeated.end());
  }
  return blocks;
}

void rank_blocks(Code& code, const FunctionCode& out) {
  const std::vector<BasicBlock> blocks = find_blocks(code, out);
  std::uint32_t rank = 0;
  for (const std::uint32_t b : Ranker(blocks).order()) {
    code.ops[blocks[b].first].flags |= kLeader;
    for (std::uint32_t pc = blocks[b].first; pc < blocks[b].end; ++pc) code.ops[pc].rank = rank++;
  }
}

}  // namespace slate::sim
