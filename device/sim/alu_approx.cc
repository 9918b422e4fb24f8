// The approximate functions: rcp, sqrt, rsqrt, div, sin, cos, lg2, ex2, tanh with .approx or .full.
// Results are the correctly rounded or nearly so, thus inside the bounds of the PTX manual but not
// the hardware's very bits. Special values and flushing follow the manual. Pure functions, any
// thread.
#include <cmath>

#include "device/sim/alu_ieee.h"

namespace slate::sim::SLATE_ALU_ISA {
namespace {

// Multiplications and additions are written apart, not fused, so that both instruction sets give
// the same bits.

/// 2^x. Taylor's series of 2^f for |f| <= 1/2 errs by 2^-27; the scale goes in two steps for the
/// sake of denormals.
[[gnu::always_inline]] inline float exp2_lane(float a) {
  const float x = a < -152.0f ? -152.0f : a > 130.0f ? 130.0f : a;
  const float shifted = x + 0x1.8p23f;  // rounds to an integer, in the low bits
  const s32 n = static_cast<s32>(bits_of(shifted) - 0x4b400000);
  const float f = x - (shifted - 0x1.8p23f);
  float p = 1.5252734e-5f;
  p = p * f + 1.5403530e-4f;
  p = p * f + 1.3333558e-3f;
  p = p * f + 9.6181291e-3f;
  p = p * f + 5.5504109e-2f;
  p = p * f + 2.4022651e-1f;
  p = p * f + 6.9314718e-1f;
  p = p * f + 1.0f;
  const s32 half = n >> 1;
  const float low = float_of(static_cast<u32>(half + 127) << 23);
  const float high = float_of(static_cast<u32>(n - half + 127) << 23);
  const float r = p * low * high;
  return a == a ? r : a;
}

/// log2(x): the exponent, and the series of atanh for a mantissa around 1.
[[gnu::always_inline]] inline float log2_lane(float a) {
  const bool denormal = a < 0x1p-126f;
  const u32 b = bits_of(denormal ? a * 0x1p24f : a);
  const u32 above = b - 0x3f3504f3;  // over the square root of 1/2
  const s32 e = (static_cast<s32>(above) >> 23) - (denormal ? 24 : 0);
  const float m = float_of((above & 0x007fffff) + 0x3f3504f3);
  const float s = (m - 1.0f) / (m + 1.0f);
  const float s2 = s * s;
  float p = 0.32059890f;
  p = p * s2 + 0.41219858f;
  p = p * s2 + 0.57707802f;
  p = p * s2 + 0.96179669f;
  const float r = static_cast<float>(e) + (s * s2 * p + s * 2.8853901f);
  const float infinity = float_of(0x7f800000);
  const float special = a == 0 ? -infinity : a == infinity ? a : float_of(0x7fffffff);
  return (a > 0) & (a < infinity) ? r : special;
}

/// sin(x + quarters * pi/2) for |x| < 2^28. The reduction is in double, the series good to 2^-27.
[[gnu::always_inline]] inline float sine_lane(float a, s32 quarters) {
  const double x = static_cast<double>(a);
  const double shifted = x * 0.63661977236758134 + 0x1.8p52;
  const s32 quadrant = static_cast<s32>(static_cast<u32>(bits_of(shifted))) + quarters;
  const float r = static_cast<float>(x - (shifted - 0x1.8p52) * 1.5707963267948966);
  const float r2 = r * r;
  float s = 2.7557319e-6f;
  s = s * r2 - 1.9841270e-4f;
  s = s * r2 + 8.3333333e-3f;
  s = s * r2 - 1.6666667e-1f;
  s = s * r2 * r + r;
  float c = -2.7557319e-7f;
  c = c * r2 + 2.4801587e-5f;
  c = c * r2 - 1.3888889e-3f;
  c = c * r2 + 4.1666667e-2f;
  c = c * r2 - 0.5f;
  c = c * r2 + 1.0f;
  const float value = (quadrant & 1) != 0 ? c : s;
  return float_of(bits_of(value) ^ static_cast<u32>(quadrant & 2) << 30);
}

/// A quotient of exponentials, and near zero, where that cancels, Taylor's series.
[[gnu::always_inline]] inline float tanh_lane(float a) {
  const float e = exp2_lane(a * 2.8853901f);
  const float far = 1.0f - 2.0f / (e + 1.0f);
  const float a2 = a * a;
  const float near = a + a * a2 * (a2 * (a2 * -0.053968254f + 0.13333333f) - 0.33333333f);
  return a2 < 0.0625f ? near : far;
}

template <int kQuarters, bool kFtz>
void run_sine(const AluOperands& o, Mask active) {
  const Source<float> a(o.s[0]);
  constexpr u32 kFar = 0x4d800000;  // 2^28
  alignas(kRegisterAlign) float x[kWarpSize];
  alignas(kRegisterAlign) float r[kWarpSize];
  u32 far = 0;
  for (int i = 0; i < kWarpSize; ++i) x[i] = flush_if<kFtz>(a.at(i));
  for (int i = 0; i < kWarpSize; ++i) r[i] = sine_lane(x[i], kQuarters);
  for (int i = 0; i < kWarpSize; ++i) far |= (bits_of(x[i]) & 0x7fffffff) >= kFar ? 1 : 0;
  for (int i = 0; far != 0 && i < kWarpSize; ++i) {
    if ((bits_of(x[i]) & 0x7fffffff) < kFar) continue;
    r[i] = kQuarters == 0 ? ::sinf(x[i]) : ::cosf(x[i]);
  }
  for_lanes<float>(o.d, active, [&r](int i) { return finish<kFtz, false>(r[i]); });
}

template <bool kFtz, class F>
void add_unary(AluTable& t, const char* opcode, F) {
  add(t, {opcode, "approx", kFtz ? "ftz" : nullptr, "f32"},
      [](float a) -> float { return finish<kFtz, false>(F()(flush_if<kFtz>(a))); });
}

// Outside 2^-126..2^126 the hardware multiplies by a reciprocal that has become 0.
float divide_approx(float a, float b) {
  const bool huge =
      (bits_of(b) & 0x7fffffff) > 0x7e800000 && (bits_of(b) & 0x7fffffff) < 0x7f800000;
  const float zero = float_of((bits_of(a) ^ bits_of(b)) & 0x80000000);
  const float small = a - a == 0 ? zero : float_of(0x7fffffff);
  return huge ? small : a / b;
}

template <bool kFtz>
void fill_f32(AluTable& t) {
  const char* f = kFtz ? "ftz" : nullptr;
  add_unary<kFtz>(t, "rcp", [](float a) { return 1.0f / a; });
  add_unary<kFtz>(t, "sqrt", [](float a) { return __builtin_sqrtf(a); });
  add_unary<kFtz>(t, "rsqrt", [](float a) {
    return static_cast<float>(1.0 / __builtin_sqrt(static_cast<double>(a)));
  });
  add_unary<kFtz>(t, "lg2", [](float a) { return log2_lane(a); });
  add_unary<kFtz>(t, "ex2", [](float a) { return exp2_lane(a); });
  add_entry(t, {"sin", "approx", f, "f32"}, describe<float, float>(&run_sine<0, kFtz>));
  add_entry(t, {"cos", "approx", f, "f32"}, describe<float, float>(&run_sine<1, kFtz>));
  add_in_mode<kRn.bits, kFtz>(t, {"div", "approx", f, "f32"}, [](float a, float b) -> float {
    return out<kFtz, false>(divide_approx(in<kFtz>(a), in<kFtz>(b)));
  });
  add_in_mode<kRn.bits, kFtz>(t, {"div", "full", f, "f32"}, [](float a, float b) -> float {
    return out<kFtz, false>(in<kFtz>(a) / in<kFtz>(b));
  });
}

// Only the upper 32 bits of source and result count; a NaN is that of the upper half.
double upper_half(double x) {
  const double r = flush(x);
  return x == x ? double_of(bits_of(r) & 0xffffffff00000000) : double_of(0x7fffffff00000000);
}

void fill_f64(AluTable& t) {
  add(t, {"rcp", "approx", "ftz", "f64"}, [](double a) -> double {
    return upper_half(1.0 / flush(double_of(bits_of(a) & 0xffffffff00000000)));
  });
  add(t, {"rsqrt", "approx", "ftz", "f64"}, [](double a) -> double {
    return upper_half(1.0 / __builtin_sqrt(flush(double_of(bits_of(a) & 0xffffffff00000000))));
  });
  add(t, {"rsqrt", "approx", "f64"},
      [](double a) -> double { return canonical(1.0 / __builtin_sqrt(a)); });
}

}  // namespace

void fill_approx(AluTable& t) {
  fill_f32<false>(t);
  fill_f32<true>(t);
  add_unary<false>(t, "tanh", [](float a) { return tanh_lane(a); });
  fill_f64(t);
}

}  // namespace slate::sim::SLATE_ALU_ISA
