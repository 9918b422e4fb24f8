// Uniformity: what registers are in terms of %tid, which are constants, and which masks of lanes.
#include <algorithm>
#include <utility>

#include "injector/analysis/uniformity.h"

namespace slate::injector {
namespace {

using ptx::Instruction;
using ptx::Operand;

constexpr std::uint32_t kWarpThreads = 32;

/// Of a type that holds every place.
bool is_wide_integer(ptx::Type type) {
  using enum ptx::Type;
  return type == kB32 || type == kU32 || type == kS32 || type == kB64 || type == kU64 ||
         type == kS64;
}

bool is_special(const Operand& operand, std::string_view name) {
  return operand.kind == Operand::Kind::kSpecial && operand.text == name;
}

}  // namespace

bool Uniformity::is_local(const Operand& operand) {
  return operand.kind == Operand::Kind::kSymbol && operand.reference == ptx::Reference::kLocal;
}

bool Uniformity::divides_warp(std::int64_t value) {
  return value % kWarpThreads == 0;
}

Uniformity::Place Uniformity::place_of(const Operand& operand) const {
  if (is_local(operand)) {
    return offsets_[operand.index] == 0 ? places_[operand.index] : Place::kUnknown;
  }
  if (is_special(operand, "%tid.x")) return Place::kTidX;
  if (is_special(operand, "%tid.y")) return Place::kTidY;
  if (is_special(operand, "%tid.z")) return Place::kTidZ;
  if (is_special(operand, "%ntid.x")) return Place::kNtidX;
  if (is_special(operand, "%ntid.y")) return Place::kNtidY;
  const bool is_ctaid = is_special(operand, "%ctaid.x") || is_special(operand, "%ctaid.y") ||
                        is_special(operand, "%ctaid.z");
  return is_ctaid ? Place::kCtaid : Place::kUnknown;
}

/// Compilers divide by 32 as (x + (x >> 31 >>> 27)) >> 5, where x >> 31 is 0 for every place.
Uniformity::Place Uniformity::place_shifted(const Instruction& shift) const {
  const Place place = place_of(shift.operands[1]);
  if (place == Place::kZero) return Place::kZero;
  const bool is_place = place == Place::kTidX || place == Place::kTidY || place == Place::kTidZ ||
                        place == Place::kRow || place == Place::kRank || place == Place::kLine;
  const bool is_sign = shift.operands[2].kind == Operand::Kind::kInteger &&
                       shift.operands[2].integer == 31 && shift.type() == ptx::Type::kS32;
  return is_place && is_sign ? Place::kZero : Place::kUnknown;
}

Uniformity::Place Uniformity::place_made_by(const Instruction& instruction) const {
  const auto& operands = instruction.operands;
  if (instruction.guard || !is_wide_integer(instruction.type())) return Place::kUnknown;
  if (instruction.opcode == "mov" && operands.size() == 2) return place_of(operands[1]);
  if (instruction.opcode == "cvt" && operands.size() == 2) {
    const ptx::Type to = instruction.type(1);
    const bool keeps =
        is_wide_integer(to) && ptx::type_bytes(to) >= ptx::type_bytes(instruction.type());
    return keeps ? place_of(operands[1]) : Place::kUnknown;
  }
  if (instruction.opcode == "shr" && operands.size() == 3) return place_shifted(instruction);
  if (instruction.opcode == "shl" && operands.size() == 3) {
    const auto distance = constant(operands[2]);
    const bool tiles = place_of(operands[1]) == Place::kCtaid && distance && *distance >= 5;
    return tiles ? Place::kTiles : Place::kUnknown;
  }
  if (instruction.opcode == "add" && operands.size() == 3) {
    if (operands[2].kind == Operand::Kind::kInteger) return place_of(operands[1]);
    return place_of_sum(operands[1], operands[2]);
  }
  if (instruction.opcode == "or" && operands.size() == 3) {
    // An addition where no bit is set in both; else the bits from the fifth on are still a warp's.
    const Place sum = place_of_sum(operands[1], operands[2]);
    return sum == Place::kTiled ? sum : Place::kUnknown;
  }
  if (instruction.has("hi")) return Place::kUnknown;
  if (instruction.opcode == "mul" && operands.size() == 3) {
    return place_of_product(operands[1], operands[2]);
  }
  if (instruction.opcode != "mad" || operands.size() != 4) return Place::kUnknown;
  if (place_of(operands[3]) == Place::kTidX) {
    const Place start = place_of_product(operands[1], operands[2]);
    if (start == Place::kLineStart) return Place::kLine;
    if (start == Place::kTiles) return Place::kTiled;
  }
  Place factor = place_of(operands[1]);
  Place size = place_of(operands[2]);
  if (factor == Place::kNtidX || factor == Place::kNtidY) std::swap(factor, size);
  const Place rest = place_of(operands[3]);
  if (factor == Place::kTidZ && size == Place::kNtidY && rest == Place::kTidY) return Place::kPlane;
  if (size != Place::kNtidX || rest != Place::kTidX) return Place::kUnknown;
  if (factor == Place::kTidY) return Place::kRow;
  return factor == Place::kPlane ? Place::kRank : Place::kUnknown;
}

Uniformity::Place Uniformity::place_of_sum(const Operand& one, const Operand& other) const {
  Place a = place_of(one);
  Place b = place_of(other);
  if (b == Place::kZero || b == Place::kLineStart || b == Place::kTiles) std::swap(a, b);
  if (a == Place::kZero) return b;
  if (b != Place::kTidX) return Place::kUnknown;
  if (a == Place::kLineStart) return Place::kLine;
  return a == Place::kTiles ? Place::kTiled : Place::kUnknown;
}

Uniformity::Place Uniformity::place_of_product(const Operand& one, const Operand& other) const {
  const bool first = place_of(one) == Place::kCtaid;
  if (!first && place_of(other) != Place::kCtaid) return Place::kUnknown;
  const Operand& factor = first ? other : one;
  if (place_of(factor) == Place::kNtidX) return Place::kLineStart;
  const auto number = constant(factor);
  return number && divides_warp(*number) ? Place::kTiles : Place::kUnknown;
}

std::int64_t Uniformity::offset_made_by(const Instruction& instruction) const {
  const auto& operands = instruction.operands;
  const bool adds = instruction.opcode == "add" && operands.size() == 3 &&
                    operands[2].kind == Operand::Kind::kInteger;
  if (!adds) return 0;
  // Written without a sign or with one, the register has no more bits.
  const std::int64_t offset = operands[2].integer;
  if (instruction.has("s64") || instruction.has("u64")) return offset;
  const bool half = instruction.has("s16") || instruction.has("u16");
  return half ? static_cast<std::int16_t>(offset) : static_cast<std::int32_t>(offset);
}

void Uniformity::find_definitions() {
  for (std::uint32_t i = 0; i < function_.instructions.size(); ++i) {
    for_each_result(function_.instructions[i], [&](const Operand& result) {
      if (!is_local(result)) return;
      std::uint32_t& present = definitions_[result.index];
      present = present == kNever ? i : kOften;
    });
  }
}

/// Of registers that are written once, and from such: others may mean another thing the next time
/// round a loop. Definitions stand before uses nearly always; where they do not, nothing is known.
void Uniformity::find_places() {
  for (std::uint32_t i = 0; i < function_.instructions.size(); ++i) {
    const Instruction& instruction = function_.instructions[i];
    if (instruction.operands.empty() || !is_local(instruction.operands[0])) continue;
    const std::uint32_t result = instruction.operands[0].index;
    if (definitions_[result] != i) continue;
    places_[result] = place_made_by(instruction);
    offsets_[result] = offset_made_by(instruction);
  }
}

void Uniformity::find_constants() {
  for (std::uint32_t i = 0; i < function_.instructions.size(); ++i) {
    const Instruction& instruction = function_.instructions[i];
    const auto& operands = instruction.operands;
    const bool is_constant = instruction.opcode == "mov" && operands.size() == 2 &&
                             !instruction.guard && operands[1].kind == Operand::Kind::kInteger;
    if (!is_constant || !is_local(operands[0]) || definitions_[operands[0].index] != i) continue;
    constants_[operands[0].index] = operands[1].integer;
  }
}

std::optional<std::int64_t> Uniformity::constant(const Operand& operand) const {
  if (operand.kind == Operand::Kind::kInteger) return operand.integer;
  return is_local(operand) ? constants_[operand.index] : std::nullopt;
}

/// The lanes that a warp-wide instruction names last are all of them. Of parts of a warp, each has
/// a result of its own.
bool Uniformity::names_whole_warp(const Instruction& instruction) const {
  if (instruction.operands.empty()) return false;
  const auto lanes = constant(instruction.operands.back());
  return lanes && static_cast<std::uint32_t>(*lanes) == 0xffffffffu;
}

/// In text order, as a mask is made before it is used.
void Uniformity::find_lane_masks() {
  for (std::uint32_t i = 0; i < function_.instructions.size(); ++i) {
    const Instruction& instruction = function_.instructions[i];
    const std::string_view opcode = instruction.opcode;
    const auto& operands = instruction.operands;
    if (instruction.guard || operands.empty()) continue;
    bool is_mask = opcode == "activemask" || opcode == "match" ||
                   (opcode == "vote" && instruction.has("ballot"));
    if (opcode == "and" || opcode == "mov") {
      is_mask = std::any_of(operands.begin() + 1, operands.end(),
                            [&](const Operand& input) { return is_lane_mask(input, i); });
    }
    if (!is_mask) continue;
    for_each_result(instruction, [&](const Operand& result) {
      if (is_local(result)) lane_masks_[result.index] = definitions_[result.index] == i;
    });
  }
}

}  // namespace slate::injector
