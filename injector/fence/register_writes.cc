#include "injector/fence/register_writes.h"

#include <iterator>

namespace slate::injector {

bool leads(const ControlFlow& flow, std::uint32_t from, std::uint32_t to, std::uint32_t around) {
  std::vector<bool> seen(flow.blocks().size(), false);
  std::vector<std::uint32_t> waiting{from};
  while (!waiting.empty()) {
    const std::uint32_t block = waiting.back();
    waiting.pop_back();
    if (seen[block]) continue;
    seen[block] = true;
    if (block == to) return true;
    if (block == around) continue;
    const auto& next = flow.blocks()[block].successors;
    waiting.insert(waiting.end(), next.begin(), next.end());
  }
  return false;
}

RegisterWrites::RegisterWrites(const ptx::Function& function, const ControlFlow& flow,
                               const Registers& registers)
    : function_(function),
      flow_(flow),
      predecessors_(flow.predecessors()),
      writes_(registers.count()) {
  for (std::uint32_t i = 0; i < function.instructions.size(); ++i) {
    registers.for_each_write(function.instructions[i],
                             [&](std::uint32_t r) { writes_[r].push_back(i); });
  }
}

std::vector<std::uint32_t> RegisterWrites::reaching(std::uint32_t number, std::uint32_t at) const {
  std::vector<std::uint32_t> found;
  walk_back(at, [&](std::uint32_t i) {
    if (!writes(i, number)) return false;
    if (std::ranges::find(found, i) == found.end()) found.push_back(i);
    return !function_.instructions[i].guard;
  });
  return found;
}

std::uint32_t RegisterWrites::begin_of(std::uint32_t number, std::uint32_t at) const {
  const std::uint32_t first = flow_.blocks()[flow_.block_of(at)].first;
  const auto& writes = writes_[number];
  const auto next = std::ranges::lower_bound(writes, at);
  return next == writes.begin() || *std::prev(next) < first ? first : *std::prev(next) + 1;
}

bool RegisterWrites::is_unchanged(std::uint32_t number, std::uint32_t from,
                                  std::uint32_t at) const {
  bool is_written = false;
  walk_back(at, [&](std::uint32_t i) {
    if (i == from) return true;
    is_written |= writes(i, number);
    return false;
  });
  return !is_written;
}

bool RegisterWrites::is_surely_written(std::uint32_t number, std::uint32_t at) const {
  bool is_written = at != 0;
  walk_back(at, [&](std::uint32_t i) {
    if (writes(i, number) && !function_.instructions[i].guard) return true;
    is_written &= i != 0;  // the function begins there
    return false;
  });
  return is_written;
}

bool RegisterWrites::may_repeat(std::uint32_t instruction) const {
  const std::uint32_t block = flow_.block_of(instruction);
  return flow_.reachable_from(flow_.blocks()[block].successors)[block];
}

}  // namespace slate::injector
