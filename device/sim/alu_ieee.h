// What the hardware adds to IEEE arithmetic: one canonical NaN, flushing of denormals, saturation,
// and its rules for minimum and maximum. For alu_*.cc only; inline in SLATE_ALU_ISA, like
// alu_lanes.h. Any thread.
#pragma once

#include "device/sim/alu_lanes.h"

namespace slate::sim::SLATE_ALU_ISA {

// An f32 result that is NaN is always 0x7fffffff. An f64 result keeps the payload of the source
// that was NaN, made quiet.
static inline float canonical(float x) {
  return x == x ? x : float_of(0x7fffffff);
}
static inline double quiet(double x) {
  return double_of(bits_of(x) | 0x0008000000000000);
}
static inline double canonical(double x) {
  return x == x ? x : quiet(x);
}

/// The result `r` of an operation, or the NaN of its first source that is one.
static inline double first_nan(double r, double a, double b) {
  return a != a ? quiet(a) : b != b ? quiet(b) : r;
}

/// Replaces a denormal by a zero of its sign.
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
/// The last step of an operation: canonical NaN, flushing, saturation.
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

/// The minimum or maximum. -0 is less than +0. A NaN loses against a number; with kNan it wins.
template <bool kMin, bool kNan, class T>
[[gnu::always_inline]] inline T extreme(T a, T b) {
  using U = Unsigned<T>;
  const T pick = kMin ? (a < b ? a : b) : (a > b ? a : b);
  const U joined = kMin ? bits_of(a) | bits_of(b) : bits_of(a) & bits_of(b);
  const T ordered = a == b ? __builtin_bit_cast(T, joined) : pick;
  const T with_b = a != a ? (kNan ? a : b) : ordered;
  return canonical(b != b && (kNan || a != a) ? b : b != b ? a : with_b);
}

/// Adds `f` so that it runs in rounding mode kMode of the host and, with kFtz, with the host's
/// flushing.
template <u32 kMode, bool kFtz, class F>
void add_in_mode(AluTable& t, const AluName& name, F) {
  using Lanes = typename Signature<F>::template Op<F>;
  if constexpr (kMode == kRn.bits && !kFtz) {
    add_entry(t, name, Signature<F>::template op<Lanes>());
  } else {
    add_entry(t, name, Signature<F>::template op<InMode<kMode, kFtz, Lanes>>());
  }
}

/// A source (in) and a result (out) of an operation that runs InMode<.., kFtz, ..>.
template <bool kFtz, class T>
[[gnu::always_inline]] inline T in(T x) {
  return flush_if < kFtz && !kHostFlushes > (x);
}
template <bool kFtz, bool kSat, class T>
[[gnu::always_inline]] inline T out(T x) {
  return finish < kFtz && !kHostFlushes, kSat > (x);
}

}  // namespace slate::sim::SLATE_ALU_ISA
