// Comparisons: setp, set and testp. One loop per comparison and type makes a Mask; small functions
// around it combine it with a predicate and store it as predicates or lanes. Pure functions, any
// thread.
#if defined(__SSE2__)
#include <immintrin.h>
#endif

#include "device/sim/alu_narrow.h"

namespace slate::sim::SLATE_ALU_ISA {
namespace {

// The intrinsics are always inlined, so none of them can leak from one instruction set to the
// other.
#if defined(__AVX2__)
template <class U>
[[gnu::always_inline]] inline Mask top_bits(const U* lanes) {
  if constexpr (sizeof(U) == 4) {
    return static_cast<Mask>(
        _mm256_movemask_ps(_mm256_load_ps(reinterpret_cast<const float*>(lanes))));
  } else {
    return static_cast<Mask>(
        _mm256_movemask_pd(_mm256_load_pd(reinterpret_cast<const double*>(lanes))));
  }
}
constexpr int kVectorBytes = 32;
#elif defined(__SSE2__)
template <class U>
[[gnu::always_inline]] inline Mask top_bits(const U* lanes) {
  if constexpr (sizeof(U) == 4) {
    return static_cast<Mask>(_mm_movemask_ps(_mm_load_ps(reinterpret_cast<const float*>(lanes))));
  } else {
    return static_cast<Mask>(_mm_movemask_pd(_mm_load_pd(reinterpret_cast<const double*>(lanes))));
  }
}
constexpr int kVectorBytes = 16;
#else
template <class U>
[[gnu::always_inline]] inline Mask top_bits(const U* lanes) {
  return lanes[0] != 0 ? 1 : 0;
}
constexpr int kVectorBytes = 0;
#endif

/// Bit i of the result is set where lanes[i] is all ones; else it must be 0.
template <class U>
[[gnu::always_inline]] inline Mask pack(const U* lanes) {
  constexpr int kStep = kVectorBytes == 0 ? 1 : kVectorBytes / static_cast<int>(sizeof(U));
  Mask r = 0;
  for (int i = 0; i < kWarpSize; i += kStep) r |= top_bits(lanes + i) << i;
  return r;
}

template <class T>
using Compared = std::conditional_t<sizeof(T) == 2 && !std::is_integral_v<T>, float, T>;
/// What holds one lane's answer: as wide as what is compared, but at least 32 bits.
template <class T>
using Answer = std::conditional_t<sizeof(T) == 8, u64, u32>;

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
  alignas(kRegisterAlign) Answer<T> r[kWarpSize];
#pragma GCC ivdep
  for (int i = 0; i < kWarpSize; ++i) {
    const int k = kStride * i + kHalf;
    const bool yes = F()(comparable<kFtz>(a.at(k)), comparable<kFtz>(b.at(k)));
    r[i] = yes ? static_cast<Answer<T>>(~Answer<T>(0)) : 0;
  }
  return pack(r);
}

enum class Combine : u8 { kNone, kAnd, kOr, kXor };

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

/// The functions of one comparison of one type: setp and set into each type of destination, for
/// each Combine.
struct Family {
  AluFn setp[4];
  AluFn set32[4];    // into u32, s32
  AluFn set_own[4];  // into the half or pair type that is compared, f32 for all others
  AluFn set16[4];    // into u16, s16: only of single halves
};

/// kHalfOne: 1 in the half type that is compared, or 0 for other types.
template <CompareFn kCompare, u16 kHalfOne>
constexpr Family single_family() {
  using enum Combine;
#define SLATE_EACH(f, ...)                                                                         \
  {&f<kCompare, kNone __VA_ARGS__>, &f<kCompare, kAnd __VA_ARGS__>, &f<kCompare, kOr __VA_ARGS__>, \
   &f<kCompare, kXor __VA_ARGS__>}
  Family family{
      .setp = SLATE_EACH(setp), .set32 = SLATE_EACH(set, , u32, ~0u), .set_own = {}, .set16 = {}};
  if constexpr (kHalfOne == 0) {
    constexpr AluFn kOwn[] = SLATE_EACH(set, , u32, 0x3f800000);
    for (int k = 0; k < 4; ++k) family.set_own[k] = kOwn[k];
  } else {
    constexpr AluFn kOwn[] = SLATE_EACH(set, , u16, kHalfOne);
    constexpr AluFn kIntegers[] = SLATE_EACH(set, , u16, 0xffff);
    for (int k = 0; k < 4; ++k) family.set_own[k] = kOwn[k];
    for (int k = 0; k < 4; ++k) family.set16[k] = kIntegers[k];
  }
  return family;
#undef SLATE_EACH
}

template <CompareFn kLow, CompareFn kHigh, u16 kOne>
constexpr Family pair_family() {
  using enum Combine;
#define SLATE_EACH(f, ...)                                                  \
  {                                                                         \
    &f<kLow, kHigh, kNone __VA_ARGS__>, &f<kLow, kHigh, kAnd __VA_ARGS__>,  \
        &f<kLow, kHigh, kOr __VA_ARGS__>, &f<kLow, kHigh, kXor __VA_ARGS__> \
  }
  return Family{.setp = SLATE_EACH(setp_pair),
                .set32 = SLATE_EACH(set_pair, , 0xffff),
                .set_own = SLATE_EACH(set_pair, , kOne),
                .set16 = {}};
#undef SLATE_EACH
}

struct Names {
  const char* compare;
  const char* ftz;
  const char* source;
  ptx::Type type;
};

void put(AluTable& t, const AluName& name, AluFn fn, ptx::Type d, ptx::Type s, int combined) {
  if (fn == nullptr) return;
  const bool has_c = combined != 0;
  add_entry(t, name,
            AluOp{.fn = fn,
                  .d = d,
                  .s = {s, s, has_c ? ptx::Type::kPred : ptx::Type::kNone},
                  .sources = static_cast<std::uint8_t>(has_c ? 3 : 2),
                  .writes_carry = false,
                  .reads_carry = false});
}

void put_family(AluTable& t, const Names& n, const Family& family) {
  using enum ptx::Type;
  const bool halves = n.type == kF16 || n.type == kBf16 || n.type == kF16x2 || n.type == kBf16x2;
  const char* own = halves ? n.source : "f32";
  const ptx::Type own_type = halves ? n.type : kF32;
  constexpr const char* kCombines[] = {nullptr, "and", "or", "xor"};
  for (int k = 0; k < 4; ++k) {
    const auto put_set = [&](const char* name, ptx::Type type, AluFn fn) {
      put(t, {"set", n.compare, kCombines[k], n.ftz, name, n.source}, fn, type, n.type, k);
    };
    put(t, {"setp", n.compare, kCombines[k], n.ftz, n.source}, family.setp[k], kPred, n.type, k);
    put_set("u32", kU32, family.set32[k]);
    put_set("s32", kS32, family.set32[k]);
    put_set(own, own_type, family.set_own[k]);
    put_set("u16", kU16, family.set16[k]);
    put_set("s16", kS16, family.set16[k]);
  }
}

template <class T, bool kFtz, class F>
void fill_one(AluTable& t, const char* name, const char* type_name, ptx::Type type, F) {
  const Names n{name, kFtz ? "ftz" : nullptr, type_name, type};
  constexpr bool kIsF16 = std::is_same_v<T, f16>;
  constexpr bool kOfHalf = kIsF16 || std::is_same_v<T, bf16>;
  constexpr u16 kOne = kIsF16 ? 0x3c00 : 0x3f80;
  static constexpr Family kSingle = single_family < &compare<T, F, kFtz>, kOfHalf ? kOne : 0 > ();
  put_family(t, n, kSingle);
  if constexpr (kOfHalf) {
    static constexpr Family kPaired = pair_family < &compare<T, F, kFtz, 2, 0>,
                            &compare<T, F, kFtz, 2, 1>, kIsF16 ? 0x3c00 : 0x3f80 > ();
    const Names p{name, n.ftz, kIsF16 ? "f16x2" : "bf16x2",
                  kIsF16 ? ptx::Type::kF16x2 : ptx::Type::kBf16x2};
    put_family(t, p, kPaired);
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
  using U = Unsigned<T>;
  alignas(kRegisterAlign) U r[kWarpSize];
  for (int i = 0; i < kWarpSize; ++i) {
    const U magnitude = bits_of(a.at(i)) & (static_cast<U>(~U(0)) >> 1);
    r[i] = F()(magnitude) ? static_cast<U>(~U(0)) : 0;
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
  put("normal", [](U m) { return (m == 0) | ((m < kInfinity) & (m >= kNormal)); });  // and zeros
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
