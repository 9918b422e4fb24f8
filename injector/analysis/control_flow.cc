#include "injector/analysis/control_flow.h"

#include <algorithm>
#include <utility>

#include "injector/analysis/dominators.h"

namespace slate::injector {
namespace {

using ptx::Instruction;
using ptx::Operand;
using ptx::Reference;

bool is_branch(const Instruction& instruction) {
  return instruction.opcode == "bra" || instruction.opcode == "brx";
}

bool ends_block(const Instruction& instruction) {
  return is_branch(instruction) || leaves(instruction) || instruction.opcode == "trap";
}

const ptx::Label* label_of(const ptx::Function& function, const Operand& operand) {
  if (operand.reference != Reference::kLabel || operand.index >= function.labels.size())
    return nullptr;
  return &function.labels[operand.index];
}

}  // namespace

bool leaves(const Instruction& instruction) {
  return instruction.opcode == "ret" || instruction.opcode == "exit";
}

std::optional<std::uint32_t> target_of(const ptx::Function& function, const Instruction& branch) {
  if (branch.operands.size() != 1) return std::nullopt;
  const ptx::Label* label = label_of(function, branch.operands[0]);
  if (label == nullptr) return std::nullopt;
  return label->target;
}

const Instruction* stray_branch(const ptx::Function& function) {
  const auto is_known = [&](const Operand& target) {
    return label_of(function, target) != nullptr;
  };
  const auto strays = [&](const Instruction& instruction) {
    if (leaves(instruction)) return !instruction.operands.empty();
    if (instruction.opcode == "bra") return !target_of(function, instruction);
    if (instruction.opcode != "brx") return false;
    const ptx::Label* table =
        instruction.operands.size() == 2 ? label_of(function, instruction.operands[1]) : nullptr;
    return table == nullptr || table->targets.empty() ||
           !std::ranges::all_of(table->targets, is_known);
  };
  const auto found = std::ranges::find_if(function.instructions, strays);
  return found == function.instructions.end() ? nullptr : &*found;
}

ControlFlow::ControlFlow(const ptx::Function& function, Effort* effort) : effort_(effort) {
  split(function);
  link(function);
  find_meetings();
  seen_.assign(blocks_.size(), 0);
  sums_.assign(blocks_.size(), kNone);
  charge(function.instructions.size());
}

ControlFlow ControlFlow::without(const std::vector<Edge>& edges) const {
  ControlFlow rest = *this;
  for (const Edge& edge : edges) {
    Block& block = rest.blocks_[edge.block];
    if (edge.to == kNone) {
      block.exits = false;
    } else {
      std::erase(block.successors, edge.to);
    }
  }
  rest.find_meetings();
  return rest;
}

void ControlFlow::split(const ptx::Function& function) {
  const auto count = static_cast<std::uint32_t>(function.instructions.size());
  std::vector<bool> starts(count + 1, false);
  starts[0] = true;
  for (const ptx::Label& label : function.labels) starts[label.target] = true;
  for (std::uint32_t i = 0; i < count; ++i) {
    if (ends_block(function.instructions[i])) starts[i + 1] = true;
  }
  block_of_.resize(count);
  for (std::uint32_t i = 0; i < count; ++i) {
    if (starts[i]) blocks_.push_back({.first = i, .end = i, .successors = {}});
    block_of_[i] = static_cast<std::uint32_t>(blocks_.size() - 1);
    blocks_.back().end = i + 1;
  }
}

void ControlFlow::add_targets(const ptx::Function& function, const Instruction& branch,
                              Block& block) {
  const auto add = [&](const ptx::Label& label) {
    if (label.target < block_of_.size()) {
      block.successors.push_back(block_of_[label.target]);
    } else {
      block.exits = true;  // a label before the closing brace
    }
  };
  for (const Operand& operand : branch.operands) {
    const ptx::Label* label = label_of(function, operand);
    if (label == nullptr) continue;
    if (branch.opcode == "bra") {
      add(*label);
      continue;
    }
    for (const Operand& target : label->targets) {
      if (const ptx::Label* found = label_of(function, target)) add(*found);
    }
  }
}

void ControlFlow::link(const ptx::Function& function) {
  for (std::uint32_t b = 0; b < blocks_.size(); ++b) {
    Block& block = blocks_[b];
    const Instruction& last = function.instructions[block.end - 1];
    bool falls_through = true;
    if (is_branch(last)) {
      add_targets(function, last, block);
      falls_through = last.guard.has_value();
    } else if (leaves(last)) {
      block.exits = true;
      falls_through = last.guard.has_value();
    } else if (last.opcode == "trap") {
      falls_through = last.guard.has_value();
    }
    if (!falls_through) continue;
    if (b + 1 < blocks_.size()) {
      block.successors.push_back(b + 1);
    } else {
      block.exits = true;
    }
  }
}

std::vector<std::vector<std::uint32_t>> ControlFlow::predecessors() const {
  std::vector<std::vector<std::uint32_t>> found(blocks_.size());
  for (std::uint32_t b = 0; b < blocks_.size(); ++b) {
    for (const std::uint32_t successor : blocks_[b].successors) found[successor].push_back(b);
  }
  return found;
}

/// Immediate post-dominators: the dominators of the reversed graph, with one virtual end.
void ControlFlow::find_meetings() {
  const auto end = static_cast<std::uint32_t>(blocks_.size());
  std::vector<std::vector<std::uint32_t>> reversed = predecessors();
  reversed.emplace_back();
  for (std::uint32_t b = 0; b < end; ++b) {
    if (blocks_[b].exits) reversed[end].push_back(b);
  }
  const std::vector<std::uint32_t> dominators = immediate_dominators(reversed, end);
  for (std::uint32_t b = 0; b < end; ++b) {
    blocks_[b].meeting = dominators[b] == end ? kNone : dominators[b];
  }
}

std::vector<std::uint32_t> ControlFlow::reach(const std::vector<std::uint32_t>& from,
                                              std::uint32_t stop) const {
  ++question_;
  std::vector<std::uint32_t> found;
  const auto visit = [&](std::uint32_t b) {
    if (b != stop && std::exchange(seen_[b], question_) != question_) found.push_back(b);
  };
  for (const std::uint32_t b : from) visit(b);
  for (std::size_t i = 0; i < found.size(); ++i) {
    const auto& successors = blocks_[found[i]].successors;
    if (!charge(1 + successors.size())) break;
    for (const std::uint32_t successor : successors) visit(successor);
  }
  return found;
}

std::vector<bool> ControlFlow::reachable_from(const std::vector<std::uint32_t>& blocks) const {
  std::vector<bool> marks(blocks_.size(), false);
  charge(blocks_.size());
  for (const std::uint32_t b : reach(blocks, kNone)) marks[b] = true;
  return marks;
}

std::vector<bool> ControlFlow::reachable_before(std::uint32_t block) const {
  std::vector<bool> marks(blocks_.size(), false);
  charge(blocks_.size());
  for (const std::uint32_t b : reach({0}, block)) marks[b] = true;
  return marks;
}

std::vector<bool> ControlFlow::leading_to(std::vector<bool> marked) const {
  const auto before = predecessors();
  charge(blocks_.size());
  std::vector<std::uint32_t> waiting;
  for (std::uint32_t b = 0; b < marked.size(); ++b) {
    if (marked[b]) waiting.push_back(b);
  }
  while (!waiting.empty()) {
    const std::uint32_t b = waiting.back();
    waiting.pop_back();
    for (const std::uint32_t previous : before[b]) {
      if (marked[previous]) continue;
      marked[previous] = true;
      waiting.push_back(previous);
    }
  }
  return marked;
}

/// Those that a walk in depth comes back to while it is still behind them.
std::vector<ControlFlow::Edge> ControlFlow::ways_back() const {
  struct Visit {
    std::uint32_t block;
    std::size_t next = 0;
  };
  std::vector<Edge> ways;
  std::vector<bool> seen(blocks_.size(), false), under_way(seen);
  if (blocks_.empty()) return ways;
  std::vector<Visit> path{{0}};
  seen[0] = under_way[0] = true;
  while (!path.empty()) {
    Visit& top = path.back();
    const auto& successors = blocks_[top.block].successors;
    if (top.next == successors.size()) {
      under_way[top.block] = false;
      path.pop_back();
      continue;
    }
    const std::uint32_t next = successors[top.next++];
    if (under_way[next]) ways.push_back({top.block, next});
    if (seen[next]) continue;
    seen[next] = under_way[next] = true;
    path.push_back({next});
  }
  return ways;
}

std::vector<bool> ControlFlow::loop_headers() const {
  std::vector<bool> headers(blocks_.size(), false);
  for (const Edge& way : ways_back()) headers[way.to] = true;
  return headers;
}

std::vector<std::uint32_t> ControlFlow::influence_of(std::uint32_t block) const {
  return reach(blocks_[block].successors, blocks_[block].meeting);
}

std::vector<std::uint32_t> ControlFlow::way_from(std::uint32_t block,
                                                 std::uint32_t successor) const {
  return reach({successor}, blocks_[block].meeting);
}

bool ControlFlow::leads_once(std::uint32_t from, std::uint32_t to) const {
  std::uint32_t always = blocks_[from].meeting;
  while (always != to && always != kNone && charge(1)) always = blocks_[always].meeting;
  if (always != to) return false;
  const std::vector<std::uint32_t> again = reach(blocks_[to].successors, from);
  return std::ranges::find(again, to) == again.end();
}

std::optional<std::vector<std::uint32_t>> ControlFlow::between(std::uint32_t from,
                                                               std::uint32_t to) const {
  if (!leads_once(from, to)) return std::nullopt;
  std::vector<std::uint32_t> found = reach(blocks_[from].successors, to);
  if (std::ranges::find(found, from) != found.end()) return std::nullopt;
  return found;
}

std::uint32_t ControlFlow::only_weight(std::uint32_t from, std::uint32_t to,
                                       const std::vector<std::uint32_t>& weights) const {
  if (from == to) return 0;
  // Up to and with the block: on every way there the same, or there is no one answer.
  std::vector<std::uint32_t> reached{from};
  sums_[from] = weights[from];
  std::uint32_t found = kNone;
  bool is_one = true;
  const auto agree = [&](std::uint32_t& known, std::uint32_t sum) {
    if (known == kNone) known = sum;
    is_one &= known == sum;
  };
  for (std::size_t i = 0; i < reached.size() && is_one; ++i) {
    const std::uint32_t sum = sums_[reached[i]];
    const Block& block = blocks_[reached[i]];
    if (!charge(1 + block.successors.size())) break;
    if (block.exits) agree(found, sum);
    for (const std::uint32_t next : block.successors) {
      if (next == to) {
        agree(found, sum);
        continue;
      }
      if (sums_[next] == kNone) reached.push_back(next);
      agree(sums_[next], sum + weights[next]);
    }
  }
  for (const std::uint32_t b : reached) sums_[b] = kNone;
  return is_one ? found : kNone;
}

}  // namespace slate::injector
