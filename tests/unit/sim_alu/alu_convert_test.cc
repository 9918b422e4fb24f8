// Conversions and 16-bit arithmetic against exact references: all 65,536 halves, and rounding by
// search.
#include <gtest/gtest.h>

#include <algorithm>
#include <cfenv>
#include <cmath>
#include <limits>

#include "tests/unit/sim_alu/alu_check.h"

namespace slate::sim {
namespace {

using u16 = std::uint16_t;
using s32 = std::int32_t;
using u32 = std::uint32_t;
using s64 = std::int64_t;
using u64 = std::uint64_t;

struct Format {
  int exponent, mantissa;
};
constexpr Format kHalf{5, 10}, kBrain{8, 7};

/// The value of a code, by the definition of the format.
long double decode(u32 code, Format f) {
  const u32 e = code >> f.mantissa & ((1u << f.exponent) - 1);
  const u32 m = code & ((1u << f.mantissa) - 1);
  const int bias = (1 << (f.exponent - 1)) - 1;
  const long double sign = (code >> (f.exponent + f.mantissa)) != 0 ? -1 : 1;
  if (e == (1u << f.exponent) - 1) return m != 0 ? NAN : sign * INFINITY;
  if (e == 0) return sign * std::ldexp(static_cast<long double>(m), 1 - bias - f.mantissa);
  return sign * std::ldexp(static_cast<long double>(m | 1u << f.mantissa),
                           static_cast<int>(e) - bias - f.mantissa);
}

/// The nearest code, ties to even, found by binary search over the positive codes; one past the
/// largest counts as a number that becomes infinity.
u16 nearest(long double x, Format f) {
  if (std::isnan(x)) return 0x7fff;
  const u16 sign = std::signbit(x) ? 0x8000 : 0;
  const long double magnitude = std::fabs(x);
  const u32 infinity = ((1u << f.exponent) - 1) << f.mantissa;
  const auto value = [&](u32 code) {
    return code == infinity ? 2 * decode(infinity - (1u << f.mantissa), f) : decode(code, f);
  };
  if (magnitude >= value(infinity)) return static_cast<u16>(sign | infinity);
  u32 low = 0, high = infinity;  // value(low) <= magnitude < value(high)
  while (high - low > 1) {
    const u32 middle = (low + high) / 2;
    (value(middle) <= magnitude ? low : high) = middle;
  }
  const long double down = magnitude - value(low), up = value(high) - magnitude;
  const bool take_high = up < down || (up == down && (high & 1) == 0);
  return static_cast<u16>(sign | (take_high ? high : low));
}

bool is_nan_code(u16 code, Format f) {
  return (code & 0x7fff) > ((1 << f.exponent) - 1) << f.mantissa;
}

TEST(AluHalfTest, EveryHalfDecodesToItsValue) {
  for (u32 code = 0; code < 0x10000; ++code) {
    const float x = from_bits<float>(evaluate("cvt.f32.f16", {code}));
    const float y = from_bits<float>(evaluate("cvt.f32.bf16", {code}));
    ASSERT_TRUE(std::isnan(x) ? is_nan_code(static_cast<u16>(code), kHalf)
                              : static_cast<long double>(x) == decode(code, kHalf));
    ASSERT_TRUE(std::isnan(y) ? is_nan_code(static_cast<u16>(code), kBrain)
                              : static_cast<long double>(y) == decode(code, kBrain));
    if (!std::isnan(x)) {
      ASSERT_EQ(evaluate("cvt.rn.f16.f32", {to_bits(x)}), code);
    }
    if (!std::isnan(y)) {
      ASSERT_EQ(evaluate("cvt.rn.bf16.f32", {to_bits(y)}), code);
    }
  }
}

TEST(AluHalfTest, EveryMidpointRoundsToEven) {
  for (u32 code = 0; code < 0x7bff; ++code) {
    const float middle = static_cast<float>((decode(code, kHalf) + decode(code + 1, kHalf)) / 2);
    const u64 even = code + (code & 1);
    ASSERT_EQ(evaluate("cvt.rn.f16.f32", {to_bits(middle)}), even) << code;
    ASSERT_EQ(evaluate("cvt.rn.f16.f32", {to_bits(std::nextafter(middle, 0.0f))}), code) << code;
    ASSERT_EQ(evaluate("cvt.rn.f16.f32", {to_bits(std::nextafter(middle, 1e9f))}), code + 1)
        << code;
    ASSERT_EQ(evaluate("cvt.rz.f16.f32", {to_bits(middle)}), code) << code;
  }
}

template <Format kFormat>
u16 sum_of(u16 a, u16 b) {
  return nearest(decode(a, kFormat) + decode(b, kFormat), kFormat);
}
template <Format kFormat>
u16 product_of(u16 a, u16 b) {
  return nearest(decode(a, kFormat) * decode(b, kFormat), kFormat);
}
// Rounded to odd in long double, so that the search sees on which side of a midpoint the exact
// value is.
template <Format kFormat>
u16 fma_of(u16 a, u16 b, u16 c) {
  const long double p = decode(a, kFormat) * decode(b, kFormat), x = decode(c, kFormat);
  const long double s = p + x;
  const long double back = s - p;
  const long double error = (p - (s - back)) + (x - back);
  if (!std::isfinite(s) || error == 0) return nearest(s, kFormat);
  int exponent = 0;
  const u64 mantissa = static_cast<u64>(std::ldexp(std::frexp(std::fabs(s), &exponent), 64));
  const long double towards = error > 0 ? INFINITY : -INFINITY;
  return nearest((mantissa & 1) != 0 ? s : std::nextafter(s, towards), kFormat);
}

TEST(AluHalfTest, SumsAndProductsAreRoundedOnce) {
  expect_bits("add.f16", &sum_of<kHalf>, 400);
  expect_bits("mul.f16", &product_of<kHalf>, 400);
  expect_bits("fma.rn.f16", &fma_of<kHalf>, 400);
  expect_bits("add.bf16", &sum_of<kBrain>, 100);
  expect_bits("mul.bf16", &product_of<kBrain>, 100);
  expect_bits("fma.rn.bf16", &fma_of<kBrain>, 100);
}

TEST(AluHalfTest, AFusedProductIsNotRoundedTwice) {
  // 1025 * 1 + a little: exactly above, at and below the midpoint between two halves.
  EXPECT_EQ(evaluate("fma.rn.f16", {0x6400, 0x3c01, 0x0001}),
            evaluate("cvt.rn.f16.f32", {to_bits(1025.0f + 0x1p-24f)}));
  EXPECT_EQ(evaluate("fma.rn.f16", {0x6801, 0x3c01, 0x0001}),
            nearest(2050.0L * (1 + 0x1p-10L) + 0x1p-24L, kHalf));
  EXPECT_EQ(evaluate("fma.rn.f16", {0x6801, 0x3c01, 0x8001}),
            nearest(2050.0L * (1 + 0x1p-10L) - 0x1p-24L, kHalf));
}

TEST(AluHalfTest, PairsAreTwoHalves) {
  AluInputs inputs(11);
  for (const char* name : {"add", "mul", "sub", "max", "min.NaN", "fma.rn.relu"}) {
    for (const char* type : {"f16", "bf16"}) {
      const std::string single = std::string(name) + "." + type;
      for (int n = 0; n < 300; ++n) {
        const auto pair = type[0] == 'f' ? ptx::Type::kF16x2 : ptx::Type::kBf16x2;
        std::vector<u64> whole, low, high;
        for (int k = 0; k < (single.starts_with("fma") ? 3 : 2); ++k) {
          whole.push_back(inputs.value(pair));
          low.push_back(whole.back() & 0xffff);
          high.push_back(whole.back() >> 16);
        }
        ASSERT_EQ(evaluate(single + "x2", whole),
                  evaluate(single, high) << 16 | evaluate(single, low))
            << single;
      }
    }
  }
}

/// Rounds to an integer, clamps; what a NaN gives is told apart by the caller.
template <class D, class F>
D to_integer(F x, long double (*round)(long double)) {
  if (std::isnan(x))
    return sizeof(D) == 8 || sizeof(F) == 8 ? static_cast<D>(u64{1} << (8 * sizeof(D) - 1)) : D(0);
  const long double r = round(static_cast<long double>(x));
  if (r <= static_cast<long double>(std::numeric_limits<D>::min()))
    return std::numeric_limits<D>::min();
  if (r >= static_cast<long double>(std::numeric_limits<D>::max()))
    return std::numeric_limits<D>::max();
  return static_cast<D>(r);
}

template <class D, class F>
void check_to_integer(const std::string& types) {
  expect_bits(
      "cvt.rzi." + types,
      +[](F x) { return to_integer<D>(x, [](long double y) { return std::trunc(y); }); });
  expect_bits(
      "cvt.rni." + types,
      +[](F x) { return to_integer<D>(x, [](long double y) { return std::nearbyint(y); }); });
  expect_bits(
      "cvt.rmi." + types,
      +[](F x) { return to_integer<D>(x, [](long double y) { return std::floor(y); }); });
  expect_bits(
      "cvt.rpi." + types,
      +[](F x) { return to_integer<D>(x, [](long double y) { return std::ceil(y); }); });
}

TEST(AluConvertTest, FloatsToIntegersClampAndNansHaveTheirValue) {
  check_to_integer<s32, float>("s32.f32");
  check_to_integer<u32, float>("u32.f32");
  check_to_integer<s64, float>("s64.f32");
  check_to_integer<u64, float>("u64.f32");
  check_to_integer<std::int16_t, float>("s16.f32");
  check_to_integer<u16, float>("u16.f32");
  check_to_integer<s32, double>("s32.f64");
  check_to_integer<u32, double>("u32.f64");
  check_to_integer<s64, double>("s64.f64");
  check_to_integer<u64, double>("u64.f64");
  EXPECT_EQ(evaluate("cvt.rzi.s8.f32", {to_bits(300.0f)}), 127u);
  EXPECT_EQ(evaluate("cvt.rzi.s8.f32", {to_bits(-300.0f)}), 0xff80u);
  EXPECT_EQ(evaluate("cvt.rzi.u8.f32", {to_bits(300.0f)}), 255u);
  EXPECT_EQ(evaluate("cvt.rni.s32.f16", {0x4100}), 2u);  // 2.5
}

template <int kMode, class F, class S>
F from_integer(S x) {
  std::fesetround(kMode);
  volatile S y = x;
  volatile F r = static_cast<F>(y);
  std::fesetround(FE_TONEAREST);
  return r;
}
template <class F, class S>
void check_from_integer(const std::string& types) {
  expect_bits("cvt.rn." + types, &from_integer<FE_TONEAREST, F, S>);
  expect_bits("cvt.rz." + types, &from_integer<FE_TOWARDZERO, F, S>);
  expect_bits("cvt.rm." + types, &from_integer<FE_DOWNWARD, F, S>);
  expect_bits("cvt.rp." + types, &from_integer<FE_UPWARD, F, S>);
}

TEST(AluConvertTest, IntegersToFloatsRoundInEveryMode) {
  check_from_integer<float, s32>("f32.s32");
  check_from_integer<float, u32>("f32.u32");
  check_from_integer<float, s64>("f32.s64");
  check_from_integer<float, u64>("f32.u64");
  check_from_integer<double, s64>("f64.s64");
  check_from_integer<double, u64>("f64.u64");
  check_from_integer<double, s32>("f64.s32");
  check_from_integer<double, u32>("f64.u32");
  check_from_integer<float, u16>("f32.u16");
  expect_bits(
      "cvt.rn.f16.s64", +[](s64 x) { return nearest(static_cast<long double>(x), kHalf); });
  expect_bits(
      "cvt.rn.bf16.u64", +[](u64 x) { return nearest(static_cast<long double>(x), kBrain); });
}

TEST(AluConvertTest, IntegersExtendCutAndSaturate) {
  expect_bits(
      "cvt.s64.s32", +[](s32 x) { return s64{x}; });
  expect_bits(
      "cvt.u32.u16", +[](u16 x) { return u32{x}; });
  expect_bits(
      "cvt.s32.s8", +[](u16 x) { return s32{static_cast<std::int8_t>(x)}; });
  expect_bits(
      "cvt.u16.u64", +[](u64 x) { return static_cast<u16>(x); });
  expect_bits(
      "cvt.sat.s8.s32", +[](s32 x) { return static_cast<std::int16_t>(std::clamp(x, -128, 127)); });
  expect_bits(
      "cvt.sat.u16.s64", +[](s64 x) { return static_cast<u16>(std::clamp<s64>(x, 0, 65535)); });
  expect_bits(
      "cvt.sat.s32.u64", +[](u64 x) { return static_cast<s32>(std::min<u64>(x, INT32_MAX)); });
  EXPECT_EQ(evaluate("cvt.s8.s32", {0x80}), 0xff80u);
}

TEST(AluConvertTest, WiderRegistersAreCutAndExtended) {
  const auto run = [](const char* name, int d_bytes, int s_bytes, u64 value) {
    AluCall call;
    for (int i = 0; i < kWarpSize; ++i) set_lane(call.s[0], s_bytes, i, value);
    call.run(*alu_tables().back()->find(name), kAllLanes);
    return get_lane(call.d, d_bytes, 31);
  };
  EXPECT_EQ(run("cvt.s32.s8.w4:4", 4, 4, 0x12345680), 0xffffff80u);
  EXPECT_EQ(run("cvt.u8.u32.w4:4", 4, 4, 0x12345680), 0x80u);
  EXPECT_EQ(run("cvt.s8.s32.w8:4", 8, 4, 0x12345680), 0xffffffffffffff80u);
  EXPECT_EQ(run("cvt.rn.f32.u8.w4:4", 4, 4, 0xff05), to_bits(5.0f));
  EXPECT_EQ(run("cvt.rzi.s16.f32.w4:4", 4, 4, to_bits(-5.5f)), 0xfffffffbu);
}

TEST(AluConvertTest, FloatsToFloats) {
  expect_lanes(
      "cvt.rn.f32.f64", +[](double x) { return static_cast<float>(x); },
      [](float a, float b) {
        return to_bits(a) == to_bits(b) || (std::isnan(a) && std::isnan(b));
      });
  expect_lanes(
      "cvt.f64.f32", +[](float x) { return static_cast<double>(x); },
      [](double a, double b) {
        return to_bits(a) == to_bits(b) || (std::isnan(a) && std::isnan(b));
      });
  expect_lanes(
      "cvt.rmi.f32.f32", +[](float x) { return std::floor(x); },
      [](float a, float b) {
        return to_bits(a) == to_bits(b) || (std::isnan(a) && std::isnan(b));
      });
  EXPECT_EQ(evaluate("cvt.sat.f32.f32", {to_bits(1.5f)}), to_bits(1.0f));
  EXPECT_EQ(evaluate("cvt.sat.f32.f32", {0x7fffffff}), 0u);
  EXPECT_EQ(evaluate("cvt.rn.f32.f64", {0x7ff0000012345678}), 0x7fc00000u);
  EXPECT_EQ(evaluate("cvt.ftz.f64.f32", {0x80000001}), 0x8000000000000000u);
  EXPECT_EQ(evaluate("cvt.rn.f16.f64", {to_bits(1.0 + 0x1p-11 + 0x1p-40)}),
            0x3c01u);  // not by way of f32
}

TEST(AluConvertTest, PacksAndSmallFormats) {
  EXPECT_EQ(evaluate("cvt.rn.f16x2.f32", {to_bits(1.0f), to_bits(-2.0f)}), 0x3c00c000u);
  EXPECT_EQ(evaluate("cvt.rn.relu.bf16x2.f32", {to_bits(1.0f), to_bits(-2.0f)}), 0x3f800000u);
  EXPECT_EQ(evaluate("cvt.rna.tf32.f32", {0x3f801000}), 0x3f802000u);
  EXPECT_EQ(evaluate("cvt.rn.tf32.f32", {0x3f801000}), 0x3f800000u);
  EXPECT_EQ(evaluate("cvt.rn.satfinite.e4m3x2.f32", {to_bits(1.0f), to_bits(1e9f)}), 0x387eu);
  EXPECT_EQ(evaluate("cvt.rn.satfinite.e5m2x2.f32", {to_bits(-1.0f), to_bits(1e9f)}), 0xbc7bu);
  EXPECT_EQ(evaluate("cvt.rn.satfinite.e4m3x2.f32", {to_bits(-600.0f), to_bits(256.0f)}), 0xfe78u);
  EXPECT_EQ(evaluate("cvt.rn.f16x2.e4m3x2", {0x387e}), 0x3c005f00u);
  EXPECT_EQ(evaluate("cvt.pack.sat.s16.s32", {100000, static_cast<u64>(-5)}), 0x7ffffffbu);
  EXPECT_EQ(evaluate("cvt.pack.sat.u8.s32.b32", {300, static_cast<u64>(-5), 0xabcd}), 0xabcdff00u);
}

}  // namespace
}  // namespace slate::sim
