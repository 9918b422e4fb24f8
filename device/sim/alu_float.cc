// IEEE arithmetic in f32 and f64, in all four rounding modes: add to sqrt, with .ftz and .sat;
// minimum, maximum, sign operations and classification. Not the approximations (alu_approx.cc).
// Pure functions, any thread; the host's
// rounding mode is "nearest" on entry and exit.
#include "device/sim/alu_ieee.h"

namespace slate::sim::SLATE_ALU_ISA {
namespace {

constexpr const char* if_set(bool set, const char* text) {
  return set ? text : nullptr;
}

// add, sub and mul go without ".rn": find_alu drops it, as it is their default.
template <u32 kMode, bool kFtz, bool kSat>
void fill_sums_f32(AluTable& t, const char* round) {
  const char* f = if_set(kFtz, "ftz");
  const char* s = if_set(kSat, "sat");
  const char* r = kMode == kRn.bits ? nullptr : round;
  add_in_mode<kMode, kFtz>(t, {"add", r, f, s, "f32"}, [](float a, float b) -> float {
    return out<kFtz, kSat>(in<kFtz>(a) + in<kFtz>(b));
  });
  add_in_mode<kMode, kFtz>(t, {"sub", r, f, s, "f32"}, [](float a, float b) -> float {
    return out<kFtz, kSat>(in<kFtz>(a) - in<kFtz>(b));
  });
  add_in_mode<kMode, kFtz>(t, {"mul", r, f, s, "f32"}, [](float a, float b) -> float {
    return out<kFtz, kSat>(in<kFtz>(a) * in<kFtz>(b));
  });
  add_in_mode<kMode, kFtz>(t, {"fma", round, f, s, "f32"}, [](float a, float b, float c) -> float {
    return out<kFtz, kSat>(__builtin_fmaf(in<kFtz>(a), in<kFtz>(b), in<kFtz>(c)));
  });
}

// Of several NaNs the hardware passes on that of the second source, then of the third, then of the
// first; its software division that of the first.
template <u32 kMode>
void fill_f64(AluTable& t, const char* round) {
  const char* r = kMode == kRn.bits ? nullptr : round;
  add_in_mode<kMode, false>(t, {"add", r, "f64"},
                            [](double a, double b) -> double { return first_nan(a + b, b, a); });
  add_in_mode<kMode, false>(t, {"sub", r, "f64"},
                            [](double a, double b) -> double { return first_nan(a - b, b, a); });
  add_in_mode<kMode, false>(t, {"mul", r, "f64"},
                            [](double a, double b) -> double { return first_nan(a * b, b, a); });
  add_in_mode<kMode, false>(t, {"fma", round, "f64"}, [](double a, double b, double c) -> double {
    return first_nan(first_nan(__builtin_fma(a, b, c), c, a), b, b);
  });
  add_in_mode<kMode, false>(t, {"div", round, "f64"},
                            [](double a, double b) -> double { return first_nan(a / b, a, b); });
  add_in_mode<kMode, false>(t, {"rcp", round, "f64"},
                            [](double a) -> double { return canonical(1.0 / a); });
  add_in_mode<kMode, false>(t, {"sqrt", round, "f64"},
                            [](double a) -> double { return canonical(__builtin_sqrt(a)); });
}

template <u32 kMode, bool kFtz>
void fill_quotients_f32(AluTable& t, const char* round) {
  const char* f = if_set(kFtz, "ftz");
  add_in_mode<kMode, kFtz>(t, {"div", round, f, "f32"}, [](float a, float b) -> float {
    return out<kFtz, false>(in<kFtz>(a) / in<kFtz>(b));
  });
  add_in_mode<kMode, kFtz>(t, {"rcp", round, f, "f32"},
                           [](float a) -> float { return out<kFtz, false>(1.0f / in<kFtz>(a)); });
  add_in_mode<kMode, kFtz>(t, {"sqrt", round, f, "f32"}, [](float a) -> float {
    return out<kFtz, false>(__builtin_sqrtf(in<kFtz>(a)));
  });
}

template <u32 kMode>
void fill_mode(AluTable& t, const char* round) {
  fill_sums_f32<kMode, false, false>(t, round);
  fill_sums_f32<kMode, false, true>(t, round);
  fill_sums_f32<kMode, true, false>(t, round);
  fill_sums_f32<kMode, true, true>(t, round);
  fill_quotients_f32<kMode, false>(t, round);
  fill_quotients_f32<kMode, true>(t, round);
  fill_f64<kMode>(t, round);
}

template <class T, bool kFtz, bool kNan>
void fill_extremes(AluTable& t) {
  using U = Unsigned<T>;
  const char* n = kName<T>;
  const char* f = if_set(kFtz, "ftz");
  const char* nan = if_set(kNan, "NaN");
  const auto both = [&]<bool kMin>(const char* name, const char* name3) {
    add(t, {name, f, nan, n},
        [](T a, T b) -> T { return extreme<kMin, kNan>(flush_if<kFtz>(a), flush_if<kFtz>(b)); });
    if constexpr (sizeof(T) == 4) {
      add(t, {name3, f, nan, n}, [](T a, T b, T c) -> T {
        return extreme<kMin, kNan>(extreme<kMin, kNan>(flush_if<kFtz>(a), flush_if<kFtz>(b)),
                                   flush_if<kFtz>(c));
      });
      add(t, {name, f, nan, "xorsign", "abs", n}, [](T a, T b) -> T {
        constexpr U kSign = U(1) << (kBits<T> - 1);
        const U x = bits_of(flush_if<kFtz>(a));
        const U y = bits_of(flush_if<kFtz>(b));
        const U r = bits_of(extreme<kMin, kNan>(__builtin_bit_cast(T, x & ~kSign),
                                                __builtin_bit_cast(T, y & ~kSign)));
        const T signed_result = __builtin_bit_cast(T, r ^ ((x ^ y) & kSign));
        return canonical(signed_result);
      });
    }
  };
  both.template operator()<true>("min", "min/3");
  both.template operator()<false>("max", "max/3");
}

// The hardware adds zero to a source that it negates or strips of its sign, so a NaN does not stay
// as it is.
template <class T, bool kFtz>
void fill_signs(AluTable& t) {
  using U = Unsigned<T>;
  constexpr U kSign = U(1) << (kBits<T> - 1);
  const char* f = if_set(kFtz, "ftz");
  add(t, {"neg", f, kName<T>}, [](T a) -> T {
    const T r = __builtin_bit_cast(T, bits_of(flush_if<kFtz>(a)) ^ kSign);
    return a == a ? r : canonical(a);
  });
  add(t, {"abs", f, kName<T>}, [](T a) -> T {
    const T r = __builtin_bit_cast(T, bits_of(flush_if<kFtz>(a)) & ~kSign);
    return a == a ? r : canonical(a);
  });
}

template <class T>
void fill_copysign(AluTable& t) {
  using U = Unsigned<T>;
  constexpr U kSign = U(1) << (kBits<T> - 1);
  // The sign of a, the magnitude of b.
  add(t, {"copysign", kName<T>}, [](T a, T b) -> T {
    return __builtin_bit_cast(T, (bits_of(a) & kSign) | (bits_of(b) & ~kSign));
  });
}

}  // namespace

void fill_float(AluTable& t) {
  fill_mode<kRn.bits>(t, kRn.name);
  fill_mode<kRz.bits>(t, kRz.name);
  fill_mode<kRm.bits>(t, kRm.name);
  fill_mode<kRp.bits>(t, kRp.name);
  fill_extremes<float, false, false>(t);
  fill_extremes<float, false, true>(t);
  fill_extremes<float, true, false>(t);
  fill_extremes<float, true, true>(t);
  fill_extremes<double, false, false>(t);
  fill_signs<float, false>(t);
  fill_signs<float, true>(t);
  fill_signs<double, false>(t);
  fill_copysign<float>(t);
  fill_copysign<double>(t);
}

}  // namespace slate::sim::SLATE_ALU_ISA
