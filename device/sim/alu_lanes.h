// Lane loops: turn a function of one lane's values into an AluFn over 32 lanes. Only for alu_*.cc.
// Compiled once for each SLATE_ALU_ISA, in a namespace of that name, so that no code for a newer
// processor gets into the other copy. Include here only headers whose functions are always inlined,
// or are plain C. Thread: any.
#pragma once

#include <cfenv>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "device/sim/alu_table.h"

namespace slate::sim::SLATE_ALU_ISA {

using u8 = std::uint8_t;
using s8 = std::int8_t;
using u16 = std::uint16_t;
using s16 = std::int16_t;
using u32 = std::uint32_t;
using s32 = std::int32_t;
using u64 = std::uint64_t;
using s64 = std::int64_t;
__extension__ typedef unsigned __int128 u128;
__extension__ typedef __int128 s128;

struct f16 {
  u16 bits;
};
struct bf16 {
  u16 bits;
};
struct Wide {  // 128 bits that are only moved
  u64 low, high;
};

template <class T>
struct Traits;
#define SLATE_TRAITS(type, unsigned_type, storage, ptx_type, text) \
  template <>                                                      \
  struct Traits<type> {                                            \
    using Unsigned = unsigned_type;                                \
    using Storage = storage;                                       \
    static constexpr ptx::Type kType = ptx::Type::ptx_type;        \
    static constexpr const char* kName = text;                     \
  }
SLATE_TRAITS(u8, u8, u16, kU8, "u8");
SLATE_TRAITS(s8, u8, u16, kS8, "s8");
SLATE_TRAITS(u16, u16, u16, kU16, "u16");
SLATE_TRAITS(s16, u16, u16, kS16, "s16");
SLATE_TRAITS(u32, u32, u32, kU32, "u32");
SLATE_TRAITS(s32, u32, u32, kS32, "s32");
SLATE_TRAITS(u64, u64, u64, kU64, "u64");
SLATE_TRAITS(s64, u64, u64, kS64, "s64");
SLATE_TRAITS(f16, u16, u16, kF16, "f16");
SLATE_TRAITS(bf16, u16, u16, kBf16, "bf16");
SLATE_TRAITS(float, u32, u32, kF32, "f32");
SLATE_TRAITS(double, u64, u64, kF64, "f64");
SLATE_TRAITS(Wide, Wide, Wide, kB128, "b128");
#undef SLATE_TRAITS

template <class T>
using Unsigned = typename Traits<T>::Unsigned;
template <class T>
using Storage = typename Traits<T>::Storage;
template <class T>
inline constexpr const char* kName = Traits<T>::kName;
template <class T>
inline constexpr int kBits = static_cast<int>(8 * sizeof(T));
template <class T>
inline constexpr bool kSigned = std::is_signed_v<T>;

static inline u32 bits_of(float x) {
  return __builtin_bit_cast(u32, x);
}
static inline u64 bits_of(double x) {
  return __builtin_bit_cast(u64, x);
}
static inline float float_of(u32 x) {
  return __builtin_bit_cast(float, x);
}
static inline double double_of(u64 x) {
  return __builtin_bit_cast(double, x);
}

/// One source: lanes of T, or for bool the bits of a Mask.
template <class T>
struct Source {
  const Storage<T>* lanes;
  explicit Source(const void* pointer)
      : lanes(static_cast<const Storage<T>*>(__builtin_assume_aligned(pointer, kRegisterAlign))) {}
  [[gnu::always_inline]] T at(int lane) const {
    if constexpr (sizeof(T) == sizeof(Storage<T>)) {
      return __builtin_bit_cast(T, lanes[lane]);
    } else {
      return static_cast<T>(lanes[lane]);
    }
  }
};

inline constexpr u32 kLaneBit[kWarpSize] = {
    1u << 0,  1u << 1,  1u << 2,  1u << 3,  1u << 4,  1u << 5,  1u << 6,  1u << 7,
    1u << 8,  1u << 9,  1u << 10, 1u << 11, 1u << 12, 1u << 13, 1u << 14, 1u << 15,
    1u << 16, 1u << 17, 1u << 18, 1u << 19, 1u << 20, 1u << 21, 1u << 22, 1u << 23,
    1u << 24, 1u << 25, 1u << 26, 1u << 27, 1u << 28, 1u << 29, 1u << 30, 1u << 31};

template <>
struct Source<bool> {
  Mask mask;
  explicit Source(const void* pointer) : mask(*static_cast<const Mask*>(pointer)) {}
  [[gnu::always_inline]] bool at(int lane) const { return (mask & kLaneBit[lane]) != 0; }
};

/// A value as it lies in a register.
template <class D>
[[gnu::always_inline]] inline Storage<D> stored(D value) {
  if constexpr (sizeof(D) == sizeof(Storage<D>)) {
    return __builtin_bit_cast(Storage<D>, value);
  } else {
    return static_cast<Storage<D>>(static_cast<Unsigned<D>>(value));
  }
}

/// d[lane] = f(lane) for the active lanes. A source may be d itself but never a part of it, so
/// every lane is independent: hence ivdep.
template <class D, class F>
[[gnu::always_inline]] inline void for_lanes(void* destination, Mask active, F f) {
  auto* d = static_cast<Storage<D>*>(__builtin_assume_aligned(destination, kRegisterAlign));
  if (active == kAllLanes) {
#pragma GCC ivdep
    for (int i = 0; i < kWarpSize; ++i) d[i] = stored<D>(f(i));
  } else {
#pragma GCC ivdep
    for (int i = 0; i < kWarpSize; ++i) {
      const Storage<D> r = stored<D>(f(i));
      d[i] = (active & kLaneBit[i]) != 0 ? r : d[i];
    }
  }
}

/// F as an AluFn with a destination of type D and sources of types S.
template <class F, class D, class... S>
struct LaneOp {
  static void run(const AluOperands& o, Mask active) {
    run(o, active, std::index_sequence_for<S...>());
  }

