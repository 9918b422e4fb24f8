// Logic, shifts, bit fields and counts, byte permutation, moves and selections, on lanes and on
// predicates. Pure functions, any thread.
#include "device/sim/alu_lanes.h"

namespace slate::sim::SLATE_ALU_ISA {
namespace {

template <class U>
const char* bits_name() {
  return sizeof(U) == 2 ? "b16" : sizeof(U) == 4 ? "b32" : "b64";
}

// A function of whole Masks, for predicate operands: d is one Mask, blended by the active lanes.
template <class F, int kSources>
void run_predicate(const AluOperands& o, Mask active) {
  Mask s[3] = {};
  for (int k = 0; k < kSources; ++k) s[k] = *static_cast<const Mask*>(o.s[k]);
  Mask* d = static_cast<Mask*>(o.d);
  *d = (*d & ~active) | (F()(s[0], s[1], s[2]) & active);
}
template <int kSources, class F>
void add_predicate(AluTable& t, const AluName& name, F) {
  constexpr auto kPred = ptx::Type::kPred;
  AluOp op{.fn = &run_predicate<F, kSources>,
           .d = kPred,
           .s = {kPred},
           .sources = kSources,
           .writes_carry = false,
           .reads_carry = false};
  for (int k = 1; k < kSources; ++k) op.s[k] = kPred;
  add_entry(t, name, op);
}

void fill_predicates(AluTable& t) {
  add_predicate<2>(t, {"and", "pred"}, [](Mask a, Mask b, Mask) { return a & b; });
  add_predicate<2>(t, {"or", "pred"}, [](Mask a, Mask b, Mask) { return a | b; });
  add_predicate<2>(t, {"xor", "pred"}, [](Mask a, Mask b, Mask) { return a ^ b; });
  add_predicate<1>(t, {"not", "pred"}, [](Mask a, Mask, Mask) { return ~a; });
  add_predicate<1>(t, {"mov", "pred"}, [](Mask a, Mask, Mask) { return a; });
  add_predicate<3>(t, {"selp", "pred"}, [](Mask a, Mask b, Mask c) { return (a & c) | (b & ~c); });
}

template <class U>
void fill_logic(AluTable& t) {
  const char* n = bits_name<U>();
  add(t, {"and", n}, [](U a, U b) -> U { return a & b; });
  add(t, {"or", n}, [](U a, U b) -> U { return a | b; });
  add(t, {"xor", n}, [](U a, U b) -> U { return a ^ b; });
  add(t, {"not", n}, [](U a) -> U { return static_cast<U>(~a); });
  add(t, {"cnot", n}, [](U a) -> U { return a == 0 ? 1 : 0; });
}

// Shift amounts clamp at the width.
template <class T>
T shift_right(T a, u32 n) {
  constexpr u32 kLast = kBits<T> - 1;
  if constexpr (kSigned<T>) {
    return static_cast<T>(a >> (n > kLast ? kLast : n));
  } else {
    return n > kLast ? T(0) : static_cast<T>(a >> (n & kLast));
  }
}
template <class U>
U shift_left(U a, u32 n) {
  constexpr u32 kLast = kBits<U> - 1;
  return n > kLast ? U(0) : static_cast<U>(a << (n & kLast));
}

void fill_shifts(AluTable& t) {
  for_types<u16, u32, u64>([&]<class U>() {
    add(t, {"shl", bits_name<U>()}, [](U a, u32 n) -> U { return shift_left(a, n); });
    add(t, {"shr", bits_name<U>()}, [](U a, u32 n) -> U { return shift_right(a, n); });
  });
  for_types<u16, s16, u32, s32, u64, s64>([&]<class T>() {
    add(t, {"shr", kName<T>}, [](T a, u32 n) -> T { return shift_right(a, n); });
  });
  const auto funnel = [&t]<bool kWrap>(const char* mode) {
    static constexpr auto amount = [](u32 c) -> u32 {
      return kWrap ? (c & 31) : (c > 32 ? 32 : c);
    };
    add(t, {"shf", "l", mode, "b32"}, [](u32 a, u32 b, u32 c) -> u32 {
      return static_cast<u32>(((u64{b} << 32 | a) << amount(c)) >> 32);
    });
    add(t, {"shf", "r", mode, "b32"}, [](u32 a, u32 b, u32 c) -> u32 {
      return static_cast<u32>((u64{b} << 32 | a) >> amount(c));
    });
  };
  funnel.template operator()<true>("wrap");
  funnel.template operator()<false>("clamp");
}

template <class U>
U reverse(U x) {
  U r = 0;
  if constexpr (sizeof(U) == 4) {
    r = __builtin_bswap32(x);
  } else {
    r = __builtin_bswap64(x);
  }
  constexpr U k1 = static_cast<U>(0x5555555555555555u), k2 = static_cast<U>(0x3333333333333333u),
              k4 = static_cast<U>(0x0f0f0f0f0f0f0f0fu);
  r = (r >> 4 & k4) | (r & k4) << 4;
  r = (r >> 2 & k2) | (r & k2) << 2;
  return (r >> 1 & k1) | (r & k1) << 1;
}
template <class U>
u32 count_ones(U x) {
  constexpr U k1 = static_cast<U>(0x5555555555555555u), k2 = static_cast<U>(0x3333333333333333u),
              k4 = static_cast<U>(0x0f0f0f0f0f0f0f0fu), k8 = static_cast<U>(0x0101010101010101u);
  x = x - (x >> 1 & k1);
  x = (x & k2) + (x >> 2 & k2);
  x = (x + (x >> 4)) & k4;
  return static_cast<u32>((x * k8) >> (kBits<U> - 8));
}
// Smearing the highest one downwards leaves the count of leading zeros as the count of zeros.
template <class U>
u32 leading_zeros(U x) {
  for (int k = 1; k < kBits<U>; k *= 2) x |= x >> k;
  return count_ones(static_cast<U>(~x));
}
template <class T>
u32 find_high(T a, bool as_shift) {
  using U = Unsigned<T>;
  const U x = static_cast<U>(a < T(0) ? ~a : a);
  const u32 zeros = leading_zeros(x);
  return x == 0 ? ~0u : as_shift ? zeros : static_cast<u32>(kBits<T> - 1) - zeros;
}
u32 find_nth_set(u32 mask, u32 base, s32 offset) {
  if (base > 31) return ~0u;
  if (offset == INT32_MIN) return 0;  // as the hardware has it
  if (offset == 0) return (mask >> base & 1) != 0 ? base : ~0u;
  const int step = offset > 0 ? 1 : -1;
  s64 left = offset > 0 ? offset : -s64{offset};
  for (int k = static_cast<int>(base); k >= 0 && k < 32; k += step) {
    if ((mask >> k & 1) != 0 && --left == 0) return static_cast<u32>(k);
  }
  return ~0u;
}

void fill_counts(AluTable& t) {
  for_types<u32, u64>([&]<class U>() {
    add(t, {"popc", bits_name<U>()}, [](U a) -> u32 { return count_ones(a); });
    add(t, {"clz", bits_name<U>()}, [](U a) -> u32 { return leading_zeros(a); });
    add(t, {"brev", bits_name<U>()}, [](U a) -> U { return reverse(a); });
  });
  for_types<u32, s32, u64, s64>([&]<class T>() {
    add(t, {"bfind", kName<T>}, [](T a) -> u32 { return find_high(a, false); });
    add(t, {"bfind", "shiftamt", kName<T>}, [](T a) -> u32 { return find_high(a, true); });
  });
  add(t, {"fns", "b32"}, [](u32 m, u32 b, s32 n) -> u32 { return find_nth_set(m, b, n); });
}

/// `count` ones at the bottom, all ones for counts beyond the width.
template <class U>
U low_ones(u32 count) {
  return static_cast<U>(~shift_left(static_cast<U>(~U(0)), count));
}
// Position and length: their low 8 bits, but all 32 in the 64-bit forms, as ptxas composes those of
// other instructions.
template <class T>
u32 field_amount(u32 x) {
  return sizeof(T) == 4 ? x & 0xff : x;
}
template <class T>
T extract(T a, u32 b, u32 c) {
  const u32 position = field_amount<T>(b);
  const u32 length = field_amount<T>(c);
  if constexpr (kSigned<T>) {
    constexpr u32 kLast = kBits<T> - 1;
    const u64 wanted = u64{position} + length - 1;
    const u32 end = wanted > kLast ? kLast : static_cast<u32>(wanted);
    const T up = static_cast<T>(static_cast<Unsigned<T>>(a) << (kLast - end));
    const u32 down = position > kLast ? kLast : kLast - end + position;
    return length == 0 ? T(0) : shift_right(up, down);
  } else {
    return shift_right(a, position) & low_ones<T>(length);
  }
}
template <class U>
U insert(U a, U b, u32 c, u32 d) {
  const u32 position = field_amount<U>(c);
  const U field = shift_left(low_ones<U>(field_amount<U>(d)), position);
  return (b & ~field) | (shift_left(a, position) & field);
}
template <class T>
T extend(T a, u32 width, bool wrap) {
  const bool whole = !wrap && width > 31;
  const u32 n = width & 31;
  const u32 x = static_cast<u32>(a);
  const u32 low = x & low_ones<u32>(n);
  const u32 sign = n == 0 ? 0 : x >> ((n - 1) & 31) & 1;
  if (whole) return a;
  return static_cast<T>(kSigned<T> && sign != 0 ? low | ~low_ones<u32>(n) : low);
}
u32 bit_mask(u32 position, u32 width) {
  const u32 above = position + width < position ? 32 : position + width;
  return shift_left(~0u, position) & ~shift_left(~0u, above);
}

void fill_fields(AluTable& t) {
  for_types<u32, s32, u64, s64>([&]<class T>() {
    add(t, {"bfe", kName<T>}, [](T a, u32 b, u32 c) -> T { return extract(a, b, c); });
  });
  for_types<u32, u64>([&]<class U>() {
    add(t, {"bfi", bits_name<U>()}, [](U a, U b, u32 c, u32 d) -> U { return insert(a, b, c, d); });
  });
  add(t, {"bmsk", "clamp", "b32"}, [](u32 a, u32 b) -> u32 { return bit_mask(a, b); });
  add(t, {"bmsk", "wrap", "b32"}, [](u32 a, u32 b) -> u32 { return bit_mask(a & 31, b & 31); });
  for_types<u32, s32>([&]<class T>() {
    add(t, {"szext", "clamp", kName<T>}, [](T a, u32 b) -> T { return extend(a, b, false); });
    add(t, {"szext", "wrap", kName<T>}, [](T a, u32 b) -> T { return extend(a, b, true); });
  });
}

template <class F>
void add_permute(AluTable& t, const char* mode, F) {
  add(t, {"prmt", "b32", mode}, [](u32 a, u32 b, u32 c) -> u32 {
    const u64 bytes = u64{b} << 32 | a;
    u32 r = 0;
    for (u32 k = 0; k < 4; ++k)
      r |= (static_cast<u32>(bytes >> (8 * F()(k, c & 3))) & 0xff) << (8 * k);
    return r;
  });
}

void fill_permutes(AluTable& t) {
  add(t, {"prmt", "b32"}, [](u32 a, u32 b, u32 c) -> u32 {
    u32 r = 0;
#pragma GCC unroll 4
    for (u32 k = 0; k < 4; ++k) {
      const u32 selector = c >> (4 * k);
      const u32 byte = ((selector & 4) != 0 ? b : a) >> (8 * (selector & 3)) & 0xff;
      const u32 sign = (byte >> 7) * 0xff;
      r |= ((selector & 8) != 0 ? sign : byte) << (8 * k);
    }
    return r;
  });
  add_permute(t, "f4e", [](u32 k, u32 s) { return s + k; });
  add_permute(t, "b4e", [](u32 k, u32 s) { return (s - k) & 7; });
  add_permute(t, "rc8", [](u32, u32 s) { return s; });
  add_permute(t, "ecl", [](u32 k, u32 s) { return k > s ? k : s; });
  add_permute(t, "ecr", [](u32 k, u32 s) { return k < s ? k : s; });
  add_permute(t, "rc16", [](u32 k, u32 s) { return (k & 1) + 2 * (s & 1); });
}

// A tree of multiplexers over the eight table bits, each spread over a word: c chooses within
// pairs, then b, then a.
[[gnu::always_inline]] inline u32 lookup(u32 a, u32 b, u32 c, u32 table) {
  const auto bit = [table](u32 k) { return 0u - (table >> k & 1); };
  const auto mux = [](u32 x0, u32 x1, u32 s) { return x0 ^ ((x0 ^ x1) & s); };
  const u32 a0 = mux(mux(bit(0), bit(1), c), mux(bit(2), bit(3), c), b);
  const u32 a1 = mux(mux(bit(4), bit(5), c), mux(bit(6), bit(7), c), b);
  return mux(a0, a1, a);
}

void lop3(const AluOperands& o, Mask active) {
  const Source<u32> a(o.s[0]), b(o.s[1]), c(o.s[2]);
  const u32 table = *static_cast<const u32*>(o.s[3]);  // an immediate: the same in all lanes
  for_lanes<u32>(
      o.d, active, [=](int i) __attribute__((always_inline)) {
        return lookup(a.at(i), b.at(i), c.at(i), table);
      });
}

template <class F>
void lop3_predicate(const AluOperands& o, Mask active) {
  lop3(o, active);
  const Mask q = *static_cast<const Mask*>(o.s[4]);
  const auto* d = static_cast<const u32*>(o.d);
  Mask nonzero = 0;
  for (int i = 0; i < kWarpSize; ++i) nonzero |= d[i] != 0 ? kLaneBit[i] : 0;
  Mask* p = static_cast<Mask*>(o.d2);
  if (p != nullptr) *p = (*p & ~active) | (F()(nonzero, q) & active);
}

template <class F>
void add_lop3(AluTable& t, const char* combine, F) {
  add_entry(t, {"lop3", combine, "b32"},
            describe<u32, u32, u32, u32, u32, bool>(&lop3_predicate<F>));
}

void fill_lop3(AluTable& t) {
  add_entry(t, {"lop3", "b32"}, describe<u32, u32, u32, u32, u32>(&lop3));
  add_lop3(t, "and", [](Mask a, Mask b) { return a & b; });
  add_lop3(t, "or", [](Mask a, Mask b) { return a | b; });
  add_lop3(t, "xor", [](Mask a, Mask b) { return a ^ b; });
}

// A move or selection of U's width, told as of `type`: the decoder reads literals by it.
template <class U, class F>
void add_typed(AluTable& t, const AluName& name, ptx::Type type, F) {
  using Lanes = typename Signature<F>::template Op<F>;
  AluOp op = Signature<F>::template op<Lanes>();
  op.d = type;
  for (ptx::Type& s : op.s) {
    if (s == kTypeOf<U> && &s - op.s < 2) s = type;
  }
  add_entry(t, name, op);
}

template <class U>
void fill_moves(AluTable& t, const char* n, ptx::Type type) {
  add_typed<U>(t, {"mov", n}, type, [](U a) -> U { return a; });
  add_typed<U>(t, {"selp", n}, type, [](U a, U b, bool c) -> U { return c ? a : b; });
  if constexpr (sizeof(U) <= 8) {
    add_typed<U>(t, {"slct", n, "s32"}, type, [](U a, U b, s32 c) -> U { return c >= 0 ? a : b; });
    add_typed<U>(t, {"slct", n, "f32"}, type,
                 [](U a, U b, float c) -> U { return c >= 0 ? a : b; });
    // Flushed, a negative denormal is -0, which is not less than 0.
    add_typed<U>(t, {"slct", "ftz", n, "f32"}, type, [](U a, U b, float c) -> U {
      return (bits_of(c) & 0x7f800000) == 0 || c >= 0 ? a : b;
    });
  }
}

}  // namespace

void fill_bits(AluTable& t) {
  fill_predicates(t);
  for_types<u16, u32, u64>([&]<class U>() { fill_logic<U>(t); });
  fill_shifts(t);
  fill_counts(t);
  fill_fields(t);
  fill_permutes(t);
  fill_lop3(t);
  using enum ptx::Type;
  fill_moves<u16>(t, "b16", kB16);
  fill_moves<u16>(t, "u16", kU16);
  fill_moves<u16>(t, "s16", kS16);
  fill_moves<u16>(t, "f16", kF16);
  fill_moves<u16>(t, "bf16", kBf16);
  fill_moves<u32>(t, "b32", kB32);
  fill_moves<u32>(t, "u32", kU32);
  fill_moves<u32>(t, "s32", kS32);
  fill_moves<u32>(t, "f32", kF32);
  fill_moves<u32>(t, "f16x2", kF16x2);
  fill_moves<u32>(t, "bf16x2", kBf16x2);
  fill_moves<u64>(t, "b64", kB64);
  fill_moves<u64>(t, "u64", kU64);
  fill_moves<u64>(t, "s64", kS64);
  fill_moves<u64>(t, "f64", kF64);
  fill_moves<Wide>(t, "b128", kB128);
}

}  // namespace slate::sim::SLATE_ALU_ISA
