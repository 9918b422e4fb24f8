// What the hardware adds to IEEE arithmetic, for alu_*.cc only: one canonical NaN, flushing of
// denormals, saturation, and its rules for minimum and maximum. Inline in SLATE_ALU_ISA, like
// alu_lanes.h.
#pragma once

#include "device/sim/alu_lanes.h"

namespace slate::sim::SLATE_ALU_ISA {

static inline float canonical(float x) {
  return x == x ? x : float_of(0x7fffffff);
}
static inline double canonical(double x) {
  return x == x ? x : double_of(0xfff8000000000000);
}

static inline float flush(float x) {
  const u32 b = bits_of(x);
  return float_of((b & 0x7f800000) == 0 ? b & 0x80000000 : b);
}
static inline double flush(double x) {
  const u64 b = bits_of(x);
  return double_of((b & 0x7ff0000000000000) == 0 ? b & 0x8000000000000000 : b);
}

template <bool kFtz, class T>
[[gnu::always_inline]] inline T flush_if(T x) {
  if constexpr (kFtz) {
    return flush(x);
  } else {
    return x;
  }
}
/// Clamps to [0, 1]; NaN and -0 become +0.
template <class T>
[[gnu::always_inline]] inline T saturate(T x) {
  const T low = x > T(0) ? x : T(0);
  return low < T(1) ? low : T(1);
}
template <bool kFtz, bool kSat, class T>
[[gnu::always_inline]] inline T finish(T x) {
  const T r = flush_if<kFtz>(canonical(x));
  if constexpr (kSat) {
    return saturate(r);
  } else {
    return r;
  }
}

static inline bool is_nan(float x) {
  return (bits_of(x) & 0x7fffffff) > 0x7f800000;
}
static inline bool is_nan(double x) {
  return (bits_of(x) & 0x7fffffffffffffff) > 0x7ff0000000000000;
}

/// -0 is less than +0. A NaN loses against a number, unless kNan: then it wins.
template <bool kMin, bool kNan, class T>
[[gnu::always_inline]] inline T extreme(T a, T b) {
  using U = Unsigned<T>;
  const T pick = kMin ? (a < b ? a : b) : (a > b ? a : b);
  const U joined = kMin ? bits_of(a) | bits_of(b) : bits_of(a) & bits_of(b);
  const U ordered = a == b ? joined : bits_of(pick);
  const U nan = bits_of(canonical(__builtin_bit_cast(T, ~U(0))));
  const U if_a_nan = kNan || b != b ? nan : bits_of(b);
  const U if_b_nan = kNan ? nan : bits_of(a);
  const U r = a != a ? if_a_nan : b != b ? if_b_nan : ordered;
  return __builtin_bit_cast(T, r);
}

/// The rounding names and the host's modes for them.
struct RoundMode {
  const char* name;
  int mode;
};
inline constexpr RoundMode kRn{"rn", FE_TONEAREST}, kRz{"rz", FE_TOWARDZERO},
    kRm{"rm", FE_DOWNWARD}, kRp{"rp", FE_UPWARD};

}  // namespace slate::sim::SLATE_ALU_ISA