 private:
  template <std::size_t... I>
  [[gnu::always_inline]] static void run(const AluOperands& o, Mask active,
                                         std::index_sequence<I...>) {
    apply(o.d, active, Source<S>(o.s[I])...);
  }
  [[gnu::always_inline]] static void apply(void* d, Mask active, Source<S>... s) {
    for_lanes<D>(
        d, active, [=](int i) __attribute__((always_inline)) { return F()(s.at(i)...); });
  }
};

/// A rounding mode: PTX's name and the bits of the host's control register MXCSR.
struct RoundMode {
  const char* name;
  u32 bits;
};
inline constexpr RoundMode kRn{"rn", 0}, kRm{"rm", 0x2000}, kRp{"rp", 0x4000}, kRz{"rz", 0x6000};

/// Whether the host flushes denormals by itself under InMode<.., true, ..>. It then detects tiny
/// results after rounding to full precision, as the GPU does; that cannot be seen from the result.
#if defined(__SSE2__)
inline constexpr bool kHostFlushes = true;
#else
inline constexpr bool kHostFlushes = false;
#endif

/// Op in another rounding mode of the host, and with flushing of denormals. Setting the mode is
/// opaque to the compiler, so the loads, stores and arithmetic of the lanes stay between.
template <u32 kMode, bool kFtz, class Op>
struct InMode {
  static void run(const AluOperands& o, Mask active) {
#if defined(__SSE2__)
    const u32 before = __builtin_ia32_stmxcsr();
    set(0x1f80 | kMode | (kFtz ? 0x8040 : 0));
    Op::run(o, active);
    set(before);
#else
    std::fesetround(kMode == kRz.bits   ? FE_TOWARDZERO
                    : kMode == kRm.bits ? FE_DOWNWARD
                    : kMode == kRp.bits ? FE_UPWARD
                                        : FE_TONEAREST);
    Op::run(o, active);
    std::fesetround(FE_TONEAREST);
#endif
  }

 private:
#if defined(__SSE2__)
  static void set(u32 control) {
    asm volatile("" ::: "memory");
    __builtin_ia32_ldmxcsr(control);
    asm volatile("" ::: "memory");
  }
#endif
};

template <class T>
inline constexpr ptx::Type kTypeOf = Traits<T>::kType;
template <>
inline constexpr ptx::Type kTypeOf<bool> = ptx::Type::kPred;

/// The AluOp for a function with these operands.
template <class D, class... S>
constexpr AluOp describe(AluFn fn) {
  return AluOp{.fn = fn,
               .d = kTypeOf<D>,
               .s = {kTypeOf<S>...},
               .sources = sizeof...(S),
               .writes_carry = false,
               .reads_carry = false};
}

template <class F>
struct Signature : Signature<decltype(&F::operator())> {};
template <class F, class D, class... S>
struct Signature<D (F::*)(S...) const> {
  template <class G>
  using Op = LaneOp<G, D, S...>;
  template <class Runner>
  static constexpr AluOp op() {
    return describe<D, S...>(&Runner::run);
  }
};

/// Adds `f`, a lambda without captures whose parameter types are the operands' types.
template <class F>
void add(AluTable& table, const AluName& name, F) {
  using Lanes = typename Signature<F>::template Op<F>;
  add_entry(table, name, Signature<F>::template op<Lanes>());
}

/// Calls f.template operator()<T>() for each type.
template <class... T, class F>
void for_types(F f) {
  (f.template operator()<T>(), ...);
}

}  // namespace slate::sim::SLATE_ALU_ISA
