#include "injector/fence/drifts.h"

#include <algorithm>

#include "injector/fence/addresses.h"

namespace slate::injector {

using ptx::Instruction;
using ptx::Operand;

std::optional<Drift> Drifts::find(std::uint32_t number, std::uint32_t at) {
  for (const std::uint32_t loop : loops_.around(flow_.block_of(at))) {
    if (auto drift = in(loop, number, at)) return drift;
  }
  return std::nullopt;
}

std::optional<Drift> Drifts::in(std::uint32_t loop, std::uint32_t number, std::uint32_t at) {
  if (loops_.tails(loop).size() != 1) return std::nullopt;
  Trace present, turns;
  if (!trace(loop, {{number, at}}, present) || !trace_turns(loop, present, turns))
    return std::nullopt;
  Drift drift{.loop = loop, .beginnings = {}, .restarts = {}, .of_turns = {}, .of_present = {}};
  turns.registers.insert(present.registers.begin(), present.registers.end());
  for (const std::uint32_t r : turns.registers) {
    if (!begins(loop, r, drift)) return std::nullopt;
  }
  const auto are_once = [&](const std::vector<DriftSum>& sums) {
    return std::ranges::all_of(sums, [&](const auto& sum) { return is_once_a_turn(loop, sum); });
  };
  if (turns.sums.empty() || !are_once(turns.sums) || !are_once(present.sums)) return std::nullopt;
  drift.of_turns = std::move(turns.sums);
  drift.of_present = std::move(present.sums);
  drift.restarts = std::move(turns.restarts);
  drift.restarts.insert(drift.restarts.end(), present.restarts.begin(), present.restarts.end());
  return drift;
}

/// From registers at instructions of the loop, or (kNone) at the end of its last block, back to the
/// beginning of the turn.
bool Drifts::trace(std::uint32_t loop, Waiting waiting, Trace& trace) {
  const std::uint32_t first = flow_.blocks()[loops_.header(loop)].first;
  while (!waiting.empty()) {
    const auto [number, at] = waiting.back();
    waiting.pop_back();
    if (trace.writes.size() > kMostWrites || visits_ > kMostVisits) return false;
    if (at == first) {
      trace.registers.insert(number);
      continue;
    }
    std::vector<std::uint32_t> found;
    const auto stop = [&, number = number](std::uint32_t i) {
      ++visits_;
      const bool is_written = writes_.writes(i, number);
      if (is_written) found.push_back(i);
      if (is_written && !function_.instructions[i].guard) return true;
      if (i == first) trace.registers.insert(number);
      return i == first;
    };
    if (at == ControlFlow::kNone) {
      writes_.walk_back_from(loops_.tails(loop), stop);
    } else {
      writes_.walk_back(at, stop);
    }
    for (const std::uint32_t write : found) {
      if (trace.writes.insert(write).second && !look_at(loop, write, trace, waiting)) return false;
    }
  }
  return true;
}

/// Of all turns: from the end of one back to its beginning, for each register that the number can
/// come from at the beginning of the next.
bool Drifts::trace_turns(std::uint32_t loop, const Trace& present, Trace& turns) {
  std::set<std::uint32_t> done;
  std::set<std::uint32_t> waiting = present.registers;
  while (!waiting.empty()) {
    const std::uint32_t number = *waiting.begin();
    waiting.erase(waiting.begin());
    if (!done.insert(number).second) continue;
    if (!trace(loop, {{number, ControlFlow::kNone}}, turns)) return false;
    for (const std::uint32_t r : turns.registers) {
      if (!done.contains(r)) waiting.insert(r);
    }
  }
  return true;
}

/// A copy or a sum leads to another register, in front of it. Anything else is a new beginning.
bool Drifts::look_at(std::uint32_t loop, std::uint32_t write, Trace& trace,
                     Waiting& waiting) const {
  const Instruction& instruction = function_.instructions[write];
  const auto& operands = instruction.operands;
  if (const auto copied = copied_by(instruction)) {
    waiting.emplace_back(*copied, write);
    return true;
  }
  const auto result = registers_.of(operands[0]);
  const bool is_less = instruction.opcode == "sub";
  if (!result || operands.size() != 3 || (!is_less && instruction.opcode != "add") ||
      !computes_whole(instruction, registers_.bytes(*result))) {
    trace.restarts.push_back(write);
    return true;
  }
  const auto changing = [&](const Operand& operand) -> std::optional<std::uint32_t> {
    const auto r = operand.negated ? std::nullopt : registers_.of(operand);
    return r && changes_in(loop, *r) ? r : std::nullopt;
  };
  const auto one = changing(operands[1]), other = changing(operands[2]);
  if (!one && !other) {
    trace.restarts.push_back(write);
    return true;
  }
  if ((one && other) || (is_less && !one)) return false;
  const Operand& by = operands[one ? 2 : 1];
  DriftSum sum{.at = write, .is_less = is_less};
  if (by.kind == Operand::Kind::kInteger) {
    sum.number = is_less ? -by.integer : by.integer;
  } else if (registers_.of(by) && !by.negated) {
    sum.by = &by;
  } else {
    return false;
  }
  trace.sums.push_back(sum);
  waiting.emplace_back(one ? *one : *other, write);
  return true;
}

std::optional<std::uint32_t> Drifts::copied_by(const Instruction& instruction) const {
  const auto& operands = instruction.operands;
  if (instruction.opcode != "mov" || operands.size() != 2 || operands[1].negated)
    return std::nullopt;
  const auto to = registers_.of(operands[0]), from = registers_.of(operands[1]);
  const bool is_copy = to && from && registers_.bytes(*to) == registers_.bytes(*from) &&
                       computes_whole(instruction, registers_.bytes(*to));
  return is_copy ? from : std::nullopt;
}

bool Drifts::changes_in(std::uint32_t loop, std::uint32_t number) const {
  return std::ranges::any_of(writes_.of(number), [&](std::uint32_t write) {
    return loops_.contains(loop, flow_.block_of(write));
  });
}

/// Adds what the register can be when the loop is entered. False: a way leads there from the loop
/// itself.
bool Drifts::begins(std::uint32_t loop, std::uint32_t number, Drift& drift) {
  bool is_outside = true;
  writes_.walk_back_from(loops_.entries(loop), [&](std::uint32_t i) {
    ++visits_;
    const bool is_written = writes_.writes(i, number);
    const bool is_new = std::ranges::find(drift.beginnings, i) == drift.beginnings.end();
    if (is_written && is_new) drift.beginnings.push_back(i);
    if (is_written && loops_.contains(loop, flow_.block_of(i))) is_outside = false;
    if (is_written && !function_.instructions[i].guard) return true;
    if (i == 0) drift.may_be_unset = true;
    return false;
  });
  return is_outside && drift.beginnings.size() <= kMostWrites;
}

/// Whether no way leads from it back to it within a turn.
bool Drifts::is_once_a_turn(std::uint32_t loop, const DriftSum& sum) const {
  const std::uint32_t block = flow_.block_of(sum.at), header = loops_.header(loop);
  if (block == header) return true;
  return std::ranges::none_of(flow_.blocks()[block].successors, [&](std::uint32_t next) {
    return leads(flow_, next, block, header);
  });
}

}  // namespace slate::injector
