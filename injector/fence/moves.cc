#include "injector/fence/moves.h"

#include <algorithm>

#include "injector/analysis/facts.h"
#include "injector/analysis/uniformity.h"

namespace slate::injector {

using ptx::Instruction;
using ptx::Operand;

bool is_in_scope(const ptx::Function& function, std::uint32_t at) {
  const auto scope = std::ranges::upper_bound(function.scopes, at, {}, &ptx::InnerScope::end);
  return scope != function.scopes.end() && scope->first <= at;
}

bool is_declared(const ptx::Function& function, const ptx::Variable& variable, std::uint32_t at) {
  const std::uint32_t place = function.instructions[at].span.begin;
  if (variable.span.end > place) return false;
  const auto scope =
      std::ranges::upper_bound(function.scopes, variable.span.begin, {},
                               [](const ptx::InnerScope& inner) { return inner.span.end; });
  const bool is_inner = scope != function.scopes.end() && scope->span.begin <= variable.span.begin;
  return !is_inner || place < scope->span.end;
}

void Moves::begin_block(std::uint32_t first, std::uint32_t end, bool is_chained) {
  if (!is_chained) {
    last_write_.clear();
    chain_ = free_from_ = constants_free_from_ = next_;
  }
  for (std::uint32_t i = first; i < end; ++i) {
    positions_[i] = next_++;
    times_[i] = {positions_[i], Phase::kUnmoved};
  }
}

namespace {

/// Whether the instruction loads, and nothing orders that among threads.
bool is_weak_load(const Instruction& instruction) {
  return instruction.opcode == "ld" && !may_race(instruction);
}

/// Whether it may order others' accesses in front of this thread's later ones.
bool orders(const Instruction& instruction) {
  const bool is_access = instruction.opcode == "ld" || instruction.opcode == "st";
  return !is_access || instruction.has("volatile") || instruction.has("acquire") ||
         instruction.has("release") || instruction.has("mmio");
}

}  // namespace

/// What stands behind position `behind` stays behind the instruction.
void Moves::bar(const Instruction& instruction, std::uint32_t behind) {
  const bool is_branch = instruction.opcode == "bra";
  if (only_computes(instruction) || is_weak_load(instruction) || is_branch) return;
  free_from_ = behind;
  if (orders(instruction)) constants_free_from_ = behind;
}

void Moves::pass_aside(std::uint32_t at) {
  const Instruction& instruction = function_.instructions[at];
  bar(instruction, next_);
  registers_.for_each_write(instruction, [&](std::uint32_t r) {
    last_write_[r] = {.instruction = at, .aside = Time{next_, Phase::kAside}};
  });
}

void Moves::pass(std::uint32_t at) {
  const Instruction& instruction = function_.instructions[at];
  bar(instruction, positions_[at] + 1);
  registers_.for_each_write(
      instruction, [&](std::uint32_t r) { last_write_[r] = {.instruction = at, .aside = {}}; });
}

Moves::Time Moves::time_of(const Write& write) const {
  return write.aside ? *write.aside : times_[write.instruction];
}

bool Moves::is_old(std::uint32_t number, std::uint32_t at) const {
  const auto write = last_write_.find(number);
  return write == last_write_.end() || time_of(write->second) < check_at(at);
}

bool Moves::reads_same(std::uint32_t number, std::uint32_t reader, std::uint32_t at) const {
  if (addresses_.is_written_once(number) && !addresses_.is_read_early(number) &&
      addresses_.dominates(addresses_.definition(number), reader)) {
    return true;
  }
  if (!is_in_chain(reader) || check_at(at) < times_[reader]) return false;
  const auto write = last_write_.find(number);
  return write == last_write_.end() || time_of(write->second) < times_[reader];
}

bool Moves::move_load(std::uint32_t load, std::uint32_t at) {
  const Instruction& instruction = function_.instructions[load];
  const std::uint32_t free_from = instruction.has("nc") ? constants_free_from_ : free_from_;
  if (!is_weak_load(instruction) || !instruction.has("global") || instruction.guard ||
      positions_[at] < free_from || is_in_scope(function_, load)) {
    return false;
  }
  bool may = true;
  registers_.for_each_write(instruction, [&](std::uint32_t r) {
    may = may && addresses_.is_written_once(r) && !addresses_.is_read_early(r);
  });
  registers_.for_each_read(instruction, [&](std::uint32_t r) { may = may && is_old(r, at); });
  if (may) times_[load] = {positions_[at], Phase::kLoads};
  return may;
}

bool Moves::may_move(const Instruction& instruction) const {
  const bool is_load = instruction.opcode == "ld";
  if (!may_be_repeated(instruction) || (is_load && !instruction.has("param"))) return false;
  std::uint32_t results = 0;
  registers_.for_each_write(instruction, [&](std::uint32_t) { ++results; });
  bool may = results == 1 && !instruction.guard;
  for_each_operand(instruction.operands, [&](const Operand& operand) {
    const bool is_time =
        operand.kind == Operand::Kind::kSpecial &&
        (operand.text.starts_with("%clock") || operand.text.starts_with("%global"));
    may &= !is_time && (operand.reference != ptx::Reference::kParameter || is_load);
  });
  return may;
}

bool Moves::collect(std::uint32_t number, std::uint32_t at,
                    std::vector<std::uint32_t>& found) const {
  if (is_old(number, at)) return true;
  // Whoever reads it reads what the one instruction writes, wherever that stands.
  if (!addresses_.is_written_once(number) || addresses_.is_read_early(number)) return false;
  if (found.size() >= kMost) return false;
  const std::uint32_t made = addresses_.definition(number);
  if (std::ranges::find(found, made) != found.end()) return true;
  if (!is_in_chain(made) || times_[made].second != Phase::kUnmoved)
    return false;  // or to a later check
  const Instruction& instruction = function_.instructions[made];
  if (is_in_scope(function_, made) || !may_move(instruction)) return false;
  bool may = true;
  registers_.for_each_read(instruction,
                           [&](std::uint32_t r) { may = may && collect(r, at, found); });
  if (may) found.push_back(made);
  return may && found.size() <= kMost;
}

bool Moves::move(std::uint32_t number, std::uint32_t at, std::vector<std::uint32_t>& moved) {
  std::vector<std::uint32_t> found;
  if (!collect(number, at, found)) return false;
  for (const std::uint32_t instruction : found)
    times_[instruction] = {positions_[at], Phase::kMoved};
  moved.insert(moved.end(), found.begin(), found.end());
  std::ranges::sort(moved, {}, [this](std::uint32_t each) { return positions_[each]; });
  return true;
}

}  // namespace slate::injector
