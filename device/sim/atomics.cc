// Atomic operations on one location, chosen when decoding. In shared memory they are plain, as one
// host thread runs a block; elsewhere they are the host's own atomics, sequentially consistent:
// stronger than any order that PTX can ask for.
#define SLATE_ALU_ISA alu  // floats as the ALU has them, in a namespace of this file's own
#include <bit>
#include <cmath>
#include <cstring>

#include "device/sim/alu_narrow.h"
#include "device/sim/decode.h"

namespace slate::sim {
namespace {

__extension__ using U128 = unsigned __int128;
using std::uint16_t;
using std::uint32_t;
using std::uint64_t;

__attribute__((target("cx16"))) U128 swap_128(U128* at, U128 expected, U128 value) {
  return __sync_val_compare_and_swap(at, expected, value);
}

/// Replaces *at by change(*at) at once and returns what it was.
template <bool kShared, typename U, typename Change>
U update(U* at, Change change) {
  if constexpr (kShared) {
    const U old = *at;
    *at = change(old);
    return old;
  } else if constexpr (sizeof(U) == 16) {
    U old = swap_128(at, 0, 0);
    for (;;) {
      const U seen = swap_128(at, old, change(old));
      if (seen == old) return old;
      old = seen;
    }
  } else {
    U old = __atomic_load_n(at, __ATOMIC_RELAXED);
    while (!__atomic_compare_exchange_n(at, &old, change(old), true, __ATOMIC_SEQ_CST,
                                        __ATOMIC_RELAXED)) {
    }
    return old;
  }
}

float from_bf16(uint16_t bits) {
  return std::bit_cast<float>(uint32_t{bits} << 16);
}

uint16_t to_bf16(float value) {
  if (std::isnan(value)) return 0x7fff;
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  return static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

float from_half(uint16_t bits) {
  const uint32_t sign = uint32_t{bits} >> 15 << 31;
  const uint32_t exponent = bits >> 10 & 31;
  const uint32_t fraction = bits & 0x3ff;
  if (exponent == 31) return std::bit_cast<float>(sign | 0x7f800000 | fraction << 13);
  if (exponent != 0) return std::bit_cast<float>(sign | (exponent + 112) << 23 | fraction << 13);
  const float value = std::ldexp(static_cast<float>(fraction), -24);
  return sign ? -value : value;
}

/// Rounds to nearest even. The sum of two halves is exact in a float, so it is rounded once.
uint16_t to_half(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const auto sign = static_cast<uint16_t>(bits >> 31 << 15);
  if (std::isnan(value)) return 0x7fff;
  const float magnitude = std::fabs(value);
  if (magnitude >= 65520.0f) return static_cast<uint16_t>(sign | 0x7c00);
  if (magnitude < 0x1p-14f) {
    return static_cast<uint16_t>(sign | static_cast<uint16_t>(std::nearbyint(magnitude * 0x1p24f)));
  }
  const uint32_t rounded = (bits & 0x7fffffff) + 0xfff + (bits >> 13 & 1);
  return static_cast<uint16_t>(sign | ((rounded >> 13) - (112u << 10)));
}

enum class What { kAdd, kAnd, kOr, kXor, kExchange, kMin, kMax, kIncrement, kDecrement };

template <What kWhat, typename T>
T combine(T a, T b) {
  if constexpr (kWhat == What::kAdd) return static_cast<T>(a + b);
  if constexpr (kWhat == What::kAnd) return a & b;
  if constexpr (kWhat == What::kOr) return a | b;
  if constexpr (kWhat == What::kXor) return a ^ b;
  if constexpr (kWhat == What::kExchange) return b;
  if constexpr (kWhat == What::kMin) return a < b ? a : b;
  if constexpr (kWhat == What::kMax) return a > b ? a : b;
  if constexpr (kWhat == What::kIncrement) return a >= b ? T{0} : static_cast<T>(a + 1);
  if constexpr (kWhat == What::kDecrement) return a == 0 || a > b ? b : static_cast<T>(a - 1);
}

template <What kWhat, typename U, typename T, bool kShared>
void integer_atom(void* address, const void* b, const void*, void* old) {
  U operand;
  std::memcpy(&operand, b, sizeof operand);
  auto* const at = static_cast<U*>(address);
  U before;
  if constexpr (!kShared && sizeof(U) <= 8 && kWhat == What::kAdd) {
    before = __atomic_fetch_add(at, operand, __ATOMIC_SEQ_CST);
  } else if constexpr (!kShared && sizeof(U) <= 8 && kWhat == What::kExchange) {
    before = __atomic_exchange_n(at, operand, __ATOMIC_SEQ_CST);
  } else {
    before = update<kShared>(at, [&](U value) {
      return static_cast<U>(combine<kWhat>(static_cast<T>(value), static_cast<T>(operand)));
    });
  }
  if (old) std::memcpy(old, &before, sizeof before);
}

template <typename U, bool kShared>
void compare_and_swap(void* address, const void* b, const void* c, void* old) {
  U expected, value;
  std::memcpy(&expected, b, sizeof expected);
  std::memcpy(&value, c, sizeof value);
  const U before = update<kShared>(static_cast<U*>(address),
                                   [&](U seen) { return seen == expected ? value : seen; });
  if (old) std::memcpy(old, &before, sizeof before);
}

/// In global memory f32 denormals count as zeros of their sign; in shared memory they do not.
template <typename U, typename F, bool kShared>
void float_add(void* address, const void* b, const void*, void* old) {
  constexpr bool kFlushes = !kShared && sizeof(F) == 4;
  F operand;
  std::memcpy(&operand, b, sizeof operand);
  operand = alu::flush_if<kFlushes>(operand);
  const U before = update<kShared>(static_cast<U*>(address), [&](U value) {
    const F sum = alu::flush_if<kFlushes>(std::bit_cast<F>(value)) + operand;
    if (std::isnan(sum)) return static_cast<U>(sizeof(U) == 4 ? 0x7fffffffu : 0x7fffffffffffffffu);
    return std::bit_cast<U>(alu::flush_if<kFlushes>(sum));
  });
  if (old) std::memcpy(old, &before, sizeof before);
}

using Widen = float (*)(uint16_t);
using Narrow = uint16_t (*)(float);

/// add, min, max of one or two 16-bit floats in U.
template <What kWhat, typename U, Widen kWiden, Narrow kNarrow, bool kShared>
void small_float(void* address, const void* b, const void*, void* old) {
  U operand;
  std::memcpy(&operand, b, sizeof operand);
  const U before = update<kShared>(static_cast<U*>(address), [&](U value) {
    U result = 0;
    for (unsigned shift = 0; shift < 8 * sizeof(U); shift += 16) {
      const float x = kWiden(static_cast<uint16_t>(value >> shift));
      const float y = kWiden(static_cast<uint16_t>(operand >> shift));
      float z = x + y;
      if constexpr (kWhat == What::kMin) z = std::fmin(x, y);
      if constexpr (kWhat == What::kMax) z = std::fmax(x, y);
      result = static_cast<U>(result | static_cast<U>(static_cast<U>(kNarrow(z)) << shift));
    }
    return result;
  });
  if (old) std::memcpy(old, &before, sizeof before);
}

template <typename U, Widen kWiden, Narrow kNarrow, bool kShared>
AtomFn small_float_for(std::string_view name) {
  if (name == "add") return small_float<What::kAdd, U, kWiden, kNarrow, kShared>;
  if (name == "min") return small_float<What::kMin, U, kWiden, kNarrow, kShared>;
  if (name == "max") return small_float<What::kMax, U, kWiden, kNarrow, kShared>;
  return nullptr;
}

/// U: the bits; T: as what add, min and max see them.
template <typename U, typename T, bool kShared>
AtomFn integer_for(std::string_view name) {
  if (name == "add") return integer_atom<What::kAdd, U, U, kShared>;
  if (name == "and") return integer_atom<What::kAnd, U, U, kShared>;
  if (name == "or") return integer_atom<What::kOr, U, U, kShared>;
  if (name == "xor") return integer_atom<What::kXor, U, U, kShared>;
  if (name == "exch") return integer_atom<What::kExchange, U, U, kShared>;
  if (name == "min") return integer_atom<What::kMin, U, T, kShared>;
  if (name == "max") return integer_atom<What::kMax, U, T, kShared>;
  if (name == "inc") return integer_atom<What::kIncrement, U, U, kShared>;
  if (name == "dec") return integer_atom<What::kDecrement, U, U, kShared>;
  if (name == "cas") return compare_and_swap<U, kShared>;
  return nullptr;
}

template <bool kShared>
AtomFn find(std::string_view name, ptx::Type type) {
  using ptx::Type;
  switch (type) {
    case Type::kB16:
      return name == "cas" ? compare_and_swap<uint16_t, kShared> : nullptr;
    case Type::kB32:
    case Type::kU32:
      return integer_for<uint32_t, uint32_t, kShared>(name);
    case Type::kS32:
      return integer_for<uint32_t, std::int32_t, kShared>(name);
    case Type::kB64:
    case Type::kU64:
      return integer_for<uint64_t, uint64_t, kShared>(name);
    case Type::kS64:
      return integer_for<uint64_t, std::int64_t, kShared>(name);
    case Type::kB128:
      if (name == "exch") return integer_atom<What::kExchange, U128, U128, kShared>;
      return name == "cas" ? compare_and_swap<U128, kShared> : nullptr;
    case Type::kF32:
      if (name == "exch") return integer_atom<What::kExchange, uint32_t, uint32_t, kShared>;
      return name == "add" ? float_add<uint32_t, float, kShared> : nullptr;
    case Type::kF64:
      return name == "add" ? float_add<uint64_t, double, kShared> : nullptr;
    case Type::kF16:
      return small_float_for<uint16_t, from_half, to_half, kShared>(name);
    case Type::kF16x2:
      return small_float_for<uint32_t, from_half, to_half, kShared>(name);
    case Type::kBf16:
      return small_float_for<uint16_t, from_bf16, to_bf16, kShared>(name);
    case Type::kBf16x2:
      return small_float_for<uint32_t, from_bf16, to_bf16, kShared>(name);
    default:
      return nullptr;
  }
}

}  // namespace

AtomFn find_atom(std::string_view operation, ptx::Type type, bool shared) {
  return shared ? find<true>(operation, type) : find<false>(operation, type);
}

}  // namespace slate::sim
