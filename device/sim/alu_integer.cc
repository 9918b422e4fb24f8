// Integer arithmetic: add to rem, min and max, multiply-add, and the dot products. Wraps like the
// hardware; what C++ leaves undefined (overflow, division by zero) is spelled out. Pure functions,
// any thread.
#include "device/sim/alu_lanes.h"

namespace slate::sim::SLATE_ALU_ISA {
namespace {

template <class T>
T wrap(Unsigned<T> x) {
  return static_cast<T>(x);
}

// Unsigned arithmetic on 16 bits would promote to int and overflow in products: compute in 32 bits
// at least.
template <class T>
using Work = std::conditional_t<(sizeof(T) < 4), u32, Unsigned<T>>;

template <class T>
T add_wrap(T a, T b) {
  return static_cast<T>(static_cast<Work<T>>(a) + static_cast<Work<T>>(b));
}
template <class T>
T sub_wrap(T a, T b) {
  return static_cast<T>(static_cast<Work<T>>(a) - static_cast<Work<T>>(b));
}
template <class T>
T mul_lo(T a, T b) {
  return static_cast<T>(static_cast<Work<T>>(a) * static_cast<Work<T>>(b));
}

template <class T>
struct Double;
template <>
struct Double<u16> {
  using type = u32;
};
template <>
struct Double<s16> {
  using type = s32;
};
template <>
struct Double<u32> {
  using type = u64;
};
template <>
struct Double<s32> {
  using type = s64;
};
template <>
struct Double<u64> {
  using type = u128;
};
template <>
struct Double<s64> {
  using type = s128;
};

// gcc 12 may vectorise the high half of a signed 16-bit product with the unsigned instruction, so
// that one is made from the unsigned product, whose high half exceeds it by the other factor for
// each negative one.
template <class T>
T mul_hi(T a, T b) {
  using D = typename Double<T>::type;
  if constexpr (std::is_same_v<T, s16>) {
    const u32 high = (static_cast<u32>(static_cast<u16>(a)) * static_cast<u16>(b)) >> 16;
    return static_cast<s16>(high - (a < 0 ? static_cast<u32>(b) : 0) -
                            (b < 0 ? static_cast<u32>(a) : 0));
  } else {
    return static_cast<T>((static_cast<D>(a) * static_cast<D>(b)) >> kBits<T>);
  }
}

s32 saturate(s64 x) {
  return static_cast<s32>(x > INT32_MAX ? INT32_MAX : x < INT32_MIN ? INT32_MIN : x);
}

// The hardware gives all ones for x / 0 and for x % 0. INT_MIN / -1 traps on x86 and wraps here.
template <class T>
T divide(T a, T b) {
  if constexpr (kSigned<T>) {
    if (b == T(-1)) return sub_wrap<T>(0, a);
  }
  return b == 0 ? static_cast<T>(-1) : static_cast<T>(a / b);
}
template <class T>
T remainder(T a, T b) {
  if constexpr (kSigned<T>) {
    if (b == T(-1)) return 0;
  }
  return b == 0 ? static_cast<T>(-1) : static_cast<T>(a % b);
}
// A 32-bit quotient is exact by way of double, and the host does four of those at once.
u32 divide_fast(u32 a, u32 b) {
  const double q = static_cast<double>(a) / static_cast<double>(b == 0 ? 1 : b);
  const bool upper = q >= 0x1p31;
  const u32 low = static_cast<u32>(static_cast<s32>(upper ? q - 0x1p31 : q));
  return b == 0 ? ~0u : low ^ (upper ? 0x80000000 : 0);
}
s32 divide_fast(s32 a, s32 b) {
  const bool special = (b == 0) | ((a == INT32_MIN) & (b == -1));
  const s32 q =
      static_cast<s32>(static_cast<double>(special ? 0 : a) / static_cast<double>(b == 0 ? 1 : b));
  return b == 0 ? -1 : special ? INT32_MIN : q;
}

template <class T>
T min_of(T a, T b) {
  return a < b ? a : b;
}
template <class T>
T max_of(T a, T b) {
  return a > b ? a : b;
}

template <class T>
void fill_basic(AluTable& t) {
  const char* n = kName<T>;
  add(t, {"add", n}, [](T a, T b) -> T { return add_wrap(a, b); });
  add(t, {"sub", n}, [](T a, T b) -> T { return sub_wrap(a, b); });
  add(t, {"mul", "lo", n}, [](T a, T b) -> T { return mul_lo(a, b); });
  add(t, {"mul", "hi", n}, [](T a, T b) -> T { return mul_hi(a, b); });
  add(t, {"mad", "lo", n}, [](T a, T b, T c) -> T { return add_wrap(mul_lo(a, b), c); });
  add(t, {"mad", "hi", n}, [](T a, T b, T c) -> T { return add_wrap(mul_hi(a, b), c); });
  add(t, {"sad", n},
      [](T a, T b, T c) -> T { return add_wrap(c, a < b ? sub_wrap(b, a) : sub_wrap(a, b)); });
  if constexpr (sizeof(T) == 4) {
    add(t, {"div", n}, [](T a, T b) -> T { return divide_fast(a, b); });
    add(t, {"rem", n}, [](T a, T b) -> T {
      return b == 0 ? static_cast<T>(-1) : sub_wrap(a, mul_lo(divide_fast(a, b), b));
    });
  } else {
    add(t, {"div", n}, [](T a, T b) -> T { return divide(a, b); });
    add(t, {"rem", n}, [](T a, T b) -> T { return remainder(a, b); });
  }
  add(t, {"min", n}, [](T a, T b) -> T { return min_of(a, b); });
  add(t, {"max", n}, [](T a, T b) -> T { return max_of(a, b); });
  if constexpr (kSigned<T>) {
    add(t, {"abs", n}, [](T a) -> T { return a < 0 ? sub_wrap<T>(0, a) : a; });
    add(t, {"neg", n}, [](T a) -> T { return sub_wrap<T>(0, a); });
    add(t, {"min", "relu", n}, [](T a, T b) -> T { return max_of(min_of(a, b), T(0)); });
    add(t, {"max", "relu", n}, [](T a, T b) -> T { return max_of(max_of(a, b), T(0)); });
  }
}

template <class T>
void fill_wide(AluTable& t) {
  using D = typename Double<T>::type;
  add(t, {"mul", "wide", kName<T>},
      [](T a, T b) -> D { return static_cast<D>(static_cast<D>(a) * static_cast<D>(b)); });
  add(t, {"mad", "wide", kName<T>}, [](T a, T b, D c) -> D {
    return add_wrap<D>(static_cast<D>(static_cast<D>(a) * static_cast<D>(b)), c);
  });
}

template <class T>
T low24(T a) {
  return wrap<T>(static_cast<u32>(a) << 8) >> 8;
}
template <class T>
typename Double<T>::type product24(T a, T b) {
  using D = typename Double<T>::type;
  return static_cast<D>(low24(a)) * static_cast<D>(low24(b));
}

template <class T>
void fill_24(AluTable& t) {
  const char* n = kName<T>;
  add(t, {"mul24", "lo", n}, [](T a, T b) -> T { return static_cast<T>(product24(a, b)); });
  add(t, {"mul24", "hi", n}, [](T a, T b) -> T { return static_cast<T>(product24(a, b) >> 16); });
  add(t, {"mad24", "lo", n},
      [](T a, T b, T c) -> T { return add_wrap(static_cast<T>(product24(a, b)), c); });
  add(t, {"mad24", "hi", n},
      [](T a, T b, T c) -> T { return add_wrap(static_cast<T>(product24(a, b) >> 16), c); });
}

void fill_saturating(AluTable& t) {
  add(t, {"add", "sat", "s32"}, [](s32 a, s32 b) -> s32 { return saturate(s64{a} + b); });
  add(t, {"sub", "sat", "s32"}, [](s32 a, s32 b) -> s32 { return saturate(s64{a} - b); });
  add(t, {"mad", "hi", "sat", "s32"},
      [](s32 a, s32 b, s32 c) -> s32 { return saturate(s64{mul_hi(a, b)} + c); });
  add(t, {"mad24", "hi", "sat", "s32"}, [](s32 a, s32 b, s32 c) -> s32 {
    return saturate(s64{static_cast<s32>(product24(a, b) >> 16)} + c);
  });
}

template <class T>
u32 pair_of(T low, T high) {
  return static_cast<u32>(static_cast<u16>(low)) | static_cast<u32>(static_cast<u16>(high)) << 16;
}
template <class T>
T low_half(u32 x) {
  return static_cast<T>(x);
}
template <class T>
T high_half(u32 x) {
  return static_cast<T>(x >> 16);
}

// Two 16-bit values in one register.
template <class T>
void fill_pairs(AluTable& t) {
  const char* n = kSigned<T> ? "s16x2" : "u16x2";
  const auto op = [&t, n]<class F>(const char* name, const char* relu, F) {
    add(t, {name, relu, n}, [](u32 a, u32 b) -> u32 {
      return pair_of<T>(F()(low_half<T>(a), low_half<T>(b)), F()(high_half<T>(a), high_half<T>(b)));
    });
  };
  op("add", nullptr, [](T a, T b) -> T { return add_wrap(a, b); });
  op("min", nullptr, [](T a, T b) -> T { return min_of(a, b); });
  op("max", nullptr, [](T a, T b) -> T { return max_of(a, b); });
  if constexpr (kSigned<T>) {
    op("min", "relu", [](T a, T b) -> T { return max_of(min_of(a, b), T(0)); });
    op("max", "relu", [](T a, T b) -> T { return max_of(max_of(a, b), T(0)); });
  }
}

template <class A, class B>
void fill_dot(AluTable& t) {
  using D = std::conditional_t<kSigned<A> || kSigned<B>, s32, u32>;
  using Byte = std::conditional_t<kSigned<B>, s8, u8>;
  using AByte = std::conditional_t<kSigned<A>, s8, u8>;
  using AHalf = std::conditional_t<kSigned<A>, s16, u16>;
  // The products fit easily; only the sum with c wraps.
  add(t, {"dp4a", kName<A>, kName<B>}, [](A a, B b, D c) -> D {
    u32 sum = static_cast<u32>(c);
    for (int k = 0; k < 32; k += 8) {
      sum += static_cast<u32>(static_cast<s32>(static_cast<AByte>(static_cast<u32>(a) >> k)) *
                              static_cast<s32>(static_cast<Byte>(static_cast<u32>(b) >> k)));
    }
    return static_cast<D>(sum);
  });
  const auto half = [&t]<int kShift>(const char* which) {
    add(t, {"dp2a", which, kName<A>, kName<B>}, [](A a, B b, D c) -> D {
      u32 sum = static_cast<u32>(c);
      for (int k = 0; k < 2; ++k) {
        sum += static_cast<u32>(
            static_cast<s32>(static_cast<AHalf>(static_cast<u32>(a) >> (16 * k))) *
            static_cast<s32>(static_cast<Byte>(static_cast<u32>(b) >> (8 * k + kShift))));
      }
      return static_cast<D>(sum);
    });
  };
  half.template operator()<0>("lo");
  half.template operator()<16>("hi");
}

}  // namespace

void fill_integer(AluTable& t) {
  for_types<u16, s16, u32, s32, u64, s64>([&]<class T>() { fill_basic<T>(t); });
  for_types<u16, s16, u32, s32>([&]<class T>() { fill_wide<T>(t); });
  for_types<u32, s32>([&]<class T>() { fill_24<T>(t); });
  fill_saturating(t);
  fill_pairs<u16>(t);
  fill_pairs<s16>(t);
  for_types<u32, s32>(
      [&]<class A>() { for_types<u32, s32>([&]<class B>() { fill_dot<A, B>(t); }); });
}

}  // namespace slate::sim::SLATE_ALU_ISA
