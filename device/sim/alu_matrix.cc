// The products of wmma and mma. Integers and bits are exact, and wrap or saturate at the end. f64
// is one fused multiply-add after the other, k rising.
//
// Narrower floats do as far as is known what the hardware of compute capability 9.0 does, which is
// not IEEE arithmetic: the products are exact; they and C are aligned to the largest exponent among
// them; what lies more than 25 bits below is cut off from each; their sum is exact, and is
// truncated to f32 or rounded to the nearest f16. Of fp8 only 13 bits below are kept, and in an
// f32. So sums that need no more bits are exact. Pure functions, any thread.
#include "device/sim/alu_narrow.h"
#include "device/sim/matrix.h"

namespace slate::sim::SLATE_ALU_ISA {
namespace {

constexpr int kFractionBits = 25;       // below the largest exponent
constexpr int kFractionBitsOfFp8 = 13;  // the same
constexpr s32 kNoExponent = -1000;
constexpr s32 kLeastExponent = -400;
constexpr unsigned kFloatElements = 512;  // of the largest matrix of floats

constexpr s32 greater(s32 a, s32 b) {
  return a > b ? a : b;
}

/// Where the elements of one register go in a table: those of lane 4 * g + q are at
/// first + g * group_step + q * lane_step.
struct Steps {
  unsigned first, group_step, lane_step;
};
/// The table is outer * inner elements, row by row, or the other way round if `transposed`.
Steps steps_of(const FragmentLayout& layout, unsigned r, unsigned i, bool transposed) {
  const FragmentPlace first = first_place(layout, r, i);
  const FragmentPlace next = place_of_lane(layout, first, 1);
  const unsigned step = next.inner - first.inner;
  if (transposed) return {first.inner * layout.outer + first.outer, 1, step * layout.outer};
  return {first.outer * layout.inner + first.inner, layout.inner, step};
}

/// The bits of all elements, as a table.
void gather(const FragmentLayout& layout, const void* const* registers, bool transposed,
            u32* table) {
  const unsigned bits = layout.in_register == 1 ? 32 : 32u / layout.in_register;
  const u32 mask = bits == 32 ? ~0u : (1u << bits) - 1;
  for (unsigned r = 0; r < layout.registers(); ++r) {
    const auto* const lanes = static_cast<const u32*>(registers[r]);
    for (unsigned i = 0; i < layout.in_register; ++i) {
      const Steps steps = steps_of(layout, r, i, transposed);
      for (unsigned g = 0; g < 8; ++g) {
        u32* const row = table + steps.first + g * steps.group_step;
        for (unsigned q = 0; q < 4; ++q)
          row[q * steps.lane_step] = lanes[4 * g + q] >> (i * bits) & mask;
      }
    }
  }
}

/// The way back, of an accumulator.
void scatter(const FragmentLayout& layout, void* const* registers, Mask active, const u32* table) {
  for (unsigned r = 0; r < layout.registers(); ++r) {
    alignas(kRegisterAlign) u32 words[kWarpSize] = {};
    for (unsigned i = 0; i < layout.in_register; ++i) {
      const Steps steps = steps_of(layout, r, i, false);
      for (unsigned lane = 0; lane < kWarpSize; ++lane) {
        words[lane] |= table[steps.first + lane / 4 * steps.group_step + lane % 4 * steps.lane_step]
                       << (i * 16);
      }
    }
    const Source<u32> from(words);
    for_lanes<u32>(registers[r], active, [=](int lane) { return from.at(lane); });
  }
}

/// The place of an m8n8k4 product of f16: element `i` of a lane of quad pair (lane / 4) % 4.
FragmentPlace quad_place(const MatrixProduct& product, Fragment which, MatrixType type,
                         unsigned lane, unsigned i) {
  const unsigned high = lane >= 16 ? 4 : 0;
  const unsigned in_quad = lane % 4;
  if (which == Fragment::kA) {
    if (product.a_by_column) return {i + high, in_quad};
    return {in_quad + high, i};
  }
  if (which == Fragment::kB) {
    if (product.b_by_column) return {in_quad + high, i};
    return {i + high, in_quad};
  }
  if (type == MatrixType::kF16) return {in_quad + high, i};
  return {lane % 2 + (i & 2) + high, (i & 4) + (lane & 2) + i % 2};
}

/// As gather(), of quad pair `pair`.
void gather_quads(const MatrixProduct& product, Fragment which, MatrixType type, unsigned pair,
                  const void* const* registers, u32* table) {
  const unsigned in_register = type == MatrixType::kF16 ? 2 : 1;
  const unsigned elements = which == Fragment::kAccumulator ? 8 : 4;
  for (unsigned lane = 0; lane < kWarpSize; ++lane) {
    if (lane / 4 % 4 != pair) continue;
    for (unsigned i = 0; i < elements; ++i) {
      const u32 word = static_cast<const u32*>(registers[i / in_register])[lane];
      const FragmentPlace place = quad_place(product, which, type, lane, i);
      const unsigned at = which == Fragment::kB ? place.inner * 8 + place.outer
                                                : place.outer * elements + place.inner;
      table[at] = in_register == 2 ? word >> (i % 2 * 16) & 0xffff : word;
    }
  }
}

constexpr bool is_fp8(MatrixType type) {
  return type == MatrixType::kE4m3 || type == MatrixType::kE5m2;
}

/// A matrix of floats, row by row, with the exponents that the hardware sees.
struct FloatMatrix {
  alignas(kRegisterAlign) u32 bits[kFloatElements];
  alignas(kRegisterAlign) float value[kFloatElements];
  alignas(kRegisterAlign) s32 exponent[kFloatElements];
  bool finite = true;

