// The products of wmma and mma. Integers and bits are exact, and wrap or saturate at the end. f64
// is one fused multiply-add after the other, k rising.
//
// f16, bf16 and tf32 do as far as is known what the hardware of compute capability 9.0 does, which
// is not IEEE arithmetic: the products are exact; they and C are aligned to the largest exponent
// among them; what lies more than 25 bits below is cut off from each; their sum is exact, and is
// truncated to f32 or rounded to the nearest f16. So sums that need no more bits are exact. Pure
// functions, any thread.
#include "device/sim/alu_narrow.h"
#include "device/sim/matrix.h"

namespace slate::sim::SLATE_ALU_ISA {
namespace {

constexpr int kFractionBits = 25;  // below the largest exponent
constexpr s32 kNoExponent = -1000;
constexpr s32 kLeastExponent = -400;

constexpr s32 greater(s32 a, s32 b) {
  return a > b ? a : b;
}

/// A matrix as rows of `width` elements.
template <class T>
struct Table {
  T value[kMatrixElements];
  unsigned width = 0;
};

/// f(outer, inner, bits) for each element that `lanes` hold, with its bits.
template <class F>
[[gnu::always_inline]] inline void each_element(const FragmentLayout& layout,
                                                const void* const* registers, F f) {
  const unsigned count = layout.registers();
  const unsigned bits = layout.in_register == 1 ? 32 : 32u / layout.in_register;
  const u32 mask = bits == 32 ? ~0u : (1u << bits) - 1;
  for (unsigned r = 0; r < count; ++r) {
    const auto* const lanes = static_cast<const u32*>(registers[r]);
    for (unsigned i = 0; i < layout.in_register; ++i) {
      const FragmentPlace first = first_place(layout, r, i);
      for (unsigned lane = 0; lane < kWarpSize; ++lane) {
        const FragmentPlace place = place_of_lane(layout, first, lane);
        f(place.outer, place.inner, lanes[lane] >> (i * bits) & mask);
      }
    }
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

/// As each_element(), of quad pair `pair`.
template <class F>
void each_quad_element(const MatrixProduct& product, Fragment which, MatrixType type, unsigned pair,
                       const void* const* registers, F f) {
  const unsigned in_register = type == MatrixType::kF16 ? 2 : 1;
  const unsigned elements = which == Fragment::kAccumulator ? 8 : 4;
  for (unsigned lane = 0; lane < kWarpSize; ++lane) {
    if (lane / 4 % 4 != pair) continue;
    for (unsigned i = 0; i < elements; ++i) {
      const u32 word = static_cast<const u32*>(registers[i / in_register])[lane];
      const FragmentPlace place = quad_place(product, which, type, lane, i);
      f(place.outer, place.inner, in_register == 2 ? word >> (i % 2 * 16) & 0xffff : word);
    }
  }
}

[[gnu::always_inline]] inline float decode_element(MatrixType type, u32 bits) {
  switch (type) {
    case MatrixType::kF16:
      return decode(f16{static_cast<u16>(bits)});
    case MatrixType::kBf16:
      return decode(bf16{static_cast<u16>(bits)});
    case MatrixType::kTf32:
      return float_of(bits & ~0x1fffu);
    default:
      return float_of(bits);
  }
}

/// The exponent that the hardware sees: denormals have that of the least normal number.
[[gnu::always_inline]] inline s32 exponent_of(MatrixType type, float x) {
  const s32 least = type == MatrixType::kF16 ? -14 : -126;
  const s32 field = static_cast<s32>(bits_of(x) >> 23 & 0xff) - 127;
  return x == 0 ? kNoExponent : greater(field, least);
}

struct FloatMatrices {
  MatrixShape shape;
  Table<float> a, b, c;  // a[m][k], b[k][n], c[m][n]
  Table<s32> a_exponent, b_exponent, c_exponent;
  double d[kMatrixElements];  // before it is rounded to its type
  bool finite = true;

  explicit FloatMatrices(MatrixShape given) : shape(given) {
    a.width = a_exponent.width = given.k;
    b.width = b_exponent.width = c.width = c_exponent.width = given.n;
  }
  [[gnu::always_inline]] void put(Table<float>& values, Table<s32>& exponents, unsigned row,
                                  unsigned column, MatrixType type, u32 bits) {
    const float x = decode_element(type, bits);
    const unsigned at = row * values.width + column;
    values.value[at] = x;
    exponents.value[at] = exponent_of(type, x);
    finite &= (bits_of(x) & 0x7f800000) != 0x7f800000;
  }
  void multiply() {
    for (unsigned i = 0; i < shape.m; ++i) multiply_row(i);
    if (!finite) multiply_specials();
  }

 private:
  void multiply_row(unsigned i) {
    const unsigned n = shape.n;
    s32 most[32];
    double scale[32];
    double sum[32];
    for (unsigned j = 0; j < n; ++j) most[j] = c_exponent.value[i * n + j];
    for (unsigned k = 0; k < shape.k; ++k) {
      const s32 e = a_exponent.value[i * shape.k + k];
      const s32* const of_b = b_exponent.value + k * n;
      for (unsigned j = 0; j < n; ++j) most[j] = greater(most[j], e + of_b[j]);
    }
    for (unsigned j = 0; j < n; ++j) {
      most[j] = greater(most[j], kLeastExponent);
      scale[j] = double_of(static_cast<u64>(1023 + kFractionBits - most[j]) << 52);
      sum[j] = cut(static_cast<double>(c.value[i * n + j]) * scale[j]);
    }
    for (unsigned k = 0; k < shape.k; ++k) {
      const double x = static_cast<double>(a.value[i * shape.k + k]);
      const float* const of_b = b.value + k * n;
      for (unsigned j = 0; j < n; ++j) sum[j] += cut(x * static_cast<double>(of_b[j]) * scale[j]);
    }
    for (unsigned j = 0; j < n; ++j) {
      const double unit = double_of(static_cast<u64>(1023 - kFractionBits + most[j]) << 52);
      d[i * n + j] = sum[j] * unit;
    }
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
};

u32 encode_result(MatrixType type, double x) {
  if (type == MatrixType::kF16) return encode<5, 10>(x, Round::kNearest);
  if (x != x) return 0x7fffffff;
  const u32 bits = encode<8, 23>(x, Round::kZero);
  const double magnitude = x < 0 ? -x : x;
  return magnitude >= 0x1p128 ? (bits & 0x80000000) | 0x7f800000 : bits;
}

/// Writes d(row, column), a function that gives bits, to the registers of an accumulator.
template <class F>
void write_accumulator(const FragmentLayout& layout, void* const* registers, Mask active, F d) {
  for (unsigned r = 0; r < layout.registers(); ++r) {
    u32 words[kWarpSize] = {};
    for (unsigned i = 0; i < layout.in_register; ++i) {
      const FragmentPlace first = first_place(layout, r, i);
      for (unsigned lane = 0; lane < kWarpSize; ++lane) {
        const FragmentPlace place = place_of_lane(layout, first, lane);
        words[lane] |= d(place.outer, place.inner) << (i * 16);
      }
    }
    const u32* const from = words;
    for_lanes<u32>(registers[r], active, [=](int lane) { return from[lane]; });
  }
}

void multiply_floats(const MatrixProduct& p, const MatrixOperands& o, Mask active) {
  FloatMatrices m(p.shape);
  const auto layout = [&](Fragment which, MatrixType type) {
    return layout_of(which, p.shape, type, matrix_bits(type));
  };
  each_element(layout(Fragment::kA, p.a), o.a, [&](unsigned row, unsigned k, u32 bits) {
    m.put(m.a, m.a_exponent, row, k, p.a, bits);
  });
  each_element(layout(Fragment::kB, p.b), o.b, [&](unsigned column, unsigned k, u32 bits) {
    m.put(m.b, m.b_exponent, k, column, p.b, bits);
  });
  each_element(layout(Fragment::kAccumulator, p.c), o.c, [&](unsigned row, unsigned j, u32 bits) {
    m.put(m.c, m.c_exponent, row, j, p.c, bits);
  });
  m.multiply();
  write_accumulator(
      layout(Fragment::kAccumulator, p.d), o.d, active,
      [&](unsigned row, unsigned j) { return encode_result(p.d, m.d[row * p.shape.n + j]); });
}

void multiply_quad_pairs(const MatrixProduct& p, const MatrixOperands& o, Mask active) {
  const unsigned in_register = p.d == MatrixType::kF16 ? 2 : 1;
  u32 result[kMatrixRegisters][kWarpSize] = {};
  for (unsigned pair = 0; pair < 4; ++pair) {
    FloatMatrices m(p.shape);
    each_quad_element(p, Fragment::kA, p.a, pair, o.a, [&](unsigned row, unsigned k, u32 bits) {
      m.put(m.a, m.a_exponent, row, k, p.a, bits);
    });
    each_quad_element(p, Fragment::kB, p.b, pair, o.b, [&](unsigned column, unsigned k, u32 bits) {
      m.put(m.b, m.b_exponent, k, column, p.b, bits);
    });
    each_quad_element(
        p, Fragment::kAccumulator, p.c, pair, o.c,
        [&](unsigned row, unsigned j, u32 bits) { m.put(m.c, m.c_exponent, row, j, p.c, bits); });
    m.multiply();
    for (unsigned lane = 0; lane < kWarpSize; ++lane) {
      if (lane / 4 % 4 != pair) continue;
      for (unsigned i = 0; i < 8; ++i) {
        const FragmentPlace place = quad_place(p, Fragment::kAccumulator, p.d, lane, i);
        result[i / in_register][lane] |= encode_result(p.d, m.d[place.outer * 8 + place.inner])
                                         << (i % in_register * 16);
      }
    }
  }
  for (unsigned r = 0; r < 8 / in_register; ++r) {
    const u32* const from = result[r];
    for_lanes<u32>(o.d[r], active, [=](int lane) { return from[lane]; });
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

[[gnu::always_inline]] inline s32 integer_element(MatrixType type, u32 bits) {
  switch (type) {
    case MatrixType::kS8:
      return static_cast<s8>(bits);
    case MatrixType::kS4:
      return static_cast<s32>(bits << 28) >> 28;
    default:
      return static_cast<s32>(bits);
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
  s32 a[kMatrixElements], b[kMatrixElements], c[kMatrixElements];
  each_element(of_a, o.a, [&](unsigned row, unsigned k, u32 bits) {
    a[row * of_a.inner + k] = integer_element(p.a, bits);
  });
  each_element(of_b, o.b, [&](unsigned column, unsigned k, u32 bits) {
    b[k * n + column] = integer_element(p.b, bits);
  });
  each_element(accumulator, o.c, [&](unsigned row, unsigned j, u32 bits) {
    c[row * n + j] = static_cast<s32>(bits);
  });
  for (unsigned i = 0; i < p.shape.m; ++i) {
    s32 sum[32] = {};  // without C, far from its bounds
    for (unsigned k = 0; k < of_a.inner; ++k) {
      const s32 x = a[i * of_a.inner + k];
      for (unsigned j = 0; j < n; ++j) {
        const s32 y = b[k * n + j];
        const u32 both = static_cast<u32>(p.takes_and ? x & y : x ^ y);
        sum[j] += of_bits ? __builtin_popcount(both) : x * y;
      }
    }
    for (unsigned j = 0; j < n; ++j) {
      const s64 exact = s64{sum[j]} + c[i * n + j];
      const s64 finite = exact < INT32_MIN ? INT32_MIN : exact > INT32_MAX ? INT32_MAX : exact;
      c[i * n + j] = static_cast<s32>(p.saturates ? finite : exact);
    }
  }
  write_accumulator(accumulator, o.d, active,
                    [&](unsigned row, unsigned j) { return static_cast<u32>(c[row * n + j]); });
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
      return multiply_floats(product, operands, active);
    default:
      return multiply_integers(product, operands, active);
  }
}

}  // namespace slate::sim::SLATE_ALU_ISA
