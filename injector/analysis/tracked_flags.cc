#include "injector/analysis/tracked_flags.h"

#include <algorithm>
#include <set>
#include <string_view>

namespace slate::injector {
namespace {

using ptx::Instruction;
using ptx::Operand;

/// Whether the result is a flag if its inputs are.
bool keeps_flags(const Instruction& instruction) {
  constexpr std::string_view kKeeping[] = {"mov", "and", "or", "xor"};
  if (instruction.opcode == "cvt") return converts_integers(instruction);
  return std::ranges::find(kKeeping, instruction.opcode) != std::end(kKeeping);
}

}  // namespace

bool compares_with_constant(const ptx::Instruction& setp) {
  return setp.opcode == "setp" && setp.operands.size() == 3 && setp.modifiers.size() == 2 &&
         setp.type() < ptx::Type::kF16 && setp.operands[2].kind == ptx::Operand::Kind::kInteger;
}

bool converts_integers(const ptx::Instruction& cvt) {
  return cvt.opcode == "cvt" && cvt.type(0) < ptx::Type::kF16 && cvt.type(1) < ptx::Type::kF16;
}

TrackedFlags::TrackedFlags(const ptx::Function& function, const ControlFlow& flow,
                           const Registers& registers, const PredicateGroups& groups,
                           const RegisterUses& uses, const Branches& branches, Effort& effort)
    : function_(function),
      flow_(flow),
      registers_(registers),
      predicate_groups_(groups),
      uses_(uses),
      branches_(branches),
      effort_(effort),
      is_flag_(registers.count() + 1, true),
      tracked_(registers.count() + 1) {
  find_flags();
}

/// Integers that a program keeps a condition in: nothing but constants, selections and what is made
/// of other flags is written to them.
void TrackedFlags::find_flags() {
  is_flag_[registers_.count()] = false;  // the carry flag
  const auto makes_flag = [&](const Instruction& instruction) {
    if (instruction.opcode == "selp") return true;
    if (!keeps_flags(instruction)) return false;
    // One that is 0 decides an and, one that is not an or.
    const bool is_enough = instruction.opcode == "and" || instruction.opcode == "or";
    bool all = true, any = false;
    registers_.for_each_read(instruction, [&](std::uint32_t r) {
      all = all && is_flag_[r];
      any = any || is_flag_[r];
    });
    const bool reads_special = std::ranges::any_of(instruction.operands, [](const Operand& one) {
      return one.kind == Operand::Kind::kSpecial;
    });
    return is_enough ? any : all && !reads_special;
  };
  // What is taken for a flag and is none costs time only, so a few rounds do.
  for (int round = 0; round < 3; ++round) {
    for (std::uint32_t r = 0; r < registers_.count(); ++r) {
      if (!is_flag_[r] || registers_.is_predicate(r)) continue;
      if (!effort_.take(1)) return;
      is_flag_[r] =
          !uses_.writes(r).empty() && std::ranges::all_of(uses_.writes(r), [&](std::uint32_t i) {
            return makes_flag(function_.instructions[i]);
          });
    }
  }
}

void TrackedFlags::choose(const List& suspects, const List& decisive, std::size_t most) {
  tracked_.clear();
  most_ = most;
  for (const std::uint32_t i : decisive) track_controls_of(i);
  for (const std::uint32_t r : suspects) {
    for (const std::uint32_t i : uses_.writes(r)) track_controls_of(i);
  }
  std::set<std::uint32_t> blocks;
  for (const std::uint32_t r : suspects) {
    for (const std::uint32_t i : uses_.writes(r)) blocks.insert(flow_.block_of(i));
  }
  for (const std::uint32_t block : blocks) track_flags_in(block);
  for (std::size_t t = 0; t < tracked_.all().size(); ++t) {
    const std::uint32_t predicate = tracked_.all()[t];
    if (!effort_.take(uses_.reads(predicate).size() + uses_.writes(predicate).size())) return;
    if (const std::uint32_t group = predicate_groups_.group_of(predicate);
        group != PredicateGroups::kNone) {
      for (const std::uint32_t same : predicate_groups_.groups()[group].predicates) track(same);
    }
    for (const std::uint32_t i : uses_.reads(predicate)) {
      const Instruction& instruction = function_.instructions[i];
      const bool goes_on = instruction.has("pred") || instruction.opcode == "selp" ||
                           keeps_flags(instruction) || compares_with_constant(instruction);
      if (!passes_on(instruction) || !goes_on) continue;
      for_each_written(registers_, instruction, [&](std::uint32_t r) { track(r); });
    }
    for (const std::uint32_t i : uses_.writes(predicate)) {
      const Instruction& instruction = function_.instructions[i];
      if (instruction.opcode == "setp") track_compared_by(instruction);
      if (!passes_on(instruction) || instruction.opcode == "setp") continue;
      registers_.for_each_read(instruction, [&](std::uint32_t r) { track(r); });
    }
    for (const std::uint32_t i : uses_.writes(predicate)) track_controls_of(i);
  }
}

void TrackedFlags::track(std::uint32_t flag) {
  if (!is_flag_[flag]) return;
  if (tracked_.all().size() < most_) tracked_.add(flag);
}

/// A flag that it compares with a constant, and a predicate that it goes on with.
void TrackedFlags::track_compared_by(const Instruction& setp) {
  registers_.for_each_read(setp, [&](std::uint32_t r) {
    const bool is_compared = compares_with_constant(setp) && registers_.of(setp.operands[1]) == r;
    if (is_compared || registers_.is_predicate(r)) track(r);
  });
}

void TrackedFlags::track_controls_of(std::uint32_t index) {
  if (const auto guard = registers_.guard_of(function_.instructions[index])) track(*guard);
  for (const std::uint32_t branch : branches_.deciding(flow_.block_of(index))) {
    const auto guard = registers_.guard_of(function_.instructions[flow_.blocks()[branch].end - 1]);
    if (guard) track(*guard);
  }
}

/// Flags that say, where the suspect is written, that it is.
void TrackedFlags::track_flags_in(std::uint32_t number) {
  const ControlFlow::Block& block = flow_.blocks()[number];
  if (!effort_.take(block.end - block.first)) return;
  for (std::uint32_t i = block.first; i < block.end; ++i) {
    const Instruction& instruction = function_.instructions[i];
    if (instruction.opcode != "mov" || !instruction.has("pred")) continue;
    registers_.for_each_write(instruction, [&](std::uint32_t r) { track(r); });
  }
}

}  // namespace slate::injector
