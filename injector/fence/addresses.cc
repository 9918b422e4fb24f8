#include "injector/fence/addresses.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "injector/analysis/dominators.h"
#include "injector/analysis/register_accesses.h"
#include "injector/fence/moves.h"
#include "injector/forms/placed_variables.h"

namespace slate::injector {
namespace {

using ptx::Instruction;
using ptx::Operand;
using ptx::Reference;

constexpr int kMostRounds = 64;  // of find_residues(); then nothing is known
constexpr int kMostSteps = 32;   // of trace()

/// Bits at the end that are surely zero.
std::uint32_t zero_bits(const Residue& value) {
  if (value.origin != Residue::kNoOrigin) return 0;
  return value.rest == 0
             ? value.bits
             : std::min<std::uint32_t>(value.bits,
                                       static_cast<std::uint32_t>(std::countr_zero(value.rest)));
}

Residue unknown() {
  return {};
}

Residue multiple_of(std::uint32_t bits) {
  return {.bits = std::min(bits, Residue::kMostBits)};
}

Residue of_number(std::uint64_t number) {
  const std::uint32_t bits = Residue::kMostBits;
  return {.bits = bits, .rest = static_cast<std::uint32_t>(number & ((1u << bits) - 1))};
}

Residue cut(Residue value, std::uint32_t bits) {
  value.bits = std::min(value.bits, bits);
  value.rest &= value.mask();
  return value.bits == 0 ? unknown() : value;
}

/// What holds for either.
Residue joined(const Residue& a, const Residue& b) {
  if (a.origin != b.origin) return unknown();
  std::uint32_t bits = std::min(a.bits, b.bits);
  const std::uint32_t differing = a.rest ^ b.rest;
  if (differing != 0)
    bits = std::min(bits, static_cast<std::uint32_t>(std::countr_zero(differing)));
  return cut(a, bits);
}

Residue sum(const Residue& a, const Residue& b) {
  if (a.origin != Residue::kNoOrigin && b.origin != Residue::kNoOrigin) return unknown();
  Residue result{.bits = std::min(a.bits, b.bits),
                 .rest = a.rest + b.rest,
                 .origin = a.origin != Residue::kNoOrigin ? a.origin : b.origin};
  return cut(result, result.bits);
}

Residue difference(const Residue& a, const Residue& b) {
  if (b.origin != Residue::kNoOrigin) return unknown();
  Residue result{.bits = std::min(a.bits, b.bits), .rest = a.rest - b.rest, .origin = a.origin};
  return cut(result, result.bits);
}

Residue product(const Residue& a, const Residue& b) {
  const bool is_exact = a.origin == Residue::kNoOrigin && b.origin == Residue::kNoOrigin &&
                        a.bits == Residue::kMostBits && b.bits == Residue::kMostBits;
  if (is_exact) return of_number(std::uint64_t{a.rest} * b.rest);
  return multiple_of(zero_bits(a) + zero_bits(b));
}

}  // namespace

Addresses::Addresses(const ptx::Module& module, const ptx::Function& function,
                     const ControlFlow& flow, const Registers& registers,
                     std::span<const TabledVariable> tabled)
    : module_(module),
      function_(function),
      flow_(flow),
      registers_(registers),
      tabled_(tabled),
      definitions_(registers.count(), kNever),
      residues_(registers.count()),
      variables_(registers.count(), nullptr),
      entered_(flow.blocks().size(), 0),
      left_(flow.blocks().size(), 0) {
  number_dominators();
  find_undefined();
  find_definitions();
  find_early_reads();
  find_origins();
  find_residues();
}

bool Addresses::dominates(std::uint32_t first, std::uint32_t second) const {
  const std::uint32_t above = flow_.block_of(first);
  const std::uint32_t below = flow_.block_of(second);
  return above == below ? first < second : is_above(above, below);
}

std::uint32_t Addresses::common_dominator(std::uint32_t a, std::uint32_t b) const {
  while (a != b && a != kNoDominator && b != kNoDominator) {
    std::uint32_t& lower = is_above(a, b) ? b : a;
    lower = dominators_[lower];
  }
  return a == b ? a : 0;
}

void Addresses::number_dominators() {
  std::vector<std::vector<std::uint32_t>> successors;
  for (const ControlFlow::Block& block : flow_.blocks()) successors.push_back(block.successors);
  dominators_ = immediate_dominators(successors, 0);
  std::vector<std::vector<std::uint32_t>> children(dominators_.size());
  std::vector<std::pair<std::uint32_t, bool>> waiting;  // block, whether it was entered
  for (std::uint32_t b = 0; b < dominators_.size(); ++b) {
    if (dominators_[b] == kNoDominator) {
      waiting.emplace_back(b, false);
    } else {
      children[dominators_[b]].push_back(b);
    }
  }
  std::uint32_t clock = 0;
  while (!waiting.empty()) {
    auto& [block, entered] = waiting.back();
    if (entered) {
      left_[block] = ++clock;
      waiting.pop_back();
      continue;
    }
    entered = true;
    const std::uint32_t present = block;
    entered_[present] = ++clock;
    for (const std::uint32_t child : children[present]) waiting.emplace_back(child, false);
  }
}

/// What may be read before it is written holds anything, and so does all that comes from it.
void Addresses::find_undefined() {
  Effort effort = Effort::for_text(function_.span.end - function_.span.begin);
  const RegisterAccesses accesses(function_, flow_, registers_);
  RegisterLiveness liveness(flow_, accesses, effort);
  for (std::uint32_t r = 0; r < registers_.count(); ++r) {
    if (!registers_.is_predicate(r) && liveness.is_live_at_beginning(r)) residues_[r] = unknown();
  }
}

void Addresses::find_definitions() {
  for (std::uint32_t i = 0; i < function_.instructions.size(); ++i) {
    const Instruction& instruction = function_.instructions[i];
    registers_.for_each_write(instruction, [&](std::uint32_t r) {
      definitions_[r] = definitions_[r] == kNever && !instruction.guard ? i : kOften;
    });
  }
}

void Addresses::find_early_reads() {
  read_early_.assign(registers_.count(), false);
  for (std::uint32_t i = 0; i < function_.instructions.size(); ++i) {
    const Instruction& instruction = function_.instructions[i];
    const auto read = [&](std::uint32_t r) {
      if (is_written_once(r) && !dominates(definitions_[r], i)) read_early_[r] = true;
    };
    registers_.for_each_read(instruction, read);
    if (const auto guard = registers_.guard_of(instruction)) read(*guard);
  }
  registers_.for_each_returned([&](std::uint32_t r) { read_early_[r] = true; });
}

/// Parameters of a kernel are the same whenever they are read.
void Addresses::find_origins() {
  for (const Instruction& instruction : function_.instructions) {
    if (loads_parameter(function_, instruction)) origins_.push_back(&instruction);
  }
}

const ptx::Variable* Addresses::variable(const Operand& operand) const {
  if (operand.kind != Operand::Kind::kSymbol) return nullptr;
  const ptx::Variable* found = nullptr;
  if (operand.reference == Reference::kGlobal) found = &module_.variables[operand.index];
  if (operand.reference == Reference::kLocal) found = &function_.variables[operand.index];
  if (found == nullptr || found->space == ptx::Space::kReg || found->space == ptx::Space::kParam)
    return nullptr;
  return found;
}

std::optional<Residue> Addresses::value_of(const Operand& operand) const {
  if (operand.negated || operand.component != 0) return unknown();
  if (operand.kind == Operand::Kind::kInteger)
    return of_number(static_cast<std::uint64_t>(operand.integer));
  if (const ptx::Variable* named = variable(operand)) {
    const auto align = std::max(named->align, 1u);
    return sum(multiple_of(static_cast<std::uint32_t>(std::countr_zero(align))),
               of_number(static_cast<std::uint64_t>(operand.integer)));
  }
  const auto r = registers_.of(operand);
  return r ? residues_[*r] : unknown();
}

std::optional<Residue> Addresses::linear(const Instruction& instruction) const {
  const std::string_view opcode = instruction.opcode;
  const auto& operands = instruction.operands;
  const auto a = value_of(operands[1]);
  const auto b = operands.size() > 2 ? value_of(operands[2]) : unknown();
  const auto c = operands.size() > 3 ? value_of(operands[3]) : unknown();
  if (!a || !b || !c) return std::nullopt;
  if (operands.size() < 3) return unknown();
  const bool is_high = instruction.has("hi") || instruction.has("sat");
  if (is_high) return unknown();
  if (opcode == "add") return sum(*a, *b);
  if (opcode == "sub") return difference(*a, *b);
  if (opcode == "mul") return product(*a, *b);
  if (opcode == "mad") return sum(product(*a, *b), *c);
  if (opcode == "shl") {
    const bool is_number = operands[2].kind == Operand::Kind::kInteger;
    const auto by = static_cast<std::uint64_t>(operands[2].integer);
    return is_number && by < 32 ? product(*a, of_number(std::uint64_t{1} << by)) : unknown();
  }
  if (opcode == "and") {
    const bool is_number = operands[2].kind == Operand::Kind::kInteger;
    if (is_number && a->bits == Residue::kMostBits && a->origin == Residue::kNoOrigin)
      return of_number(a->rest & static_cast<std::uint64_t>(operands[2].integer));
    return multiple_of(std::max(zero_bits(*a), zero_bits(*b)));
  }
  if (opcode == "or" || opcode == "xor") {
    const bool are_apart = b->origin == Residue::kNoOrigin && b->bits == Residue::kMostBits &&
                           zero_bits(*a) >= static_cast<std::uint32_t>(std::bit_width(b->rest));
    return are_apart ? cut(sum(*a, *b), zero_bits(*a))
                     : multiple_of(std::min(zero_bits(*a), zero_bits(*b)));
  }
  if (opcode == "selp") return joined(*a, *b);
  return unknown();
}

std::optional<Residue> Addresses::made_by(const Instruction& instruction) const {
  const std::string_view opcode = instruction.opcode;
  const auto& operands = instruction.operands;
  if (operands.size() < 2 || operands[0].kind != Operand::Kind::kSymbol) return unknown();
  const auto load = std::ranges::find(origins_, &instruction);
  if (load != origins_.end()) {
    const auto same = std::ranges::find_if(origins_, [&](const Instruction* other) {
      const Operand& one = other->operands[1];
      return one.parts[0].index == operands[1].parts[0].index && one.integer == operands[1].integer;
    });
    return Residue{.bits = Residue::kMostBits,
                   .rest = 0,
                   .origin = static_cast<std::uint32_t>(same - origins_.begin())};
  }
  if (const auto row = table_row(instruction))
    return multiple_of(static_cast<std::uint32_t>(std::bit_width(tabled_[*row].align)) - 1);
  if (!is_integer(instruction.type()) || instruction.has("cc")) return unknown();
  if (opcode == "mov" || opcode == "cvta") return value_of(operands[1]);
  if (opcode == "cvt") {
    const bool keeps = is_integer(instruction.type(1)) && !instruction.has("sat");
    const std::uint32_t bytes =
        std::min(ptx::type_bytes(instruction.type(0)), ptx::type_bytes(instruction.type(1)));
    return keeps && bytes >= 2 ? value_of(operands[1]) : unknown();
  }
  return linear(instruction);
}

/// From nothing known to be possible, up: what a loop changes loses its bits one after another.
void Addresses::find_residues() {
  bool changed = true;
  for (int round = 0; changed && round < kMostRounds; ++round) {
    changed = false;
    for (const Instruction& instruction : function_.instructions) {
      const std::optional<Residue> made = made_by(instruction);
      registers_.for_each_write(instruction, [&](std::uint32_t r) {
        std::optional<Residue>& known = residues_[r];
        if (!made) return;
        const Residue next = known ? joined(*known, *made) : *made;
        changed |= !known || *known != next;
        known = next;
      });
      const auto& operands = instruction.operands;
      const auto result = operands.empty() ? std::nullopt : registers_.of(operands[0]);
      if (!result || variables_[*result] != nullptr) continue;
      if (table_row(instruction)) {
        variables_[*result] = &operands[1];
        changed = true;
      }
      if (!only_computes(instruction)) continue;
      for (std::size_t i = 1; i < operands.size() && variables_[*result] == nullptr; ++i) {
        const auto r = registers_.of(operands[i]);
        variables_[*result] = r ? variables_[*r] : variable(operands[i]) ? &operands[i] : nullptr;
        changed |= variables_[*result] != nullptr;
      }
    }
  }
  if (changed) residues_.assign(residues_.size(), unknown());
}

std::optional<Place> Addresses::step(const Place& place, std::uint32_t at) const {
  if (!place.number || !is_written_once(*place.number)) return std::nullopt;
  const std::uint32_t definition = definitions_[*place.number];
  if (!dominates(definition, at)) return std::nullopt;
  const Instruction& made = function_.instructions[definition];
  const auto& operands = made.operands;
  const std::uint32_t bytes = registers_.bytes(*place.number);
  if (operands.size() < 2 || !is_integer(made.type()) || ptx::type_bytes(made.type()) != bytes)
    return std::nullopt;
  if (made.has("sat") || made.has("cc") || (bytes != 4 && bytes != 8)) return std::nullopt;
  const Operand& source = operands[1];
  Place next{.base = &source,
             .number = registers_.of(source),
             .offset = place.offset,
             .is_generic = place.is_generic};
  if (source.negated || source.component != 0) return std::nullopt;
  // A register of inner braces has no name behind them.
  const bool is_register =
      source.reference == Reference::kLocal && source.kind == Operand::Kind::kSymbol;
  if (is_register && !is_declared(function_, function_.variables[source.index], at))
    return std::nullopt;
  if (variable(source) != nullptr) {
    if (made.opcode != "mov") return std::nullopt;
    next.offset += source.integer;
  } else if (!next.number || registers_.bytes(*next.number) != bytes) {
    return std::nullopt;
  } else if (!is_written_once(*next.number) || !dominates(definitions_[*next.number], definition)) {
    return std::nullopt;  // its value may be another one by now
  } else if (made.opcode == "add" || made.opcode == "sub") {
    if (operands.size() != 3 || operands[2].kind != Operand::Kind::kInteger) return std::nullopt;
    if (std::abs(operands[2].integer) > kMostOffset) return std::nullopt;
    next.offset += made.opcode == "add" ? operands[2].integer : -operands[2].integer;
  } else if (made.opcode != "mov") {
    return std::nullopt;
  }
  return std::abs(next.offset) <= kMostOffset ? std::optional(next) : std::nullopt;
}

Place Addresses::trace(const Operand& address, std::uint32_t at) const {
  const Operand& base = address.parts[0];
  Place place{
      .base = &base, .number = registers_.of(base), .offset = address.integer, .is_generic = false};
  for (int i = 0; i < kMostSteps && place.number; ++i) {
    // Through a conversion only to a variable: a register's value might change with it.
    if (is_written_once(*place.number)) {
      const Instruction& made = function_.instructions[definitions_[*place.number]];
      const bool converts = made.opcode == "cvta" && !made.has("to") && !place.is_generic &&
                            made.operands.size() == 2;
      if (converts && dominates(definitions_[*place.number], at)) {
        Place behind{.base = &made.operands[1],
                     .number = registers_.of(made.operands[1]),
                     .offset = place.offset,
                     .is_generic = true};
        for (int j = 0; j < kMostSteps && behind.number; ++j) {
          const auto next = step(behind, definitions_[*place.number]);
          if (!next) break;
          behind = *next;
        }
        if (!behind.number && variable(*behind.base) != nullptr) return behind;
        return place;
      }
    }
    const auto next = step(place, at);
    if (!next) break;
    place = *next;
  }
  return place;
}

Residue Addresses::residue(const Place& place) const {
  const auto base = place.number ? residues_[*place.number] : value_of(*place.base);
  if (!base) return unknown();
  return sum(*base, of_number(static_cast<std::uint64_t>(place.offset)));
}

std::optional<std::uint64_t> table_row(const Instruction& instruction,
                                       std::span<const TabledVariable> tabled) {
  const auto& operands = instruction.operands;
  const bool is_load = instruction.opcode == "ld" && instruction.has("const") &&
                       operands.size() == 2 && operands[1].parts.size() == 1 &&
                       operands[1].parts[0].text == kVariableTable;
  const auto row = is_load ? static_cast<std::uint64_t>(operands[1].integer) / 8 : tabled.size();
  return row < tabled.size() ? std::optional(row) : std::nullopt;
}

const Operand* Addresses::variable_behind(const Place& place) const {
  if (!place.number) return variable(*place.base) != nullptr ? place.base : nullptr;
  return variables_[*place.number];
}

bool loads_parameter(const ptx::Function& function, const Instruction& instruction) {
  const auto& operands = instruction.operands;
  return function.is_entry && instruction.opcode == "ld" && instruction.has("param") &&
         operands.size() == 2 && ptx::type_bytes(instruction.type()) == 8 &&
         operands[1].parts.size() == 1 && operands[1].parts[0].reference == Reference::kParameter;
}

const ptx::Variable* variable_named(const ptx::Module& module, const ptx::Function& function,
                                    const Operand& operand) {
  if (operand.reference == Reference::kGlobal) return &module.variables[operand.index];
  if (operand.reference == Reference::kLocal) return &function.variables[operand.index];
  return nullptr;
}

bool computes_whole(const Instruction& instruction, std::uint32_t bytes) {
  return is_integer(instruction.type()) && !instruction.has("sat") && !instruction.has("cc") &&
         !instruction.has("relu") && ptx::type_bytes(instruction.type()) == bytes;
}

std::optional<AddedNumber> number_added(const Instruction& instruction) {
  constexpr std::int64_t kMost = std::int64_t{1} << 32;
  const auto& operands = instruction.operands;
  const bool is_less = instruction.opcode == "sub";
  if ((!is_less && instruction.opcode != "add") || operands.size() != 3) return std::nullopt;
  const std::size_t place = !is_less && operands[1].kind == Operand::Kind::kInteger ? 1 : 2;
  if (operands[place].kind != Operand::Kind::kInteger) return std::nullopt;
  std::int64_t number = operands[place].integer;
  if (ptx::type_bytes(instruction.type()) == 4) number = static_cast<std::int32_t>(number);
  if (number < -kMost || number > kMost) return std::nullopt;
  return AddedNumber{.to = &operands[3 - place], .number = is_less ? -number : number};
}

/// What a register that instruction `at` reads was converted from, a whole number of `from` bytes,
/// to one of `to` bytes.
std::optional<ReadRegister> Addresses::converted(std::uint32_t number, std::uint32_t at,
                                                 unsigned from, unsigned to) const {
  if (!is_written_once(number) || registers_.bytes(number) != to) return std::nullopt;
  const std::uint32_t made = definition(number);
  const Instruction& instruction = function_.instructions[made];
  const auto& operands = instruction.operands;
  if (instruction.opcode != "cvt" || instruction.has("sat") || operands.size() != 2 ||
      operands[1].negated || !is_integer(instruction.type(0)) || !is_integer(instruction.type(1)) ||
      ptx::type_bytes(instruction.type(1)) != to || ptx::type_bytes(instruction.type(0)) != from ||
      !dominates(made, at)) {
    return std::nullopt;
  }
  const auto source = registers_.of(operands[1]);
  if (!source || registers_.bytes(*source) != from) return std::nullopt;
  return ReadRegister{.number = *source, .reader = made};
}

std::optional<ReadRegister> Addresses::behind_widening(std::uint32_t number,
                                                       std::uint32_t at) const {
  const auto wide = converted(number, at, 8, 4);
  return wide ? converted(wide->number, wide->reader, 4, 8) : std::nullopt;
}

}  // namespace slate::injector
