#include "injector/analysis/register_accesses.h"

#include <algorithm>
#include <string_view>

#include "injector/analysis/uniformity.h"

namespace slate::injector {

using ptx::Instruction;

bool passes_on(const Instruction& instruction) {
  constexpr std::string_view kCarrying[] = {"add", "addc", "sub", "subc", "mad", "madc"};
  return only_computes(instruction) ||
         std::ranges::find(kCarrying, instruction.opcode) != std::end(kCarrying);
}

bool sets_carry(const Instruction& instruction) {
  return passes_on(instruction) && instruction.has("cc");
}

bool reads_carry(const Instruction& instruction) {
  constexpr std::string_view kReading[] = {"addc", "subc", "madc"};
  return std::ranges::find(kReading, instruction.opcode) != std::end(kReading);
}

RegisterUses::RegisterUses(const ptx::Function& function, const Registers& registers)
    : reads_(registers.count() + 1), writes_(registers.count() + 1) {
  for (std::uint32_t i = 0; i < function.instructions.size(); ++i) {
    const Instruction& instruction = function.instructions[i];
    const auto add = [&](std::vector<List>& lists, std::uint32_t r) {
      if (lists[r].empty() || lists[r].back() != i) lists[r].push_back(i);
    };
    if (const auto guard = registers.guard_of(instruction)) add(reads_, *guard);
    registers.for_each_read(instruction, [&](std::uint32_t r) { add(reads_, r); });
    if (reads_carry(instruction)) add(reads_, registers.count());
    for_each_written(registers, instruction, [&](std::uint32_t r) { add(writes_, r); });
  }
}

RegisterAccesses::RegisterAccesses(const ptx::Function& function, const ControlFlow& flow,
                                   const Registers& registers, const PredicateGroups* groups)
    : registers_(registers),
      predicate_groups_(groups),
      reading_(registers.count() + 1),
      writing_(registers.count() + 1),
      written_in_(registers.count() + 1, ControlFlow::kNone) {
  for (std::uint32_t b = 0; b < flow.blocks().size(); ++b) {
    const ControlFlow::Block& block = flow.blocks()[b];
    for (std::uint32_t i = block.first; i < block.end; ++i) look_at(function.instructions[i], b);
    if (block.exits) registers.for_each_returned([&](std::uint32_t r) { read(r, b); });
  }
}

void RegisterAccesses::look_at(const Instruction& instruction, std::uint32_t block) {
  if (instruction.guard) {
    if (const auto guard = registers_.of(*instruction.guard)) read(*guard, block);
  }
  registers_.for_each_read(instruction, [&](std::uint32_t r) { read(r, block); });
  if (reads_carry(instruction)) read(carry(), block);
  if (predicate_groups_ != nullptr) {
    registers_.for_each_write(instruction, [&](std::uint32_t r) {
      const std::uint32_t group = predicate_groups_->group_of(r);
      if (group == PredicateGroups::kNone) return;
      for (const std::uint32_t same : predicate_groups_->groups()[group].predicates)
        read(same, block);
    });
  }
  if (instruction.guard) return;
  registers_.for_each_write(instruction, [&](std::uint32_t r) { write(r, block); });
  if (sets_carry(instruction)) write(carry(), block);
}

void RegisterAccesses::read(std::uint32_t r, std::uint32_t block) {
  if (written_in_[r] == block) return;
  if (reading_[r].empty() || reading_[r].back() != block) reading_[r].push_back(block);
}

void RegisterAccesses::write(std::uint32_t r, std::uint32_t block) {
  if (written_in_[r] != block) writing_[r].push_back(block);
  written_in_[r] = block;
}

}  // namespace slate::injector
