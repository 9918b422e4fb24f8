// The conversions that programs use, as vector loops: integers to each other from registers of any
// width, f32 and f64 from and to integers and each other, f16 and bf16 from and to f32.
// alu_convert_any.cc has the rest. Pure functions, any thread; the
// host's rounding mode is "nearest" on entry and exit.
#include "device/sim/alu_convert.h"

namespace slate::sim::SLATE_ALU_ISA {
namespace {

template <class D, class S, class F>
AluOp lanes_op(F) {
  using Lanes = typename Signature<F>::template Op<F>;
  return convert_op<D, S>(&Lanes::run);
}
template <class D, class S, u32 kMode, bool kFtz, class F>
AluOp in_mode_op(F f) {
  using Lanes = typename Signature<F>::template Op<F>;
  if constexpr (kMode == kRn.bits && !kFtz) {
    return lanes_op<D, S>(f);
  } else {
    return convert_op<D, S>(&InMode<kMode, kFtz, Lanes>::run);
  }
}

/// 8-bit results fill their 16 bits with copies of the sign, or zeros.
template <class D>
using Out = std::conditional_t<std::is_same_v<D, s8>, s16,
                               std::conditional_t<std::is_same_v<D, u8>, u16, D>>;

template <class D, class S, class Register>
void fill_integer_pair(AluTable& t) {
  const char* w = width_suffix<D, S, sizeof(Storage<D>), sizeof(Register)>();
  add_entry(t, {"cvt", nullptr, nullptr, nullptr, kName<D>, kName<S>, w},
            lanes_op<D, S>([](Register x) -> Out<D> {
              return static_cast<Out<D>>(static_cast<D>(static_cast<S>(x)));
            }));
}
template <class D, class S>
void fill_integers(AluTable& t) {
  if constexpr (sizeof(S) <= 2) fill_integer_pair<D, S, u16>(t);
  if constexpr (sizeof(S) <= 4) fill_integer_pair<D, S, u32>(t);
  fill_integer_pair<D, S, u64>(t);
  if constexpr (sizeof(D) <= 4 && sizeof(S) <= 4) {
    constexpr s64 kLow = kSigned<D> ? -(s64{1} << (kBits<D> - 1)) : 0;
    constexpr s64 kHigh = (s64{1} << (kBits<D> - (kSigned<D> ? 1 : 0))) - 1;
    add_entry(t, {"cvt", "sat", kName<D>, kName<S>}, lanes_op<D, S>([](S x) -> Out<D> {
                const s64 v = s64{x};
                return static_cast<Out<D>>(v < kLow ? kLow : v > kHigh ? kHigh : v);
              }));
  }
}

template <Round kMode>
[[gnu::always_inline]] inline float to_whole(float x) {
  if constexpr (kMode == Round::kZero) return __builtin_truncf(x);
  if constexpr (kMode == Round::kDown) return __builtin_floorf(x);
  if constexpr (kMode == Round::kUp) return __builtin_ceilf(x);
  return __builtin_rintf(x);
}
template <Round kMode>
[[gnu::always_inline]] inline double to_whole(double x) {
  if constexpr (kMode == Round::kZero) return __builtin_trunc(x);
  if constexpr (kMode == Round::kDown) return __builtin_floor(x);
  if constexpr (kMode == Round::kUp) return __builtin_ceil(x);
  return __builtin_rint(x);
}

/// A whole number that fits D. The host converts to signed integers only: the upper half of
/// unsigned ones is moved down.
template <class D, class F>
[[gnu::always_inline]] inline D whole_to_integer(F x) {
  if constexpr (kSigned<D> || sizeof(D) < 4) {
    using Step = std::conditional_t<(sizeof(D) < 4), s32, D>;
    return static_cast<D>(static_cast<Step>(x));
  } else {
    using Half = std::conditional_t<sizeof(D) == 4, s32, s64>;
    constexpr F kMiddle = sizeof(D) == 4 ? F(0x1p31) : F(0x1p63);
    const bool upper = x >= kMiddle;
    return static_cast<D>(static_cast<Half>(upper ? x - kMiddle : x)) ^
           (upper ? D(1) << (kBits<D> - 1) : D(0));
  }
}

template <class D, Round kMode, class F>
[[gnu::always_inline]] inline D to_integer(F x) {
  constexpr int kMagnitudeBits = kBits<D> - (kSigned<D> ? 1 : 0);
  constexpr F kEnd = F(u64{1} << (kMagnitudeBits - 1)) * 2;
  constexpr F kLow = kSigned<D> ? -kEnd : F(0);
  constexpr D kMax = static_cast<D>((u64{1} << (kMagnitudeBits - 1)) * 2 - 1);
  constexpr D kMin = kSigned<D> ? static_cast<D>(Unsigned<D>(1) << (kBits<D> - 1)) : D(0);
  constexpr D kNan = static_cast<D>(nan_as_integer(kBits<D>, sizeof(F) == 8));
  const F r = to_whole<kMode>(x);
  const bool inside = (r >= kLow) & (r < kEnd);
  const D fits = whole_to_integer<D>(inside ? r : F(0));
  const D bound = x != x ? kNan : r >= kEnd ? kMax : kMin;
  return inside ? fits : bound;
}

template <class D, class F, Round kMode, bool kFtz>
void fill_to_integer(AluTable& t, const char* round) {
  add_entry(t, {"cvt", round, kFtz ? "ftz" : nullptr, kName<D>, kName<F>},
            lanes_op<D, F>([](F x) -> Out<D> {
              return static_cast<Out<D>>(to_integer<D, kMode>(flush_if<kFtz>(x)));
            }));
}
template <class D, class F, bool kFtz>
void fill_to_integer_modes(AluTable& t) {
  fill_to_integer<D, F, Round::kNearest, kFtz>(t, "rni");
  fill_to_integer<D, F, Round::kZero, kFtz>(t, "rzi");
  fill_to_integer<D, F, Round::kDown, kFtz>(t, "rmi");
  fill_to_integer<D, F, Round::kUp, kFtz>(t, "rpi");
}

template <class F, class S, class Register, u32 kMode>
void fill_from_integer(AluTable& t, const char* round) {
  const char* w = width_suffix<F, S, sizeof(F), sizeof(Register)>();
  add_entry(t, {"cvt", round, kName<F>, kName<S>, w},
            in_mode_op<F, S, kMode, false>(
                [](Register x) -> F { return static_cast<F>(static_cast<S>(x)); }));
}
template <class F, class S>
void fill_from_integer_modes(AluTable& t) {
  fill_from_integer<F, S, Storage<S>, kRn.bits>(t, "rn");
  fill_from_integer<F, S, Storage<S>, kRz.bits>(t, "rz");
  fill_from_integer<F, S, Storage<S>, kRm.bits>(t, "rm");
  fill_from_integer<F, S, Storage<S>, kRp.bits>(t, "rp");
  if constexpr (sizeof(S) <= 2) fill_from_integer<F, S, u32, kRn.bits>(t, "rn");
}

/// A NaN from f64 keeps its sign and the upper bits of its payload.
template <bool kFtz, bool kSat>
[[gnu::always_inline]] inline float finish_narrow(float x) {
  const float r = flush_if < kFtz && !kHostFlushes > (x);
  if constexpr (kSat) {
    return saturate(r);
  } else {
    return r;
  }
}

template <bool kFtz, bool kSat>
void fill_between_floats(AluTable& t) {
  const char* f = kFtz ? "ftz" : nullptr;
  const char* s = kSat ? "sat" : nullptr;
  const auto narrow = [&]<u32 kMode>(const char* round) {
    add_entry(t, {"cvt", round, f, s, "f32", "f64"},
              in_mode_op<float, double, kMode, kFtz>([](double x) -> float {
                return finish_narrow<kFtz, kSat>(static_cast<float>(x));
              }));
  };
  narrow.template operator()<kRn.bits>("rn");
  narrow.template operator()<kRz.bits>("rz");
  narrow.template operator()<kRm.bits>("rm");
  narrow.template operator()<kRp.bits>("rp");
  add_entry(t, {"cvt", f, s, "f64", "f32"}, lanes_op<double, float>([](float x) -> double {
              return finish<false, kSat>(static_cast<double>(kFtz ? canonical(flush(x)) : x));
            }));
  add_entry(t, {"cvt", f, s, "f32", "f32"}, lanes_op<float, float>([](float x) -> float {
              if constexpr (!kFtz && !kSat) return x;  // a plain move
              return finish<kFtz, kSat>(x);
            }));
  add_entry(t, {"cvt", f, s, "f32", "f16"},
            lanes_op<float, f16>([](f16 x) -> float { return finish<false, kSat>(decode(x)); }));
  add_entry(t, {"cvt", "rn", f, s, "f16", "f32"}, lanes_op<f16, float>([](float x) -> f16 {
              return encode_half<f16>(finish<false, kSat>(x));
            }));
}

template <class T, Round kMode, bool kFtz>
void fill_whole(AluTable& t, const char* round) {
  add_entry(t, {"cvt", round, kFtz ? "ftz" : nullptr, kName<T>, kName<T>},
            lanes_op<T, T>([](T x) -> T { return canonical(to_whole<kMode>(flush_if<kFtz>(x))); }));
}
template <class T, bool kFtz>
void fill_whole_modes(AluTable& t) {
  fill_whole<T, Round::kNearest, kFtz>(t, "rni");
  fill_whole<T, Round::kZero, kFtz>(t, "rzi");
  fill_whole<T, Round::kDown, kFtz>(t, "rmi");
  fill_whole<T, Round::kUp, kFtz>(t, "rpi");
}

}  // namespace

void fill_convert(AluTable& t) {
  fill_convert_any(t);
  const auto each = [&t]<class T>() {
    for_types<u8, s8, u16, s16, u32, s32, u64, s64>([&t]<class S>() { fill_integers<T, S>(t); });
    fill_to_integer_modes<T, float, false>(t);
    fill_to_integer_modes<T, float, true>(t);
    fill_to_integer_modes<T, double, false>(t);
    fill_from_integer_modes<float, T>(t);
    fill_from_integer_modes<double, T>(t);
  };
  for_types<u8, s8, u16, s16, u32, s32, u64, s64>(each);
  fill_between_floats<false, false>(t);
  fill_between_floats<false, true>(t);
  fill_between_floats<true, false>(t);
  fill_between_floats<true, true>(t);
  fill_whole_modes<float, false>(t);
  fill_whole_modes<float, true>(t);
  fill_whole_modes<double, false>(t);
  add_entry(t, {"cvt", "f64", "f64"},
            lanes_op<double, double>([](double x) -> double { return x; }));
  add_entry(t, {"cvt", "f32", "bf16"},
            lanes_op<float, bf16>([](bf16 x) -> float { return decode(x); }));
  add_entry(t, {"cvt", "rn", "bf16", "f32"},
            lanes_op<bf16, float>([](float x) -> bf16 { return encode_half<bf16>(x); }));
}

}  // namespace slate::sim::SLATE_ALU_ISA
