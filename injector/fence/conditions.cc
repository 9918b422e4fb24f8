#include "injector/fence/conditions.h"

#include <algorithm>
#include <string_view>

#include "injector/analysis/dominators.h"

namespace slate::injector {
namespace {

using ptx::Instruction;
using ptx::Operand;

enum class Relation : std::uint8_t { kLess, kLessOrEqual, kMore, kMoreOrEqual, kEqual, kOther };

std::optional<Relation> relation_of(std::string_view word) {
  if (word == "lt" || word == "lo") return Relation::kLess;
  if (word == "le" || word == "ls") return Relation::kLessOrEqual;
  if (word == "gt" || word == "hi") return Relation::kMore;
  if (word == "ge" || word == "hs") return Relation::kMoreOrEqual;
  if (word == "eq") return Relation::kEqual;
  if (word == "ne") return Relation::kOther;
  return std::nullopt;
}

Relation opposite(Relation relation) {
  switch (relation) {
    case Relation::kLess:
      return Relation::kMoreOrEqual;
    case Relation::kLessOrEqual:
      return Relation::kMore;
    case Relation::kMore:
      return Relation::kLessOrEqual;
    case Relation::kMoreOrEqual:
      return Relation::kLess;
    case Relation::kEqual:
      return Relation::kOther;
    case Relation::kOther:
      break;
  }
  return Relation::kEqual;
}

/// With its sides exchanged.
Relation turned(Relation relation) {
  switch (relation) {
    case Relation::kLess:
      return Relation::kMore;
    case Relation::kLessOrEqual:
      return Relation::kMoreOrEqual;
    case Relation::kMore:
      return Relation::kLess;
    case Relation::kMoreOrEqual:
      return Relation::kLessOrEqual;
    case Relation::kEqual:
    case Relation::kOther:
      break;
  }
  return relation;
}

void set_relation(Limit& limit, Relation relation) {
  using Kind = Limit::Kind;
  switch (relation) {
    case Relation::kLess:
    case Relation::kLessOrEqual:
      limit.kind = Kind::kAtMost;
      limit.apart = relation == Relation::kLess ? -1 : 0;
      break;
    case Relation::kMore:
    case Relation::kMoreOrEqual:
      limit.kind = Kind::kAtLeast;
      limit.apart = relation == Relation::kMore ? 1 : 0;
      break;
    case Relation::kEqual:
      limit.kind = Kind::kEqual;
      break;
    case Relation::kOther:
      limit.kind = Kind::kUnequal;
      break;
  }
}

}  // namespace

const Instruction* Conditions::last_of(std::uint32_t block) const {
  return &function_.instructions[flow_.blocks()[block].end - 1];
}

/// Whether the only way into the block is one of two ways of a branch.
bool Conditions::has_own(std::uint32_t block) const {
  const auto& before = writes_.predecessors(block);
  // The function begins with a block that no other dominates.
  if (before.size() != 1 || addresses_.dominators()[block] == kNoDominator) return false;
  const Instruction& last = *last_of(before.front());
  return last.guard && (last.opcode == "bra" || leaves(last));
}

std::uint32_t Conditions::begin_of(std::uint32_t block) const {
  const auto& dominators = addresses_.dominators();
  while (!has_own(block) && dominators[block] != kNoDominator) block = dominators[block];
  return block;
}

const std::vector<Condition>& Conditions::in(std::uint32_t block) {
  auto& known = known_[block];
  if (known) return *known;
  known.emplace();
  const auto& dominators = addresses_.dominators();
  for (std::uint32_t b = block; known->size() < kMost;) {
    if (has_own(b)) {
      for (const Condition& each : between(writes_.predecessors(b).front(), b))
        known->push_back(each);
    }
    if (dominators[b] == kNoDominator) break;
    b = dominators[b];
  }
  return *known;
}

std::vector<Condition> Conditions::between(std::uint32_t block, std::uint32_t next) const {
  std::vector<Condition> found;
  const ControlFlow::Block& code = flow_.blocks()[block];
  const Instruction& last = *last_of(block);
  if (!last.guard) return found;
  if (leaves(last)) {
    add(*last.guard, last.guard->negated, code.end - 1, found, 0);
    return found;
  }
  const auto target = last.opcode == "bra" ? target_of(function_, last) : std::nullopt;
  // Both ways may lead to one block.
  if (!target || *target >= function_.instructions.size() || *target == code.end ||
      code.successors.size() != 2) {
    return found;
  }
  const bool is_taken = flow_.block_of(*target) == next;
  add(*last.guard, is_taken != last.guard->negated, code.end - 1, found, 0);
  return found;
}

/// The instruction that has made the predicate what it is at `at`. Where that is not on every way
/// there, the predicate is true by the only write that does not make it false. No thread carries
/// that out again: what it has read is still so.
std::optional<std::uint32_t> Conditions::maker(std::uint32_t predicate, bool is_true,
                                               std::uint32_t at) const {
  if (addresses_.is_written_once(predicate) &&
      addresses_.dominates(addresses_.definition(predicate), at)) {
    return addresses_.definition(predicate);
  }
  std::optional<std::uint32_t> made;
  for (const std::uint32_t write : writes_.of(predicate)) {
    const Instruction& instruction = function_.instructions[write];
    const bool is_false = instruction.opcode == "mov" && instruction.operands.size() == 2 &&
                          instruction.operands[1].kind == Operand::Kind::kInteger &&
                          instruction.operands[1].integer == 0;
    if (is_false) continue;
    if (made || instruction.guard || writes_.may_repeat(write)) return std::nullopt;
    made = write;
  }
  return is_true ? made : std::nullopt;
}

void Conditions::add(const Operand& predicate, bool is_true, std::uint32_t at,
                     std::vector<Condition>& found, int depth) const {
  const auto number = registers_.of(predicate);
  if (depth > kMostDepth || !number) return;
  const auto maker = this->maker(*number, is_true, at);
  if (!maker) return;
  const std::uint32_t made = *maker;
  const Instruction& instruction = function_.instructions[made];
  const auto& operands = instruction.operands;
  const auto also = [&](const Operand& operand, bool its_value) {
    add(operand, its_value != operand.negated, made, found, depth + 1);
  };
  if (instruction.opcode == "setp") {
    add_comparison(made, *number, is_true, found, depth);
  } else if (instruction.type() == ptx::Type::kPred && operands.size() >= 2) {
    if (instruction.opcode == "not") also(operands[1], !is_true);
    if (instruction.opcode == "mov") also(operands[1], is_true);
    const bool decides =
        (instruction.opcode == "and" && is_true) || (instruction.opcode == "or" && !is_true);
    for (std::size_t i = 1; decides && i < operands.size(); ++i) also(operands[i], is_true);
  }
}

void Conditions::add_comparison(std::uint32_t comparison, std::uint32_t number, bool is_true,
                                std::vector<Condition>& found, int depth) const {
  const Instruction& instruction = function_.instructions[comparison];
  const auto& operands = instruction.operands;
  const bool is_pair = operands[0].kind == Operand::Kind::kPair;
  const bool has_other = instruction.has("and") || instruction.has("or") || instruction.has("xor");
  if (!has_other && operands.size() == 3) {
    const bool is_second = is_pair && registers_.of(operands[0].parts[1]) == number;
    found.push_back({comparison, is_true != is_second});
  } else if (!is_pair && operands.size() == 4) {
    const bool decides = (instruction.has("and") && is_true) || (instruction.has("or") && !is_true);
    if (!decides) return;
    found.push_back({comparison, is_true});
    add(operands[3], is_true != operands[3].negated, comparison, found, depth + 1);
  }
}

std::optional<Limit> Conditions::limit_on(std::uint32_t number, const Condition& condition) const {
  const Instruction& comparison = function_.instructions[condition.comparison];
  const auto& operands = comparison.operands;
  if (comparison.modifiers.empty() || operands.size() < 3 || !is_integer(comparison.type()))
    return std::nullopt;
  auto relation = relation_of(comparison.modifiers.front());
  if (!relation) return std::nullopt;
  if (!condition.is_true) relation = opposite(*relation);
  const std::string_view word = comparison.modifiers.front();
  const bool has_sign =
      is_signed(comparison.type()) && word != "lo" && word != "ls" && word != "hi" && word != "hs";
  Limit limit{.bits = static_cast<std::uint8_t>(8 * ptx::type_bytes(comparison.type())),
              .is_signed = has_sign,
              .reader = condition.comparison};
  for (const bool is_turned : {false, true}) {
    const Operand& compared = operands[is_turned ? 2 : 1];
    const auto its_number = registers_.of(compared);
    if (!its_number || compared.negated || 8 * registers_.bytes(*its_number) != limit.bits)
      continue;
    limit.other = &operands[is_turned ? 1 : 2];
    set_relation(limit, is_turned ? turned(*relation) : *relation);
    if (*its_number == number) return limit;
    if (const auto through = limit_through(number, compared, limit, condition.comparison))
      return through;
    if (const auto of_sum = limit_of_sum(number, *its_number, limit)) return of_sum;
  }
  return std::nullopt;
}

/// Of a register that the compared one is but for a constant, or whose lower half it is.
std::optional<Limit> Conditions::limit_of_sum(std::uint32_t number, std::uint32_t compared,
                                              Limit limit) const {
  for (int i = 0; i < kMostSums; ++i) {
    if (!addresses_.is_written_once(compared)) return std::nullopt;
    const std::uint32_t definition = addresses_.definition(compared);
    const Instruction& made = function_.instructions[definition];
    const auto& operands = made.operands;
    // A loop may read what the last turn has written.
    if (made.guard || operands.size() < 2 || !is_integer(made.type()) || made.has("sat") ||
        made.has("cc") || !addresses_.dominates(definition, limit.reader)) {
      return std::nullopt;
    }
    if (const auto half = addresses_.behind_widening(compared, limit.reader)) {
      limit.reader = half->reader;
      if (half->number == number) return limit;
      compared = half->number;
      continue;
    }
    const Operand* source = &operands[1];
    if (made.opcode == "cvt") {
      const bool is_half = is_integer(made.type(1)) && ptx::type_bytes(made.type(1)) == 4 &&
                           ptx::type_bytes(made.type(0)) == 8;
      if (!is_half || registers_.bytes(compared) != 4) return std::nullopt;
      limit.is_cut = true;
    } else if (ptx::type_bytes(made.type()) != registers_.bytes(compared)) {
      return std::nullopt;
    } else if (const auto added = number_added(made)) {
      limit.offset += added->number;
      source = added->to;
    } else if (made.opcode == "add" && operands.size() == 3 &&
               limit.kind == Limit::Kind::kUnequal && limit.less == nullptr) {
      // What is equal modulo 2^32 stays so where both sides lose the same.
      const std::size_t its = registers_.of(operands[2]) == number ? 2 : 1;
      source = &operands[its];
      limit.less = &operands[3 - its];
      const bool is_sum = registers_.of(*limit.less) && !limit.less->negated;
      if (!is_sum || registers_.of(*source) != number) return std::nullopt;
    } else {
      return std::nullopt;
    }
    const auto before = registers_.of(*source);
    if (!before || source->negated) return std::nullopt;
    limit.reader = definition;
    if (*before == number) return limit;
    compared = *before;
  }
  return std::nullopt;
}

/// Of a register from which the compared one is made: the larger of two is at most a number if both
/// are, and bits put together have no sign if neither has one.
std::optional<Limit> Conditions::limit_through(std::uint32_t number, const Operand& compared,
                                               const Limit& limit, std::uint32_t comparison) const {
  const auto its_number = registers_.of(compared);
  if (!addresses_.is_written_once(*its_number) || !addresses_.is_written_once(number))
    return std::nullopt;
  const std::uint32_t definition = addresses_.definition(*its_number);
  const Instruction& made = function_.instructions[definition];
  const auto& operands = made.operands;
  // A loop may read what the last turn has written.
  if (!addresses_.dominates(definition, comparison) ||
      !addresses_.dominates(addresses_.definition(number), definition)) {
    return std::nullopt;
  }
  if (operands.size() != 3 || !computes_whole(made, limit.bits / 8)) return std::nullopt;
  const bool is_part = registers_.of(operands[1]) == number || registers_.of(operands[2]) == number;
  if (!is_part || operands[1].negated || operands[2].negated) return std::nullopt;
  const bool is_same_type = is_signed(made.type()) == limit.is_signed;
  Limit result = limit;
  result.reader = definition;
  if (made.opcode == "max" && is_same_type && limit.kind == Limit::Kind::kAtMost) return result;
  if (made.opcode == "min" && is_same_type && limit.kind == Limit::Kind::kAtLeast) return result;
  const bool is_number = limit.other->kind == Operand::Kind::kInteger;
  const bool is_at_least_0 = limit.kind == Limit::Kind::kAtLeast && limit.is_signed && is_number &&
                             limit.other->integer + limit.apart == 0;
  if (made.opcode != "or" || !is_at_least_0) return std::nullopt;
  result.apart = 0;
  result.other = nullptr;
  return result;
}

}  // namespace slate::injector