  /// Of the first `count` bits.
  void decode_as(MatrixType type, unsigned count) {
    switch (type) {
      case MatrixType::kF16:
        return decode_each(count, -14, [](u32 x) { return decode(f16{static_cast<u16>(x)}); });
      case MatrixType::kBf16:
        return decode_each(count, -126, [](u32 x) { return decode(bf16{static_cast<u16>(x)}); });
      case MatrixType::kE4m3:
        return decode_each(count, -6, [](u32 x) { return decode_e4m3(x); });
      case MatrixType::kE5m2:
        return decode_each(count, -14, [](u32 x) { return decode_e5m2(x); });
      case MatrixType::kTf32:
        return decode_each(count, -126, [](u32 x) { return float_of(x & ~0x1fffu); });
      default:
        return decode_each(count, -126, [](u32 x) { return float_of(x); });
    }
  }

 private:
  /// Denormals have the exponent of the least normal number, zeros none.
  template <class F>
  void decode_each(unsigned count, s32 least, F f) {
    u32 special = 0;
    for (unsigned i = 0; i < count; ++i) {
      const float x = f(bits[i]);
      const s32 field = static_cast<s32>(bits_of(x) >> 23 & 0xff);
      value[i] = x;
      exponent[i] = (bits_of(x) & 0x7fffffff) == 0 ? kNoExponent : greater(field - 127, least);
      special |= field == 0xff ? 1 : 0;
    }
    finite = special == 0;
  }
};

/// A product before its results are rounded to their type.
struct FloatProduct {
  MatrixShape shape;
  int fraction = kFractionBits;
  FloatMatrix a, b, c;  // of m * k, k * n and m * n
  double d[kFloatElements];

  explicit FloatProduct(const MatrixProduct& p)
      : shape(p.shape), fraction(is_fp8(p.a) ? kFractionBitsOfFp8 : kFractionBits) {}

  void multiply(const MatrixProduct& p) {
    a.decode_as(p.a, unsigned{shape.m} * shape.k);
    b.decode_as(p.b, unsigned{shape.k} * shape.n);
    c.decode_as(p.c, unsigned{shape.m} * shape.n);
    for (unsigned i = 0; i < shape.m; ++i) {
      if (shape.n == 8) multiply_row<8>(i);
      if (shape.n == 16) multiply_row<16>(i);
      if (shape.n == 32) multiply_row<32>(i);
    }
    if (!a.finite || !b.finite || !c.finite) multiply_specials();
  }
  /// The results as bits of `type`.
  void encode_as(MatrixType type, u32* bits) const {
    const unsigned count = unsigned{shape.m} * shape.n;
    if (type == MatrixType::kF16) {
      for (unsigned i = 0; i < count; ++i) bits[i] = encode_half<f16>(to_float_odd(d[i])).bits;
      return;
    }
    const u32 kept = ~0u << (fraction < 23 ? 23 - fraction : 0);
    for (unsigned i = 0; i < count; ++i) bits[i] = truncated(d[i], kept);
  }

