// Every scalar cvt, one lane at a time: the reference and the fallback of alu_convert.cc. A value
// is held exactly, as a 128-bit integer or a double, rounded once and stored. Pure functions, any
// thread.
#include <cmath>

#include "device/sim/alu_convert.h"

namespace slate::sim::SLATE_ALU_ISA {
namespace {

using ptx::Type;

struct TypeFacts {
  int bits;
  bool is_float;
  bool is_signed;
};
TypeFacts facts(Type type) {
  switch (type) {
    case Type::kU8:
      return {8, false, false};
    case Type::kS8:
      return {8, false, true};
    case Type::kU16:
      return {16, false, false};
    case Type::kS16:
      return {16, false, true};
    case Type::kU32:
      return {32, false, false};
    case Type::kS32:
      return {32, false, true};
    case Type::kU64:
      return {64, false, false};
    case Type::kS64:
      return {64, false, true};
    case Type::kF32:
      return {32, true, true};
    case Type::kF64:
      return {64, true, true};
    default:
      return {16, true, true};  // f16 and bf16
  }
}

u64 load(const void* lanes, int lane, int bytes) {
  switch (bytes) {
    case 2:
      return static_cast<const u16*>(lanes)[lane];
    case 4:
      return static_cast<const u32*>(lanes)[lane];
    default:
      return static_cast<const u64*>(lanes)[lane];
  }
}
void store(void* lanes, int lane, int bytes, u64 value) {
  switch (bytes) {
    case 2:
      static_cast<u16*>(lanes)[lane] = static_cast<u16>(value);
      break;
    case 4:
      static_cast<u32*>(lanes)[lane] = static_cast<u32>(value);
      break;
    default:
      static_cast<u64*>(lanes)[lane] = value;
  }
}

/// `raw` cut to `bits` and extended to 128.
s128 as_integer(u64 raw, int bits, bool is_signed) {
  const u64 up = raw << (64 - bits);
  return is_signed ? s128{static_cast<s64>(up) >> (64 - bits)} : s128{up >> (64 - bits)};
}
// .ftz has no effect on what becomes an f16.
double as_float(u64 raw, Type type, bool ftz) {
  switch (type) {
    case Type::kF64:
      return double_of(raw);
    case Type::kF32: {
      const float x = float_of(static_cast<u32>(raw));
      return static_cast<double>(ftz ? flush(x) : x);
    }
    case Type::kF16:
      return static_cast<double>(decode(f16{static_cast<u16>(raw)}));
    default:
      return static_cast<double>(decode(bf16{static_cast<u16>(raw)}));
  }
}

double round_to_integer(double x, Round mode) {
  switch (mode) {
    case Round::kZero:
      return __builtin_trunc(x);
    case Round::kDown:
      return __builtin_floor(x);
    case Round::kUp:
      return __builtin_ceil(x);
    default:
      return __builtin_rint(x);
  }
}

u64 integer_result(s128 x, int bits, bool is_signed, bool saturate_it) {
  if (saturate_it) {
    const s128 high = (s128{1} << (is_signed ? bits - 1 : bits)) - 1;
    const s128 low = is_signed ? -(s128{1} << (bits - 1)) : 0;
    x = x < low ? low : x > high ? high : x;
  }
  return static_cast<u64>(as_integer(static_cast<u64>(x), bits, is_signed));
}

/// A NaN from f64 keeps its sign and the upper bits of its payload.
u64 narrow_nan(double x, int exponent, int mantissa) {
  const u64 b = bits_of(quiet(x));
  const u64 code = ((u64{1} << exponent) - 1) << mantissa;
  return (b >> 63) << (exponent + mantissa) | code | (b & 0xfffffffffffff) >> (52 - mantissa);
}

u64 float_result(double x, const ConvertSpec& spec) {
  if (spec.sat) x = saturate(x);
  if (x != x && spec.s == Type::kF64 && spec.d == Type::kF16) return narrow_nan(x, 5, 10);
  if (x != x && spec.s == Type::kF64 && spec.d == Type::kBf16) return narrow_nan(x, 8, 7);
  switch (spec.d) {
    case Type::kF64:
      return bits_of(canonical(x));
    case Type::kF32: {
      const float r = float_of(encode<8, 23>(x, spec.mode));
      return bits_of(spec.ftz ? flush(r) : r);
    }
    case Type::kF16:
      return encode<5, 10>(x, spec.mode);
    default:
      return encode<8, 7>(x, spec.mode);
  }
}

/// Exact unless x has more bits than a double, and then odd, so that rounding to any narrower
/// format is right.
u64 integer_to_float(s128 x, const ConvertSpec& spec) {
  const u64 magnitude = static_cast<u64>(x < 0 ? -x : x);
  if (spec.d == Type::kF64) {
    constexpr int kModes[] = {FE_TONEAREST, FE_TOWARDZERO, FE_DOWNWARD, FE_UPWARD};
    std::fesetround(kModes[static_cast<int>(spec.mode)]);
    // Volatile: the compiler does not know that fesetround changes what a conversion gives.
    volatile u64 positive = magnitude;
    volatile s64 negative = static_cast<s64>(x);
    volatile double r = x < 0 ? static_cast<double>(negative) : static_cast<double>(positive);
    std::fesetround(FE_TONEAREST);
    return float_result(r, spec);
  }
  const double odd = to_double_odd(magnitude);
  return float_result(x < 0 ? -odd : odd, spec);
}

u64 convert_lane(u64 raw, const ConvertSpec& spec) {
  const TypeFacts d = facts(spec.d);
  const TypeFacts s = facts(spec.s);
  if (!s.is_float) {
    const s128 x = as_integer(raw, s.bits, s.is_signed);
    return d.is_float ? integer_to_float(x, spec)
                      : integer_result(x, d.bits, d.is_signed, spec.sat);
  }
  double x = as_float(raw, spec.s, spec.ftz && spec.d != Type::kF16);
  if (spec.integral) x = round_to_integer(x, spec.mode);
  if (d.is_float) return float_result(x, spec);
  if (x != x) {
    const u64 nan = nan_as_integer(d.bits, spec.s == Type::kF64);
    return integer_result(static_cast<s128>(nan), d.bits, d.is_signed, false);
  }
  const double bounded = x < -0x1p65 ? -0x1p65 : x > 0x1p65 ? 0x1p65 : x;
  return integer_result(static_cast<s128>(bounded), d.bits, d.is_signed, true);
}

}  // namespace

void convert_any(const AluOperands& o, Mask active, const ConvertSpec& spec) {
  for (int i = 0; i < kWarpSize; ++i) {
    if ((active & kLaneBit[i]) == 0) continue;
    store(o.d, i, spec.d_bytes, convert_lane(load(o.s[0], i, spec.s_bytes), spec));
  }
}

namespace {

template <ConvertSpec kSpec>
void run(const AluOperands& o, Mask active) {
  static constexpr ConvertSpec kHere = kSpec;
  convert_any(o, active, kHere);
}

template <class D, class S, int kDBytes, int kSBytes, Round kMode, bool kIntegral, bool kFtz,
          bool kSat>
void put(AluTable& t, const char* round) {
  constexpr ConvertSpec kSpec{kTypeOf<D>, kTypeOf<S>, kDBytes, kSBytes,
                              kMode,      kIntegral,  kFtz,    kSat};
  add_entry(t,
            {"cvt", round, kFtz ? "ftz" : nullptr, kSat ? "sat" : nullptr, kName<D>, kName<S>,
             width_suffix<D, S, kDBytes, kSBytes>()},
            convert_op<D, S>(&run<kSpec>));
}

template <class D, class S, int kDBytes, int kSBytes, bool kIntegral, bool kFtz, bool kSat>
void put_modes(AluTable& t) {
  put<D, S, kDBytes, kSBytes, Round::kNearest, kIntegral, kFtz, kSat>(t, kIntegral ? "rni" : "rn");
  put<D, S, kDBytes, kSBytes, Round::kZero, kIntegral, kFtz, kSat>(t, kIntegral ? "rzi" : "rz");
  put<D, S, kDBytes, kSBytes, Round::kDown, kIntegral, kFtz, kSat>(t, kIntegral ? "rmi" : "rm");
  put<D, S, kDBytes, kSBytes, Round::kUp, kIntegral, kFtz, kSat>(t, kIntegral ? "rpi" : "rp");
}

template <class T>
inline constexpr bool kFloat =
    std::is_same_v<T, f16> || std::is_same_v<T, bf16> || std::is_floating_point_v<T>;
/// Whether every value of S is one of D.
template <class D, class S>
inline constexpr bool kHolds = std::is_same_v<D, S> || sizeof(D) > sizeof(S);

template <class D, class S, int kDBytes, int kSBytes, bool kFtz, bool kSat>
void put_pair(AluTable& t) {
  if constexpr (!kFloat<D> && !kFloat<S>) {
    put<D, S, kDBytes, kSBytes, Round::kNearest, false, kFtz, kSat>(t, nullptr);
  } else if constexpr (!kFloat<D>) {
    put_modes<D, S, kDBytes, kSBytes, true, kFtz, false>(t);
  } else if constexpr (!kFloat<S> || !kHolds<D, S>) {
    put_modes<D, S, kDBytes, kSBytes, false, kFtz, kSat>(t);
  } else {
    put<D, S, kDBytes, kSBytes, Round::kNearest, false, kFtz, kSat>(t, nullptr);
    if constexpr (std::is_same_v<D, S>) put_modes<D, S, kDBytes, kSBytes, true, kFtz, kSat>(t);
  }
}

template <class D, class S, int kDBytes, int kSBytes>
void put_variants(AluTable& t) {
  constexpr bool kHasF32 = std::is_same_v<D, float> || (std::is_same_v<S, float>);
  put_pair<D, S, kDBytes, kSBytes, false, false>(t);
  put_pair<D, S, kDBytes, kSBytes, false, true>(t);
  if constexpr (kHasF32) {
    put_pair<D, S, kDBytes, kSBytes, true, false>(t);
    put_pair<D, S, kDBytes, kSBytes, true, true>(t);
  }
}

// Integers may live in wider registers, floats not.
template <class D, class S, int kDBytes>
void put_sources(AluTable& t) {
  constexpr int kNative = sizeof(Storage<S>);
  put_variants<D, S, kDBytes, kNative>(t);
  if constexpr (!kFloat<S> && kNative < 4) put_variants<D, S, kDBytes, 4>(t);
  if constexpr (!kFloat<S> && kNative < 8) put_variants<D, S, kDBytes, 8>(t);
}
template <class D, class S>
void put_all(AluTable& t) {
  constexpr int kNative = sizeof(Storage<D>);
  put_sources<D, S, kNative>(t);
  if constexpr (!kFloat<D> && kNative < 4) put_sources<D, S, 4>(t);
  if constexpr (!kFloat<D> && kNative < 8) put_sources<D, S, 8>(t);
}

}  // namespace

void fill_convert_any(AluTable& t) {
  const auto all = [&t]<class D>() {
    for_types<u8, s8, u16, s16, u32, s32, u64, s64, f16, bf16, float, double>(
        [&t]<class S>() { put_all<D, S>(t); });
  };
  for_types<u8, s8, u16, s16, u32, s32, u64, s64, f16, bf16, float, double>(all);
}

}  // namespace slate::sim::SLATE_ALU_ISA
