// IEEE arithmetic in f32 and f64, in all four rounding modes: add to sqrt, with .ftz and .sat;
// minimum, maximum, sign operations and classification. Not the approximations (alu_approx.cc).
// Built with -frounding-math and without contraction. Pure functions, any thread; the host's
// rounding mode is "nearest" on entry and exit.
#include "device/sim/alu_ieee.h"

namespace slate::sim::SLATE_ALU_ISA {
namespace {

constexpr const char* if_set(bool set, const char* text) {
  return set ? text : nullptr;
}

template <int kMode, class F>
void add_rounded(AluTable& t, const AluName& name, F) {
  using Lanes = typename Signature<F>::template Op<F>;
  if constexpr (kMode == FE_TONEAREST) {
    add_entry(t, name, Signature<F>::template op<Lanes>());
  } else {
    add_entry(t, name, Signature<F>::template op<Rounded<kMode, Lanes>>());
  }
}

// add, sub and mul go without ".rn": find_alu drops it, as it is their default.
template <class T, int kMode, bool kFtz, bool kSat>
void fill_sums(AluTable& t, const char* round) {
  const char* n = kName<T>;
  const char* f = if_set(kFtz, "ftz");
  const char* s = if_set(kSat, "sat");
  const char* r = kMode == FE_TONEAREST ? nullptr : round;
  add_rounded<kMode>(t, {"add", r, f, s, n}, [](T a, T b) -> T {
    return finish<kFtz, kSat>(flush_if<kFtz>(a) + flush_if<kFtz>(b));
  });
  add_rounded<kMode>(t, {"sub", r, f, s, n}, [](T a, T b) -> T {
    return finish<kFtz, kSat>(flush_if<kFtz>(a) - flush_if<kFtz>(b));
  });
  add_rounded<kMode>(t, {"mul", r, f, s, n}, [](T a, T b) -> T {
    return finish<kFtz, kSat>(flush_if<kFtz>(a) * flush_if<kFtz>(b));
  });
  add_rounded<kMode>(t, {"fma", round, f, s, n}, [](T a, T b, T c) -> T {
    if constexpr (sizeof(T) == 4) {
      return finish<kFtz, kSat>(
          __builtin_fmaf(flush_if<kFtz>(a), flush_if<kFtz>(b), flush_if<kFtz>(c)));
    } else {
      return finish<kFtz, kSat>(__builtin_fma(a, b, c));
    }
  });
}

template <class T, int kMode, bool kFtz>
void fill_quotients(AluTable& t, const char* round) {
  const char* n = kName<T>;
  const char* f = if_set(kFtz, "ftz");
  add_rounded<kMode>(t, {"div", round, f, n}, [](T a, T b) -> T {
    return finish<kFtz, false>(flush_if<kFtz>(a) / flush_if<kFtz>(b));
  });
  add_rounded<kMode>(t, {"rcp", round, f, n},
                     [](T a) -> T { return finish<kFtz, false>(T(1) / flush_if<kFtz>(a)); });
  add_rounded<kMode>(t, {"sqrt", round, f, n}, [](T a) -> T {
    if constexpr (sizeof(T) == 4) {
      return finish<kFtz, false>(__builtin_sqrtf(flush_if<kFtz>(a)));
    } else {
      return finish<kFtz, false>(__builtin_sqrt(a));
    }
  });
}

template <int kMode>
void fill_mode(AluTable& t, const char* round) {
  fill_sums<float, kMode, false, false>(t, round);
  fill_sums<float, kMode, false, true>(t, round);
  fill_sums<float, kMode, true, false>(t, round);
  fill_sums<float, kMode, true, true>(t, round);
  fill_sums<double, kMode, false, false>(t, round);
  fill_quotients<float, kMode, false>(t, round);
  fill_quotients<float, kMode, true>(t, round);
  fill_quotients<double, kMode, false>(t, round);
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
        return __builtin_bit_cast(T, r ^ ((x ^ y) & kSign));
      });
    }
  };
  both.template operator()<true>("min", "min/3");
  both.template operator()<false>("max", "max/3");
}

template <class T, bool kFtz>
void fill_signs(AluTable& t) {
  using U = Unsigned<T>;
  constexpr U kSign = U(1) << (kBits<T> - 1);
  const char* f = if_set(kFtz, "ftz");
  add(t, {"neg", f, kName<T>},
      [](T a) -> T { return __builtin_bit_cast(T, bits_of(flush_if<kFtz>(a)) ^ kSign); });
  add(t, {"abs", f, kName<T>},
      [](T a) -> T { return __builtin_bit_cast(T, bits_of(flush_if<kFtz>(a)) & ~kSign); });
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
  fill_mode<kRn.mode>(t, kRn.name);
  fill_mode<kRz.mode>(t, kRz.name);
  fill_mode<kRm.mode>(t, kRm.name);
  fill_mode<kRp.mode>(t, kRp.name);
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
