#include "injector/analysis/parked_walk.h"

#include <algorithm>

#include "injector/analysis/facts.h"

namespace slate::injector {
namespace {

using ptx::Instruction;
using ptx::Operand;

constexpr std::uint32_t kNone = ControlFlow::kNone;

class Planner {
 public:
  Planner(const ptx::Function& function, bool takes_turns, Effort& effort)
      : function_(function),
        takes_turns_(takes_turns),
        flow_(function, &effort),
        cut_(flow_),
        carried_(function.instructions.size(), false),
        needed_(function.variables.size(), false) {}

  std::optional<ParkedWalk> plan() {
    if (!barriers_are_plain()) return std::nullopt;
    find_reaching();
    if (!find_exits()) return std::nullopt;
    do {
      walk();
      need_decisions();
    } while ((carry_needed() || carry_scopes()) && cut_.charge(carried_.size()));
    if (failed_ || !cut_.charge(0)) return std::nullopt;
    place_exits();
    place_jumps();
    find_barriers();
    if (failed_ || goes_round_in_vain()) return std::nullopt;
    return std::move(result_);
  }

 private:
  bool barriers_are_plain() const {
    return std::ranges::all_of(function_.instructions, [](const Instruction& instruction) {
      if (!is_block_barrier(instruction)) return true;
      const BarrierKind kind = barrier_kind(instruction);
      return kind.whole_block && kind.named_by_number && !instruction.guard &&
             !instruction.has("arrive");
    });
  }

  bool has_barrier(std::uint32_t block) const {
    const auto& code = flow_.blocks()[block];
    return std::any_of(function_.instructions.begin() + code.first,
                       function_.instructions.begin() + code.end, is_block_barrier);
  }

  /// The blocks from which, or in which, a barrier can be reached.
  void find_reaching() {
    const auto count = static_cast<std::uint32_t>(flow_.blocks().size());
    std::vector<bool> marked(count);
    for (std::uint32_t b = 0; b < count; ++b) marked[b] = has_barrier(b);
    reaches_ = flow_.leading_to(std::move(marked));
  }

  /// The ways out of branches of which another side goes on to a barrier. Nothing if one is a jump
  /// through a table.
  std::optional<std::vector<ControlFlow::Edge>> ways_out() const {
    std::vector<ControlFlow::Edge> edges;
    for (std::uint32_t b = 0; b < flow_.blocks().size(); ++b) {
      const ControlFlow::Block& block = flow_.blocks()[b];
      const bool stays = std::ranges::any_of(block.successors, [&](auto s) { return reaches_[s]; });
      const Instruction& last = function_.instructions[block.end - 1];
      if (!stays || !last.guard) continue;
      if (block.exits) edges.push_back({b, kNone});
      for (const std::uint32_t next : block.successors) {
        if (!reaches_[next]) edges.push_back({b, next});
      }
      const bool is_way_out = !edges.empty() && edges.back().block == b;
      if (is_way_out && last.opcode == "brx") return std::nullopt;
    }
    return edges;
  }

  /// The code as if each block had one way on, so that threads never part.
  ControlFlow straight() const {
    std::vector<ControlFlow::Edge> others;
    for (std::uint32_t b = 0; b < flow_.blocks().size(); ++b) {
      const ControlFlow::Block& block = flow_.blocks()[b];
      for (std::size_t i = block.exits ? 0 : 1; i < block.successors.size(); ++i) {
        others.push_back({b, block.successors[i]});
      }
    }
    return flow_.without(others);
  }

