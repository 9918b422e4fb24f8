#include "injector/fence/indices.h"

#include <bit>

namespace slate::injector {
namespace {

using ptx::Instruction;
using ptx::Operand;

constexpr int kMostLinks = 8;  // from the address to the parameter
constexpr std::uint32_t kMostShift = 12;
constexpr std::int64_t kMostDistance = std::int64_t{1} << 30;

struct IndexFinder {
  const ptx::Function& function;
  const Registers& registers;
  const Addresses& addresses;

  /// The instruction that gave the register the value that instruction `reader` finds there: one of
  /// integers, which neither saturates nor takes a carry.
  const Instruction* maker(const Operand& operand, std::uint32_t reader) const {
    const auto number = registers.of(operand);
    if (!number || operand.negated || operand.component != 0) return nullptr;
    return maker(*number, reader);
  }

  const Instruction* maker(std::uint32_t number, std::uint32_t reader) const {
    if (!addresses.is_written_once(number) || registers.bytes(number) != 8) return nullptr;
    const std::uint32_t made = addresses.definition(number);
    const Instruction& instruction = function.instructions[made];
    const bool widens = instruction.has("wide") || instruction.opcode == "cvt";
    const bool is_plain = is_integer(instruction.type()) && !instruction.has("sat") &&
                          !instruction.has("cc") && instruction.operands.size() >= 2 &&
                          instruction.operands[0].kind == Operand::Kind::kSymbol &&
                          (widens || ptx::type_bytes(instruction.type()) == 8);
    return is_plain && addresses.dominates(made, reader) ? &instruction : nullptr;
  }

  std::uint32_t place(const Instruction& instruction) const {
    return static_cast<std::uint32_t>(&instruction - function.instructions.data());
  }

  /// Sets the pointer and adds to the offset.
  bool find_pointer(const Operand& operand, std::uint32_t reader, IndexedAddress& found) const {
    const Operand* next = &operand;
    for (int i = 0; i < kMostLinks; ++i) {
      const Instruction* const made = maker(*next, reader);
      if (made == nullptr) return false;
      reader = place(*made);
      const Operand& source = made->operands[1];
      if (loads_parameter(function, *made)) {
        found.pointer = &source;
        return true;
      }
      const bool is_same = made->operands.size() == 2 &&
                           (made->opcode == "mov" ||
                            (made->opcode == "cvta" && made->has("to") && made->has("global")));
      if (is_same) {
        next = &source;
        continue;
      }
      const auto added = number_added(*made);
      if (!added || std::abs(found.offset + added->number) > kMostDistance) return false;
      found.offset += added->number;
      next = added->to;
    }
    return false;
  }

  static std::optional<std::uint32_t> power_of(const Operand& factor) {
    if (factor.kind != Operand::Kind::kInteger || factor.integer <= 0) return std::nullopt;
    const auto number = static_cast<std::uint64_t>(factor.integer);
    const auto bits = static_cast<std::uint32_t>(std::countr_zero(number));
    return std::has_single_bit(number) && bits <= kMostShift ? std::optional(bits) : std::nullopt;
  }

  bool is_index(const Operand& operand) const {
    const auto number = registers.of(operand);
    return number && !operand.negated && operand.component == 0 && registers.bytes(*number) == 4;
  }

  /// A product of 32 bits by 32 bits, in 64.
  bool find_product(const Instruction& made, IndexedAddress& found) const {
    const auto shift = power_of(made.operands[2]);
    if (!made.has("wide") || ptx::type_bytes(made.type()) != 4 || !shift ||
        !is_index(made.operands[1]))
      return false;
    found.index = &made.operands[1];
    found.reader = place(made);
    found.shift = *shift;
    found.is_signed = is_signed(made.type());
    return true;
  }

