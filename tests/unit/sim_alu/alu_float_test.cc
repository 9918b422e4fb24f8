// f32 and f64 arithmetic against the host's own, in every rounding mode, with the hardware's NaNs
// and flushing.
#include <gtest/gtest.h>

#include <cfenv>
#include <cmath>
#include <limits>

#include "tests/unit/sim_alu/alu_check.h"

namespace slate::sim {
namespace {

constexpr std::uint32_t kNan = 0x7fffffff;

/// The host's result under `kMode`; volatile keeps the compiler from computing it elsewhere.
template <int kMode, class T, class F, class... A>
T in_mode(F f, A... a) {
  std::fesetround(kMode);
  volatile T r = f(static_cast<volatile A&>(a)...);
  std::fesetround(FE_TONEAREST);
  return r;
}
float one_nan(float x) {
  return std::isnan(x) ? std::bit_cast<float>(kNan) : x;
}

template <int kMode>
void check_f32(const std::string& mode) {
  const std::string sum_mode = mode == "rn" ? "" : "." + mode;
  expect_bits(
      "add" + sum_mode + ".f32", +[](float a, float b) {
        return one_nan(in_mode<kMode, float>([](float x, float y) { return x + y; }, a, b));
      });
  expect_bits(
      "sub" + sum_mode + ".f32", +[](float a, float b) {
        return one_nan(in_mode<kMode, float>([](float x, float y) { return x - y; }, a, b));
      });
  expect_bits(
      "mul" + sum_mode + ".f32", +[](float a, float b) {
        return one_nan(in_mode<kMode, float>([](float x, float y) { return x * y; }, a, b));
      });
  expect_bits(
      "fma." + mode + ".f32", +[](float a, float b, float c) {
        return one_nan(in_mode<kMode, float>(
            [](float x, float y, float z) { return std::fma(x, y, z); }, a, b, c));
      });
  expect_bits(
      "div." + mode + ".f32", +[](float a, float b) {
        return one_nan(in_mode<kMode, float>([](float x, float y) { return x / y; }, a, b));
      });
  expect_bits(
      "rcp." + mode + ".f32",
      +[](float a) { return one_nan(in_mode<kMode, float>([](float x) { return 1.0f / x; }, a)); });
  expect_bits(
      "sqrt." + mode + ".f32", +[](float a) {
        return one_nan(in_mode<kMode, float>([](float x) { return std::sqrt(x); }, a));
      });
}

bool same_number(double a, double b) {
  return (std::isnan(a) && std::isnan(b)) || to_bits(a) == to_bits(b);
}

template <int kMode>
void check_f64(const std::string& mode) {
  const std::string sum_mode = mode == "rn" ? "" : "." + mode;
  expect_lanes(
      "add" + sum_mode + ".f64",
      +[](double a, double b) {
        return in_mode<kMode, double>([](double x, double y) { return x + y; }, a, b);
      },
      same_number);
  expect_lanes(
      "mul" + sum_mode + ".f64",
      +[](double a, double b) {
        return in_mode<kMode, double>([](double x, double y) { return x * y; }, a, b);
      },
      same_number);
  expect_lanes(
      "fma." + mode + ".f64",
      +[](double a, double b, double c) {
        return in_mode<kMode, double>(
            [](double x, double y, double z) { return std::fma(x, y, z); }, a, b, c);
      },
      same_number);
  expect_lanes(
      "div." + mode + ".f64",
      +[](double a, double b) {
        return in_mode<kMode, double>([](double x, double y) { return x / y; }, a, b);
      },
      same_number);
  expect_lanes(
      "sqrt." + mode + ".f64",
      +[](double a) { return in_mode<kMode, double>([](double x) { return std::sqrt(x); }, a); },
      same_number);
}

TEST(AluFloatTest, EveryRoundingModeRoundsAsIeeeSays) {
  check_f32<FE_TONEAREST>("rn");
  check_f32<FE_TOWARDZERO>("rz");
  check_f32<FE_DOWNWARD>("rm");
  check_f32<FE_UPWARD>("rp");
  check_f64<FE_TONEAREST>("rn");
  check_f64<FE_TOWARDZERO>("rz");
  check_f64<FE_DOWNWARD>("rm");
  check_f64<FE_UPWARD>("rp");
}

TEST(AluFloatTest, TheHostsRoundingModeIsAsItWas) {
  evaluate("add.rp.f32", {0x3f800000, 0x33000000});
  evaluate("mul.ftz.f32", {0x3f800000, 0x33000000});
  EXPECT_EQ(std::fegetround(), FE_TONEAREST);
  volatile float tiny = std::numeric_limits<float>::min();
  volatile float half = tiny * 0.5f;
  EXPECT_NE(half, 0.0f);
}

TEST(AluFloatTest, F64KeepsThePayloadOfANan) {
  EXPECT_EQ(evaluate("add.f64", {0x7ff0000012345678, 0x3ff0000000000000}), 0x7ff8000012345678u);
  EXPECT_EQ(evaluate("add.f64", {0x7ff8000000000000, 0xfff8000012345678}), 0xfff8000012345678u);
  EXPECT_EQ(evaluate("fma.rn.f64", {0xfff8000000000001, 0x3ff0000000000000, 0xfff8000000000002}),
            0xfff8000000000002u);
  EXPECT_EQ(evaluate("fma.rn.f64", {0xfff8000000000001, 0xfff8000000000003, 0xfff8000000000002}),
            0xfff8000000000003u);
  EXPECT_EQ(evaluate("sub.f64", {0x7ff0000000000000, 0x7ff0000000000000}), 0xfff8000000000000u);
  EXPECT_EQ(evaluate("neg.f64", {0xfff8000012345678}), 0xfff8000012345678u);
}

TEST(AluFloatTest, FtzFlushesSourcesAndResultsAndKeepsSigns) {
  EXPECT_EQ(evaluate("add.ftz.f32", {0x80000001, 0x80000001}), 0x80000000u);
  EXPECT_EQ(evaluate("add.f32", {0x80000001, 0x80000001}), 0x80000002u);
  EXPECT_EQ(evaluate("mul.ftz.f32", {0x00800000, 0xbf000000}), 0x80000000u);
  EXPECT_EQ(evaluate("mul.f32", {0x00800000, 0xbf000000}), 0x80400000u);
  EXPECT_EQ(evaluate("neg.ftz.f32", {0x00000001}), 0x80000000u);
  EXPECT_EQ(evaluate("fma.rn.ftz.f32", {0x3f800000, 0x00800000, 0x80800001}), 0x80000000u);
  // Tiny before it is rounded to the smallest normal number, so it is flushed.
  EXPECT_EQ(evaluate("mul.ftz.f32", {0x3f7fffff, 0x00800000}), 0u);
  EXPECT_EQ(evaluate("mul.f32", {0x3f7fffff, 0x00800000}), 0x00800000u);
}

TEST(AluFloatTest, SatClampsToOneAndTurnsNanIntoZero) {
  EXPECT_EQ(evaluate("add.sat.f32", {0x3f800000, 0x3f800000}), 0x3f800000u);
  EXPECT_EQ(evaluate("add.sat.f32", {0xbf800000, 0}), 0u);
  EXPECT_EQ(evaluate("add.sat.f32", {kNan, 0}), 0u);
  EXPECT_EQ(evaluate("mul.sat.f32", {0x80000000, 0x3f800000}), 0u);
  EXPECT_EQ(evaluate("fma.rn.ftz.sat.f32", {0x3f000000, 0x3f000000, 0}), 0x3e800000u);
}

TEST(AluFloatTest, ExtremesOrderZerosAndIgnoreNans) {
  EXPECT_EQ(evaluate("min.f32", {0x00000000, 0x80000000}), 0x80000000u);
  EXPECT_EQ(evaluate("max.f32", {0x80000000, 0x00000000}), 0u);
  EXPECT_EQ(evaluate("min.f32", {0x7fc00000, 0x3f800000}), 0x3f800000u);
  EXPECT_EQ(evaluate("max.f32", {0x3f800000, 0xffc12345}), 0x3f800000u);
  EXPECT_EQ(evaluate("max.f32", {0x7fc00000, 0xffc12345}), kNan);
  EXPECT_EQ(evaluate("max.NaN.f32", {0x3f800000, 0xffc12345}), kNan);
  EXPECT_EQ(evaluate("max.xorsign.abs.f32", {0xc0000000, 0x3f800000}), 0xc0000000u);
  EXPECT_EQ(evaluate("min/3.f32", {0x40000000, 0x3f800000, 0x40400000}), 0x3f800000u);
  EXPECT_EQ(evaluate("min.f64", {0x7ff8000000000000, 0x3ff0000000000000}), 0x3ff0000000000000u);
}

TEST(AluFloatTest, SignsAreBitsUnlessItIsANan) {
  EXPECT_EQ(evaluate("abs.f32", {0x80000001}), 1u);
  EXPECT_EQ(evaluate("neg.f32", {0x7f800000}), 0xff800000u);
  EXPECT_EQ(evaluate("neg.f32", {0x7fc00000}), kNan);
  EXPECT_EQ(evaluate("copysign.f32", {0x80000000, 0x7fc00000}), 0xffc00000u);
}

// Approximations against the C library, within the bounds of the PTX manual.
void expect_near(const std::string& name, float (*reference)(float), float low, float high,
                 double relative, double absolute) {
  for (int n = 0; n <= 4000; ++n) {
    const float x = low + (high - low) * static_cast<float>(n) / 4000.0f;
    const float r = from_bits<float>(evaluate(name, {to_bits(x)}));
    const double expected = static_cast<double>(reference(x));
    ASSERT_LE(std::fabs(static_cast<double>(r) - expected),
              std::fmax(relative * std::fabs(expected), absolute))
        << name << " of " << x;
  }
}

TEST(AluApproximationTest, ResultsAreWithinTheBounds) {
  expect_near(
      "ex2.approx.ftz.f32", [](float x) { return std::exp2(x); }, -20, 20, 0x1p-22, 0);
  expect_near(
      "lg2.approx.f32", [](float x) { return std::log2(x); }, 0.01f, 50, 0x1p-21, 0x1p-22);
  expect_near(
      "sin.approx.f32", [](float x) { return std::sin(x); }, -6, 6, 0, 0x1p-20);
  expect_near(
      "cos.approx.f32", [](float x) { return std::cos(x); }, -6, 6, 0, 0x1p-20);
  expect_near(
      "tanh.approx.f32", [](float x) { return std::tanh(x); }, -4, 4, 0x1p-10, 0);
  expect_near(
      "rsqrt.approx.f32", [](float x) { return 1 / std::sqrt(x); }, 0.01f, 90, 0x1p-22, 0);
  expect_near(
      "rcp.approx.ftz.f32", [](float x) { return 1 / x; }, 0.01f, 90, 0x1p-23, 0);
}

TEST(AluApproximationTest, SpecialValuesFollowTheManual) {
  EXPECT_EQ(evaluate("ex2.approx.ftz.f32", {0xff800000}), 0u);
  EXPECT_EQ(evaluate("ex2.approx.ftz.f32", {0x80000001}), 0x3f800000u);
  EXPECT_EQ(evaluate("lg2.approx.f32", {0}), 0xff800000u);
  EXPECT_EQ(evaluate("lg2.approx.f32", {0xbf800000}), kNan);
  EXPECT_EQ(evaluate("rsqrt.approx.f32", {0x80000000}), 0xff800000u);
  EXPECT_EQ(evaluate("rcp.approx.ftz.f32", {0x80000001}), 0xff800000u);
  EXPECT_EQ(evaluate("sin.approx.f32", {0x7f800000}), kNan);
  EXPECT_EQ(evaluate("div.approx.f32", {0x3f800000, 0x7f000000}), 0u);
  EXPECT_EQ(evaluate("div.approx.f32", {0x7f800000, 0x7f000000}), kNan);
  EXPECT_EQ(evaluate("rcp.approx.ftz.f64", {0x4000000000000000}), 0x3fe0000000000000u);
  EXPECT_EQ(evaluate("rcp.approx.ftz.f64", {0x8000000000000001}), 0xfff0000000000000u);
}

}  // namespace
}  // namespace slate::sim
