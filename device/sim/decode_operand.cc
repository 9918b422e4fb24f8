// Operands: what names, numbers and addresses of PTX stand for, as references that need no look-up
// later.
#include <bit>
#include <cstring>

#include "device/sim/decode.h"

namespace slate::sim {
namespace {

using ptx::Operand;
using ptx::Type;

std::uint32_t special_lane_mask(std::string_view which, int lane) {
  const std::uint32_t bit = 1u << lane;
  if (which == "eq") return bit;
  if (which == "lt") return bit - 1;
  if (which == "le") return bit | (bit - 1);
  if (which == "gt") return ~(bit | (bit - 1));
  return ~(bit - 1);  // ge
}

Ref warp_ref(std::size_t offset) {
  return static_cast<Ref>(offset) | kInWarp;
}
Ref block_ref(std::size_t offset) {
  return static_cast<Ref>(offset) | kInBlock;
}

/// %tid.x and the like: registers that the warp or the block keeps. kNoRef for others.
Ref kept_special(std::string_view name) {
  const char axis = name.size() > 2 && name[name.size() - 2] == '.' ? name.back() : 0;
  const std::string_view stem = axis ? name.substr(0, name.size() - 2) : name;
  if (axis >= 'x' && axis <= 'z') {
    const std::size_t row =
        static_cast<std::size_t>(axis - 'x') * sizeof(std::uint32_t) * kWarpSize;
    if (stem == "%tid") return warp_ref(offsetof(WarpArea, tid) + row);
    if (stem == "%ctaid" || stem == "%clusterid")
      return block_ref(offsetof(BlockArea, ctaid) + row);
    if (stem == "%ntid") return block_ref(offsetof(BlockArea, ntid) + row);
    if (stem == "%nctaid" || stem == "%nclusterid") {
      return block_ref(offsetof(BlockArea, nctaid) + row);
    }
    return kNoRef;
  }
  if (name == "%warpid") return warp_ref(offsetof(WarpArea, warp_id));
  if (name == "%smid") return block_ref(offsetof(BlockArea, smid));
  if (name == "%nsmid") return block_ref(offsetof(BlockArea, nsmid));
  if (name == "%nwarpid") return block_ref(offsetof(BlockArea, nwarpid));
  if (name == "%gridid") return block_ref(offsetof(BlockArea, gridid));
  if (name == "%envreg1") return block_ref(offsetof(BlockArea, workspace_high));
  if (name == "%envreg2") return block_ref(offsetof(BlockArea, workspace_low));
  if (name == "%dynamic_smem_size") return block_ref(offsetof(BlockArea, dynamic_shared));
  if (name == "%total_smem_size" || name == "%aggr_smem_size") {
    return block_ref(offsetof(BlockArea, total_shared));
  }
  return kNoRef;
}

}  // namespace

std::uint32_t storage_width(Type type) {
  if (type == Type::kPred) return 0;
  const std::uint32_t bytes = ptx::type_bytes(type);
  return bytes < 2 ? 2 : bytes;
}

Ref DecodeContext::append(const void* lanes, std::size_t bytes) {
  const std::size_t at = code.constants.size();
  const std::size_t lines = (bytes + sizeof(ConstantLine) - 1) / sizeof(ConstantLine);
  code.constants.resize(at + lines);
  std::memcpy(&code.constants[at], lanes, bytes);
  return static_cast<Ref>(at * sizeof(ConstantLine)) | kInConstants;
}

Ref DecodeContext::constant(std::uint64_t value, std::uint32_t width) {
  if (width < 8 && width > 0) value &= (std::uint64_t{1} << (8 * width)) - 1;
  if (width == 0) value = value ? kAllLanes : 0;
  const auto [entry, is_new] = constants.try_emplace({value, width}, kNoRef);
  if (!is_new) return entry->second;
  std::byte lanes[16 * kWarpSize] = {};
  if (width == 0) {
    std::memcpy(lanes, &value, sizeof(Mask));
    entry->second = append(lanes, sizeof(Mask));
    constant_widths[entry->second] = 0;
    return entry->second;
  }
  for (std::size_t lane = 0; lane < kWarpSize; ++lane) {
    std::memcpy(lanes + lane * width, &value, width < 8 ? width : 8);
  }
  entry->second = append(lanes, std::size_t{width} * kWarpSize);
  constant_widths[entry->second] = static_cast<std::uint8_t>(width);
  return entry->second;
}

Ref DecodeContext::lane_constant(const std::uint32_t (&lanes)[kWarpSize]) {
  const Ref ref = append(lanes, sizeof lanes);
  constant_widths[ref] = 4;
  return ref;
}

Op& FunctionDecoder::emit(Kind kind) {
  Op op;
  op.kind = kind;
  op.line = current_->line;
  op.guard = guard_;
  if (guard_ != kNoRef && current_->guard->negated) op.flags |= kGuardNegated;
  context_.code.ops.push_back(op);
  context_.code.texts.push_back(current_->opcode_span);
  return context_.code.ops.back();
}

Ref FunctionDecoder::new_register(std::uint32_t width) {
  widths_.push_back(static_cast<std::uint8_t>(width));
  return static_cast<Ref>((widths_.size() - 1) * 64);
}

const ptx::Variable* FunctionDecoder::variable_of(const Operand& operand) const {
  if (operand.kind != Operand::Kind::kSymbol) return nullptr;
  switch (operand.reference) {
    case ptx::Reference::kLocal:
      return &function_.variables[operand.index];
    case ptx::Reference::kParameter:
      return &function_.parameters[operand.index];
    case ptx::Reference::kReturn:
      return &function_.returns[operand.index];
    case ptx::Reference::kGlobal:
      return &context_.module.variables[operand.index];
    default:
      return nullptr;
  }
}

std::size_t FunctionDecoder::key_of(const ptx::Function& function, const Operand& operand) {
  std::size_t key = operand.index;
  if (operand.reference == ptx::Reference::kLocal) return key;
  key += function.variables.size();
  if (operand.reference == ptx::Reference::kParameter) return key;
  return key + function.parameters.size();
}

Ref FunctionDecoder::register_of(const Operand& operand) const {
  const ptx::Variable* variable = variable_of(operand);
  if (!variable || variable->space != ptx::Space::kReg) return kNoRef;
  if (operand.reference == ptx::Reference::kGlobal) return kNoRef;
  const std::uint32_t first = registers_[key_of(function_, operand)];
  if (first == kNoRef) return kNoRef;
  std::uint32_t part = 0;
  if (operand.component != 0) {
    const std::size_t found = std::string_view("xyzw").find(operand.component);
    const std::size_t colour = std::string_view("rgba").find(operand.component);
    const std::size_t place = found != std::string_view::npos ? found : colour;
    if (place >= variable->vector) return kNoRef;
    part = static_cast<std::uint32_t>(place);
  } else if (variable->vector > 1) {
    return kNoRef;
  }
  return (first + part) * 64;
}

std::vector<Operand> FunctionDecoder::parts_of(const Operand& operand) const {
  if (operand.kind == Operand::Kind::kVector) return operand.parts;
  const ptx::Variable* variable = variable_of(operand);
  const bool whole = variable && variable->space == ptx::Space::kReg && variable->vector > 1 &&
                     operand.component == 0;
  if (!whole) return {operand};
  std::vector<Operand> parts;
  for (const char component : std::string_view("xyzw").substr(0, variable->vector)) {
    parts.push_back(operand);
    parts.back().component = component;
  }
  return parts;
}

std::uint32_t FunctionDecoder::width_of(Ref ref) const {
  if ((ref & kRefBaseMask) == kInFrame) return ref == kNoRef ? 0 : widths_[ref / 64];
  if ((ref & kRefBaseMask) == kInBlock) {
    return (ref & kRefOffsetMask) == offsetof(BlockArea, gridid) ? 8 : 4;
  }
  if ((ref & kRefBaseMask) == kInConstants) return context_.constant_widths.at(ref);
  return 4;
}

bool FunctionDecoder::is_predicate(Ref ref) const {
  return ref != kNoRef && width_of(ref) == 0;
}

void FunctionDecoder::require_predicate(Ref ref) {
  if (!is_predicate(ref)) bad_ = true;
}

void FunctionDecoder::require_width(Ref ref, std::uint32_t width) {
  if (ref == kNoRef || width_of(ref) != width) bad_ = true;
}

Ref FunctionDecoder::fit(Ref ref, std::uint32_t width) {
  if (ref == kNoRef || width_of(ref) == width) return ref;
  if ((ref & kRefBaseMask) != kInConstants || width_of(ref) == 0 || width == 0) {
    bad_ = true;
    return kNoRef;
  }
  std::uint64_t value = 0;
  const std::uint32_t bytes = width_of(ref) < 8 ? width_of(ref) : 8;
  std::memcpy(&value, &context_.code.constants[(ref & kRefOffsetMask) / sizeof(ConstantLine)],
              bytes);
  return context_.constant(value, width);
}

Ref FunctionDecoder::address_value(const Operand& operand) {
  Op probe;
  set_address(probe, operand, Space::kGeneric, 1);
  if (bad_) return kNoRef;
  if (!(probe.flags & kAddressed)) {
    const auto space = static_cast<Space>(probe.a);
    const bool plain = space == Space::kGlobal || space == Space::kShared ||
                       space == Space::kConst || space == Space::kGeneric;
    if (!plain) return bad_ = true, kNoRef;
    return context_.constant(static_cast<std::uint64_t>(probe.imm), 8);
  }
  const Ref d = new_register(8);
  Op& op = emit(Kind::kConvertAddress);
  op.r[0] = d;
  op.r[1] = probe.r[4];
  op.a = 8;
  op.b = probe.e;
  op.imm = probe.imm;
  op.defs = 1;
  op.uses = 2;
  return d;
}

const Operand* FunctionDecoder::operand(const ptx::Instruction& instruction, std::size_t index) {
  if (index < instruction.operands.size()) return &instruction.operands[index];
  bad_ = true;
  return nullptr;
}

Ref FunctionDecoder::immediate(const Operand& operand, Type type) {
  std::uint64_t bits = static_cast<std::uint64_t>(operand.integer);
  const bool is_float = operand.kind == Operand::Kind::kFloat;
  const bool wants_float = type == Type::kF32 || type == Type::kF64;
  const bool exact = is_float && operand.float_bits == 8 * ptx::type_bytes(type);
  if ((is_float || wants_float) && !exact) {
    double value = operand.floating;
    if (!is_float) value = static_cast<double>(operand.integer);
    if (operand.float_bits == 32) value = std::bit_cast<float>(static_cast<std::uint32_t>(bits));
    if (operand.float_bits == 64) value = std::bit_cast<double>(bits);
    bits = ptx::type_bytes(type) == 8 ? std::bit_cast<std::uint64_t>(value)
                                      : std::bit_cast<std::uint32_t>(static_cast<float>(value));
  }
  return context_.constant(bits, storage_width(type));
}

Ref FunctionDecoder::special_source(std::string_view name) {
  if (const Ref kept = kept_special(name); kept != kNoRef) return kept;
  if (name == "WARP_SZ") return context_.constant(kWarpSize, 4);
  if (name == "%laneid" || name.starts_with("%lanemask_")) {
    std::uint32_t lanes[kWarpSize];
    for (int lane = 0; lane < kWarpSize; ++lane) {
      lanes[lane] = name == "%laneid" ? static_cast<std::uint32_t>(lane)
                                      : special_lane_mask(name.substr(10), lane);
    }
    return context_.lane_constant(lanes);
  }
  if (name.starts_with("%clock") || name.starts_with("%globaltimer")) {
    const bool full = name == "%clock64" || name == "%globaltimer";
    const bool high = name.ends_with("_hi");
    const Ref d = new_register(full ? 8 : 4);
    Op& op = emit(Kind::kClock);
    op.r[0] = d;
    op.defs = 1;
    op.a = static_cast<std::uint8_t>(full ? Clock::kFull : high ? Clock::kHigh : Clock::kLow);
    return d;
  }
  // One block is one cluster.
  if (name.starts_with("%cluster_ncta")) return context_.constant(1, 4);
  if (name.starts_with("%cluster_cta")) return context_.constant(0, 4);
  if (name == "%is_explicit_cluster") return context_.constant(0, 0);
  if (name == "%current_graph_exec") return context_.constant(0, 8);
  if (name.starts_with("%pm")) return context_.constant(0, name.ends_with("_64") ? 8 : 4);
  if (name.starts_with("%envreg") || name.starts_with("%reserved_smem")) {
    return context_.constant(0, 4);
  }
  bad_ = true;
  return kNoRef;
}

Ref FunctionDecoder::symbol_source(const Operand& operand) {
  if (const Ref ref = register_of(operand); ref != kNoRef) {
    if (!operand.negated) return ref;
    if (!is_predicate(ref)) return bad_ = true, kNoRef;
    const Ref flipped = new_register(0);
    const Ref guard = std::exchange(guard_, kNoRef);
    Op& op = emit(Kind::kNotPredicate);
    guard_ = guard;
    op.r[0] = flipped;
    op.r[1] = ref;
    op.defs = 1;
    op.uses = 2;
    return flipped;
  }
  const auto offset = static_cast<std::uint64_t>(operand.integer);
  if (operand.reference == ptx::Reference::kFunction) {
    const auto address = function_address(context_.module, operand.text);
    if (address && offset == 0) return context_.constant(*address, 8);
    return bad_ = true, kNoRef;
  }
  const ptx::Variable* variable = variable_of(operand);
  if (!variable) return bad_ = true, kNoRef;
  if (variable->space == ptx::Space::kShared) {
    return context_.constant(context_.shared_offsets.at(variable) + offset, 8);
  }
  if (variable->space == ptx::Space::kGlobal || variable->space == ptx::Space::kConst) {
    const auto found = context_.symbols.find(std::string(variable->name));
    if (found == context_.symbols.end()) return bad_ = true, kNoRef;
    return context_.constant(found->second + offset, 8);
  }
  const bool is_local = variable->space == ptx::Space::kLocal;
  const bool is_entry_parameter = variable->space == ptx::Space::kParam && function_.is_entry &&
                                  operand.reference == ptx::Reference::kParameter;
  if ((!is_local && !is_entry_parameter) || operand.reference == ptx::Reference::kGlobal) {
    return bad_ = true, kNoRef;
  }
  const Ref d = new_register(8);
  Op& op = emit(is_local ? Kind::kLocalAddress : Kind::kParamAddress);
  op.imm = places_[key_of(function_, operand)] + operand.integer;
  op.r[0] = d;
  op.defs = 1;
  return d;
}

Ref FunctionDecoder::source(const Operand& operand, Type type) {
  switch (operand.kind) {
    case Operand::Kind::kSymbol:
      return symbol_source(operand);
    case Operand::Kind::kSpecial:
      return special_source(operand.text);
    case Operand::Kind::kInteger:
    case Operand::Kind::kFloat:
      return immediate(operand, type);
    default:
      bad_ = true;
      return kNoRef;
  }
}

Ref FunctionDecoder::destination(const Operand& operand, std::uint32_t width) {
  if (operand.kind == Operand::Kind::kSink) return new_register(width);
  const Ref ref = register_of(operand);
  if (ref == kNoRef || width_of(ref) != width) bad_ = true;
  return ref;
}

Space FunctionDecoder::space_of(const ptx::Instruction& instruction) const {
  for (const std::string_view modifier : instruction.modifiers) {
    if (modifier == "global") return Space::kGlobal;
    if (modifier.starts_with("shared")) return Space::kShared;
    if (modifier == "local") return Space::kLocal;
    if (modifier.starts_with("const")) return Space::kConst;
    if (modifier.starts_with("param")) return Space::kEntryParam;
  }
  return Space::kGeneric;
}

void FunctionDecoder::set_address(Op& op, const Operand& operand, Space space,
                                  std::uint32_t bytes) {
  op.imm = operand.integer;
  op.a = static_cast<std::uint8_t>(space);
  op.r[4] = 0;
  if (operand.kind != Operand::Kind::kAddress) return unsupported();
  if (operand.parts.empty()) return;
  const Operand& base = operand.parts[0];
  if (const Ref ref = register_of(base); ref != kNoRef) {
    if (space == Space::kEntryParam) {
      if (!function_.is_entry) return unsupported();
      op.a = static_cast<std::uint8_t>(Space::kGeneric);
    }
    op.r[4] = ref;
    op.e = static_cast<std::uint8_t>(width_of(ref));
    op.flags |= kAddressed;
    op.uses |= 1u << 4;
    if (op.e != 4 && op.e != 8) unsupported();
    return;
  }
  const ptx::Variable* variable = variable_of(base);
  if (!variable) return unsupported();
  switch (variable->space) {
    case ptx::Space::kShared:
      op.a = static_cast<std::uint8_t>(Space::kShared);
      op.imm += context_.shared_offsets.at(variable);
      return;
    case ptx::Space::kGlobal:
    case ptx::Space::kConst: {
      const auto found = context_.symbols.find(std::string(variable->name));
      if (found == context_.symbols.end()) return unsupported();
      if (space == Space::kGeneric) {
        op.a = static_cast<std::uint8_t>(variable->space == ptx::Space::kConst ? Space::kConst
                                                                               : Space::kGlobal);
      }
      op.imm += static_cast<std::int64_t>(found->second);
      return;
    }
    case ptx::Space::kLocal:
      if (base.reference == ptx::Reference::kGlobal) return unsupported();
      op.a = static_cast<std::uint8_t>(Space::kLocal);
      op.flags |= kFrameRelative;
      op.imm += places_[key_of(function_, base)];
      return;
    case ptx::Space::kParam: {
      if (base.reference == ptx::Reference::kGlobal) return unsupported();
      const std::uint32_t place = places_[key_of(function_, base)];
      if (function_.is_entry && base.reference == ptx::Reference::kParameter) {
        op.a = static_cast<std::uint8_t>(Space::kEntryParam);
        op.imm += place;
        return;
      }
      op.a = static_cast<std::uint8_t>(Space::kFrameParam);
      op.target = place;
      const std::uint64_t room = (variable->bytes + kPieceBytes - 1) / kPieceBytes * kPieceBytes;
      if (op.imm < 0 || static_cast<std::uint64_t>(op.imm) + bytes > room || op.imm % bytes != 0) {
        unsupported();
      }
      return;
    }
    default:
      unsupported();
  }
}

}  // namespace slate::sim
