// find_alu: makes an instruction's canonical name and looks it up. The tables are made once, on
// first use; which of the two is used depends on the host's processor. Any thread.
#include "device/sim/alu.h"

#include <functional>

#include "device/sim/alu_index.h"
#include "device/sim/matrix.h"

namespace slate::sim {
namespace {

/// The bytes that one lane takes in a register of this type.
std::uint8_t lane_bytes(ptx::Type type) {
  using enum ptx::Type;
  switch (type) {
    case kB8:
    case kU8:
    case kS8:
    case kB16:
    case kU16:
    case kS16:
    case kF16:
    case kBf16:
      return 2;
    case kB32:
    case kU32:
    case kS32:
    case kF32:
    case kF16x2:
    case kBf16x2:
    case kTf32:
      return 4;
    case kB64:
    case kU64:
    case kS64:
    case kF64:
      return 8;
    case kB128:
      return 16;
    default:
      return 0;
  }
}

bool is_float_name(std::string_view name) {
  return name.starts_with('f') || name.starts_with("bf");
}

/// What is left out: a ".rn" that is the default, a ".sat" that float to integer implies; "mad" of
/// floats is "fma". And a ".relu" behind the type, as nvcc writes it, stands before it.
std::string canonical_name(const ptx::Instruction& instruction) {
  const std::vector<std::string_view>& modifiers = instruction.modifiers;
  const std::string_view last = modifiers.empty() ? std::string_view() : modifiers.back();
  std::string_view opcode = instruction.opcode;
  const bool is_sum = opcode == "add" || opcode == "sub" || opcode == "mul";
  const bool fused = opcode == "mad" && is_float_name(last);
  const bool to_integer = opcode == "cvt" && modifiers.size() >= 2 && is_float_name(last) &&
                          !is_float_name(modifiers[modifiers.size() - 2]) &&
                          (instruction.modifiers.front().ends_with('i'));
  const bool extreme = opcode == "min" || opcode == "max";
  const bool three = extreme && instruction.operands.size() == 4;
  std::string name(fused ? "fma" : opcode);
  if (three) name += "/3";
  const bool rounds =
      !modifiers.empty() && modifiers.front().size() == 2 && modifiers.front().starts_with('r');
  if (fused && !rounds) name += ".rn";
  const bool relu_last = extreme && modifiers.size() >= 2 && last == "relu";
  for (std::size_t i = 0; i < modifiers.size(); ++i) {
    std::string_view modifier = modifiers[i];
    if (is_sum && modifier == "rn") continue;
    if (to_integer && modifier == "sat") continue;
    if (relu_last && i + 2 == modifiers.size()) modifier = last;
    if (relu_last && i + 1 == modifiers.size()) modifier = modifiers[i - 1];
    name += '.';
    name += modifier;
  }
  return name;
}

/// "" when the registers are as wide as the types, ".w4:8" when they are not but may be, else
/// nullopt.
std::optional<std::string> width_part(const AluOp& op, const OperandWidths& widths, bool is_cvt) {
  const auto width = [](std::uint8_t given, ptx::Type type) {
    return given != 0 ? given : lane_bytes(type);
  };
  bool same = width(widths.d, op.d) == lane_bytes(op.d);
  for (int k = 0; k < op.sources; ++k)
    same = same && width(widths.s[k], op.s[k]) == lane_bytes(op.s[k]);
  if (same) return "";
  if (!is_cvt || op.sources != 1) return std::nullopt;
  return ".w" + std::to_string(width(widths.d, op.d)) + ':' +
         std::to_string(width(widths.s[0], op.s[0]));
}

}  // namespace

void add_entry(AluTable& table, const AluName& name, const AluOp& op) {
  std::string text;
  for (const char* part : name.part) {
    if (part == nullptr) continue;
    if (!text.empty()) text += '.';
    text += part;
  }
  table.entries_.insert_or_assign(std::move(text), op);
}

bool alu_isa_supported(AluIsa isa) {
#if defined(__x86_64__)
  return isa == AluIsa::kBase || __builtin_cpu_supports("x86-64-v3");
#else
  return isa == AluIsa::kBase;
#endif
}

const AluTable& AluTable::of(AluIsa isa) {
  const auto make = [](std::initializer_list<void (*)(AluTable&)> fills) {
    AluTable table;
    for (const auto fill : fills) fill(table);
    return table;
  };
#define SLATE_FILLS(n)                                                                          \
  {                                                                                             \
    n::fill_integer, n::fill_carry, n::fill_bits, n::fill_video, n::fill_float, n::fill_approx, \
        n::fill_half, n::fill_compare, n::fill_convert, n::fill_pack                            \
  }
  if (isa == AluIsa::kBase) {
    static const AluTable base = make(SLATE_FILLS(isa_base));
    return base;
  }
  static const AluTable v3 = make(SLATE_FILLS(isa_v3));
  return v3;
#undef SLATE_FILLS
}

MatrixFn find_matrix_multiply() {
  return alu_isa_supported(AluIsa::kV3) ? &isa_v3::multiply_matrices : &isa_base::multiply_matrices;
}

const AluOp* AluTable::find(std::string_view name) const {
  const auto found = entries_.find(name);
  return found == entries_.end() ? nullptr : &found->second;
}

std::optional<AluOp> find_alu(const ptx::Instruction& instruction, const OperandWidths& widths) {
  static const AluTable& table =
      AluTable::of(alu_isa_supported(AluIsa::kV3) ? AluIsa::kV3 : AluIsa::kBase);
  const std::string name = canonical_name(instruction);
  const AluOp* op = table.find(name);
  if (op == nullptr) return std::nullopt;
  const auto suffix = width_part(*op, widths, instruction.opcode == "cvt");
  if (!suffix) return std::nullopt;
  if (!suffix->empty()) op = table.find(name + *suffix);
  if (op == nullptr || instruction.operands.size() != op->sources + 1u) return std::nullopt;
  return *op;
}

}  // namespace slate::sim