  /// Those of them whose conditions may differ between threads that have come the same way. The
  /// others are for the whole block, or the analysis of the result will say no.
  bool find_exits() {
    auto edges = ways_out();
    if (!edges) return false;
    const ControlFlow together = straight();
    const Uniformity uniformity(function_, together, {.takes_turns = takes_turns_});
    std::erase_if(*edges, [&](const ControlFlow::Edge& edge) {
      const Instruction& last = function_.instructions[flow_.blocks()[edge.block].end - 1];
      return uniformity.of(*last.guard) == Scope::kBlock;
    });
    for (const ControlFlow::Edge& edge : *edges) result_.exits.push_back({.way = edge});
    cut_ = flow_.without(*edges);
    std::vector<std::uint32_t> continuing;
    for (const ControlFlow::Edge& edge : *edges) {
      const auto& next = cut_.blocks()[edge.block].successors;
      continuing.insert(continuing.end(), next.begin(), next.end());
    }
    parked_in_ = cut_.reachable_from(continuing);
    live_ = cut_.reachable_from({0});
    is_header_ = cut_.loop_headers();
    return !edges->empty();
  }

  // --- Which way a parked thread goes

  bool is_branch_of_block(std::uint32_t b) const {
    const ControlFlow::Block& block = cut_.blocks()[b];
    return block.successors.size() + (block.exits ? 1 : 0) > 1;
  }

  /// Nothing on either side of the branch at the end of `b` concerns a parked thread.
  bool may_pass_over(std::uint32_t b) const {
    if (cut_.blocks()[b].meeting == kNone) return false;
    return std::ranges::none_of(cut_.influence_of(b), [&](std::uint32_t inside) {
      const auto& code = cut_.blocks()[inside];
      if (!cut_.charge(code.end - code.first)) return true;
      for (std::uint32_t i = code.first; i < code.end; ++i) {
        if (carried_[i] || is_block_barrier(function_.instructions[i])) return true;
      }
      return false;
    });
  }

  /// From barrier to barrier, past what does not concern it.
  void walk() {
    const std::size_t count = cut_.blocks().size();
    visited_.assign(count, false);
    decides_.assign(count, false);
    std::vector<std::uint32_t> waiting{0};
    while (!waiting.empty()) {
      const std::uint32_t b = waiting.back();
      waiting.pop_back();
      if (visited_[b]) continue;
      visited_[b] = true;
      if (!reaches_[b]) continue;
      const ControlFlow::Block& block = cut_.blocks()[b];
      if (is_branch_of_block(b) && may_pass_over(b)) {
        waiting.push_back(block.meeting);
        continue;
      }
      decides_[b] = is_branch_of_block(b);
      for (const std::uint32_t next : block.successors) waiting.push_back(next);
    }
  }

  // --- What it must know for that

  void need(const Operand& operand) {
    const auto mark = [&](const Operand& part) {
      if (part.kind == Operand::Kind::kSymbol && part.reference == ptx::Reference::kLocal &&
          function_.variables[part.index].space == ptx::Space::kReg) {
        needed_[part.index] = true;
      }
    };
    mark(operand);
    for_each_operand(operand.parts, mark);
  }

  void need_inputs(const Instruction& instruction) {
    if (instruction.guard) need(*instruction.guard);
    for (std::size_t i = has_result(instruction) ? 1 : 0; i < instruction.operands.size(); ++i) {
      need(instruction.operands[i]);
    }
  }

  void need_decisions() {
    for (std::uint32_t b = 0; b < decides_.size(); ++b) {
      if (decides_[b] && parked_in_[b])
        need_inputs(function_.instructions[cut_.blocks()[b].end - 1]);
    }
  }

  /// True if there was more to carry.
  bool carry_needed() {
    bool any = false;
    for (bool changed = true; changed && cut_.charge(carried_.size());) {
      changed = false;
      // Backwards, as what is needed is written before.
      for (std::uint32_t i = static_cast<std::uint32_t>(carried_.size()); i-- > 0;) {
        const std::uint32_t block = cut_.block_of(i);
        if (carried_[i] || !parked_in_[block] || !reaches_[block]) continue;
        const Instruction& instruction = function_.instructions[i];
        if (!writes_needed(instruction) || is_block_barrier(instruction)) continue;
        if (!may_be_repeated(instruction)) failed_ = true;
        carried_[i] = changed = any = true;
        need_inputs(instruction);
      }
    }
    return any && !failed_;
  }

