// Matrix instructions: wmma, mma, ldmatrix, stmatrix, movmatrix. Only the shapes and types that the
// PTX manual lists for compute capability 9.0 are known; sparse matrices and wgmma are not.
#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <utility>

#include "device/sim/decode.h"

namespace slate::sim {
namespace {

using ptx::Instruction;
using ptx::Operand;
using ptx::Type;
using enum MatrixType;

std::optional<MatrixType> matrix_type(std::string_view name) {
  constexpr std::pair<std::string_view, MatrixType> kNames[] = {
      {"f16", kF16}, {"bf16", kBf16}, {"e4m3", kE4m3}, {"e5m2", kE5m2}, {"tf32", kTf32},
      {"f32", kF32}, {"f64", kF64},   {"s8", kS8},     {"u8", kU8},     {"s4", kS4},
      {"u4", kU4},   {"b1", kB1},     {"s32", kS32}};
  for (const auto& [text, type] : kNames) {
    if (text == name) return type;
  }
  return std::nullopt;
}

/// "m16n8k4"; nullopt for anything else.
std::optional<MatrixShape> matrix_shape(std::string_view name) {
  MatrixShape shape;
  const auto take = [&name](char letter, std::uint16_t& value) {
    if (!name.starts_with(letter)) return false;
    const char* const end = name.data() + name.size();
    const auto [rest, error] = std::from_chars(name.data() + 1, end, value);
    if (error != std::errc()) return false;
    name.remove_prefix(static_cast<std::size_t>(rest - name.data()));
    return true;
  };
  const bool known = take('m', shape.m) && take('n', shape.n) && take('k', shape.k);
  return known && name.empty() ? std::optional(shape) : std::nullopt;
}

/// The modifiers of a matrix instruction, sorted.
struct Words {
  MatrixShape shape;
  std::vector<MatrixType> types;
  std::vector<bool> by_column;
  std::vector<std::string_view> others;

