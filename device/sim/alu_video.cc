// The video instructions, without operand selectors: scalar (vadd, vsub, vabsdiff, vmin, vmax,
// vshl, vshr, vmad, vset) and on two halves or four bytes (vadd4, vabsdiff4, ...). Rare, so one
// lane at a time from a description of the instruction instead of a loop each. Pure functions, any
// thread.
#include "device/sim/alu_lanes.h"

namespace slate::sim::SLATE_ALU_ISA {
namespace {

enum class Kind : u8 { kAdd, kSub, kAbsDiff, kMin, kMax, kAverage, kShl, kShr, kMad, kSet };
enum class Second : u8 { kNone, kAdd };
enum class Compare : u8 { kEq, kNe, kLt, kLe, kGt, kGe };

struct VideoSpec {
  Kind kind;
  bool d_signed, a_signed, b_signed;
  bool sat;
  Second second;
  u8 detail;  // Compare of vset; for vshl, vshr 1 = wrap; for vmad the shift, plus 32 for .po
  u8 parts;   // 1, 2 or 4 values to a register
};

bool compare(s64 a, s64 b, Compare how) {
  switch (how) {
    case Compare::kEq:
      return a == b;
    case Compare::kNe:
      return a != b;
    case Compare::kLt:
      return a < b;
    case Compare::kLe:
      return a <= b;
    case Compare::kGt:
      return a > b;
    default:
      return a >= b;
  }
}

s64 clamp(s64 x, int bits, bool is_signed) {
  const s64 low = is_signed ? -(s64{1} << (bits - 1)) : 0;
  const s64 high = (s64{1} << (is_signed ? bits - 1 : bits)) - 1;
  return x < low ? low : x > high ? high : x;
}

s64 field(u32 x, int bits, bool is_signed) {
  const u64 up = u64{x} << (64 - bits);
  return is_signed ? static_cast<s64>(up) >> (64 - bits) : static_cast<s64>(up >> (64 - bits));
}

s64 first(s64 a, s64 b, const VideoSpec& v) {
  switch (v.kind) {
    case Kind::kAdd:
      return a + b;
    case Kind::kSub:
      return a - b;
    case Kind::kAbsDiff:
      return a > b ? a - b : b - a;
    case Kind::kMin:
      return a < b ? a : b;
    case Kind::kMax:
      return a > b ? a : b;
    case Kind::kAverage:
      return (a + b + (a + b >= 0 ? 1 : 0)) >> 1;
    case Kind::kSet:
      return compare(a, b, static_cast<Compare>(v.detail)) ? 1 : 0;
    default: {
      const s64 n = v.detail == 1 ? (b & 31) : b > 32 ? 32 : b;
      return v.kind == Kind::kShl ? static_cast<s64>(static_cast<u64>(a) << n) : a >> n;
    }
  }
}

// 65 bits hold a * b + c; all of the same signedness.
u32 multiply_add(u32 a, u32 b, u32 c, const VideoSpec& v) {
  const s128 product = s128{field(a, 32, v.a_signed)} * s128{field(b, 32, v.b_signed)};
  const s128 sum = product + field(c, 32, v.d_signed) + ((v.detail & 32) != 0 ? 1 : 0);
  const s128 r = sum >> (v.detail & 31);
  const s64 low = v.sat && r < INT32_MIN ? INT32_MIN : static_cast<s64>(r);
  return static_cast<u32>(v.sat && r > INT32_MAX ? INT32_MAX : low);
}

u32 scalar(u32 a, u32 b, u32 c, const VideoSpec& v) {
  if (v.kind == Kind::kMad) return multiply_add(a, b, c, v);
  s64 r = first(field(a, 32, v.a_signed), field(b, 32, v.b_signed), v);
  if (v.sat) r = clamp(r, 32, v.d_signed);
  const u32 low = static_cast<u32>(r);
  return v.second == Second::kAdd ? low + c : low;
}

// With .add, the sum takes each value as it was before it was cut to its bits.
u32 parallel(u32 a, u32 b, u32 c, const VideoSpec& v) {
  const int bits = 32 / v.parts;
  const u32 ones = (1u << bits) - 1;
  u32 packed = 0;
  u32 sum = c;
  for (int k = 0; k < 32; k += bits) {
    s64 r = first(field(a >> k, bits, v.a_signed), field(b >> k, bits, v.b_signed), v);
    if (v.sat) r = clamp(r, bits, v.d_signed);
    packed |= (static_cast<u32>(r) & ones) << k;
    sum += static_cast<u32>(r);
  }
  return v.second == Second::kAdd ? sum : packed;
}

void video(const AluOperands& o, Mask active, const VideoSpec& v) {
  const Source<u32> a(o.s[0]), b(o.s[1]), c(o.s[o.s[2] != nullptr ? 2 : 0]);
  u32* d = static_cast<u32*>(o.d);
  for (int i = 0; i < kWarpSize; ++i) {
    if ((active & kLaneBit[i]) == 0) continue;
    d[i] = v.parts == 1 ? scalar(a.at(i), b.at(i), c.at(i), v)
                        : parallel(a.at(i), b.at(i), c.at(i), v);
  }
}

template <VideoSpec kSpec>
void run(const AluOperands& o, Mask active) {
  video(o, active, kSpec);
}

template <VideoSpec kSpec>
void put(AluTable& t, const char* opcode, const char* mode, const char* scale) {
  using enum ptx::Type;
  constexpr const char* kSecondNames[] = {nullptr, "add"};
  constexpr bool kIsSet = kSpec.kind == Kind::kSet;
  constexpr bool kHasC =
      kSpec.second != Second::kNone || kSpec.parts > 1 || kSpec.kind == Kind::kMad;
  constexpr auto type = [](bool is_signed) { return is_signed ? kS32 : kU32; };
  constexpr auto name = [](bool is_signed) { return is_signed ? "s32" : "u32"; };
  const AluOp op{
      .fn = &run<kSpec>,
      .d = type(kSpec.d_signed),
      .s = {type(kSpec.a_signed), type(kSpec.b_signed), kHasC ? type(kSpec.d_signed) : kNone},
      .sources = kHasC ? 3 : 2,
      .writes_carry = false,
      .reads_carry = false};
  const bool po = kSpec.kind == Kind::kMad && (kSpec.detail & 32) != 0;
  add_entry(t,
            {opcode, kIsSet ? nullptr : name(kSpec.d_signed), name(kSpec.a_signed),
             name(kSpec.b_signed), po ? "po" : nullptr, kSpec.sat ? "sat" : nullptr,
             mode != nullptr ? mode : scale, kSecondNames[static_cast<int>(kSpec.second)]},
            op);
}

/// Calls f with every bool in turn, as a constant.
template <class F>
void for_bools(F f) {
  f.template operator()<false>();
  f.template operator()<true>();
}

template <Kind kKind, bool kD, bool kA, bool kB, bool kSat, u8 kDetail>
void put_seconds(AluTable& t, const char* opcode, const char* mode) {
  put<VideoSpec{kKind, kD, kA, kB, kSat, Second::kNone, kDetail, 1}>(t, opcode, mode, nullptr);
  put<VideoSpec{kKind, kD, kA, kB, kSat, Second::kAdd, kDetail, 1}>(t, opcode, mode, nullptr);
}

template <Kind kKind>
void fill_arithmetic(AluTable& t, const char* scalar, const char* two, const char* four) {
  for_bools([&]<bool kD>() {
    for_bools([&]<bool kA>() {
      for_bools([&]<bool kB>() {
        for_bools([&]<bool kSat>() {
          if constexpr (kD || !kSat) {
            if (scalar != nullptr) put_seconds<kKind, kD, kA, kB, kSat, 0>(t, scalar, nullptr);
          }
          put<VideoSpec{kKind, kD, kA, kB, kSat, Second::kNone, 0, 2}>(t, two, nullptr, nullptr);
          put<VideoSpec{kKind, kD, kA, kB, kSat, Second::kNone, 0, 4}>(t, four, nullptr, nullptr);
        });
        put<VideoSpec{kKind, kD, kA, kB, false, Second::kAdd, 0, 2}>(t, two, nullptr, nullptr);
        put<VideoSpec{kKind, kD, kA, kB, false, Second::kAdd, 0, 4}>(t, four, nullptr, nullptr);
      });
    });
  });
}

void fill_shifts(AluTable& t) {
  for_bools([&]<bool kD>() {
    for_bools([&]<bool kA>() {
      put_seconds<Kind::kShl, kD, kA, false, false, 0>(t, "vshl", "clamp");
      put_seconds<Kind::kShl, kD, kA, false, false, 1>(t, "vshl", "wrap");
      put_seconds<Kind::kShr, kD, kA, false, false, 0>(t, "vshr", "clamp");
      put_seconds<Kind::kShr, kD, kA, false, false, 1>(t, "vshr", "wrap");
    });
  });
}

template <u8 kShift>
void fill_mad(AluTable& t, const char* scale) {
  const auto both = [&]<bool kSigned, bool kSat>() {
    put<VideoSpec{Kind::kMad, kSigned, kSigned, kSigned, kSat, Second::kNone, kShift, 1}>(
        t, "vmad", nullptr, scale);
    put<VideoSpec{Kind::kMad, kSigned, kSigned, kSigned, kSat, Second::kNone, kShift + 32, 1}>(
        t, "vmad", nullptr, scale);
  };
  both.template operator()<true, false>();
  both.template operator()<true, true>();
  if constexpr (kShift == 0) both.template operator()<false, false>();
}

template <Compare kCompare>
void fill_set(AluTable& t, const char* name) {
  constexpr u8 kDetail = static_cast<u8>(kCompare);
  for_bools([&]<bool kA>() {
    for_bools([&]<bool kB>() {
      put_seconds<Kind::kSet, false, kA, kB, false, kDetail>(t, "vset", name);
      put<VideoSpec{Kind::kSet, false, kA, kB, false, Second::kNone, kDetail, 2}>(t, "vset2", name,
                                                                                  nullptr);
      put<VideoSpec{Kind::kSet, false, kA, kB, false, Second::kAdd, kDetail, 2}>(t, "vset2", name,
                                                                                 nullptr);
      put<VideoSpec{Kind::kSet, false, kA, kB, false, Second::kNone, kDetail, 4}>(t, "vset4", name,
                                                                                  nullptr);
      put<VideoSpec{Kind::kSet, false, kA, kB, false, Second::kAdd, kDetail, 4}>(t, "vset4", name,
                                                                                 nullptr);
    });
  });
}

}  // namespace

void fill_video(AluTable& t) {
  fill_arithmetic<Kind::kAdd>(t, "vadd", "vadd2", "vadd4");
  fill_arithmetic<Kind::kSub>(t, "vsub", "vsub2", "vsub4");
  fill_arithmetic<Kind::kAbsDiff>(t, "vabsdiff", "vabsdiff2", "vabsdiff4");
  fill_arithmetic<Kind::kMin>(t, "vmin", "vmin2", "vmin4");
  fill_arithmetic<Kind::kMax>(t, "vmax", "vmax2", "vmax4");
  fill_arithmetic<Kind::kAverage>(t, nullptr, "vavrg2", "vavrg4");
  fill_shifts(t);
  fill_mad<0>(t, nullptr);
  fill_mad<7>(t, "shr7");
  fill_mad<15>(t, "shr15");
  fill_set<Compare::kEq>(t, "eq");
  fill_set<Compare::kNe>(t, "ne");
  fill_set<Compare::kLt>(t, "lt");
  fill_set<Compare::kLe>(t, "le");
  fill_set<Compare::kGt>(t, "gt");
  fill_set<Compare::kGe>(t, "ge");
}

}  // namespace slate::sim::SLATE_ALU_ISA
