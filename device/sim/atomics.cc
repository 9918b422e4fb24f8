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

/// Adds one or two 16-bit floats in U. The sum of two in a float, rounded once more, is right.
template <typename U, typename Half, bool kShared>
void half_add(void* address, const void* b, const void*, void* old) {
  U operand;
  std::memcpy(&operand, b, sizeof operand);
  const U before = update<kShared>(static_cast<U*>(address), [&](U value) {
    U result = 0;
    for (unsigned shift = 0; shift < 8 * sizeof(U); shift += 16) {
      const Half x{static_cast<uint16_t>(value >> shift)};
      const Half y{static_cast<uint16_t>(operand >> shift)};
      const Half sum = alu::encode_half<Half>(alu::decode(x) + alu::decode(y));
      result = static_cast<U>(result | static_cast<U>(static_cast<U>(sum.bits) << shift));
    }
    return result;
  });
  if (old) std::memcpy(old, &before, sizeof before);
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
      return name == "add" ? half_add<uint16_t, alu::f16, kShared> : nullptr;
    case Type::kF16x2:
      return name == "add" ? half_add<uint32_t, alu::f16, kShared> : nullptr;
    case Type::kBf16:
      return name == "add" ? half_add<uint16_t, alu::bf16, kShared> : nullptr;
    case Type::kBf16x2:
      return name == "add" ? half_add<uint32_t, alu::bf16, kShared> : nullptr;
    default:
      return nullptr;
  }
}

}  // namespace

AtomFn find_atom(std::string_view operation, ptx::Type type, bool shared) {
  return shared ? find<true>(operation, type) : find<false>(operation, type);
}

}  // namespace slate::sim
