#include "injector/analysis/branches.h"

#include <algorithm>

#include "injector/analysis/uniformity.h"

namespace slate::injector {

using ptx::Instruction;

Branches::Branches(const ptx::Function& function, const ControlFlow& flow,
                   const Registers& registers, Effort& effort)
    : function_(function), flow_(flow), registers_(registers), effort_(effort) {
  find_deciding();
  find_jumped_loops();
}

void Branches::find_deciding() {
  deciding_.resize(flow_.blocks().size());
  for (std::uint32_t b = 0; b < flow_.blocks().size(); ++b) {
    const ControlFlow::Block& block = flow_.blocks()[b];
    if (block.successors.size() + (block.exits ? 1 : 0) < 2) continue;
    for (const std::uint32_t next : block.successors) {
      for (std::uint32_t at = next; at != block.meeting && at != ControlFlow::kNone;
           at = flow_.blocks()[at].meeting) {
        if (!effort_.take(1)) return;
        if (deciding_[at].empty() || deciding_[at].back() != b) deciding_[at].push_back(b);
      }
    }
  }
}

const Branches::List* Branches::quiet_writes(std::uint32_t branch) {
  const auto [known, is_new] = quiet_.try_emplace(branch);
  if (!is_new) return known->second ? &*known->second : nullptr;
  const ControlFlow::Block& block = flow_.blocks()[branch];
  const Instruction& last = function_.instructions[block.end - 1];
  if (last.opcode != "bra" || !last.guard || block.meeting == ControlFlow::kNone) return nullptr;
  List writes;
  for (const std::uint32_t b : flow_.influence_of(branch)) {
    const ControlFlow::Block& inside = flow_.blocks()[b];
    if (inside.exits || !effort_.take(inside.end - inside.first)) return nullptr;
    for (std::uint32_t i = inside.first; i < inside.end; ++i) {
      const Instruction& instruction = function_.instructions[i];
      if (instruction.opcode != "bra" && !passes_on(instruction) && !may_be_repeated(instruction))
        return nullptr;
      for_each_written(registers_, instruction, [&](std::uint32_t r) { writes.push_back(r); });
    }
  }
  known->second = std::move(writes);
  return &*known->second;
}

void Branches::find_jumped_loops() {
  is_header_ = flow_.loop_headers();
  jumps_loop_.assign(flow_.blocks().size(), false);
  for (std::uint32_t b = 0; b < flow_.blocks().size(); ++b) {
    const ControlFlow::Block& block = flow_.blocks()[b];
    if (block.successors.size() != 2 || block.exits) continue;
    const auto jump = std::ranges::find(block.successors, block.meeting);
    if (jump == block.successors.end()) continue;
    jumps_loop_[b] = leads_through_loop(b, block.successors[jump == block.successors.begin()]);
  }
}

/// Every way from the successor to where the ways of the branch meet passes the beginning of a loop
/// that the branch is not in.
bool Branches::leads_through_loop(std::uint32_t block, std::uint32_t successor) const {
  const std::uint32_t meeting = flow_.blocks()[block].meeting;
  if (successor == meeting) return false;
  const std::vector<std::uint32_t> way = flow_.way_from(block, successor);
  if (std::ranges::find(way, block) != way.end()) return false;
  for (std::uint32_t b = successor; b != meeting && b != ControlFlow::kNone;
       b = flow_.blocks()[b].meeting) {
    if (!flow_.charge(1)) return false;
    const bool comes_back = is_header_[b] && std::ranges::any_of(way, [&](std::uint32_t from) {
                              const auto& next = flow_.blocks()[from].successors;
                              return std::ranges::find(next, b) != next.end() && from >= b;
                            });
    if (comes_back) return true;
  }
  return false;
}

}  // namespace slate::injector
