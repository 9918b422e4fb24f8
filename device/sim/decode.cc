// The frame of the decoder: declares a function's variables, decodes its instructions one by one,
// and lays out what came of them.
#include "device/sim/decode.h"

#include <fmt/format.h>

#include <algorithm>

#include "device/sim/modifiers.h"

namespace slate::sim {
namespace {

using ptx::Operand;

// Of a warp. They are the host's memory, beyond what the device counts, so a block of 1024 threads
// must not need much of it.
constexpr std::uint64_t kMaxFrameBytes = 1u << 20;
constexpr std::uint64_t kMostProgramBytes = std::uint64_t{1} << 30;
constexpr std::uint64_t kMaxLocalBytes = 512u << 10;  // per thread, as CUDA

}  // namespace

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
  registers_.assign(all, kNoRef);
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
      if (knows_modifiers(instruction)) {
        (this->*handler->second)(instruction);
      } else {
        unsupported();
      }
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
    // A table of branch targets, say, is repeated for each branch that names it.
    if (code.bytes() > kMostProgramBytes) {
      return fail(ErrorCode::kLimit,
                  fmt::format("line {}: more code than a kernel may have", instruction.line));
    }
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