  /// A stop can be reached only at the beginning of its scope, so all of that is done.
  bool carry_scopes() {
    bool any = false;
    for (const ptx::InnerScope& scope : function_.scopes) {
      const bool concerns = std::any_of(carried_.begin() + scope.first,
                                        carried_.begin() + scope.end, [](bool c) { return c; });
      for (std::uint32_t i = scope.first; i < scope.end; ++i) {
        if (!concerns && !holds_barrier(scope)) break;
        if (carried_[i] || !parked_in_[cut_.block_of(i)]) continue;
        const Instruction& instruction = function_.instructions[i];
        if (is_block_barrier(instruction)) continue;
        if (!only_computes(instruction)) failed_ = true;
        carried_[i] = any = true;
      }
    }
    return any && !failed_;
  }

  bool holds_barrier(const ptx::InnerScope& scope) const {
    return std::any_of(function_.instructions.begin() + scope.first,
                       function_.instructions.begin() + scope.end, is_block_barrier);
  }

  bool is_needed(const Operand& operand) const {
    return operand.reference == ptx::Reference::kLocal && needed_[operand.index];
  }

  bool writes_needed(const Instruction& instruction) const {
    bool found = false;
    for_each_result(instruction, [&](const Operand& operand) { found |= is_needed(operand); });
    return found;
  }

  // --- The result

  bool is_stop(std::uint32_t i) const {
    const std::uint32_t block = cut_.block_of(i);
    return carried_[i] || is_block_barrier(function_.instructions[i]) ||
           (decides_[block] && i + 1 == cut_.blocks()[block].end);
  }

  bool begins_loop(std::uint32_t i) const {
    const std::uint32_t block = cut_.block_of(i);
    return is_header_[block] && cut_.blocks()[block].first == i;
  }

  /// Past the end of `block`, which decides nothing.
  std::uint32_t next_block(std::uint32_t block) const {
    if (is_branch_of_block(block)) return cut_.blocks()[block].meeting;
    const auto& next = cut_.blocks()[block].successors;
    return next.empty() ? kNone : next.front();
  }

  /// The first stop of a parked thread at instruction `i`, or, where that begins a loop, behind it:
  /// loops are entered at their beginning, as ptxas brings warps together only in loops with a
  /// single way in. `passed`: whether there is anything in between but jumps.
  std::uint32_t stop_from(std::uint32_t i, bool& passed) {
    passed = false;
    std::uint32_t block = cut_.block_of(i);
    const std::uint32_t start = i;
    for (std::size_t steps = 0; steps <= cut_.blocks().size(); ++steps) {
      if (!reaches_[block]) {
        passed = true;
        return ParkedWalk::kEnd;
      }
      if (!cut_.charge(cut_.blocks()[block].end - i)) return ParkedWalk::kEnd;
      for (; i < cut_.blocks()[block].end; ++i) {
        if (is_stop(i) || (i != start && begins_loop(i))) return i;
        const Instruction& instruction = function_.instructions[i];
        passed |= instruction.opcode != "bra" || instruction.guard.has_value();
      }
      block = next_block(block);
      if (block == kNone) {
        passed = true;
        return ParkedWalk::kEnd;
      }
      i = cut_.blocks()[block].first;
    }
    failed_ = true;  // round and round without a stop
    return ParkedWalk::kEnd;
  }

  void place_exits() {
    for (ParkedWalk::Exit& exit : result_.exits) {
      std::uint32_t block = exit.way.block;
      if (!live_[block]) continue;
      // Behind the branch; or, of what parked threads pass over, where that ends.
      if (visited_[block]) {
        block = cut_.blocks()[block].successors.front();
      } else {
        while (block != kNone && !visited_[block]) block = cut_.blocks()[block].meeting;
      }
      if (block == kNone) {
        failed_ = true;
        return;
      }
      const std::uint32_t first = cut_.blocks()[block].first;
      bool passed = false;
      exit.stop = begins_loop(first) ? first : stop_from(first, passed);
    }
  }