 private:
  template <unsigned kColumns>
  void multiply_row(unsigned i) {
    s32 most[kColumns];
    double scale[kColumns];
    double sum[kColumns];
    for (unsigned j = 0; j < kColumns; ++j) most[j] = c.exponent[i * kColumns + j];
    for (unsigned k = 0; k < shape.k; ++k) {
      const s32 e = a.exponent[i * shape.k + k];
      const s32* const of_b = b.exponent + k * kColumns;
      for (unsigned j = 0; j < kColumns; ++j) most[j] = greater(most[j], e + of_b[j]);
    }
    for (unsigned j = 0; j < kColumns; ++j) {
      most[j] = greater(most[j], kLeastExponent);
      scale[j] = power_of_two(fraction - most[j]);
      sum[j] = cut(static_cast<double>(c.value[i * kColumns + j]) * scale[j]);
    }
    for (unsigned k = 0; k < shape.k; ++k) {
      const double x = static_cast<double>(a.value[i * shape.k + k]);
      const float* const of_b = b.value + k * kColumns;
      for (unsigned j = 0; j < kColumns; ++j)
        sum[j] += cut(x * static_cast<double>(of_b[j]) * scale[j]);
    }
    for (unsigned j = 0; j < kColumns; ++j)
      d[i * kColumns + j] = sum[j] * power_of_two(most[j] - fraction);
  }
  [[gnu::always_inline]] static double power_of_two(s32 exponent) {
    return double_of(static_cast<u64>(1023 + exponent) << 52);
  }
  /// What is finite is less than 2^27 here.
  [[gnu::always_inline]] static double cut(double x) {
    return static_cast<double>(static_cast<s32>(x));
  }
  /// Infinities and NaN follow IEEE's rules.
  void multiply_specials() {
    for (unsigned i = 0; i < shape.m; ++i) {
      for (unsigned j = 0; j < shape.n; ++j) {
        double sum = static_cast<double>(c.value[i * shape.n + j]);
        for (unsigned k = 0; k < shape.k; ++k) {
          sum += static_cast<double>(a.value[i * shape.k + k]) *
                 static_cast<double>(b.value[k * shape.n + j]);
        }
        const bool special = (bits_of(sum) & 0x7ff0000000000000) == 0x7ff0000000000000;
        if (special) d[i * shape.n + j] = sum;
      }
    }
  }
  /// The `kept` bits of the float next to x on the side of zero; infinity from 2^128 on.
  [[gnu::always_inline]] static u32 truncated(double x, u32 kept) {
    const float nearest = static_cast<float>(x);
    const double magnitude = x < 0 ? -x : x;
    const double reached = static_cast<double>(nearest < 0 ? -nearest : nearest);
    const u32 back = (reached > magnitude) & (magnitude < 0x1p128) ? 1 : 0;
    return x == x ? (bits_of(nearest) - back) & kept : 0x7fffffff;
  }
};

void multiply_floats(const MatrixProduct& p, const MatrixOperands& o, Mask active) {
  FloatProduct product(p);
  const auto layout = [&](Fragment which, MatrixType type) {
    return layout_of(which, p.shape, type, matrix_bits(type));
  };
  gather(layout(Fragment::kA, p.a), o.a, false, product.a.bits);
  gather(layout(Fragment::kB, p.b), o.b, true, product.b.bits);
  gather(layout(Fragment::kAccumulator, p.c), o.c, false, product.c.bits);
  product.multiply(p);
  u32 d[kFloatElements];
  product.encode_as(p.d, d);
  scatter(layout(Fragment::kAccumulator, p.d), o.d, active, d);
}

void multiply_quad_pairs(const MatrixProduct& p, const MatrixOperands& o, Mask active) {
  const unsigned in_register = p.d == MatrixType::kF16 ? 2 : 1;
  alignas(kRegisterAlign) u32 result[kMatrixRegisters][kWarpSize] = {};
  FloatProduct product(p);
  for (unsigned pair = 0; pair < 4; ++pair) {
    gather_quads(p, Fragment::kA, p.a, pair, o.a, product.a.bits);
    gather_quads(p, Fragment::kB, p.b, pair, o.b, product.b.bits);
    gather_quads(p, Fragment::kAccumulator, p.c, pair, o.c, product.c.bits);
    product.multiply(p);
    u32 d[kFloatElements];
    product.encode_as(p.d, d);
    for (unsigned lane = 0; lane < kWarpSize; ++lane) {
      if (lane / 4 % 4 != pair) continue;
      for (unsigned i = 0; i < 8; ++i) {
        const FragmentPlace place = quad_place(p, Fragment::kAccumulator, p.d, lane, i);
        result[i / in_register][lane] |= d[place.outer * 8 + place.inner] << (i % in_register * 16);
      }
    }
  }
  for (unsigned r = 0; r < 8 / in_register; ++r) {
    const Source<u32> from(result[r]);
    for_lanes<u32>(o.d[r], active, [=](int lane) { return from.at(lane); });
  }
}

void multiply_doubles(const MatrixProduct& p, const MatrixOperands& o, Mask active) {
  const auto layout = [&](Fragment which) {
    return layout_of(which, p.shape, MatrixType::kF64, 64);
  };
  const auto read = [](const FragmentLayout& from, const void* const* registers, double* to,
                       bool by_inner) {
    for (unsigned r = 0; r < from.registers(); ++r) {
      const FragmentPlace first = first_place(from, r, 0);
      for (unsigned lane = 0; lane < kWarpSize; ++lane) {
        const FragmentPlace at = place_of_lane(from, first, lane);
        to[by_inner ? at.inner * from.outer + at.outer : at.outer * from.inner + at.inner] =
            static_cast<const double*>(registers[r])[lane];
      }
    }
  };
  double a[kMatrixElements], b[kMatrixElements], d[kMatrixElements];
  read(layout(Fragment::kA), o.a, a, false);
  read(layout(Fragment::kB), o.b, b, true);
  const FragmentLayout accumulator = layout(Fragment::kAccumulator);
  read(accumulator, o.c, d, false);
  const unsigned n = p.shape.n;
  for (unsigned i = 0; i < p.shape.m; ++i) {
    for (unsigned k = 0; k < p.shape.k; ++k) {
      for (unsigned j = 0; j < n; ++j)
        d[i * n + j] = __builtin_fma(a[i * p.shape.k + k], b[k * n + j], d[i * n + j]);
    }
  }
  for (unsigned r = 0; r < accumulator.registers(); ++r) {
    const FragmentPlace first = first_place(accumulator, r, 0);
    for_lanes<double>(o.d[r], active, [&](int lane) {
      const FragmentPlace at = place_of_lane(accumulator, first, static_cast<unsigned>(lane));
      const double x = d[at.outer * n + at.inner];
      return x == x ? x : double_of(0x7fffffffffffffff);
    });
  }
}

/// Elements of integers, extended by their signs; words of bits stay as they are.
void extend_integers(MatrixType type, unsigned count, s32* elements) {
  const int unused = type == MatrixType::kS8 ? 24 : type == MatrixType::kS4 ? 28 : 0;
  for (unsigned i = 0; i < count; ++i)
    elements[i] = static_cast<s32>(static_cast<u32>(elements[i]) << unused) >> unused;
}

/// sum[j] += f(x, b[k][j]) for all k: a row of the product.
template <class F>
[[gnu::always_inline]] inline void add_terms(const s32* row, const s32* b, unsigned depth,
                                             unsigned n, s32* sum, F f) {
  for (unsigned k = 0; k < depth; ++k) {
    for (unsigned j = 0; j < n; ++j) sum[j] += f(row[k], b[k * n + j]);
  }
}

/// Integers, and words of bits, which are multiplied by counting.
void multiply_integers(const MatrixProduct& p, const MatrixOperands& o, Mask active) {
  const bool of_bits = p.a == MatrixType::kB1;
  const unsigned unit = of_bits ? 32 : matrix_bits(p.a);
  const unsigned n = p.shape.n;
  const FragmentLayout of_a = layout_of(Fragment::kA, p.shape, p.a, unit);
  const FragmentLayout of_b = layout_of(Fragment::kB, p.shape, p.b, unit);
  const FragmentLayout accumulator = layout_of(Fragment::kAccumulator, p.shape, p.c, 32);
  const unsigned depth = of_a.inner;
  s32 a[kMatrixElements], b[kMatrixElements], c[kMatrixElements];
  gather(of_a, o.a, false, reinterpret_cast<u32*>(a));
  gather(of_b, o.b, true, reinterpret_cast<u32*>(b));
  gather(accumulator, o.c, false, reinterpret_cast<u32*>(c));
  extend_integers(p.a, p.shape.m * depth, a);
  extend_integers(p.b, depth * n, b);
  const auto count = [](s32 bits) { return __builtin_popcount(static_cast<u32>(bits)); };
  for (unsigned i = 0; i < p.shape.m; ++i) {
    s32 sum[32] = {};  // without C, far from its bounds
    const s32* const row = a + i * depth;
    if (!of_bits) {
      add_terms(row, b, depth, n, sum, [](s32 x, s32 y) { return x * y; });
    } else if (p.takes_and) {
      add_terms(row, b, depth, n, sum, [=](s32 x, s32 y) { return count(x & y); });
    } else {
      add_terms(row, b, depth, n, sum, [=](s32 x, s32 y) { return count(x ^ y); });
    }
    for (unsigned j = 0; j < n; ++j) {
      const s64 exact = s64{sum[j]} + c[i * n + j];
      const s64 finite = exact < INT32_MIN ? INT32_MIN : exact > INT32_MAX ? INT32_MAX : exact;
      c[i * n + j] = static_cast<s32>(p.saturates ? finite : exact);
    }
  }
  scatter(accumulator, o.d, active, reinterpret_cast<const u32*>(c));
}

}  // namespace

void multiply_matrices(const MatrixProduct& product, const MatrixOperands& operands, Mask active) {
  if (product.quad_pairs) return multiply_quad_pairs(product, operands, active);
  switch (product.a) {
    case MatrixType::kF64:
      return multiply_doubles(product, operands, active);
    case MatrixType::kF16:
    case MatrixType::kBf16:
    case MatrixType::kTf32:
    case MatrixType::kE4m3:
    case MatrixType::kE5m2:
      return multiply_floats(product, operands, active);
    default:
      return multiply_integers(product, operands, active);
  }
}

}  // namespace slate::sim::SLATE_ALU_ISA
