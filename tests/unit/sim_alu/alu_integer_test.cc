// Integer arithmetic and bit instructions against 128-bit arithmetic and the manual's bit-by-bit
// definitions.
#include <gtest/gtest.h>

#include "tests/unit/sim_alu/alu_check.h"

namespace slate::sim {
namespace {

using u16 = std::uint16_t;
using s16 = std::int16_t;
using u32 = std::uint32_t;
using s32 = std::int32_t;
using u64 = std::uint64_t;
using s64 = std::int64_t;
__extension__ typedef __int128 Big;
__extension__ typedef unsigned __int128 BigBits;

template <class T>
void check_type(const std::string& n) {
  constexpr int kBits = 8 * sizeof(T);
  expect_bits(
      "add." + n, +[](T a, T b) { return static_cast<T>(Big{a} + Big{b}); });
  expect_bits(
      "sub." + n, +[](T a, T b) { return static_cast<T>(Big{a} - Big{b}); });
  // Products of 64-bit values overflow 128 bits only when unsigned: take the halves apart.
  expect_bits(
      "mul.lo." + n, +[](T a, T b) {
        return static_cast<T>(
            static_cast<u64>(static_cast<BigBits>(Big{a}) * static_cast<BigBits>(Big{b})));
      });
  expect_bits(
      "mul.hi." + n, +[](T a, T b) {
        return static_cast<T>((static_cast<BigBits>(Big{a}) * static_cast<BigBits>(Big{b})) >>
                              kBits);
      });
  expect_bits(
      "mad.lo." + n, +[](T a, T b, T c) {
        return static_cast<T>(static_cast<BigBits>(Big{a}) * static_cast<BigBits>(Big{b}) +
                              static_cast<BigBits>(Big{c}));
      });
  expect_bits(
      "mad.hi." + n, +[](T a, T b, T c) {
        const auto high = (static_cast<BigBits>(Big{a}) * static_cast<BigBits>(Big{b})) >> kBits;
        return static_cast<T>(high + static_cast<BigBits>(Big{c}));
      });
  expect_bits(
      "div." + n,
      +[](T a, T b) { return b == 0 ? static_cast<T>(-1) : static_cast<T>(Big{a} / Big{b}); });
  expect_bits(
      "rem." + n,
      +[](T a, T b) { return b == 0 ? static_cast<T>(-1) : static_cast<T>(Big{a} % Big{b}); });
  expect_bits(
      "min." + n, +[](T a, T b) { return std::min(a, b); });
  expect_bits(
      "max." + n, +[](T a, T b) { return std::max(a, b); });
  expect_bits(
      "sad." + n,
      +[](T a, T b, T c) { return static_cast<T>(Big{c} + (a > b ? Big{a} - b : Big{b} - a)); });
}

TEST(AluIntegerTest, ArithmeticEqualsWideArithmetic) {
  check_type<u16>("u16");
  check_type<s16>("s16");
  check_type<u32>("u32");
  check_type<s32>("s32");
  check_type<u64>("u64");
  check_type<s64>("s64");
}

TEST(AluIntegerTest, WideProductsKeepAllBits) {
  expect_bits(
      "mul.wide.u16", +[](u16 a, u16 b) { return static_cast<u32>(u64{a} * b); });
  expect_bits(
      "mul.wide.s16", +[](s16 a, s16 b) { return static_cast<s32>(s64{a} * b); });
  expect_bits(
      "mul.wide.u32", +[](u32 a, u32 b) { return u64{a} * b; });
  expect_bits(
      "mul.wide.s32", +[](s32 a, s32 b) { return s64{a} * b; });
  expect_bits(
      "mad.wide.s32", +[](s32 a, s32 b, s64 c) { return static_cast<s64>(Big{s64{a} * b} + c); });
  expect_bits(
      "mad.wide.u32", +[](u32 a, u32 b, u64 c) { return u64{a} * b + c; });
}

TEST(AluIntegerTest, SaturationStopsAtTheEnds) {
  static constexpr auto clamp = [](s64 x) {
    return static_cast<s32>(std::min<s64>(std::max<s64>(x, INT32_MIN), INT32_MAX));
  };
  static_assert(clamp(s64{1} << 40) == INT32_MAX);
  expect_bits(
      "add.sat.s32", +[](s32 a, s32 b) { return clamp(s64{a} + b); });
  expect_bits(
      "sub.sat.s32", +[](s32 a, s32 b) { return clamp(s64{a} - b); });
  expect_bits(
      "mad.hi.sat.s32", +[](s32 a, s32 b, s32 c) { return clamp(((s64{a} * b) >> 32) + c); });
}

TEST(AluIntegerTest, The24BitFormsUseTheLow24Bits) {
  expect_bits(
      "mul24.lo.u32",
      +[](u32 a, u32 b) { return static_cast<u32>(u64{a & 0xffffff} * (b & 0xffffff)); });
  expect_bits(
      "mul24.hi.u32",
      +[](u32 a, u32 b) { return static_cast<u32>((u64{a & 0xffffff} * (b & 0xffffff)) >> 16); });
  expect_bits(
      "mad24.hi.s32", +[](s32 a, s32 b, s32 c) {
        const s64 x = (s64{a} << 40) >> 40, y = (s64{b} << 40) >> 40;
        return static_cast<s32>(static_cast<u32>((x * y) >> 16) + static_cast<u32>(c));
      });
}

TEST(AluIntegerTest, DotProductsSumSignedAndUnsignedBytes) {
  expect_bits(
      "dp4a.s32.u32", +[](s32 a, u32 b, s32 c) {
        s64 sum = c;
        for (int k = 0; k < 4; ++k)
          sum +=
              s64{static_cast<std::int8_t>(a >> (8 * k))} * static_cast<std::uint8_t>(b >> (8 * k));
        return static_cast<s32>(sum);
      });
  expect_bits(
      "dp2a.hi.u32.s32", +[](u32 a, s32 b, s32 c) {
        const s64 sum =
            s64{c} + s64{a & 0xffff} * static_cast<std::int8_t>(b >> 16) + s64{a >> 16} * (b >> 24);
        return static_cast<s32>(sum);
      });
}

TEST(AluIntegerTest, CarryChainsAddWiderNumbers) {
  AluInputs inputs(3);
  for (int n = 0; n < 2000; ++n) {
    const u64 a = inputs.value(ptx::Type::kU64), b = inputs.value(ptx::Type::kU64);
    for (const char* suffix : {"u32", "s32"}) {
      for (const bool subtract : {false, true}) {
        AluCall low, high;
        const AluTable& table = *alu_tables().back();
        const std::string base = subtract ? "sub" : "add";
        for (int i = 0; i < kWarpSize; ++i) {
          set_lane(low.s[0], 4, i, a);
          set_lane(low.s[1], 4, i, b);
          set_lane(high.s[0], 4, i, a >> 32);
          set_lane(high.s[1], 4, i, b >> 32);
        }
        low.run(*table.find(base + ".cc." + suffix), kAllLanes);
        high.carry = low.carry;
        high.run(*table.find(base + "c." + suffix), kAllLanes);
        const u64 result = get_lane(high.d, 4, 5) << 32 | get_lane(low.d, 4, 5);
        ASSERT_EQ(result, subtract ? a - b : a + b) << suffix;
      }
    }
  }
}

TEST(AluIntegerTest, CarryChainsMultiplyWiderNumbers) {
  // 64 x 64 -> 128 bits from 32-bit pieces, as compilers write it.
  AluInputs inputs(4);
  const AluTable& table = *alu_tables().back();
  const auto step = [&table](const char* name, u64 a, u64 b, u64 c, Mask& carry) {
    AluCall call;
    for (int i = 0; i < kWarpSize; ++i) {
      set_lane(call.s[0], 4, i, a);
      set_lane(call.s[1], 4, i, b);
      set_lane(call.s[2], 4, i, c);
    }
    call.carry = carry;
    call.run(*table.find(name), kAllLanes);
    carry = call.carry;
    return get_lane(call.d, 4, 0);
  };
  for (int n = 0; n < 500; ++n) {
    const u64 a = inputs.value(ptx::Type::kU64), b = inputs.value(ptx::Type::kU64);
    const u64 a0 = a & 0xffffffff, a1 = a >> 32, b0 = b & 0xffffffff, b1 = b >> 32;
    Mask cc = 0;
    const u64 r0 = (a0 * b0) & 0xffffffff;
    u64 r1 = (a0 * b0) >> 32, r2 = 0, r3 = 0;
    r1 = step("mad.lo.cc.u32", a0, b1, r1, cc);
    r2 = step("madc.hi.u32", a0, b1, 0, cc);
    r1 = step("mad.lo.cc.u32", a1, b0, r1, cc);
    r2 = step("madc.hi.cc.u32", a1, b0, r2, cc);
    r3 = step("addc.u32", 0, 0, 0, cc);
    r2 = step("mad.lo.cc.u32", a1, b1, r2, cc);
    r3 = step("madc.hi.u32", a1, b1, r3, cc);
    const BigBits expected = static_cast<BigBits>(a) * b;
    ASSERT_EQ(r1 << 32 | r0, static_cast<u64>(expected));
    ASSERT_EQ(r3 << 32 | r2, static_cast<u64>(expected >> 64));
  }
}

TEST(AluBitsTest, ShiftAmountsClamp) {
  expect_bits(
      "shl.b32", +[](u32 a, u32 n) { return n > 31 ? 0u : a << n; });
  expect_bits(
      "shl.b16", +[](u16 a, u32 n) { return static_cast<u16>(n > 15 ? 0 : a << n); });
  expect_bits(
      "shr.u64", +[](u64 a, u32 n) { return n > 63 ? u64{0} : a >> n; });
  expect_bits(
      "shr.s32", +[](s32 a, u32 n) { return a >> std::min(n, 31u); });
  expect_bits(
      "shr.s16", +[](s16 a, u32 n) { return static_cast<s16>(a >> std::min(n, 15u)); });
  expect_bits(
      "shf.l.clamp.b32", +[](u32 a, u32 b, u32 c) {
        const u32 n = std::min(c, 32u);
        return n == 32 ? a : n == 0 ? b : b << n | a >> (32 - n);
      });
  expect_bits(
      "shf.r.wrap.b32", +[](u32 a, u32 b, u32 c) {
        const u32 n = c & 31;
        return n == 0 ? a : b << (32 - n) | a >> n;
      });
}

TEST(AluBitsTest, CountsAgreeWithTheCompilers) {
  expect_bits(
      "popc.b64", +[](u64 a) { return static_cast<u32>(std::popcount(a)); });
  expect_bits(
      "clz.b32", +[](u32 a) { return static_cast<u32>(std::countl_zero(a)); });
  expect_bits(
      "clz.b64", +[](u64 a) { return static_cast<u32>(std::countl_zero(a)); });
  expect_bits(
      "brev.b32", +[](u32 a) {
        u32 r = 0;
        for (int k = 0; k < 32; ++k) r |= (a >> k & 1) << (31 - k);
        return r;
      });
  expect_bits(
      "bfind.s32", +[](s32 a) {
        const u32 x = static_cast<u32>(a < 0 ? ~a : a);
        return x == 0 ? ~0u : 31u - static_cast<u32>(std::countl_zero(x));
      });
  expect_bits(
      "bfind.shiftamt.u64",
      +[](u64 a) { return a == 0 ? ~0u : static_cast<u32>(std::countl_zero(a)); });
}

/// The manual's definition, bit by bit.
template <class T>
T extract_by_bits(T a, u64 position, u64 length) {
  constexpr u64 kMsb = 8 * sizeof(T) - 1;
  const bool is_signed = static_cast<T>(-1) < 0;
  const auto bit = [a](u64 k) { return static_cast<u64>(a) >> k & 1; };
  const u64 sign = !is_signed || length == 0 ? 0 : bit(std::min(position + length - 1, kMsb));
  u64 r = 0;
  for (u64 i = 0; i <= kMsb; ++i)
    r |= (i < length && position + i <= kMsb ? bit(position + i) : sign) << i;
  return static_cast<T>(r);
}

TEST(AluBitsTest, FieldsFollowTheManual) {
  expect_bits(
      "bfe.u32", +[](u32 a, u32 b, u32 c) { return extract_by_bits(a, b & 0xff, c & 0xff); });
  expect_bits(
      "bfe.s32", +[](s32 a, u32 b, u32 c) { return extract_by_bits(a, b & 0xff, c & 0xff); });
  // The 64-bit forms use all of b and c: so does the hardware.
  expect_bits(
      "bfe.u64", +[](u64 a, u32 b, u32 c) { return extract_by_bits(a, b, c); });
  expect_bits(
      "bfe.s64", +[](s64 a, u32 b, u32 c) { return extract_by_bits(a, b, c); });
  expect_bits(
      "bfi.b32", +[](u32 a, u32 b, u32 c, u32 d) {
        const u32 position = c & 0xff, length = d & 0xff;
        u32 r = b;
        for (u32 i = 0; i < length && position + i < 32; ++i) {
          r = (r & ~(1u << (position + i))) | (a >> i & 1) << (position + i);
        }
        return r;
      });
}

TEST(AluBitsTest, Lop3LooksUpItsTable) {
  AluInputs inputs(5);
  for (u32 table = 0; table < 256; ++table) {
    AluCall call;
    for (int k = 0; k < 3; ++k) call.s[k] = inputs.lanes(ptx::Type::kB32, 4);
    for (int i = 0; i < kWarpSize; ++i) set_lane(call.s[3], 4, i, table);
    call.run(*alu_tables().back()->find("lop3.b32"), kAllLanes);
    for (int i = 0; i < kWarpSize; ++i) {
      const u64 a = get_lane(call.s[0], 4, i), b = get_lane(call.s[1], 4, i),
                c = get_lane(call.s[2], 4, i);
      u64 expected = 0;
      for (int k = 0; k < 32; ++k) {
        expected |= (table >> ((a >> k & 1) << 2 | (b >> k & 1) << 1 | (c >> k & 1)) & u64{1}) << k;
      }
      ASSERT_EQ(get_lane(call.d, 4, i), expected) << table;
    }
  }
}

TEST(AluBitsTest, PermutationsPickBytes) {
  EXPECT_EQ(evaluate("prmt.b32", {0x33221100, 0x77665544, 0x3210}), 0x33221100u);
  EXPECT_EQ(evaluate("prmt.b32", {0x33221100, 0x77665544, 0x0246}), 0x00224466u);
  EXPECT_EQ(evaluate("prmt.b32", {0x80221100, 0x77665544, 0x000b}), 0x000000ffu);
  EXPECT_EQ(evaluate("prmt.b32.f4e", {0x33221100, 0x77665544, 1}), 0x44332211u);
  EXPECT_EQ(evaluate("prmt.b32.b4e", {0x33221100, 0x77665544, 1}), 0x66770011u);
  EXPECT_EQ(evaluate("prmt.b32.rc8", {0x33221100, 0, 2}), 0x22222222u);
  EXPECT_EQ(evaluate("prmt.b32.rc16", {0x33221100, 0, 1}), 0x33223322u);
}

TEST(AluBitsTest, PredicateLogicWorksOnWholeMasks) {
  EXPECT_EQ(evaluate("and.pred", {1, 0}), 0u);
  EXPECT_EQ(evaluate("or.pred", {1, 0}), kAllLanes);
  EXPECT_EQ(evaluate("xor.pred", {1, 1}), 0u);
  EXPECT_EQ(evaluate("not.pred", {0}), kAllLanes);
  EXPECT_EQ(evaluate("selp.s32", {7, 9, 1}), 7u);
  EXPECT_EQ(evaluate("selp.s32", {7, 9, 0}), 9u);
  EXPECT_EQ(evaluate("slct.s32.f32", {7, 9, 0x80000000}), 7u);  // -0 is not less than 0
  EXPECT_EQ(evaluate("slct.s32.f32", {7, 9, 0x7fffffff}), 9u);  // a NaN is not greater
}

TEST(AluVideoTest, AbsoluteDifferencesOfBytesAddUp) {
  expect_bits(
      "vabsdiff4.u32.u32.u32.add", +[](u32 a, u32 b, u32 c) {
        for (int k = 0; k < 32; k += 8) {
          const int d = static_cast<int>(a >> k & 0xff) - static_cast<int>(b >> k & 0xff);
          c += static_cast<u32>(d < 0 ? -d : d);
        }
        return c;
      });
}

}  // namespace
}  // namespace slate::sim