  /// A number that a load has made one of 64 bits, as instruction `reader` reads it.
  bool find_loaded(const Operand& operand, std::uint32_t reader, IndexedAddress& found) const {
    const auto number = registers.of(operand);
    if (!number || operand.negated || operand.component != 0 ||
        !addresses.is_written_once(*number) || registers.bytes(*number) != 8) {
      return false;
    }
    const std::uint32_t made = addresses.definition(*number);
    const Instruction& load = function.instructions[made];
    const bool is_number = load.opcode == "ld" && load.operands.size() == 2 &&
                           load.operands[0].kind == Operand::Kind::kSymbol &&
                           is_integer(load.type()) && ptx::type_bytes(load.type()) <= 4;
    if (!is_number || !addresses.dominates(made, reader)) return false;
    found.index = &operand;
    found.is_wide = true;
    found.reader = reader;
    found.is_signed = is_signed(load.type());
    return true;
  }

  bool find_index(const Operand& operand, std::uint32_t reader, IndexedAddress& found) const {
    if (find_loaded(operand, reader, found)) return true;
    const Instruction* made = maker(operand, reader);
    if (made == nullptr) return false;
    if (made->opcode == "mul" && made->operands.size() == 3 && made->has("wide"))
      return find_product(*made, found);
    if (made->operands.size() == 3) {
      if (made->opcode == "mul" && made->has("lo")) {
        const auto shift = power_of(made->operands[2]);
        if (!shift) return false;
        found.shift = *shift;
      } else if (made->opcode == "shl" && made->operands[2].kind == Operand::Kind::kInteger &&
                 made->operands[2].integer >= 0 && made->operands[2].integer <= kMostShift) {
        found.shift = static_cast<std::uint32_t>(made->operands[2].integer);
      } else {
        return false;
      }
      if (find_loaded(made->operands[1], place(*made), found)) return true;
      made = maker(made->operands[1], place(*made));
      if (made == nullptr) return false;
    }
    const bool widens = made->opcode == "cvt" && made->operands.size() == 2 &&
                        is_integer(made->type(0)) && is_integer(made->type(1)) &&
                        ptx::type_bytes(made->type(1)) == 8 && ptx::type_bytes(made->type(0)) == 4;
    if (!widens || !is_index(made->operands[1])) return false;
    found.index = &made->operands[1];
    found.reader = place(*made);
    found.is_signed = is_signed(made->type(0));
    return true;
  }
};

}  // namespace

std::optional<IndexedAddress> indexed_address(const ptx::Function& function,
                                              const Registers& registers,
                                              const Addresses& addresses, std::uint32_t base,
                                              std::uint32_t at) {
  const IndexFinder finder{function, registers, addresses};
  const Instruction* const made = finder.maker(base, at);
  if (made == nullptr) return std::nullopt;
  const std::uint32_t place = finder.place(*made);
  const auto& operands = made->operands;
  IndexedAddress found;
  if (made->opcode == "mad" && operands.size() == 4) {
    const bool is_found =
        finder.find_product(*made, found) && finder.find_pointer(operands[3], place, found);
    return is_found ? std::optional(found) : std::nullopt;
  }
  if (made->opcode != "add" || operands.size() != 3) return std::nullopt;
  for (const std::size_t pointer : {1, 2}) {
    found = {};
    if (finder.find_pointer(operands[pointer], place, found) &&
        finder.find_index(operands[3 - pointer], place, found))
      return found;
  }
  return std::nullopt;
}

std::optional<AddedIndex> added_index(const ptx::Function& function, const Registers& registers,
                                      const Addresses& addresses, const IndexedAddress& indexed) {
  const auto first = registers.of(*indexed.index);
  if (!first || indexed.is_wide) return std::nullopt;
  AddedIndex found{.number = *first, .reader = indexed.reader, .added = 0};
  for (int i = 0; i < kMostLinks; ++i) {
    if (!addresses.is_written_once(found.number)) break;
    const std::uint32_t made = addresses.definition(found.number);
    const Instruction& instruction = function.instructions[made];
    const bool is_plain = computes_whole(instruction, 4) && addresses.dominates(made, found.reader);
    const auto sum = is_plain ? number_added(instruction) : std::nullopt;
    const auto next = sum ? registers.of(*sum->to) : std::nullopt;
    if (!next || sum->to->negated || sum->to->component != 0 || registers.bytes(*next) != 4 ||
        std::abs(found.added + sum->number) > kMostDistance) {
      break;
    }
    found = {.number = *next, .reader = made, .added = found.added + sum->number};
  }
  return found;
}

}  // namespace slate::injector
