// The approximate functions: rcp, sqrt, rsqrt, div, sin, cos, lg2, ex2, tanh with .approx or .full.
// Results are the correctly rounded or nearly so, thus inside the bounds of the PTX manual but not
// the hardware's very bits. Special values and flushing follow the manual. Pure functions, any
// thread.
#include <cmath>

#include "device/sim/alu_ieee.h"

namespace slate::sim::SLATE_ALU_ISA {
namespace {

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
  add_unary<kFtz>(t, "sin", [](float a) { return ::sinf(a); });
  add_unary<kFtz>(t, "cos", [](float a) { return ::cosf(a); });
  add_unary<kFtz>(t, "lg2", [](float a) { return ::log2f(a); });
  add_unary<kFtz>(t, "ex2", [](float a) { return ::exp2f(a); });
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
  add_unary<false>(t, "tanh", [](float a) { return ::tanhf(a); });
  fill_f64(t);
}

}  // namespace slate::sim::SLATE_ALU_ISA
