#include "injector/fence/own_constants.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "injector/analysis/register_accesses.h"
#include "injector/analysis/registers.h"

namespace slate::injector {
namespace {

using ptx::Instruction;
using ptx::Operand;

/// A load of global memory that does not change, which constants are read by.
bool reads_constant(const Instruction& instruction) {
  const auto& operands = instruction.operands;
  return instruction.opcode == "ld" && instruction.has("global") && instruction.has("nc") &&
         operands.size() == 2 && operands[1].kind == Operand::Kind::kAddress &&
         operands[1].parts.size() == 1;
}

/// Follows addresses of constants through the function.
class Follower {
 public:
  Follower(const ptx::Function& function, std::span<const TabledVariable> tabled)
      : function_(function),
        tabled_(tabled),
        registers_(function),
        uses_(function, registers_),
        is_address_(registers_.count(), false),
        makes_(function.instructions.size(), false),
        reads_(function.instructions.size(), false) {}

  /// Whether all of them lead into reads of constants.
  bool follow() {
    for (std::uint32_t i = 0; i < function_.instructions.size(); ++i) {
      const Instruction& instruction = function_.instructions[i];
      if (instruction.opcode == "call") return false;
      const auto row = table_row(instruction, tabled_);
      if (!row || !tabled_[*row].is_constant) continue;
      found_.addresses.push_back(i);
      found_.rows.push_back(static_cast<std::uint32_t>(*row));
      if (!makes(i)) return false;
    }
    while (!waiting_.empty()) {
      const std::uint32_t r = waiting_.back();
      waiting_.pop_back();
      for (const std::uint32_t reader : uses_.reads(r)) {
        if (!leads_on(r, reader)) return false;
      }
    }
    return makers_agree();
  }

  bool is_address(const Operand& operand) const {
    const auto r = registers_.of(operand);
    return r && is_address_[*r];
  }
  bool concerns(std::uint32_t instruction) const {
    return makes_[instruction] || reads_[instruction];
  }

  OwnConstants take() {
    std::ranges::sort(found_.rows);
    const auto same = std::ranges::unique(found_.rows);
    found_.rows.erase(same.begin(), same.end());
    for (std::uint32_t i = 0; i < reads_.size(); ++i) {
      if (reads_[i]) found_.reads.push_back(i);
    }
    return std::move(found_);
  }

 private:
  /// The instruction's result is an address.
  bool makes(std::uint32_t instruction) {
    makes_[instruction] = true;
    const auto result = registers_.of(function_.instructions[instruction].operands[0]);
    if (!result || registers_.bytes(*result) != sizeof(std::uint64_t)) return false;
    if (is_address_[*result]) return true;
    is_address_[*result] = true;
    waiting_.push_back(*result);
    return true;
  }

  /// An instruction that reads the address in register `r`.
  bool leads_on(std::uint32_t r, std::uint32_t reader) {
    const Instruction& instruction = function_.instructions[reader];
    const auto& operands = instruction.operands;
    if (reads_constant(instruction)) {
      reads_[reader] = registers_.of(operands[1].parts[0]) == r;
      return reads_[reader];
    }
    const bool computes = instruction.opcode == "mov" || instruction.opcode == "add" ||
                          instruction.opcode == "sub" || instruction.opcode == "mad" ||
                          instruction.opcode == "selp";
    return computes && is_integer(instruction.type()) && !instruction.has("cc") && makes(reader);
  }

  /// Whether each register with an address never has anything else.
  bool makers_agree() const {
    for (std::uint32_t r = 0; r < is_address_.size(); ++r) {
      if (!is_address_[r]) continue;
      const auto& writes = uses_.writes(r);
      if (!std::ranges::all_of(writes, [this](std::uint32_t i) { return makes_[i]; })) return false;
    }
    for (std::uint32_t i = 0; i < makes_.size(); ++i) {
      if (makes_[i] && !makes_one(function_.instructions[i])) return false;
    }
    return true;
  }

  /// Whether the result is one address, plus numbers.
  bool makes_one(const Instruction& instruction) const {
    const auto& operands = instruction.operands;
    if (table_row(instruction, tabled_)) return true;
    const auto is = [&](std::size_t i) { return is_address(operands[i]); };
    if (instruction.opcode == "mov") return operands.size() == 2 && is(1);
    if (instruction.opcode == "add") return operands.size() == 3 && is(1) != is(2);
    if (instruction.opcode == "sub") return operands.size() == 3 && is(1) && !is(2);
    if (instruction.opcode == "mad") return operands.size() == 4 && !is(1) && !is(2) && is(3);
    return operands.size() == 4 && is(1) && is(2);
  }

  const ptx::Function& function_;
  const std::span<const TabledVariable> tabled_;
  const Registers registers_;
  const RegisterUses uses_;
  std::vector<bool> is_address_;        // by register
  std::vector<bool> makes_, reads_;     // by instruction: an address; a constant
  std::vector<std::uint32_t> waiting_;  // registers whose readers were not looked at
  OwnConstants found_;
};

/// Whether a check looks at an address, or an instruction that makes or reads one is moved.
bool meets(const Plan& plan, const Follower& follower) {
  const auto is_checked = [&](const Member& member) {
    return member.place.base != nullptr && follower.is_address(*member.place.base);
  };
  const auto concerns = [&](std::uint32_t instruction) { return follower.concerns(instruction); };
  return std::ranges::any_of(plan.sites,
                             [&](const Site& site) {
                               return std::ranges::any_of(site.members, is_checked) ||
                                      std::ranges::any_of(site.moved, concerns) ||
                                      std::ranges::any_of(site.loads, concerns);
                             }) ||
         std::ranges::any_of(plan.hoisted, [&](const HoistedChecks& checks) {
           return std::ranges::any_of(checks.members, is_checked);
         });
}

}  // namespace

std::string own_constant(std::uint32_t row) {
  return fmt::format("__slate_constant{}", row);
}

OwnConstants find_own_constants(const ptx::Function& function, const Plan& plan,
                                std::span<const TabledVariable> tabled) {
  if (std::ranges::none_of(tabled, &TabledVariable::is_constant)) return {};
  Follower follower(function, tabled);
  if (!follower.follow() || meets(plan, follower)) return {};
  return follower.take();
}

}  // namespace slate::injector
