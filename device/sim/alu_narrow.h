// Formats narrower than f32 (f16, bf16, tf32, e4m3, e5m2): decoding, which is exact, and encoding
// from double with one rounding. For alu_*.cc and atomics.cc; inline in SLATE_ALU_ISA, like
// alu_lanes.h. Any thread.
#pragma once

#include "device/sim/alu_ieee.h"

namespace slate::sim::SLATE_ALU_ISA {

enum class Round : u8 { kNearest, kZero, kDown, kUp };

// The exponent's range differs by a power of two, so a product corrects it, denormals included.
static inline float decode(f16 h) {
  const float magnitude = float_of(static_cast<u32>(h.bits & 0x7fff) << 13) * 0x1p112f;
  const u32 special = (h.bits & 0x7c00) == 0x7c00 ? 0x7f800000 : 0;
  return float_of(bits_of(magnitude) | special | static_cast<u32>(h.bits & 0x8000) << 16);
}
static inline float decode(bf16 h) {
  return float_of(static_cast<u32>(h.bits) << 16);
}
static inline float decode(float x) {
  return x;
}
static inline double decode(double x) {
  return x;
}

/// The code of x in a format of sign, exponent and mantissa, before special cases. Overflow gives a
/// code from infinity on. `mode` is passed by value, so that a constant folds.
template <int kExponent, int kMantissa>
[[gnu::always_inline]] inline u32 encode_magnitude(u64 magnitude, bool negative, Round mode) {
  constexpr s64 kBias = (1 << (kExponent - 1)) - 1;
  const s64 e = static_cast<s64>(magnitude >> 52);
  const u64 m = (magnitude & 0xfffffffffffff) | (e != 0 ? u64{1} << 52 : 0);
  constexpr s64 kMost = 1 << kExponent;  // beyond infinity, also where infinity is a number (e4m3)
  const s64 wanted = e - 1023 + kBias;
  const s64 target = wanted > kMost ? kMost : wanted;
  const s64 below = target >= 1 ? 0 : 1 - target;
  const s64 shift = 52 - kMantissa + (below > kMantissa + 3 ? kMantissa + 3 : below);
  const s64 whole = static_cast<s64>(m >> shift);
  const s64 rest = static_cast<s64>(m & ((u64{1} << shift) - 1));
  const s64 half = static_cast<s64>(u64{1} << (shift - 1));
  bool up = false;
  if (mode == Round::kNearest) up = (rest > half) | ((rest == half) & ((whole & 1) != 0));
  if (mode == Round::kDown) up = negative & (rest != 0);
  if (mode == Round::kUp) up = !negative & (rest != 0);
  const s64 base = (target >= 1 ? target - 1 : 0) << kMantissa;
  return static_cast<u32>(base + whole + (up ? 1 : 0));
}

/// The code of x in an IEEE-like format (not e4m3). The NaN is all ones except the sign.
template <int kExponent, int kMantissa>
[[gnu::always_inline]] inline u32 encode(double x, Round mode) {
  constexpr u32 kInfinity = ((1u << kExponent) - 1) << kMantissa;
  constexpr u32 kNan = (1u << (kExponent + kMantissa)) - 1;
  const u64 b = bits_of(x);
  const u64 magnitude = b & 0x7fffffffffffffff;
  const bool negative = static_cast<s64>(b) < 0;
  const u32 code = encode_magnitude<kExponent, kMantissa>(magnitude, negative, mode);
  const bool truncates = mode == Round::kZero || (mode == Round::kDown && !negative) ||
                         (mode == Round::kUp && negative);
  const u32 largest = truncates && magnitude != 0x7ff0000000000000 ? kInfinity - 1 : kInfinity;
  const u32 finite = code >= kInfinity ? largest : code;
  const u32 sign = negative ? 1u << (kExponent + kMantissa) : 0;
  return static_cast<s64>(magnitude) > 0x7ff0000000000000 ? kNan : finite | sign;
}

/// Encodes x to nearest even, in steps that the compiler can do for many lanes at once.
static inline void encode_nearest(float x, f16& h) {
  const u32 b = bits_of(x);
  const u32 magnitude = b & 0x7fffffff;
  // Normal: add half a unit, or a little less where the last kept bit is even, and move the
  // exponent.
  const u32 normal = (magnitude + 0xfff + (magnitude >> 13 & 1) - (112u << 23)) >> 13;
  // Denormal: 0.5 has the units of the last place of denormal halves, so the addition rounds.
  const u32 denormal = bits_of(float_of(magnitude) + 0.5f) - 0x3f000000;
  const u32 finite = magnitude < 0x38800000 ? denormal : magnitude < 0x477ff000 ? normal : 0x7c00;
  const u32 code = finite | (b >> 16 & 0x8000);
  h.bits = static_cast<u16>(magnitude > 0x7f800000 ? 0x7fff : code);
}
static inline void encode_nearest(float x, bf16& h) {
  const u32 b = bits_of(x);
  const u32 code = (b + 0x7fff + (b >> 16 & 1)) >> 16;
  h.bits = static_cast<u16>((b & 0x7fffffff) > 0x7f800000 ? 0x7fff : code);
}
template <class H>
[[gnu::always_inline]] inline H encode_half(float x) {
  H h;
  encode_nearest(x, h);
  return h;
}

static inline f16 flush(f16 h) {
  return {static_cast<u16>((h.bits & 0x7c00) == 0 ? h.bits & 0x8000 : h.bits)};
}
static inline bf16 flush(bf16 h) {
  return {static_cast<u16>((h.bits & 0x7f80) == 0 ? h.bits & 0x8000 : h.bits)};
}

/// `r` rounded to odd: an inexact, even `r` steps towards the exact value. `r` is the rounded value
/// of something that exceeds it by `error` (of either sign; NaN for infinities).
template <class T, class E>
[[gnu::always_inline]] inline T step_to_odd(T r, E error) {
  using U = Unsigned<T>;
  const U bits = bits_of(r);
  const U even = ~bits & 1;
  const U outwards = r < 0 ? U(0) - even : even;
  const U up = error > 0 ? outwards : U(0);
  const U step = error < 0 ? U(0) - outwards : up;
  return __builtin_bit_cast(T, static_cast<U>(bits + step));
}
/// a + b rounded to odd: a later rounding to fewer bits is then as good as a single one.
template <class T>
[[gnu::always_inline]] inline T add_odd(T a, T b) {
  const T s = a + b;
  const T a_part = s - b;
  return step_to_odd(s, (a - a_part) + (b - (s - a_part)));
}
/// x as float, rounded to odd. Overflow gives infinity, so a format with float's range rounds
/// right.
static inline float to_float_odd(double x) {
  const float r = static_cast<float>(x);
  const double error = x - static_cast<double>(r);
  const u32 bits = bits_of(r);
  const u32 even = ~bits & 1;
  const u32 outwards = static_cast<s32>(bits) < 0 ? 0 - even : even;
  // A double of the size of a float's denormals shows its error as exactly as any other.
  const float sign = static_cast<float>(error * 0x1p200);
  const u32 up = sign > 0 ? outwards : 0;
  return float_of(bits + (sign < 0 ? 0 - outwards : up));
}
/// The integer `magnitude` as double, rounded to odd.
static inline double to_double_odd(u64 magnitude) {
  const u64 low = magnitude & 0x7ff;
  const u64 odd = (magnitude & ~u64{0x7ff}) | (low != 0 ? 0x800 : 0);
  return static_cast<double>(magnitude >> 53 != 0 ? odd : magnitude);
}

/// A byte of fp8, decoded exactly. e5m2 is the upper byte of an f16.
static inline float decode_e5m2(u32 code) {
  return decode(f16{static_cast<u16>(code << 8)});
}
static inline float decode_e4m3(u32 code) {
  const float magnitude = float_of((code & 0x7f) << 20) * 0x1p120f;
  const u32 b = (code & 0x7f) == 0x7f ? 0x7fffffff : bits_of(magnitude) | (code & 0x80) << 24;
  return float_of(b);
}
/// The byte nearest to x. Values too large, infinities included, become the largest finite one.
static inline u32 encode_e5m2(double x) {
  const u32 code = encode<5, 2>(x, Round::kNearest);
  return (code & 0x7f) == 0x7c ? code - 1 : code;
}
static inline u32 encode_e4m3(double x) {
  const u64 b = bits_of(x);
  const u64 magnitude = b & 0x7fffffffffffffff;
  const u32 code = encode_magnitude<4, 3>(magnitude, false, Round::kNearest);
  if (magnitude > 0x7ff0000000000000) return 0x7f;
  return (code > 0x7e ? 0x7e : code) | static_cast<u32>(b >> 56 & 0x80);
}

}  // namespace slate::sim::SLATE_ALU_ISA