  void place_jump(std::uint32_t i) {
    if (is_stop(i)) return;
    bool passed = false;
    const std::uint32_t stop = stop_from(i, passed);
    if (stop == i) failed_ = true;  // round and round without a stop
    if (passed) result_.jumps.emplace(i, stop);
  }

  void place_jumps() {
    for (std::uint32_t i = 0; i < carried_.size(); ++i) {
      const std::uint32_t b = cut_.block_of(i);
      const ControlFlow::Block& block = cut_.blocks()[b];
      if (!visited_[b] || !parked_in_[b] || !reaches_[b]) continue;
      if (begins_loop(i)) place_jump(i);
      if (!is_stop(i)) continue;
      if (i + 1 < block.end) {
        place_jump(i + 1);
      } else {
        for (const std::uint32_t next : block.successors) place_jump(cut_.blocks()[next].first);
      }
    }
  }

  void find_barriers() {
    for (std::uint32_t i = 0; i < carried_.size(); ++i) {
      const std::uint32_t block = cut_.block_of(i);
      if (!is_block_barrier(function_.instructions[i]) || !parked_in_[block]) continue;
      if (!visited_[block]) failed_ = true;
      result_.barriers.push_back(i);
      if (cut_.reachable_from(cut_.blocks()[block].successors)[block]) {
        result_.looping_barriers.push_back(i);
      }
    }
  }

  bool goes_on_in(std::uint32_t b) const {
    return visited_[b] && parked_in_[b] && reaches_[b] && !has_barrier(b);
  }

  /// Where those go who do not stop in `b`.
  std::vector<std::uint32_t> ways_on(std::uint32_t b) const {
    if (is_branch_of_block(b) && !decides_[b]) return {cut_.blocks()[b].meeting};
    return cut_.blocks()[b].successors;
  }

  /// There is a loop that parked threads may go round without a barrier. They ask whether anybody
  /// is left at barriers only, and the loop's own end may be among the early ways out.
  bool goes_round_in_vain() const {
    const auto count = static_cast<std::uint32_t>(cut_.blocks().size());
    std::vector<std::uint32_t> leading_there(count, 0);
    std::vector<std::uint32_t> first;
    for (std::uint32_t b = 0; b < count; ++b) {
      if (!goes_on_in(b)) continue;
      for (const std::uint32_t next : ways_on(b)) ++leading_there[next];
    }
    // Without those to which no other leads, again and again, only loops are left and what follows.
    std::size_t left = 0;
    for (std::uint32_t b = 0; b < count; ++b) {
      if (!goes_on_in(b)) continue;
      ++left;
      if (leading_there[b] == 0) first.push_back(b);
    }
    while (!first.empty()) {
      const std::uint32_t b = first.back();
      first.pop_back();
      --left;
      for (const std::uint32_t next : ways_on(b)) {
        if (--leading_there[next] == 0 && goes_on_in(next)) first.push_back(next);
      }
    }
    return left != 0;
  }

  const ptx::Function& function_;
  const bool takes_turns_;
  const ControlFlow flow_;
  ControlFlow cut_;              // without the early ways out
  std::vector<bool> reaches_;    // by block: a barrier
  std::vector<bool> is_header_;  // by block: a loop begins with it
  std::vector<bool> live_;       // by block: the kernel may come here, but for parked threads
  std::vector<bool> parked_in_;  // by block: while some threads are parked
  std::vector<bool> visited_;    // by block: parked threads go there, or past it
  std::vector<bool> decides_;    // by block: its branch is taken by parked threads too
  std::vector<bool> carried_;    // by instruction: done by parked threads too
  std::vector<bool> needed_;     // by register
  bool failed_ = false;
  ParkedWalk result_;
};

}  // namespace

std::optional<ParkedWalk> plan_parked_walk(const ptx::Function& function, bool takes_turns,
                                           Effort& effort) {
  auto plan = Planner(function, takes_turns, effort).plan();
  if (effort.is_spent()) plan.reset();
  return plan;
}

}  // namespace slate::injector
