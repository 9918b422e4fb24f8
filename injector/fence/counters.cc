#include "injector/fence/counters.h"

#include <algorithm>

namespace slate::injector {
namespace {

using ptx::Instruction;
using ptx::Operand;

constexpr int kMostSums = 4;  // from a register to its new value

/// Whether it computes a whole number of so many bytes, always.
bool is_plain(const Instruction& instruction, std::uint32_t bytes) {
  return !instruction.guard && computes_whole(instruction, bytes);
}

}  // namespace

/// Whether instruction `at` reads the register by the operand, or a copy that is as the register is
/// then.
bool Counters::is_register(const Operand& operand, std::uint32_t number, std::uint32_t at) const {
  const auto read = registers_.of(operand);
  if (!read || operand.negated) return false;
  if (*read == number) return true;
  if (!addresses_.is_written_once(*read)) return false;
  const std::uint32_t copy = addresses_.definition(*read);
  const Instruction& instruction = function_.instructions[copy];
  return instruction.opcode == "mov" && is_plain(instruction, registers_.bytes(number)) &&
         instruction.operands.size() == 2 && !instruction.operands[1].negated &&
         registers_.of(instruction.operands[1]) == number && addresses_.dominates(copy, at) &&
         writes_.is_unchanged(number, copy, at);
}

/// The addition to the register, if the instruction is one, by way of others perhaps.
std::optional<Counter> Counters::added_by(std::uint32_t number, std::uint32_t added) const {
  const Instruction& instruction = function_.instructions[added];
  const auto& operands = instruction.operands;
  const bool is_less = instruction.opcode == "sub";
  if ((!is_less && instruction.opcode != "add") || operands.size() != 3 ||
      !is_plain(instruction, registers_.bytes(number))) {
    return std::nullopt;
  }
  const auto changed = registers_.of(operands[0]);
  if (!changed) return std::nullopt;
  Counter counter{.changed = *changed, .added = added};
  std::uint32_t reader = added;
  for (int i = 0; i < kMostSums; ++i) {
    const auto more = number_added(function_.instructions[reader]);
    if (!more) break;
    counter.growth += more->number;
    if (more->to->negated) return std::nullopt;
    auto source = registers_.of(*more->to);
    if (source && *source != number) {
      if (const auto half = addresses_.behind_widening(*source, reader)) {
        source = half->number;
        reader = half->reader;
      }
    }
    if (!source) return std::nullopt;
    if (*source != number && is_register(*more->to, number, reader)) source = number;
    if (*source == number)
      return reader == added || writes_.is_unchanged(number, reader, added) ? std::optional(counter)
                                                                            : std::nullopt;
    if (!addresses_.is_written_once(*source)) return std::nullopt;
    const std::uint32_t definition = addresses_.definition(*source);
    if (!addresses_.dominates(definition, reader) ||
        !is_plain(function_.instructions[definition], registers_.bytes(number))) {
      return std::nullopt;
    }
    reader = definition;
  }
  if (reader != added) return std::nullopt;
  const bool is_first = is_register(operands[1], number, added);
  const bool is_second = is_register(operands[2], number, added);
  if (is_first == is_second || (is_second && is_less)) return std::nullopt;
  counter.by = &operands[is_first ? 2 : 1];
  counter.is_less = is_less;
  return counter;
}

std::optional<Counter> Counters::shifted_by(std::uint32_t number, std::uint32_t shift) const {
  const Instruction& instruction = function_.instructions[shift];
  const auto& operands = instruction.operands;
  const ptx::Type type = instruction.type();
  if (instruction.opcode != "shr" || operands.size() != 3 || instruction.guard ||
      !is_integer(type) || is_signed(type) || ptx::type_bytes(type) != registers_.bytes(number) ||
      operands[2].kind != ptx::Operand::Kind::kInteger || operands[2].integer < 1 ||
      operands[2].integer >= 8 * ptx::type_bytes(type)) {
    return std::nullopt;
  }
  const auto changed = registers_.of(operands[0]);
  if (!changed || registers_.of(operands[1]) != number || operands[1].negated) return std::nullopt;
  return Counter{.changed = *changed, .added = shift, .growth = operands[2].integer};
}

std::optional<Counter> Counters::find(std::uint32_t number, std::uint32_t at) const {
  return find_by(number, at, &Counters::added_by);
}

std::optional<Counter> Counters::find_shifted(std::uint32_t number, std::uint32_t at) const {
  return find_by(number, at, &Counters::shifted_by);
}

std::optional<Counter> Counters::changed_by(std::uint32_t number, std::uint32_t change,
                                            Change its_change) const {
  std::uint32_t added = change;
  const Instruction& instruction = function_.instructions[change];
  if (instruction.opcode == "mov") {
    // The sum goes by another register.
    const auto source = instruction.operands.size() == 2 && !instruction.guard
                            ? registers_.of(instruction.operands[1])
                            : std::nullopt;
    if (!source || instruction.operands[1].negated || !addresses_.is_written_once(*source))
      return std::nullopt;
    added = addresses_.definition(*source);
    if (flow_.block_of(added) != flow_.block_of(change) || added > change) return std::nullopt;
  }
  auto counter = (this->*its_change)(number, added);
  if (counter) counter->change = change;
  return counter;
}

/// What others write does not come to `at`, nor to the change.
std::optional<Counter> Counters::find_by(std::uint32_t number, std::uint32_t at,
                                         Change its_change) const {
  const auto writes = writes_.reaching(number, at);
  if (writes.size() != 2) return std::nullopt;
  for (const bool is_swapped : {false, true}) {
    const std::uint32_t first = writes[is_swapped ? 1 : 0], change = writes[is_swapped ? 0 : 1];
    if (flow_.block_of(first) == flow_.block_of(change) || function_.instructions[first].guard ||
        !addresses_.dominates(first, change)) {
      continue;
    }
    auto counter = changed_by(number, change, its_change);
    if (!counter) continue;
    const auto before = writes_.reaching(number, counter->added);
    const bool is_closed = std::ranges::all_of(
        before, [&](std::uint32_t write) { return write == first || write == change; });
    if (!is_closed) continue;
    counter->first = first;
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

/// The later one of the two settings has to follow the earlier one before any turn, and no turn may
/// come between it and that one.
bool Counters::have_same_turns(const Counter& one, const Counter& other) const {
  const std::uint32_t end = flow_.block_of(one.change);
  if (flow_.block_of(other.change) != end) return false;
  const std::uint32_t first = flow_.block_of(one.first), its_first = flow_.block_of(other.first);
  if (first == its_first) return true;
  if (addresses_.dominates(one.first, other.first)) return !leads(flow_, end, its_first, first);
  return addresses_.dominates(other.first, one.first) && !leads(flow_, end, first, its_first);
}

bool Counters::is_in_front(const Counter& counter, std::uint32_t comparison) const {
  const std::uint32_t compared = flow_.block_of(comparison);
  const std::uint32_t first = flow_.block_of(counter.first);
  return addresses_.dominates(counter.first, comparison) &&
         (compared == first || !leads(flow_, flow_.block_of(counter.change), compared, first));
}

}  // namespace slate::injector
