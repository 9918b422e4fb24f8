// Operands: what names, numbers and addresses of PTX stand for, as references that need no look-up
// later.
#include "device/sim/decode.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>

namespace slate::sim {
namespace {

using ptx::Operand;
using ptx::Type;

constexpr std::uint32_t kNone = 0xffffffffu;
constexpr std::uint64_t kMaxFrameBytes = 16u << 20;
constexpr std::uint64_t kMaxLocalBytes = 512u << 10;  // per thread, as CUDA

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
  if (first == kNone) return kNoRef;
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
  if (operand.reference == ptx::Reference::kFunction) {
    const auto address = function_address(context_.module, operand.text);
    if (address) return context_.constant(*address, 8);
    return bad_ = true, kNoRef;
  }
  const ptx::Variable* variable = variable_of(operand);
  if (!variable) return bad_ = true, kNoRef;
  if (variable->space == ptx::Space::kShared) {
    return context_.constant(context_.shared_offsets.at(variable), 8);
  }
  if (variable->space == ptx::Space::kGlobal || variable->space == ptx::Space::kConst) {
    const auto found = context_.symbols.find(std::string(variable->name));
    if (found == context_.symbols.end()) return bad_ = true, kNoRef;
    return context_.constant(found->second, 8);
  }
  const bool is_local = variable->space == ptx::Space::kLocal;
  const bool is_entry_parameter = variable->space == ptx::Space::kParam && function_.is_entry &&
                                  operand.reference == ptx::Reference::kParameter;
  if ((!is_local && !is_entry_parameter) || operand.reference == ptx::Reference::kGlobal) {
    return bad_ = true, kNoRef;
  }
  const Ref d = new_register(8);
  Op& op = emit(is_local ? Kind::kLocalAddress : Kind::kParamAddress);
  op.imm = places_[key_of(function_, operand)];
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

FunctionDecoder::FunctionDecoder(DecodeContext& context, const ptx::Function& function,
                                 FunctionCode& out)
    : context_(context), function_(function), out_(out) {}

void FunctionDecoder::declare_parameters(const std::vector<ptx::Variable>& from,
                                         std::vector<Argument>& to, std::uint32_t base_key) {
  for (std::size_t i = 0; i < from.size(); ++i) {
    const ptx::Variable& variable = from[i];
    Argument argument;
    if (variable.space == ptx::Space::kReg) {
      argument.is_register = true;
      argument.width = static_cast<std::uint8_t>(storage_width(variable.type));
      argument.ref = new_register(argument.width);
      registers_[base_key + i] = argument.ref / 64;
    } else {
      argument.bytes = static_cast<std::uint32_t>(variable.bytes);
      argument.offset = parameter_bytes_;
      places_[base_key + i] = parameter_bytes_;
      parameter_bytes_ += (argument.bytes + kPieceBytes - 1) / kPieceBytes * kPieceStride;
    }
    to.push_back(argument);
  }
}

void FunctionDecoder::declare_variables() {
  const std::size_t own = function_.variables.size();
  const std::size_t all = own + function_.parameters.size() + function_.returns.size();
  registers_.assign(all, kNone);
  places_.assign(all, 0);
  for (std::size_t i = 0; i < own; ++i) {
    const ptx::Variable& variable = function_.variables[i];
    if (variable.space == ptx::Space::kReg) {
      registers_[i] = static_cast<std::uint32_t>(widths_.size());
      for (std::uint32_t part = 0; part < variable.vector; ++part) {
        new_register(storage_width(variable.type));
      }
    } else if (variable.space == ptx::Space::kLocal) {
      const std::uint32_t align = variable.align ? variable.align : 1;
      out_.local_bytes = (out_.local_bytes + align - 1) / align * align;
      places_[i] = out_.local_bytes;
      out_.local_bytes += static_cast<std::uint32_t>(variable.bytes);
    } else if (variable.space == ptx::Space::kParam) {
      places_[i] = parameter_bytes_;
      parameter_bytes_ += static_cast<std::uint32_t>((variable.bytes + kPieceBytes - 1) /
                                                     kPieceBytes * kPieceStride);
    }
  }
  out_.local_bytes = (out_.local_bytes + 15) / 16 * 16;
  const auto key = static_cast<std::uint32_t>(own);
  if (!function_.is_entry) {
    declare_parameters(function_.parameters, out_.parameters, key);
    declare_parameters(function_.returns, out_.returns,
                       key + static_cast<std::uint32_t>(function_.parameters.size()));
    return;
  }
  for (std::size_t i = 0; i < function_.parameters.size(); ++i) {
    places_[own + i] = context_.code.info_.parameters[i].offset;
  }
}

void FunctionDecoder::decode_instruction(const ptx::Instruction& instruction) {
  Code& code = context_.code;
  const std::size_t begin = code.ops.size();
  const std::size_t first_branch = branch_fixups_.size();
  const std::size_t first_table = table_fixups_.size();
  current_ = &instruction;
  bad_ = false;
  guard_ = kNoRef;
  if (instruction.guard) {
    guard_ = register_of(*instruction.guard);
    require_predicate(guard_);
  }
  if (!bad_) {
    const auto handler = handlers().find(instruction.opcode);
    if (handler != handlers().end()) {
      (this->*handler->second)(instruction);
    } else {
      decode_alu(instruction);
    }
  }
  if (!bad_) return;
  code.ops.resize(begin);
  code.texts.resize(begin);
  branch_fixups_.resize(first_branch);
  table_fixups_.resize(first_table);
  if (guard_ != kNoRef && !is_predicate(guard_)) guard_ = kNoRef;
  emit(Kind::kUnknown);
  const ptx::Span span = instruction.opcode_span;
  std::string text(
      std::string_view(context_.module.text).substr(span.begin, span.end - span.begin));
  if (instruction.opcode == "call") {
    for (const Operand& part : instruction.operands) {
      if (part.kind == Operand::Kind::kSymbol) {
        text += ' ';
        text += part.text;
      }
    }
  }
  code.unknown.push_back({instruction.line, std::move(text)});
}

Result<void> FunctionDecoder::decode() {
  Code& code = context_.code;
  for (const auto* group : {&function_.variables, &function_.parameters, &function_.returns}) {
    std::uint64_t bytes = 0;
    for (const ptx::Variable& variable : *group) {
      const bool counts =
          variable.space == ptx::Space::kLocal || variable.space == ptx::Space::kParam;
      if (counts) bytes += std::min<std::uint64_t>(variable.bytes, kMaxLocalBytes + 1);
      if (variable.align > 4096 || bytes > kMaxLocalBytes) {
        return fail(ErrorCode::kOutOfResources,
                    fmt::format("function {} needs too much local memory", out_.name));
      }
    }
  }
  declare_variables();
  out_.first = static_cast<std::uint32_t>(code.ops.size());
  first_call_ = static_cast<std::uint32_t>(code.calls.size());
  for (const ptx::Instruction& instruction : function_.instructions) {
    first_op_.push_back(static_cast<std::uint32_t>(code.ops.size()));
    decode_instruction(instruction);
  }
  first_op_.push_back(static_cast<std::uint32_t>(code.ops.size()));
  // Running off the end is a return.
  Op end;
  end.kind = Kind::kReturn;
  end.line = function_.instructions.empty() ? function_.line : function_.instructions.back().line;
  code.ops.push_back(end);
  code.texts.push_back({});
  out_.end = static_cast<std::uint32_t>(code.ops.size());
  resolve_targets();
  rank_blocks(code, out_);
  const Allocation allocation = allocate_registers(code, out_, widths_, parameter_bytes_);
  if (allocation.frame_bytes > kMaxFrameBytes) {
    return fail(ErrorCode::kOutOfResources,
                fmt::format("function {} needs {} bytes of registers for a warp", out_.name,
                            allocation.frame_bytes));
  }
  out_.frame_bytes = allocation.frame_bytes;
  peak_registers_ = allocation.peak_registers;
  return {};
}

void FunctionDecoder::resolve_targets() {
  Code& code = context_.code;
  for (const auto& [pc, label] : branch_fixups_) {
    code.ops[pc].target = first_op_[function_.labels[label].target];
  }
  for (const auto& [entry, label] : table_fixups_) {
    code.branch_tables[entry] = first_op_[function_.labels[label].target];
  }
}

}  // namespace slate::sim
