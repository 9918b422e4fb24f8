// Matrix instructions (wmma, mma, ldmatrix, stmatrix, movmatrix): what one of them does, and where
// the elements of a fragment lie in the registers of a warp. Not the arithmetic (alu_matrix.cc),
// nor the memory accesses (exec_matrix.cc). Values and inline functions only, as alu_lanes.h asks
// for. Thread: any.
//
// The places of mma are those of the PTX manual. Those of wmma are not documented. Here they are
// the places of the mma instructions that make up such a product, one behind the other.
#pragma once

#include <cstdint>

#include "device/sim/lanes.h"

namespace slate::sim {

enum class MatrixType : std::uint8_t {
  kF16,
  kBf16,
  kTf32,
  kE4m3,
  kE5m2,
  kF32,
  kF64,
  kS8,
  kU8,
  kS4,
  kU4,
  kB1,
  kS32
};

struct MatrixShape {
  std::uint16_t m = 0, n = 0, k = 0;
  bool operator==(const MatrixShape&) const = default;
};

/// D = A * B + C. A is m by k, B is k by n, C and D are m by n.
struct MatrixProduct {
  MatrixShape shape;
  MatrixType a = MatrixType::kF16;
  MatrixType b = MatrixType::kF16;
  MatrixType c = MatrixType::kF32;
  MatrixType d = MatrixType::kF32;
  bool saturates = false;  // .satfinite, of integers
  bool takes_and = false;  // .and.popc of bits; false: .xor.popc
  // m8n8k4 of f16: four products, each by eight lanes, whose places depend on the two layouts.
  bool quad_pairs = false;
  bool a_by_column = false;
  bool b_by_column = false;
};

/// Most registers of one fragment, and most elements of one matrix.
inline constexpr int kMatrixRegisters = 8;
inline constexpr int kMatrixElements = 1024;

/// The registers of a product's fragments, as pointers to lane storage.
struct MatrixOperands {
  void* d[kMatrixRegisters] = {};
  const void* a[kMatrixRegisters] = {};
  const void* b[kMatrixRegisters] = {};
  const void* c[kMatrixRegisters] = {};
};

/// Multiplies: reads the registers of all lanes and writes those of the lanes in `active`.
using MatrixFn = void (*)(const MatrixProduct& product, const MatrixOperands& operands,
                          Mask active);
/// The function for the host's processor. Its two copies follow; alu_table.h says why there are
/// two.
MatrixFn find_matrix_multiply();
namespace isa_base {
void multiply_matrices(const MatrixProduct& product, const MatrixOperands& operands, Mask active);
}
namespace isa_v3 {
void multiply_matrices(const MatrixProduct& product, const MatrixOperands& operands, Mask active);
}

enum class Fragment : std::uint8_t { kA, kB, kAccumulator };

/// A fragment as a table of outer by inner elements: A and C by row, B by column.
struct FragmentLayout {
  Fragment which = Fragment::kA;
  std::uint16_t outer = 0;       // m; n of a fragment of B
  std::uint16_t inner = 0;       // k; n of an accumulator
  std::uint8_t in_register = 1;  // elements that one register of a lane holds

  /// Number of registers that hold different elements. A fragment with more repeats them.
  [[gnu::always_inline]] constexpr unsigned registers() const {
    return unsigned{outer} * inner / (32u * in_register);
  }
};

/// Where an element lies in its matrix.
struct FragmentPlace {
  unsigned outer = 0;
  unsigned inner = 0;
};

/// The place of element `i` in register `r` of lane 0. Requires: r < registers().
[[gnu::always_inline]] constexpr FragmentPlace first_place(const FragmentLayout& layout, unsigned r,
                                                           unsigned i) {
  if (layout.which == Fragment::kAccumulator) {
    const unsigned element = r * layout.in_register + i;
    const unsigned in_tile = layout.outer < 16 ? 2 : 4;  // of eight columns
    const unsigned tile = element / in_tile;
    const unsigned tiles = layout.inner / 8u;
    return {tile / tiles * 16 + element % in_tile / 2 * 8, tile % tiles * 8 + element % 2};
  }
  const unsigned step = 4u * layout.in_register;  // of k, from one register to the next
  const unsigned steps = layout.inner / step;
  const bool halves = layout.which == Fragment::kA && layout.outer >= 16;  // rows g and g + 8
  const unsigned in_tile = halves ? 2 * steps : steps;
  const unsigned tile = r / in_tile;
  const unsigned rest = r % in_tile;
  return {tile * (halves ? 16 : 8) + (halves ? rest % 2 * 8 : 0),
          (halves ? rest / 2 : rest) * step + i};
}

/// The place of the same element of another lane, from that of lane 0.
[[gnu::always_inline]] constexpr FragmentPlace place_of_lane(const FragmentLayout& layout,
                                                             FragmentPlace first, unsigned lane) {
  const unsigned width = layout.which == Fragment::kAccumulator ? 2 : layout.in_register;
  return {first.outer + lane / 4, first.inner + lane % 4 * width};
}

/// Bits of one element.
[[gnu::always_inline]] constexpr unsigned matrix_bits(MatrixType type) {
  switch (type) {
    case MatrixType::kF16:
    case MatrixType::kBf16:
      return 16;
    case MatrixType::kF64:
      return 64;
    case MatrixType::kE4m3:
    case MatrixType::kE5m2:
    case MatrixType::kS8:
    case MatrixType::kU8:
      return 8;
    case MatrixType::kS4:
    case MatrixType::kU4:
      return 4;
    case MatrixType::kB1:
      return 1;
    default:
      return 32;
  }
}

/// The layout of one operand of a product. `unit`: bits that count as one element: the type's own,
/// or 32 for types smaller than a byte.
[[gnu::always_inline]] constexpr FragmentLayout layout_of(Fragment which, MatrixShape shape,
                                                          MatrixType type, unsigned unit) {
  const unsigned bits = matrix_bits(type);
  const auto in_register = static_cast<std::uint8_t>(unit == 64 ? 1 : 32 / unit);
  const auto k = static_cast<std::uint16_t>(shape.k * bits / unit);
  if (which == Fragment::kA) return {which, shape.m, k, in_register};
  if (which == Fragment::kB) return {which, shape.n, k, in_register};
  return {which, shape.m, shape.n, in_register};
}

}  // namespace slate::sim