  explicit Words(const Instruction& instruction) {
    for (const std::string_view word : instruction.modifiers) {
      if (const auto its_shape = matrix_shape(word)) {
        shape = *its_shape;
      } else if (const auto type = matrix_type(word)) {
        types.push_back(*type);
      } else if (word == "row" || word == "col") {
        by_column.push_back(word == "col");
      } else {
        others.push_back(word);
      }
    }
  }
  bool others_are(std::initializer_list<std::string_view> known) const {
    return std::ranges::all_of(others, [&](std::string_view word) {
      return std::ranges::find(known, word) != known.end();
    });
  }
};

enum class Family : std::uint8_t { kWmma, kMma };

bool is_integer(MatrixType type) {
  return type == kS8 || type == kU8 || type == kS4 || type == kU4 || type == kB1;
}

/// The manual's table of shapes, by the type of A (kS8 and kS4 also for the unsigned,
/// kE4m3 for kE5m2).
bool is_shape_of(Family family, MatrixType type, MatrixShape shape) {
  struct Row {
    MatrixType type;
    std::array<MatrixShape, 4> shapes;
  };
  static constexpr Row kWmmaShapes[] = {
      {kF16, {{{16, 16, 16}, {32, 8, 16}, {8, 32, 16}}}},
      {kBf16, {{{16, 16, 16}, {32, 8, 16}, {8, 32, 16}}}},
      {kS8, {{{16, 16, 16}, {32, 8, 16}, {8, 32, 16}}}},
      {kTf32, {{{16, 16, 8}}}},
      {kF64, {{{8, 8, 4}}}},
      {kS4, {{{8, 8, 32}}}},
      {kB1, {{{8, 8, 128}}}},
  };
  static constexpr Row kMmaShapes[] = {
      {kF16, {{{8, 8, 4}, {16, 8, 8}, {16, 8, 16}}}},
      {kBf16, {{{16, 8, 8}, {16, 8, 16}}}},
      {kTf32, {{{16, 8, 4}, {16, 8, 8}}}},
      {kE4m3, {{{16, 8, 16}, {16, 8, 32}}}},
      {kF64, {{{8, 8, 4}, {16, 8, 4}, {16, 8, 8}, {16, 8, 16}}}},
      {kS8, {{{8, 8, 16}, {16, 8, 16}, {16, 8, 32}}}},
      {kS4, {{{8, 8, 32}, {16, 8, 32}, {16, 8, 64}}}},
      {kB1, {{{8, 8, 128}, {16, 8, 128}, {16, 8, 256}}}},
  };
  const MatrixType listed = type == kU8 ? kS8 : type == kU4 ? kS4 : type == kE5m2 ? kE4m3 : type;
  const auto find = [&](const auto& rows) {
    return std::ranges::any_of(rows, [&](const Row& row) {
      return row.type == listed && shape.m != 0 &&
             std::ranges::find(row.shapes, shape) != row.shapes.end();
    });
  };
  return family == Family::kWmma ? find(kWmmaShapes) : find(kMmaShapes);
}

bool are_types_of_product(const MatrixProduct& p) {
  const auto accumulates = [&](MatrixType type) { return p.c == type && p.d == type; };
  const auto is_half_or_float = [](MatrixType type) { return type == kF16 || type == kF32; };
  const auto both = [&](MatrixType one, MatrixType other) {
    return (p.a == one || p.a == other) && (p.b == one || p.b == other);
  };
  if (both(kF16, kF16) || both(kE4m3, kE5m2)) return is_half_or_float(p.c) && is_half_or_float(p.d);
  if (both(kBf16, kBf16) || both(kTf32, kTf32)) return accumulates(kF32);
  if (both(kF64, kF64)) return accumulates(kF64);
  return (both(kS8, kU8) || both(kS4, kU4) || both(kB1, kB1)) && accumulates(kS32);
}

std::uint32_t register_width(MatrixType type) {
  return type == kF64 ? 8 : 4;
}

/// What counts as one element in memory and in a register: 32 bits of what is smaller than a byte.
unsigned unit_bits(MatrixType type) {
  const unsigned bits = matrix_bits(type);
  return bits < 8 ? 32 : bits;
}

FragmentLayout layout_in_units(Fragment which, MatrixShape shape, MatrixType type) {
  return layout_of(which, shape, type, unit_bits(type));
}

/// Registers of the fragments of f16 and of wmma, which has them twice.
constexpr std::size_t kRepeatedHalves = 8;

}  // namespace

std::vector<Ref> FunctionDecoder::fragment(const Operand& operand, std::uint32_t width,
                                           std::size_t count, std::size_t repeated, bool written) {
  const std::vector<Operand> parts = parts_of(operand);
  std::vector<Ref> refs;
  if (parts.size() != count && parts.size() != repeated) bad_ = true;
  for (const Operand& part : parts) {
    if (bad_) break;
    if (written) {
      refs.push_back(destination(part, width));
    } else {
      const Ref ref = source(part, width == 8 ? Type::kB64 : Type::kB32);
      refs.push_back(bad_ ? kNoRef : fit_source(ref, width));
    }
  }
  return refs;
}

void FunctionDecoder::emit_matrix(Op op, MatrixSite site) {
  if (bad_) return;
  op.r[5] = context_.constant(kAllLanes, 4);
  op.uses |= bit(5);
  op.target = static_cast<std::uint32_t>(context_.code.matrices.size());
  context_.code.matrices.push_back(std::move(site));
  emit_as(Kind::kMatrix, op);
}

void FunctionDecoder::decode_product(const Instruction& instruction, const MatrixProduct& product,
                                     bool repeats) {
  if (instruction.operands.size() != 4) return unsupported();
  MatrixSite site;
  site.action = MatrixAction::kMultiply;
  site.product = product;
  const auto part = [&](std::size_t at, Fragment which, MatrixType type) {
    std::size_t count = layout_in_units(which, product.shape, type).registers();
    if (product.quad_pairs) {
      count = which == Fragment::kAccumulator ? (type == kF16 ? 4 : 8) : 2;
    }
    const bool twice = repeats && type == kF16 && which != Fragment::kAccumulator;
    return fragment(instruction.operands[at], register_width(type), count,
                    twice ? kRepeatedHalves : 0, at == 0);
  };
  site.written = part(0, Fragment::kAccumulator, product.d);
  site.a = part(1, Fragment::kA, product.a);
  site.b = part(2, Fragment::kB, product.b);
  site.c = part(3, Fragment::kAccumulator, product.c);
  emit_matrix({}, std::move(site));
}

void FunctionDecoder::decode_wmma(const Instruction& instruction) {
  if (instruction.has("load") || instruction.has("store")) {
    return decode_wmma_memory(instruction, instruction.has("store"));
  }
  // wmma.mma{.op.popc}.sync.aligned.LAYOUT.LAYOUT.SHAPE.TYPE...; f16 names those of D and C only.
  const Words words(instruction);
  if (!instruction.has("mma") || words.by_column.size() != 2 ||
      !words.others_are({"mma", "sync", "aligned", "satfinite", "xor", "and", "popc", "rn"})) {
    return unsupported();
  }
  MatrixProduct p;
  p.shape = words.shape;
  const std::vector<MatrixType>& types = words.types;
  if (types.size() == 2) {
    p.d = types[0];
    p.c = types[1];
  } else if (types.size() == 4) {
    p = {.shape = words.shape, .a = types[1], .b = types[2], .c = types[3], .d = types[0]};
  } else {
    return unsupported();
  }
  p.saturates = instruction.has("satfinite");
  p.takes_and = instruction.has("and");
  const bool counts = instruction.has("popc");
  if (!are_types_of_product(p) || !is_shape_of(Family::kWmma, p.a, p.shape) ||
      counts != (p.a == kB1) || (p.saturates && (!is_integer(p.a) || p.a == kB1)) ||
      (instruction.has("rn") && p.a != kF64)) {
    return unsupported();
  }
  decode_product(instruction, p, true);
}

void FunctionDecoder::decode_wmma_memory(const Instruction& instruction, bool stores) {
  const Words words(instruction);
  const bool of_a = instruction.has("a");
  const bool of_b = instruction.has("b");
  if (words.types.size() != 1 || words.by_column.size() != 1 ||
      !words.others_are({"load", "store", "a", "b", "c", "d", "sync", "aligned", "global", "shared",
                         "shared::cta"})) {
    return unsupported();
  }
  const MatrixType type = words.types[0];
  const Fragment which = of_a ? Fragment::kA : of_b ? Fragment::kB : Fragment::kAccumulator;
  constexpr MatrixType kTypes[] = {kF16, kBf16, kTf32, kF64, kS8, kS4, kB1};
  const bool accumulates = std::ranges::any_of(kTypes, [&](MatrixType of) {
    const MatrixProduct p{.shape = words.shape, .a = of, .b = of, .c = type, .d = type};
    return are_types_of_product(p) && is_shape_of(Family::kWmma, of, p.shape);
  });
  const bool known =
      which == Fragment::kAccumulator ? accumulates : is_shape_of(Family::kWmma, type, words.shape);
  const bool small = matrix_bits(type) < 8;
  const bool by_column = words.by_column[0];
  if (!known || (small && by_column != of_b)) return unsupported();
  MatrixSite site;
  site.action = stores ? MatrixAction::kStore : MatrixAction::kLoad;
  site.layout = layout_in_units(which, words.shape, type);
  site.unit = unit_bits(type) / 8;
  site.units_of_stride = small ? 32 / matrix_bits(type) : 1;
  site.inner_is_contiguous = by_column == of_b;
  const Operand* data = operand(instruction, stores ? 1 : 0);
  const Operand* address = operand(instruction, stores ? 0 : 1);
  if (!data || !address) return;
  const std::size_t repeated =
      type == kF16 && which != Fragment::kAccumulator ? kRepeatedHalves : 0;
  (stores ? site.a : site.written) =
      fragment(*data, register_width(type), site.layout.registers(), repeated, !stores);
  Op op;
  set_address(op, *address, space_of(instruction), 1);
  const std::uint32_t natural =
      (site.inner_is_contiguous ? site.layout.inner : site.layout.outer) * site.units_of_stride;
  op.r[0] = instruction.operands.size() > 2
                ? fit_source(source(instruction.operands[2], Type::kU32), 4)
                : context_.constant(natural, 4);
  op.uses |= bit(0);
  emit_matrix(op, std::move(site));
}

void FunctionDecoder::decode_mma(const Instruction& instruction) {
  // mma.sync.aligned.SHAPE.LAYOUT.LAYOUT.D.A.B.C{.op.popc}
  const Words words(instruction);
  if (words.types.size() != 4 || words.by_column.size() != 2 ||
      !words.others_are({"sync", "aligned", "satfinite", "xor", "and", "popc", "rn"})) {
    return unsupported();
  }
  const std::vector<MatrixType>& types = words.types;
  MatrixProduct p{.shape = words.shape, .a = types[1], .b = types[2], .c = types[3], .d = types[0]};
  p.saturates = instruction.has("satfinite");
  p.takes_and = instruction.has("and");
  p.quad_pairs = p.a == kF16 && p.shape == MatrixShape{8, 8, 4};
  p.a_by_column = words.by_column[0];
  p.b_by_column = words.by_column[1];
  if (!are_types_of_product(p) || !is_shape_of(Family::kMma, p.a, p.shape) ||
      (!p.quad_pairs && (p.a_by_column || !p.b_by_column)) ||
      instruction.has("popc") != (p.a == kB1) ||
      (p.saturates && (!is_integer(p.a) || p.a == kB1)) || (instruction.has("rn") && p.a != kF64)) {
    return unsupported();
  }
  decode_product(instruction, p, false);
}

/// ldmatrix and stmatrix of one, two or four matrices of 8 * 8 elements of 16 bits.
void FunctionDecoder::decode_matrix_rows(const Instruction& instruction) {
  const bool stores = instruction.opcode == "stmatrix";
  const std::size_t count = instruction.has("x4") ? 4 : instruction.has("x2") ? 2 : 1;
  const bool known = std::ranges::all_of(instruction.modifiers, [](std::string_view word) {
    constexpr std::string_view kWords[] = {"sync", "aligned", "m8n8",   "x1",          "x2",
                                           "x4",   "trans",   "shared", "shared::cta", "b16"};
    return std::ranges::find(kWords, word) != std::end(kWords);
  });
  if (!known || !instruction.has("m8n8") || instruction.type() != Type::kB16) return unsupported();
  const Operand* data = operand(instruction, stores ? 1 : 0);
  const Operand* address = operand(instruction, stores ? 0 : 1);
  if (!data || !address) return;
  MatrixSite site;
  site.action = stores ? MatrixAction::kStoreRows : MatrixAction::kLoadRows;
  site.transposes = instruction.has("trans");
  (stores ? site.a : site.written) = fragment(*data, 4, count, 0, !stores);
  Op op;
  set_address(op, *address, space_of(instruction), 1);
  emit_matrix(op, std::move(site));
}

void FunctionDecoder::decode_movmatrix(const Instruction& instruction) {
  const Operand* d = operand(instruction, 0);
  const Operand* a = operand(instruction, 1);
  if (!d || !a || !instruction.has("m8n8") || !instruction.has("trans") ||
      instruction.type() != Type::kB16) {
    return unsupported();
  }
  MatrixSite site;
  site.action = MatrixAction::kTranspose;
  site.written = fragment(*d, 4, 1, 0, true);
  site.a = fragment(*a, 4, 1, 0, false);
  emit_matrix({}, std::move(site));
}

}  // namespace slate::sim
