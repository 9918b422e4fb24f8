#include "injector/analysis/predicate_groups.h"

#include <array>
#include <map>
#include <optional>
#include <string_view>
#include <tuple>
#include <utility>

#include "injector/analysis/linear_values.h"

namespace slate::injector {
namespace {

using ptx::Instruction;
using ptx::Operand;

/// Groups may not be larger: with each one more, all others are looked at.
constexpr std::size_t kMostPredicates = 16;

struct Relation {
  std::string_view name;
  std::string_view opposite;
};
// Of numbers that may be none, "less" and "greater or equal" can both be false.
constexpr std::array<Relation, 3> kIntegerRelations = {{{"lt", "ge"}, {"gt", "le"}, {"eq", "ne"}}};
constexpr std::array<Relation, 7> kFloatRelations = {{{"lt", "geu"},
                                                      {"gt", "leu"},
                                                      {"le", "gtu"},
                                                      {"ge", "ltu"},
                                                      {"eq", "neu"},
                                                      {"ne", "equ"},
                                                      {"num", "nan"}}};

std::string_view without_unsigned_names(std::string_view relation) {
  if (relation == "lo") return "lt";
  if (relation == "hi") return "gt";
  if (relation == "ls") return "le";
  return relation == "hs" ? "ge" : relation;
}

/// What is compared: an integer, a number of LinearValues, or a register.
enum class SideKind : std::uint8_t { kInteger, kValue, kRegister };
using Side = std::pair<SideKind, std::int64_t>;
struct Comparison {
  std::tuple<std::string_view, ptx::Type, Side, Side> what;
  bool opposite = false;
};

std::optional<Side> side_of(const Operand& operand, const Registers& registers,
                            const LinearValues& values) {
  if (operand.kind == Operand::Kind::kInteger) return Side{SideKind::kInteger, operand.integer};
  const auto r = registers.of(operand);
  if (!r || operand.negated || operand.component != 0) return std::nullopt;
  if (const auto value = values.of(*r)) return Side{SideKind::kValue, *value};
  return Side{SideKind::kRegister, *r};
}

std::optional<Comparison> comparison_of(const Instruction& instruction, const Registers& registers,
                                        const LinearValues& values) {
  const auto& operands = instruction.operands;
  if (instruction.opcode != "setp" || instruction.guard || instruction.modifiers.size() != 2 ||
      operands.size() != 3 || operands[0].kind != Operand::Kind::kSymbol) {
    return std::nullopt;
  }
  const auto left = side_of(operands[1], registers, values);
  const auto right = side_of(operands[2], registers, values);
  if (!left || !right) return std::nullopt;
  const ptx::Type type = instruction.type();
  const auto find = [&](const auto& relations) -> std::optional<Comparison> {
    const std::string_view name = without_unsigned_names(instruction.modifiers[0]);
    for (const Relation& relation : relations) {
      if (name != relation.name && name != relation.opposite) continue;
      return Comparison{{relation.name, type, *left, *right}, name == relation.opposite};
    }
    return std::nullopt;
  };
  return is_float(type) ? find(kFloatRelations) : find(kIntegerRelations);
}

}  // namespace

PredicateGroups::PredicateGroups(const ptx::Function& function, const ControlFlow& flow,
                                 const Registers& registers)
    : group_of_(registers.count(), kNone), opposite_(registers.count(), false) {
  std::vector<std::uint32_t> writes(registers.count(), 0);
  for (const Instruction& instruction : function.instructions) {
    registers.for_each_write(instruction, [&](std::uint32_t r) { ++writes[r]; });
  }
  const LinearValues values(function, flow, registers, writes);
  std::map<decltype(Comparison::what), Group> groups;
  for (const Instruction& instruction : function.instructions) {
    const auto comparison = comparison_of(instruction, registers, values);
    if (!comparison) continue;
    const auto r = registers.of(instruction.operands[0]);
    if (!r || writes[*r] != 1) continue;
    Group& group = groups[comparison->what];
    if (group.predicates.size() == kMostPredicates) continue;
    group.predicates.push_back(*r);
    opposite_[*r] = comparison->opposite;
    group.inputs.clear();
    // What does not change cannot make a comparison out of date.
    for (const Side& side : {std::get<2>(comparison->what), std::get<3>(comparison->what)}) {
      if (side.first == SideKind::kRegister)
        group.inputs.push_back(static_cast<std::uint32_t>(side.second));
    }
  }
  for (auto& [what, group] : groups) {
    if (group.predicates.size() < 2) continue;
    for (const std::uint32_t r : group.predicates) {
      group_of_[r] = static_cast<std::uint32_t>(groups_.size());
    }
    groups_.push_back(std::move(group));
  }
}

}  // namespace slate::injector
