// Comparisons: setp, set and testp. One loop per comparison and type makes a Mask; small functions
// around it combine it with a predicate and store it as predicates or lanes. Pure functions, any
// thread.
#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include "device/sim/alu_narrow.h"

namespace slate::sim::SLATE_ALU_ISA {
namespace {

/// Bit i of the result is set where bytes[i] is 0xff; the others are 0.
[[gnu::always_inline]] inline Mask pack(const u8* bytes) {
#if defined(__SSE2__)
  const auto* v = reinterpret_cast<const __m128i*>(bytes);
  return static_cast<Mask>(_mm_movemask_epi8(_mm_load_si128(v))) |
         static_cast<Mask>(_mm_movemask_epi8(_mm_load_si128(v + 1))) << 16;
#else
  Mask r = 0;
  for (int i = 0; i < kWarpSize; ++i) r |= static_cast<Mask>(bytes[i] & 1) << i;
  return r;
#endif
}

template <class T>
using Compared = std::conditional_t<sizeof(T) == 2 && !std::is_integral_v<T>, float, T>;

template <bool kFtz, class T>
[[gnu::always_inline]] inline Compared<T> comparable(T x) {
  if constexpr (std::is_integral_v<T>) {
    return x;
  } else {
    return decode(flush_if<kFtz>(x));
  }
}

/// All 32 lanes of F(a, b); kStride 2 with kHalf takes one half of paired types.
template <class T, class F, bool kFtz, int kStride = 1, int kHalf = 0>
[[gnu::noinline]] Mask compare(const AluOperands& o) {
  const Source<T> a(o.s[0]), b(o.s[1]);
  alignas(kRegisterAlign) u8 r[kWarpSize];
#pragma GCC ivdep
  for (int i = 0; i < kWarpSize; ++i) {
    const int k = kStride * i + kHalf;
    r[i] = F()(comparable<kFtz>(a.at(k)), comparable<kFtz>(b.at(k))) ? 0xff : 0;
  }
  return pack(r);
}

enum class Combine : u8 { kNone, kAnd, kOr, kXor };
constexpr const char* kCombineNames[] = {nullptr, "and", "or", "xor"};

template <Combine kCombine>
[[gnu::always_inline]] inline Mask combine(Mask r, const AluOperands& o) {
  if constexpr (kCombine == Combine::kNone) return r;
  const Mask c = *static_cast<const Mask*>(o.s[2]);
  if constexpr (kCombine == Combine::kAnd) return r & c;
  if constexpr (kCombine == Combine::kOr) return r | c;
  return r ^ c;
}

[[gnu::always_inline]] inline void store(void* mask, Mask r, Mask active) {
  if (mask == nullptr) return;
  Mask* d = static_cast<Mask*>(mask);
  *d = (*d & ~active) | (r & active);
}

using CompareFn = Mask (*)(const AluOperands& o);

template <CompareFn kCompare, Combine kCombine>
void setp(const AluOperands& o, Mask active) {
  const Mask r = kCompare(o);
  const Mask p = combine<kCombine>(r, o);
  const Mask q = combine<kCombine>(~r, o);
  store(o.d, p, active);
  store(o.d2, q, active);
}
/// Paired types: p from the lower halves, q from the upper ones.
template <CompareFn kLow, CompareFn kHigh, Combine kCombine>
void setp_pair(const AluOperands& o, Mask active) {
  const Mask p = combine<kCombine>(kLow(o), o);
  const Mask q = combine<kCombine>(kHigh(o), o);
  store(o.d, p, active);
  store(o.d2, q, active);
}

template <class U>
[[gnu::noinline]] void write_lanes(void* d, Mask active, Mask r, U one) {
  for_lanes<U>(d, active, [=](int i) { return (r & kLaneBit[i]) != 0 ? one : U(0); });
}
[[gnu::noinline]] void write_halves(void* d, Mask active, Mask low, Mask high, u16 one) {
  for_lanes<u32>(d, active, [=](int i) {
    return ((low & kLaneBit[i]) != 0 ? u32{one} : 0) |
           ((high & kLaneBit[i]) != 0 ? static_cast<u32>(one) << 16 : 0);
  });
}

template <CompareFn kCompare, Combine kCombine, class U, U kOne>
void set(const AluOperands& o, Mask active) {
  write_lanes<U>(o.d, active, combine<kCombine>(kCompare(o), o), kOne);
}
template <CompareFn kLow, CompareFn kHigh, Combine kCombine, u16 kOne>
void set_pair(const AluOperands& o, Mask active) {
  write_halves(o.d, active, combine<kCombine>(kLow(o), o), combine<kCombine>(kHigh(o), o), kOne);
}

struct Names {
  const char* compare;
  const char* ftz;
  const char* source;
  ptx::Type type;
};

template <Combine kCombine>
AluOp compared(AluFn fn, ptx::Type d, ptx::Type s) {
  constexpr bool kHasC = kCombine != Combine::kNone;
  return AluOp{.fn = fn,
               .d = d,
               .s = {s, s, kHasC ? ptx::Type::kPred : ptx::Type::kNone},
               .sources = kHasC ? 3 : 2,
               .writes_carry = false,
               .reads_carry = false};
}

template <CompareFn kCompare, Combine kCombine>
void fill_single(AluTable& t, const Names& n, bool half) {
  using enum ptx::Type;
  const char* c = kCombineNames[static_cast<int>(kCombine)];
  const auto add_set = [&](const char* name, ptx::Type type, AluFn fn) {
    add_entry(t, {"set", n.compare, c, n.ftz, name, n.source},
              compared<kCombine>(fn, type, n.type));
  };
  add_entry(t, {"setp", n.compare, c, n.ftz, n.source},
            compared<kCombine>(&setp<kCompare, kCombine>, kPred, n.type));
  add_set("u32", kU32, &set<kCompare, kCombine, u32, ~0u>);
  add_set("s32", kS32, &set<kCompare, kCombine, u32, ~0u>);
  add_set("f32", kF32, &set<kCompare, kCombine, u32, 0x3f800000>);
  add_set("f16", kF16, &set<kCompare, kCombine, u16, 0x3c00>);
  add_set("bf16", kBf16, &set<kCompare, kCombine, u16, 0x3f80>);
  if (half) {
    add_set("u16", kU16, &set<kCompare, kCombine, u16, 0xffff>);
    add_set("s16", kS16, &set<kCompare, kCombine, u16, 0xffff>);
  }
}

template <CompareFn kLow, CompareFn kHigh, Combine kCombine>
void fill_pair(AluTable& t, const Names& n) {
  using enum ptx::Type;
  const char* c = kCombineNames[static_cast<int>(kCombine)];
  const auto add_set = [&](const char* name, ptx::Type type, AluFn fn) {
    add_entry(t, {"set", n.compare, c, n.ftz, name, n.source},
              compared<kCombine>(fn, type, n.type));
  };
  add_entry(t, {"setp", n.compare, c, n.ftz, n.source},
            compared<kCombine>(&setp_pair<kLow, kHigh, kCombine>, kPred, n.type));
  add_set("u32", kU32, &set_pair<kLow, kHigh, kCombine, 0xffff>);
  add_set("s32", kS32, &set_pair<kLow, kHigh, kCombine, 0xffff>);
  if (n.type == kF16x2) {
    add_set("f16x2", kF16x2, &set_pair<kLow, kHigh, kCombine, 0x3c00>);
  } else {
    add_set("bf16x2", kBf16x2, &set_pair<kLow, kHigh, kCombine, 0x3f80>);
  }
}

template <class T, bool kFtz, class F>
void fill_one(AluTable& t, const char* name, const char* type_name, ptx::Type type, F) {
  const Names n{name, kFtz ? "ftz" : nullptr, type_name, type};
  constexpr CompareFn kCompare = &compare<T, F, kFtz>;
  constexpr bool kHalf = std::is_same_v<T, f16> || std::is_same_v<T, bf16>;
  fill_single<kCompare, Combine::kNone>(t, n, kHalf);
  fill_single<kCompare, Combine::kAnd>(t, n, kHalf);
  fill_single<kCompare, Combine::kOr>(t, n, kHalf);
  fill_single<kCompare, Combine::kXor>(t, n, kHalf);
  if constexpr (kHalf) {
    constexpr bool kIsF16 = std::is_same_v<T, f16>;
    const Names p{name, n.ftz, kIsF16 ? "f16x2" : "bf16x2",
                  kIsF16 ? ptx::Type::kF16x2 : ptx::Type::kBf16x2};
    constexpr CompareFn kLow = &compare<T, F, kFtz, 2, 0>;
    constexpr CompareFn kHigh = &compare<T, F, kFtz, 2, 1>;
    fill_pair<kLow, kHigh, Combine::kNone>(t, p);
    fill_pair<kLow, kHigh, Combine::kAnd>(t, p);
    fill_pair<kLow, kHigh, Combine::kOr>(t, p);
    fill_pair<kLow, kHigh, Combine::kXor>(t, p);
  }
}

template <class T, bool kFtz>
void fill_ordered(AluTable& t) {
  using X = Compared<T>;
  const auto put = [&t](const char* name, auto f) {
    fill_one<T, kFtz>(t, name, kName<T>, kTypeOf<T>, f);
  };
  put("eq", [](X a, X b) { return a == b; });
  put("ne", [](X a, X b) { return std::is_integral_v<X> ? a != b : (a < b) | (a > b); });
  put("lt", [](X a, X b) { return a < b; });
  put("le", [](X a, X b) { return a <= b; });
  put("gt", [](X a, X b) { return a > b; });
  put("ge", [](X a, X b) { return a >= b; });
  if constexpr (std::is_integral_v<T> && !kSigned<T>) {
    put("lo", [](X a, X b) { return a < b; });
    put("ls", [](X a, X b) { return a <= b; });
    put("hi", [](X a, X b) { return a > b; });
    put("hs", [](X a, X b) { return a >= b; });
  }
}

template <class T, bool kFtz>
void fill_unordered(AluTable& t) {
  using X = Compared<T>;
  const auto put = [&t](const char* name, auto f) {
    fill_one<T, kFtz>(t, name, kName<T>, kTypeOf<T>, f);
  };
  put("equ", [](X a, X b) { return !((a < b) | (a > b)); });
  put("neu", [](X a, X b) { return a != b; });
  put("ltu", [](X a, X b) { return !(a >= b); });
  put("leu", [](X a, X b) { return !(a > b); });
  put("gtu", [](X a, X b) { return !(a <= b); });
  put("geu", [](X a, X b) { return !(a < b); });
  put("num", [](X a, X b) { return (a == a) & (b == b); });
  put("nan", [](X a, X b) { return (a != a) | (b != b); });
}

template <class T>
void fill_bit_type(AluTable& t, const char* name, ptx::Type type) {
  fill_one<T, false>(t, "eq", name, type, [](T a, T b) { return a == b; });
  fill_one<T, false>(t, "ne", name, type, [](T a, T b) { return a != b; });
}

template <class T, class F>
void run_test(const AluOperands& o, Mask active) {
  const Source<T> a(o.s[0]);
  alignas(kRegisterAlign) u8 r[kWarpSize];
  for (int i = 0; i < kWarpSize; ++i) {
    using U = Unsigned<T>;
    const U magnitude = bits_of(a.at(i)) & (static_cast<U>(~U(0)) >> 1);
    r[i] = F()(magnitude) ? 0xff : 0;
  }
  store(o.d, pack(r), active);
}

template <class T>
void fill_tests(AluTable& t) {
  using U = Unsigned<T>;
  static constexpr U kInfinity =
      sizeof(T) == 4 ? U(0x7f800000) : static_cast<U>(0x7ff0000000000000u);
  static constexpr U kNormal = sizeof(T) == 4 ? U(0x00800000) : static_cast<U>(0x0010000000000000u);
  const auto put = [&t]<class F>(const char* name, F) {
    add_entry(t, {"testp", name, kName<T>}, describe<bool, T>(&run_test<T, F>));
  };
  put("finite", [](U m) { return m < kInfinity; });
  put("infinite", [](U m) { return m == kInfinity; });
  put("number", [](U m) { return m <= kInfinity; });
  put("notanumber", [](U m) { return m > kInfinity; });
  put("normal", [](U m) { return (m < kInfinity) & (m >= kNormal); });
  put("subnormal", [](U m) { return (m < kNormal) & (m != 0); });
}

}  // namespace

void fill_compare(AluTable& t) {
  for_types<u16, s16, u32, s32, u64, s64>([&]<class T>() { fill_ordered<T, false>(t); });
  for_types<float, double, f16, bf16>([&]<class T>() {
    fill_ordered<T, false>(t);
    fill_unordered<T, false>(t);
  });
  for_types<float, f16>([&]<class T>() {
    fill_ordered<T, true>(t);
    fill_unordered<T, true>(t);
  });
  fill_bit_type<u16>(t, "b16", ptx::Type::kB16);
  fill_bit_type<u32>(t, "b32", ptx::Type::kB32);
  fill_bit_type<u64>(t, "b64", ptx::Type::kB64);
  fill_tests<float>(t);
  fill_tests<double>(t);
}

}  // namespace slate::sim::SLATE_ALU_ISA
