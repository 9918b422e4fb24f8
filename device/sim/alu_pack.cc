// Conversions to and from packed and special formats: two halves or two fp8 from two f32, tf32, and
// cvt.pack of integers; cvt with .relu and .satfinite. Pure functions, any thread.
#include "device/sim/alu_narrow.h"

namespace slate::sim::SLATE_ALU_ISA {
namespace {

struct Extra {
  const char* relu;
  const char* finite;
};
template <bool kRelu, bool kFinite>
constexpr Extra extra() {
  return {kRelu ? "relu" : nullptr, kFinite ? "satfinite" : nullptr};
}

/// f32 to a format with infinities; kRelu: negatives become 0; kFinite: the largest value instead
/// of infinity.
template <int kExponent, int kMantissa, Round kMode, bool kRelu, bool kFinite>
[[gnu::always_inline]] inline u32 narrow(float x) {
  constexpr u32 kInfinity = ((1u << kExponent) - 1) << kMantissa;
  constexpr u32 kMagnitude = (1u << (kExponent + kMantissa)) - 1;
  double v = static_cast<double>(x);
  if constexpr (kRelu) v = v <= 0 ? 0.0 : v;
  const u32 code = encode<kExponent, kMantissa>(v, kMode);
  return kFinite && (code & kMagnitude) == kInfinity ? code - 1 : code;
}

template <int kExponent, int kMantissa, Round kMode, bool kRelu, bool kFinite>
void fill_halves(AluTable& t, const char* round, const char* single, const char* pair) {
  constexpr Extra kExtra = extra<kRelu, kFinite>();
  using H = std::conditional_t<kExponent == 5, f16, bf16>;
  if constexpr (kRelu || kFinite) {
    add(t, {"cvt", round, kExtra.relu, kExtra.finite, single, "f32"}, [](float x) -> H {
      return H{static_cast<u16>(narrow<kExponent, kMantissa, kMode, kRelu, kFinite>(x))};
    });
  }
  add(t, {"cvt", round, kExtra.relu, kExtra.finite, pair, "f32"}, [](float a, float b) -> u32 {
    return narrow<kExponent, kMantissa, kMode, kRelu, kFinite>(a) << 16 |
           narrow<kExponent, kMantissa, kMode, kRelu, kFinite>(b);
  });
}

template <Round kMode, bool kRelu, bool kFinite>
void fill_tf32(AluTable& t, const char* round) {
  constexpr Extra kExtra = extra<kRelu, kFinite>();
  add(t, {"cvt", round, kExtra.relu, kExtra.finite, "tf32", "f32"},
      [](float x) -> u32 { return narrow<8, 10, kMode, kRelu, kFinite>(x) << 13; });
}

// The hardware rounds away by adding half a unit to the bits, but to a NaN, and makes what is
// then not finite smaller by one unit.
template <bool kFinite>
void fill_tf32_away(AluTable& t) {
  add(t, {"cvt", "rna", kFinite ? "satfinite" : nullptr, "tf32", "f32"}, [](float x) -> u32 {
    const u32 r = (bits_of(x) + (x == x ? 0x1000 : 0)) & ~0x1fffu;
    return kFinite && (r & 0x7f800000) == 0x7f800000 ? r - 0x2000 : r;
  });
}

template <Round kMode>
void fill_mode(AluTable& t, const char* round) {
  const auto variants = [&]<bool kRelu, bool kFinite>() {
    fill_halves<5, 10, kMode, kRelu, kFinite>(t, round, "f16", "f16x2");
    fill_halves<8, 7, kMode, kRelu, kFinite>(t, round, "bf16", "bf16x2");
    fill_tf32<kMode, kRelu, kFinite>(t, round);
  };
  variants.template operator()<false, false>();
  variants.template operator()<true, false>();
  variants.template operator()<false, true>();
  variants.template operator()<true, true>();
}

struct E4m3 {
  static constexpr const char* kName = "e4m3x2";
  static u32 encode(double x) { return encode_e4m3(x); }
  static float decode(u32 code) { return decode_e4m3(code); }
};
struct E5m2 {
  static constexpr const char* kName = "e5m2x2";
  static u32 encode(double x) { return encode_e5m2(x); }
  static float decode(u32 code) { return decode_e5m2(code); }
};

template <class Format, bool kRelu>
void fill_fp8(AluTable& t) {
  const char* relu = kRelu ? "relu" : nullptr;
  static constexpr auto code = [](float x) -> u32 {
    return Format::encode(static_cast<double>(kRelu && x <= 0 ? 0.0f : x));
  };
  static constexpr auto half = [](u32 h) -> float { return decode(f16{static_cast<u16>(h)}); };
  add(t, {"cvt", "rn", "satfinite", relu, Format::kName, "f32"},
      [](float a, float b) -> u16 { return static_cast<u16>(code(a) << 8 | code(b)); });
  add(t, {"cvt", "rn", "satfinite", relu, Format::kName, "f16x2"},
      [](u32 a) -> u16 { return static_cast<u16>(code(half(a >> 16)) << 8 | code(half(a))); });
  add(t, {"cvt", "rn", relu, "f16x2", Format::kName}, [](u16 a) -> u32 {
    const auto widen = [](u32 c) -> u32 {
      const float x = Format::decode(c & 0xff);
      return encode_half<f16>(kRelu && x <= 0 ? 0.0f : x).bits;
    };
    return widen(a >> 8u) << 16 | widen(a);
  });
}

template <int kPackBits, bool kPackSigned>
[[gnu::always_inline]] inline u32 clamp_to(s32 x) {
  constexpr s32 kLow = kPackSigned ? -(1 << (kPackBits - 1)) : 0;
  constexpr s32 kHigh = (1 << (kPackBits - (kPackSigned ? 1 : 0))) - 1;
  return static_cast<u32>(x < kLow ? kLow : x > kHigh ? kHigh : x) & ((1u << kPackBits) - 1);
}

template <int kPackBits, bool kPackSigned>
void fill_pack_bits(AluTable& t, const char* name) {
  add(t, {"cvt", "pack", "sat", name, "s32", "b32"}, [](s32 a, s32 b, u32 c) -> u32 {
    return c << (2 * kPackBits) | clamp_to<kPackBits, kPackSigned>(a) << kPackBits |
           clamp_to<kPackBits, kPackSigned>(b);
  });
}

}  // namespace

void fill_pack(AluTable& t) {
  fill_mode<Round::kNearest>(t, "rn");
  fill_mode<Round::kZero>(t, "rz");
  fill_tf32_away<false>(t);
  fill_tf32_away<true>(t);
  fill_fp8<E4m3, false>(t);
  fill_fp8<E4m3, true>(t);
  fill_fp8<E5m2, false>(t);
  fill_fp8<E5m2, true>(t);
  add(t, {"cvt", "pack", "sat", "u16", "s32"},
      [](s32 a, s32 b) -> u32 { return clamp_to<16, false>(a) << 16 | clamp_to<16, false>(b); });
  add(t, {"cvt", "pack", "sat", "s16", "s32"},
      [](s32 a, s32 b) -> u32 { return clamp_to<16, true>(a) << 16 | clamp_to<16, true>(b); });
  fill_pack_bits<8, false>(t, "u8");
  fill_pack_bits<8, true>(t, "s8");
  fill_pack_bits<4, false>(t, "u4");
  fill_pack_bits<4, true>(t, "s4");
  fill_pack_bits<2, false>(t, "u2");
  fill_pack_bits<2, true>(t, "s2");
}

}  // namespace slate::sim::SLATE_ALU_ISA
