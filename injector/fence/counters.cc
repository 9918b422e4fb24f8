#include "injector/fence/counters.h"

#include <algorithm>

namespace slate::injector {
namespace {

using ptx::Instruction;

/// Whether a way leads from one block to another that does not pass `around`.
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

}  // namespace

Counters::Counters(const ptx::Function& function, const ControlFlow& flow,
                   const Registers& registers, const Addresses& addresses)
    : function_(function),
      flow_(flow),
      registers_(registers),
      addresses_(addresses),
      writes_(registers.count()) {
  for (std::uint32_t i = 0; i < function.instructions.size(); ++i) {
    registers.for_each_write(function.instructions[i],
                             [&](std::uint32_t r) { writes_[r].push_back(i); });
  }
}

/// The addition to the register, if the instruction is one.
std::optional<Counter> Counters::changed_by(std::uint32_t number, std::uint32_t added) const {
  const Instruction& instruction = function_.instructions[added];
  const auto& operands = instruction.operands;
  const ptx::Type type = instruction.type();
  const bool is_less = instruction.opcode == "sub";
  if ((!is_less && instruction.opcode != "add") || operands.size() != 3 || instruction.guard ||
      !is_integer(type) || instruction.has("sat") || instruction.has("cc") ||
      ptx::type_bytes(type) != registers_.bytes(number)) {
    return std::nullopt;
  }
  const auto changed = registers_.of(operands[0]);
  const bool is_first = registers_.of(operands[1]) == number && !operands[1].negated;
  const bool is_second = registers_.of(operands[2]) == number && !operands[2].negated;
  if (!changed || is_first == is_second || (is_second && is_less)) return std::nullopt;
  return Counter{
      .changed = *changed, .added = added, .by = &operands[is_first ? 2 : 1], .is_less = is_less};
}

std::optional<Counter> Counters::find(std::uint32_t number) const {
  const auto& writes = writes_[number];
  if (writes.size() != 2) return std::nullopt;
  for (const bool is_swapped : {false, true}) {
    const std::uint32_t first = writes[is_swapped ? 1 : 0], change = writes[is_swapped ? 0 : 1];
    if (flow_.block_of(first) == flow_.block_of(change) || function_.instructions[first].guard ||
        !addresses_.dominates(first, change)) {
      continue;
    }
    std::uint32_t added = change;
    const Instruction& instruction = function_.instructions[change];
    if (instruction.opcode == "mov") {
      // The sum goes by another register.
      const auto source = instruction.operands.size() == 2 && !instruction.guard
                              ? registers_.of(instruction.operands[1])
                              : std::nullopt;
      if (!source || instruction.operands[1].negated || !addresses_.is_written_once(*source))
        continue;
      added = addresses_.definition(*source);
      if (flow_.block_of(added) != flow_.block_of(change) || added > change) continue;
    }
    auto counter = changed_by(number, added);
    if (!counter) continue;
    counter->first = first;
    counter->change = change;
    return counter;
  }
  return std::nullopt;
}

/// The other way comes neither there nor to a further change.
std::optional<std::uint32_t> Counters::way_on(const Counter& counter, std::uint32_t at) const {
  const std::uint32_t end = flow_.block_of(counter.change), here = flow_.block_of(at);
  const std::uint32_t first = flow_.block_of(counter.first);
  const auto& ways = flow_.blocks()[end].successors;
  const bool is_behind = here == end && at > counter.change;
  if (here == first || is_behind || ways.size() != 2 || !addresses_.dominates(counter.first, at))
    return std::nullopt;
  for (const std::size_t other : {0, 1}) {
    if (!leads(flow_, ways[other], here, first) && !leads(flow_, ways[other], end, first))
      return ways[1 - other];
  }
  return std::nullopt;
}

bool Counters::is_in_front(const Counter& counter, std::uint32_t comparison) const {
  const std::uint32_t compared = flow_.block_of(comparison);
  const std::uint32_t first = flow_.block_of(counter.first);
  return addresses_.dominates(counter.first, comparison) &&
         (compared == first || !leads(flow_, flow_.block_of(counter.change), compared, first));
}

bool Counters::is_surely_written(std::uint32_t number, std::uint32_t at) const {
  const auto writes = [&](std::uint32_t block, std::uint32_t end) {
    return std::ranges::any_of(writes_[number], [&](std::uint32_t write) {
      return flow_.block_of(write) == block && write < end && !function_.instructions[write].guard;
    });
  };
  const std::uint32_t here = flow_.block_of(at);
  if (writes(here, at)) return true;
  std::vector<bool> seen(flow_.blocks().size(), false);
  std::vector<std::uint32_t> waiting{0};
  while (!waiting.empty()) {
    const std::uint32_t block = waiting.back();
    waiting.pop_back();
    if (block == here) return false;
    if (seen[block]) continue;
    seen[block] = true;
    const ControlFlow::Block& code = flow_.blocks()[block];
    if (writes(block, code.end)) continue;
    waiting.insert(waiting.end(), code.successors.begin(), code.successors.end());
  }
  return true;
}

}  // namespace slate::injector
