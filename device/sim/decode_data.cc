// Instructions that move data: mov, address conversion, loads and stores, atomics, asynchronous
// copies and mbarriers. Arithmetic is found in alu.h.
#include <algorithm>
#include <array>
#include <utility>

#include "device/sim/alu.h"
#include "device/sim/decode.h"
#include "device/sim/memory.h"

namespace slate::sim {
namespace {

using ptx::Instruction;
using ptx::Operand;
using ptx::Type;

bool is_strong(const Instruction& instruction) {
  constexpr std::array<std::string_view, 5> kStrongWords = {"volatile", "relaxed", "acquire",
                                                            "release", "mmio"};
  return std::ranges::any_of(kStrongWords, [&](auto word) { return instruction.has(word); });
}

/// .v2, .v4 or .v8: elements of a vector access.
std::uint32_t vector_count(const Instruction& instruction) {
  if (instruction.has("v2")) return 2;
  if (instruction.has("v4")) return 4;
  return instruction.has("v8") ? 8 : 1;
}

}  // namespace

void FunctionDecoder::decode_alu(const Instruction& instruction) {
  OperandWidths widths;
  const std::vector<Operand>& operands = instruction.operands;
  if (operands.empty()) return unsupported();
  if (const Ref ref = register_of(operands[0]); ref != kNoRef) {
    widths.d = static_cast<std::uint8_t>(width_of(ref));
  }
  for (std::size_t i = 1; i < operands.size() && i <= 5; ++i) {
    const Ref ref = register_of(operands[i]);
    if (ref != kNoRef) widths.s[i - 1] = static_cast<std::uint8_t>(width_of(ref));
  }
  const std::optional<AluOp> alu = find_alu(instruction, widths);
  if (!alu || operands.size() < 1u + alu->sources || alu->sources > 5) return unsupported();
  const bool may_differ = instruction.opcode == "cvt";  // find_alu() has heeded the widths
  Ref sources[5] = {};
  for (std::size_t i = 0; i < alu->sources; ++i) {
    const Type type = alu->s[i];
    sources[i] = source(operands[i + 1], type);
    const bool other_width = may_differ && widths.s[i] != 0;
    if (!bad_) sources[i] = fit_source(sources[i], other_width ? widths.s[i] : storage_width(type));
  }
  if (bad_) return;
  const bool pair = operands[0].kind == Operand::Kind::kPair;
  if (pair && operands[0].parts.size() != 2) return unsupported();
  // lop3: the fourth is a constant, which Op can name outside of r.
  const bool wide = pair && alu->sources == 5;
  if (wide && (sources[3] & kRefBaseMask) != kInConstants) return unsupported();
  const std::uint32_t width = may_differ && widths.d != 0 ? widths.d : storage_width(alu->d);
  const Ref d = destination(pair ? operands[0].parts[0] : operands[0], width);
  const Ref d2 = pair ? destination(operands[0].parts[1], 0) : 0;
  if (bad_) return;
  Op& op = emit(wide ? Kind::kAluPair : Kind::kAlu);
  op.alu = alu->fn;
  op.r[0] = d;
  op.r[1] = d2;
  op.defs = bit(0);
  if (pair) {
    op.flags |= kHasSecond;
    op.defs |= bit(1);
  }
  if (wide) op.target = std::exchange(sources[3], sources[4]);
  for (std::size_t i = 0; i < (wide ? 4 : alu->sources); ++i) {
    const unsigned place = i < 4 ? static_cast<unsigned>(2 + i) : 1;  // the fifth where q would be
    op.r[place] = sources[i];
    op.uses |= bit(place);
  }
}

Ref FunctionDecoder::fit_source(Ref ref, std::uint32_t width) {
  if (ref == kNoRef) return bad_ = true, kNoRef;
  if ((ref & kRefBaseMask) == kInConstants) return fit(ref, width);
  const std::uint32_t have = width_of(ref);
  if ((ref & kRefBaseMask) != kInFrame && have != width && width != 0) {
    const Ref copy = new_register(width);
    emit_move(copy, ref, width);
    return copy;
  }
  require_width(ref, width);
  return ref;
}

void FunctionDecoder::emit_move(Ref d, Ref s, std::uint32_t width) {
  Kind kind = Kind::kExtend;
  const std::uint32_t from = width_of(s);
  if (from == width) {
    kind = width == 0   ? Kind::kMovPredicate
           : width == 2 ? Kind::kMov2
           : width == 4 ? Kind::kMov4
           : width == 8 ? Kind::kMov8
                        : Kind::kMov16;
  } else if (from == 0 || width == 0) {
    return unsupported();
  }
  Op& op = emit(kind);
  op.r[0] = d;
  op.r[1] = s;
  op.a = static_cast<std::uint8_t>(width);
  op.b = static_cast<std::uint8_t>(from);
  op.defs = bit(0);
  op.uses = bit(1);
}

void FunctionDecoder::decode_mov(const Instruction& instruction) {
  const Operand* d = operand(instruction, 0);
  const Operand* s = operand(instruction, 1);
  const Type type = instruction.type();
  if (!d || !s || type == Type::kNone) return unsupported();
  if (d->kind == Operand::Kind::kVector) return decode_unpack(*d, *s, type);
  if (s->kind == Operand::Kind::kVector) return decode_pack(*d, *s, type);
  const std::uint32_t width = storage_width(type);
  Ref from;
  if (s->kind == Operand::Kind::kAddress) {
    if (s->parts.empty()) return unsupported();
    Op probe;
    set_address(probe, *s, Space::kGeneric, 1);
    if (bad_) return;
    const auto space = static_cast<Space>(probe.a);
    if (space == Space::kLocal || space == Space::kEntryParam) {
      from = new_register(8);
      Op& op = emit(space == Space::kLocal ? Kind::kLocalAddress : Kind::kParamAddress);
      op.imm = probe.imm;
      op.r[0] = from;
      op.defs = bit(0);
    } else {
      from = address_value(*s);
    }
  } else {
    from = source(*s, type);
  }
  if (bad_ || from == kNoRef) return unsupported();
  if ((from & kRefBaseMask) == kInConstants && width_of(from) > width) from = fit(from, width);
  const Ref to = destination(*d, width);
  if (bad_) return;
  emit_move(to, from, width);
}

void FunctionDecoder::decode_pack(const Operand& d, const Operand& parts, Type type) {
  const std::uint32_t width = storage_width(type);
  const auto count = static_cast<std::uint32_t>(parts.parts.size());
  if (count < 2 || count > 4 || width == 0 || width % count != 0) return unsupported();
  const std::uint32_t part_bytes = width / count;
  const std::uint32_t part_width = part_bytes < 2 ? 2 : part_bytes;
  Ref refs[4] = {};
  for (std::uint32_t i = 0; i < count; ++i) {
    const Type part_type = part_bytes == 8   ? Type::kB64
                           : part_bytes == 4 ? Type::kB32
                           : part_bytes == 2 ? Type::kB16
                                             : Type::kB8;
    refs[i] = source(parts.parts[i], part_type);
    if (!bad_) refs[i] = fit_source(refs[i], part_width);
    if (!bad_ && width_of(refs[i]) != part_width) unsupported();
  }
  const Ref to = destination(d, width);
  if (bad_) return;
  Op& op = emit(Kind::kPack);
  op.r[0] = to;
  for (std::uint32_t i = 0; i < count; ++i) {
    op.r[1 + i] = refs[i];
    op.uses |= bit(1 + i);
  }
  op.defs = bit(0);
  op.a = static_cast<std::uint8_t>(width);
  op.b = static_cast<std::uint8_t>(count);
  op.c = static_cast<std::uint8_t>(part_width);
}

void FunctionDecoder::decode_unpack(const Operand& parts, const Operand& s, Type type) {
  const std::uint32_t width = storage_width(type);
  const auto count = static_cast<std::uint32_t>(parts.parts.size());
  if (count < 2 || count > 4 || width == 0 || width % count != 0) return unsupported();
  const std::uint32_t part_bytes = width / count;
  const std::uint32_t part_width = part_bytes < 2 ? 2 : part_bytes;
  Ref from = source(s, type);
  if (!bad_) from = fit_source(from, width);
  Ref refs[4] = {};
  for (std::uint32_t i = 0; i < count; ++i) {
    refs[i] = destination(parts.parts[i], part_width);
    if (!bad_ && width_of(refs[i]) != part_width) unsupported();
  }
  if (bad_) return;
  Op& op = emit(Kind::kUnpack);
  for (std::uint32_t i = 0; i < count; ++i) {
    op.r[i] = refs[i];
    op.defs |= bit(i);
  }
  op.r[5] = from;
  op.uses = bit(5);
  op.a = static_cast<std::uint8_t>(width);
  op.b = static_cast<std::uint8_t>(count);
  op.c = static_cast<std::uint8_t>(part_width);
}

void FunctionDecoder::decode_cvta(const Instruction& instruction) {
  const Operand* d = operand(instruction, 0);
  const Operand* s = operand(instruction, 1);
  if (!d || !s) return;
  const std::uint32_t width = storage_width(instruction.type());
  if (width != 4 && width != 8) return unsupported();
  const bool to = instruction.has("to");
  const Space space = space_of(instruction);
  const Ref from = source(*s, Type::kB64);
  const Ref into = destination(*d, width);
  if (bad_) return;
  std::uint64_t window = 0;
  if (space == Space::kShared) window = kSharedWindow;
  if (space == Space::kLocal) window = kLocalWindow;
  if (window == 0 && width_of(from) == width) return emit_move(into, from, width);
  if (width_of(from) == 0 || width_of(from) > 8) return unsupported();
  Op& op = emit(Kind::kConvertAddress);
  op.r[0] = into;
  op.r[1] = from;
  op.a = static_cast<std::uint8_t>(width);
  op.b = static_cast<std::uint8_t>(width_of(from));
  op.imm = static_cast<std::int64_t>(to ? 0 - window : window);
  op.defs = bit(0);
  op.uses = bit(1);
}

void FunctionDecoder::decode_isspacep(const Instruction& instruction) {
  const Operand* d = operand(instruction, 0);
  const Operand* s = operand(instruction, 1);
  if (!d || !s) return;
  const Ref from = source(*s, Type::kB64);
  const Ref into = destination(*d, 0);
  if (bad_ || (width_of(from) != 4 && width_of(from) != 8)) return unsupported();
  Op& op = emit(Kind::kIsSpace);
  op.r[0] = into;
  op.r[1] = from;
  op.a = static_cast<std::uint8_t>(space_of(instruction));
  op.b = static_cast<std::uint8_t>(width_of(from));
  op.defs = bit(0);
  op.uses = bit(1);
}

void FunctionDecoder::decode_mapa(const Instruction& instruction) {
  // A cluster is one block: every shared address is its own, and the rank is 0.
  const Operand* d = operand(instruction, 0);
  const Operand* s = operand(instruction, 1);
  if (!d || !s) return;
  const std::uint32_t width = storage_width(instruction.type());
  const Ref into = destination(*d, width);
  if (bad_) return;
  if (instruction.opcode == "getctarank") {
    return emit_move(into, context_.constant(0, width), width);
  }
  const Ref from = source(*s, instruction.type());
  if (!bad_) emit_move(into, fit(from, width), width);
}

std::optional<FunctionDecoder::Moved> FunctionDecoder::moved_by(const Instruction& instruction,
                                                                const Operand* data,
                                                                const Operand* address) {
  const Type type = instruction.type();
  const std::uint32_t bytes = ptx::type_bytes(type);
  const std::uint32_t count = vector_count(instruction);
  if (data && address && bytes != 0 && count <= 4) {
    Moved moved{type, bytes, parts_of(*data)};
    if (moved.count() == count) return moved;
  }
  unsupported();
  return std::nullopt;
}

void FunctionDecoder::emit_moving(Kind kind, Op op, const Instruction& instruction,
                                  const Moved& moved, std::uint32_t width) {
  if (is_strong(instruction)) op.flags |= kStrong;
  if (moved.bytes != width) op.flags |= kConverts;
  op.b = static_cast<std::uint8_t>(moved.bytes);
  op.c = static_cast<std::uint8_t>(moved.count());
  emit_as(kind, op);
}

void FunctionDecoder::decode_load(const Instruction& instruction) {
  const Operand* data = operand(instruction, 0);
  const Operand* address = operand(instruction, 1);
  const std::optional<Moved> moved = moved_by(instruction, data, address);
  if (!moved) return;
  std::uint32_t width = 0;
  for (const Operand& part : moved->parts) {
    const Ref ref = register_of(part);
    if (ref != kNoRef) width = std::max(width, width_of(ref));
  }
  if (width == 0) width = storage_width(moved->type);
  Op load;
  for (std::uint32_t i = 0; i < moved->count(); ++i) {
    load.r[i] = destination(moved->parts[i], width);
    load.defs |= bit(i);
  }
  load.transfer = find_load(moved->type, width);
  if (!load.transfer) return unsupported();
  set_address(load, *address, space_of(instruction), moved->bytes * moved->count());
  if (bad_) return;
  emit_moving(Kind::kLoad, load, instruction, *moved, width);
}

void FunctionDecoder::decode_store(const Instruction& instruction) {
  const Operand* address = operand(instruction, 0);
  const Operand* data = operand(instruction, 1);
  const std::optional<Moved> moved = moved_by(instruction, data, address);
  if (!moved) return;
  Op store;
  std::uint32_t width = 0;
  for (std::uint32_t i = 0; i < moved->count(); ++i) {
    store.r[i] = source(moved->parts[i], moved->type);
    store.uses |= bit(i);
    if (bad_) return;
    if ((store.r[i] & kRefBaseMask) != kInConstants) width = std::max(width, width_of(store.r[i]));
  }
  if (width == 0) width = storage_width(moved->type);
  for (std::uint32_t i = 0; i < moved->count(); ++i) store.r[i] = fit_source(store.r[i], width);
  store.transfer = find_store(moved->bytes, width);
  if (!store.transfer) return unsupported();
  set_address(store, *address, space_of(instruction), moved->bytes * moved->count());
  const auto space = static_cast<Space>(store.a);
  if (space == Space::kConst || space == Space::kEntryParam) return unsupported();
  if (bad_) return;
  emit_moving(Kind::kStore, store, instruction, *moved, width);
}

void FunctionDecoder::decode_atom(const Instruction& instruction) {
  constexpr std::array<std::string_view, 10> kOperations = {"add", "and", "or",  "xor", "exch",
                                                            "cas", "min", "max", "inc", "dec"};
  std::string_view operation;
  for (const std::string_view modifier : instruction.modifiers) {
    if (std::ranges::find(kOperations, modifier) != kOperations.end()) operation = modifier;
  }
  const bool reduction = instruction.opcode == "red";
  const bool swap = operation == "cas";
  const Type type = instruction.type();
  const Space space = space_of(instruction);
  const std::uint32_t width = storage_width(type);
  const std::size_t first = reduction ? 0 : 1;
  const Operand* address = operand(instruction, first);
  const Operand* b = operand(instruction, first + 1);
  const Operand* c = swap ? operand(instruction, first + 2) : nullptr;
  if (!address || !b || width == 0 || instruction.has("async")) return unsupported();
  if (vector_count(instruction) != 1) return unsupported();
  Op atom;
  set_address(atom, *address, space, width);
  const auto known = static_cast<Space>(atom.a);  // an address without a space may name a variable
  atom.atom = find_atom(operation, type, known == Space::kShared);
  if (bad_ || !atom.atom) return unsupported();
  if (known == Space::kGeneric && operation == "add" && type == Type::kF32) {
    atom.flags |= kFloatSum;
  }
  if (!reduction) {
    atom.r[0] = destination(instruction.operands[0], width);
    atom.defs = bit(0);
    atom.flags |= kHasSecond;  // wants the old value
  }
  atom.r[1] = fit_source(source(*b, type), width);
  atom.uses |= bit(1);
  if (c) {
    atom.r[2] = fit_source(source(*c, type), width);
    atom.uses |= bit(2);
  }
  if (bad_) return;
  atom.b = static_cast<std::uint8_t>(width);
  atom.c = 1;
  emit_as(Kind::kAtom, atom);
}

void FunctionDecoder::decode_createpolicy(const Instruction& instruction) {
  const Operand* d = operand(instruction, 0);
  if (!d) return;
  const Ref into = destination(*d, 8);
  if (!bad_) emit_move(into, context_.constant(0, 8), 8);
}

}  // namespace slate::sim
