#include "injector/analysis/function_flow.h"

#include <algorithm>
#include <string_view>

#include "injector/analysis/computed_origin.h"
#include "injector/analysis/memory_accesses.h"
#include "injector/analysis/register_accesses.h"
#include "injector/analysis/uniformity.h"
#include "injector/ptx/words.h"

namespace slate::injector {
namespace {

using ptx::Instruction;
using ptx::is_one_of;
using ptx::Operand;
using ptx::Reference;
using ptx::Space;
using Origin = OriginTable::Id;
using Kind = Operand::Kind;

constexpr Origin kNumber = OriginTable::kNumber;
constexpr Origin kUnknown = OriginTable::kUnknown;
constexpr Origin kUnknownHalf = OriginTable::kUnknownHalf;

/// Registers that say when, or where on the device, a thread runs.
bool is_chance(std::string_view special) {
  constexpr std::string_view kBeginnings[] = {"%clock",  "%globaltimer", "%smid",   "%nsmid",
                                              "%warpid", "%nwarpid",     "%gridid", "%pm"};
  return std::ranges::any_of(kBeginnings, [&](auto name) { return special.starts_with(name); });
}

/// Parameters, and offsets in them, beyond are not followed. Kernels have 32 KiB at most.
constexpr std::uint64_t kMostFollowedBytes = 1 << 16;

/// Whether it writes to shared memory what is not followed.
bool fills_shared(const Instruction& instruction) {
  const Space space = space_of(instruction);
  if (instruction.opcode == "cp") return space == Space::kShared;
  if (instruction.opcode == "wmma") return instruction.has("store") && space != Space::kGlobal;
  return instruction.opcode == "stmatrix";
}

std::vector<const Operand*> parts_of(const Operand& operand) {
  std::vector<const Operand*> parts;
  if (operand.kind != Kind::kVector) return {&operand};
  for (const Operand& part : operand.parts) parts.push_back(&part);
  return parts;
}

}  // namespace

bool may_be_address(const Operand& operand) {
  constexpr std::int64_t kMost = std::int64_t{1} << 32;
  return operand.integer >= kMost || operand.integer < -kMost;
}

FunctionFlow::FunctionFlow(const ptx::Module& module, const ptx::Function& function,
                           const ParameterLayout* layout, OriginTable& origins,
                           KernelMemory& memory)
    : module_(module),
      function_(function),
      layout_(layout),
      origins_(origins),
      memory_(memory),
      registers_(function),
      values_(registers_.count() + 1) {}

bool FunctionFlow::sweep() {
  bool is_news = false;
  for (const Instruction& instruction : function_.instructions) is_news |= visit(instruction);
  return is_news;
}

bool FunctionFlow::guarded_by_chance(const Instruction& instruction) const {
  return instruction.guard && value_of(*instruction.guard).by_chance;
}

bool FunctionFlow::reads_chance(const Instruction& instruction) const {
  bool by_chance = guarded_by_chance(instruction);
  registers_.for_each_read(instruction,
                           [&](std::uint32_t r) { by_chance |= values_[r].by_chance; });
  if (reads_carry(instruction)) by_chance |= values_.back().by_chance;
  for_each_operand(instruction.operands, [&](const Operand& operand) {
    by_chance |= operand.kind == Kind::kSpecial && is_chance(operand.text);
  });
  return by_chance || is_one_of(instruction.opcode, {"atom", "activemask", "elect"});
}

// --- Operands
// ------------------------------------------------------------------------------------

FlowValue FunctionFlow::value_of(const Operand& operand) const {
  switch (operand.kind) {
    case Kind::kInteger:
      if (operand.integer == 0) return {OriginTable::kNull};
      return {may_be_address(operand) ? kUnknown : kNumber};
    case Kind::kSpecial:
      // What the driver passes there leads to memory of its own.
      if (operand.text.starts_with("%envreg")) return {kUnknownHalf};
      return {kNumber, is_chance(operand.text)};
    case Kind::kSymbol:
      return symbol_value(operand);
    case Kind::kAddress: {
      if (operand.parts.empty()) return {kNumber};
      FlowValue value = value_of(operand.parts.front());
      value.origin = origins_.moved(value.origin, operand.integer);
      return value;
    }
    case Kind::kFloat:
    case Kind::kSink:
      return {kNumber};
    default: {
      FlowValue all{kNumber};
      for (const Operand& part : operand.parts) {
        const FlowValue value = value_of(part);
        all = {origins_.sum(all.origin, value.origin), all.by_chance || value.by_chance};
      }
      return all;
    }
  }
}

FlowValue FunctionFlow::symbol_value(const Operand& operand) const {
  const auto root = [&](RootKind kind, std::uint32_t number) -> FlowValue {
    return {origins_.of({.kind = kind, .number = number})};
  };
  switch (operand.reference) {
    case Reference::kLocal:
    case Reference::kReturn: {
      if (const auto r = registers_.of(operand)) return values_[*r];
      if (operand.reference == Reference::kReturn) return {kUnknown};
      const ptx::Variable& variable = function_.variables[operand.index];
      if (variable.space == Space::kLocal) return root(RootKind::kLocal, 0);
      if (variable.space == Space::kShared) return root(RootKind::kShared, 0);
      return {kUnknown};
    }
    case Reference::kGlobal: {
      const bool shared = module_.variables[operand.index].space == Space::kShared;
      return shared ? root(RootKind::kShared, 0) : root(RootKind::kVariable, operand.index);
    }
    case Reference::kParameter: {
      if (function_.parameters[operand.index].space == Space::kReg) {
        return slots_.load(origins_, {Reference::kParameter, operand.index}, 0, 8);
      }
      if (layout_ == nullptr || layout_->offset(operand.index) > kMostFollowedBytes) {
        return {kUnknown};
      }
      const auto offset = static_cast<std::uint32_t>(layout_->offset(operand.index));
      const Origin start = root(RootKind::kParameterSpace, offset).origin;
      return {operand.kind == Kind::kSymbol ? origins_.moved(start, operand.integer) : start};
    }
    case Reference::kFunction:
    case Reference::kLabel:
      return {kNumber};
    default:
      return {kUnknown};
  }
}

bool FunctionFlow::assign(const Operand& result, const FlowValue& value) {
  const auto r = registers_.of(result);
  if (!r) return assign_other(result, value);
  FlowValue kept = value;
  const std::uint32_t bytes = registers_.bytes(*r);
  if (bytes < 4 && value.origin != OriginTable::kNone) kept.origin = kNumber;
  if (bytes == 4 && value.origin == OriginTable::kNull) kept.origin = kNumber;
  if (bytes == 4 && value.origin == kUnknown) kept.origin = kUnknownHalf;
  return join(origins_, values_[*r], kept);
}

/// Parameters in registers, and vectors as a whole.
bool FunctionFlow::assign_other(const Operand& result, const FlowValue& value) {
  if (result.kind != Kind::kSymbol) return false;
  if (result.reference == Reference::kParameter) {
    return slots_.store(origins_, {Reference::kParameter, result.index}, 0, 8, value);
  }
  bool is_news = false;
  registers_.for_each_in(result, [&](std::uint32_t r) {
    is_news |= join(origins_, values_[r], {kUnknown, value.by_chance});
  });
  return is_news;
}

bool FunctionFlow::assign_results(const Instruction& instruction, const FlowValue& value) {
  bool is_news = false;
  for_each_result(instruction, [&](const Operand& result) { is_news |= assign(result, value); });
  if (sets_carry(instruction)) {
    is_news |= join(origins_, values_.back(), {kNumber, value.by_chance});
  }
  return is_news;
}

// --- Instructions
// ------------------------------------------------------------------------------------

bool FunctionFlow::visit(const Instruction& instruction) {
  const std::string_view opcode = instruction.opcode;
  if (opcode == "call") return false;  // AddressFlow's
  const bool by_chance = reads_chance(instruction);
  if (is_one_of(opcode, {"ld", "ldu"})) return visit_load(instruction, by_chance);
  if (opcode == "mov") return visit_move(instruction, by_chance);
  if (opcode == "st") return visit_store(instruction, by_chance);
  if (is_one_of(opcode, {"atom", "red"})) visit_atomic(instruction, by_chance);
  if (fills_shared(instruction)) {
    for (const std::uint32_t bytes : {4u, 8u}) {
      memory_.changed |=
          memory_.shared.store(origins_, {unknown_value(bytes).origin, by_chance}, bytes);
    }
  }
  if (opcode == "multimem" && instruction.has("ld_reduce")) {
    bool is_news = false;
    for (const Operand* part : parts_of(instruction.operands.front())) {
      is_news |= assign(*part, {kUnknown, by_chance});
    }
    return is_news;
  }
  if (instruction.operands.empty() || !has_result(instruction)) return false;
  return assign_results(instruction, {computed_origin(*this, origins_, instruction), by_chance});
}

/// Also packs and unpacks the two halves of 64 bits.
bool FunctionFlow::visit_move(const Instruction& move, bool by_chance) {
  if (move.operands.size() != 2) return false;
  const Operand& to = move.operands[0];
  const Operand& from = move.operands[1];
  const bool is_pointer = ptx::type_bytes(move.type()) == 8;
  if (to.kind == Kind::kVector) {
    const FlowValue whole = value_of(from);
    const bool halves = is_pointer && to.parts.size() == 2;
    const Origin lost = ptx::type_bytes(move.type()) > 8 ? kUnknown : kNumber;
    bool is_news = false;
    for (std::size_t i = 0; i < to.parts.size(); ++i) {
      Origin part = lost;
      if (halves) part = i == 0 ? origins_.low(whole.origin) : origins_.high(whole.origin);
      is_news |= assign(to.parts[i], {part, by_chance});
    }
    return is_news;
  }
  if (from.kind != Kind::kVector) return assign(to, {value_of(from).origin, by_chance});
  if (is_pointer && from.parts.size() == 2) {
    const Origin low = value_of(from.parts[0]).origin;
    return assign(to, {origins_.packed(low, value_of(from.parts[1]).origin), by_chance});
  }
  const bool is_number = origins_.is_number(value_of(from).origin);
  return assign(to, {is_number || !is_pointer ? kNumber : kUnknown, by_chance});
}

// --- Memory
// ------------------------------------------------------------------------------------

bool FunctionFlow::visit_load(const Instruction& load, bool by_chance) {
  if (load.operands.size() < 2) return false;
  const std::uint32_t bytes = ptx::type_bytes(load.type());
  bool is_news = false;
  std::int64_t offset = 0;
  for (const Operand* part : parts_of(load.operands[0])) {
    FlowValue value = loaded(load, load.operands[1], offset, bytes);
    value.by_chance |= by_chance;
    is_news |= assign(*part, value);
    offset += bytes;
  }
  return is_news;
}

FlowValue FunctionFlow::loaded(const Instruction& load, const Operand& place, std::int64_t offset,
                               std::uint32_t bytes) {
  const Space space = space_of(load);
  if (space == Space::kLocal) return memory_.local.load(origins_, bytes);
  if (space == Space::kShared) return memory_.shared.load(origins_, bytes);
  const bool is_named = !place.parts.empty() && place.parts.front().kind == Kind::kSymbol;
  if (space == Space::kParam && is_named) {
    const Operand& owner = place.parts.front();
    const bool passed = owner.reference == Reference::kLocal && !registers_.of(owner);
    if (passed || (owner.reference == Reference::kParameter && layout_ == nullptr)) {
      return slots_.load(origins_, {owner.reference, owner.index}, place.integer + offset, bytes);
    }
  }
  return loaded_at(origins_.moved(value_of(place).origin, offset), bytes);
}

FlowValue FunctionFlow::loaded_at(Origin address, std::uint32_t bytes) {
  if (address == OriginTable::kNone) return {};
  FlowValue all;
  const auto alternatives = origins_.alternatives(address);
  for (const RootSum& sum : alternatives) {
    FlowValue value = unknown_value(bytes);
    if (sum.size() == 1 && sum[0].kind == RootKind::kParameterSpace) {
      value = parameter_at(sum[0], bytes);
    } else if (sum.size() == 1 && sum[0].kind == RootKind::kLocal) {
      value = memory_.local.load(origins_, bytes);
    } else if (sum.size() == 1 && sum[0].kind == RootKind::kShared) {
      value = memory_.shared.load(origins_, bytes);
    }
    join(origins_, all, value);
  }
  return all;
}

FlowValue FunctionFlow::parameter_at(const Root& root, std::uint32_t bytes) {
  if (bytes < 4) return {kNumber};
  if (layout_ == nullptr || bytes > 8) return unknown_value(bytes);
  Root word{.kind = RootKind::kParameter, .number = root.number};
  if (root.extent != 0) {
    const std::uint32_t parameter = layout_->parameter_at(root.number);
    if (function_.parameters[parameter].bytes > kMostFollowedBytes) return {kUnknown};
    word.number = static_cast<std::uint32_t>(layout_->offset(parameter));
    word.extent = static_cast<std::uint32_t>(
        std::max<std::uint64_t>(function_.parameters[parameter].bytes, 1));
    return bytes == 8 ? FlowValue{origins_.of(word)} : unknown_value(bytes);
  }
  if (bytes == 4) word.part = RootPart::kLow;
  return {origins_.of(word)};
}

bool FunctionFlow::visit_store(const Instruction& store, bool by_chance) {
  if (store.operands.size() < 2) return false;
  bool is_news = false;
  const Operand& place = store.operands[0];
  const std::uint32_t bytes = ptx::type_bytes(store.type());
  std::int64_t offset = 0;
  for (const Operand* part : parts_of(store.operands[1])) {
    const FlowValue value{value_of(*part).origin, by_chance};
    if (space_of(store) == Space::kParam) {
      const bool is_named = !place.parts.empty() && place.parts.front().kind == Kind::kSymbol;
      const Operand* owner = is_named ? &place.parts.front() : nullptr;
      if (owner != nullptr && !registers_.of(*owner)) {
        is_news |= slots_.store(origins_, {owner->reference, owner->index}, place.integer + offset,
                                bytes, value);
      }
    } else {
      store_at(store, place, value, bytes);
    }
    offset += bytes;
  }
  return is_news;
}

void FunctionFlow::store_at(const Instruction& instruction, const Operand& place,
                            const FlowValue& value, std::uint32_t bytes) {
  const Space space = space_of(instruction);
  bool to_local = space == Space::kLocal;
  bool to_shared = space == Space::kShared;
  if (space == Space::kNone) {
    for (const RootSum& sum : origins_.alternatives(value_of(place).origin)) {
      const auto has = [&](RootKind kind) {
        return std::ranges::any_of(sum, [&](const Root& root) { return root.kind == kind; });
      };
      const bool unknown = sum.empty() || has(RootKind::kUnknown);
      to_local |= unknown || has(RootKind::kLocal);
      to_shared |= unknown || has(RootKind::kShared);
    }
  }
  if (to_local) memory_.changed |= memory_.local.store(origins_, value, bytes);
  if (to_shared) memory_.changed |= memory_.shared.store(origins_, value, bytes);
}

/// What an atomic leaves in memory is the same in any order, unless it replaces, or rounds.
void FunctionFlow::visit_atomic(const Instruction& atomic, bool by_chance) {
  const auto place = std::ranges::find(atomic.operands, Kind::kAddress, &Operand::kind);
  if (place == atomic.operands.end()) return;
  const bool replaces = atomic.has("exch") || atomic.has("cas") || is_float(atomic.type());
  FlowValue value{kNumber, by_chance || replaces};
  for (auto input = place + 1; input != atomic.operands.end(); ++input) {
    value.origin = origins_.joined(value.origin, value_of(*input).origin);
  }
  // The result is by chance, what it leaves is not.
  if (atomic.opcode == "atom" && !replaces) {
    value.by_chance = guarded_by_chance(atomic);
    registers_.for_each_read(atomic,
                             [&](std::uint32_t r) { value.by_chance |= values_[r].by_chance; });
  }
  store_at(atomic, *place, value, ptx::type_bytes(atomic.type()));
}

}  // namespace slate::injector
