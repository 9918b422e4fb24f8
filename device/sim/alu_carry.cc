// Extended-precision integer arithmetic: add.cc, addc, sub.cc, subc, mad.cc and madc, which pass a
// carry or borrow from one instruction to the next through one bit per lane. Pure but for that
// Mask, any thread.
#include "device/sim/alu_lanes.h"

namespace slate::sim::SLATE_ALU_ISA {
namespace {

template <class U>
struct Sum {
  U value;
  bool carry;
};

template <class U>
Sum<U> sum(U a, U b, bool carry_in) {
  const U s = a + b;
  const U r = s + U(carry_in);
  return {r, s < a || r < s};
}
template <class U>
Sum<U> difference(U a, U b, bool borrow_in) {
  const U s = a - b;
  const U r = s - U(borrow_in);
  return {r, s > a || r > s};
}

/// F(a, b[, c], carry in) -> Sum. kIn, kOut: whether the instruction reads and writes the carry.
template <class F, bool kIn, bool kOut, class T, class... S>
struct CarryOp {
  static void run(const AluOperands& o, Mask active) {
    run(o, active, std::index_sequence_for<S...>());
  }

 private:
  template <std::size_t... I>
  static void run(const AluOperands& o, Mask active, std::index_sequence<I...>) {
    apply(o, active, Source<S>(o.s[I])...);
  }
  static void apply(const AluOperands& o, Mask active, Source<S>... s) {
    Mask in = 0;
    if constexpr (kIn) in = *o.carry;
    Mask out = 0;
    alignas(kRegisterAlign) Storage<T> r[kWarpSize];
    for (int i = 0; i < kWarpSize; ++i) {
      const Sum<Unsigned<T>> lane = F()(s.at(i)..., (in & kLaneBit[i]) != 0);
      r[i] = lane.value;
      out |= lane.carry ? kLaneBit[i] : 0;
    }
    for_lanes<Unsigned<T>>(o.d, active, [&r](int i) { return r[i]; });
    if constexpr (kOut) *o.carry = (*o.carry & ~active) | (out & active);
  }
};

template <bool kIn, bool kOut, class T, class... S, class F>
void add_carry(AluTable& t, const AluName& name, F) {
  AluOp op = describe<T, S...>(&CarryOp<F, kIn, kOut, T, S...>::run);
  op.reads_carry = kIn;
  op.writes_carry = kOut;
  add_entry(t, name, op);
}

template <class T>
Unsigned<T> high_product(T a, T b) {
  if constexpr (sizeof(T) == 8) {
    using D = std::conditional_t<kSigned<T>, s128, u128>;
    return static_cast<Unsigned<T>>((static_cast<D>(a) * static_cast<D>(b)) >> 64);
  } else {
    using D = std::conditional_t<kSigned<T>, s64, u64>;
    return static_cast<Unsigned<T>>((static_cast<D>(a) * static_cast<D>(b)) >> 32);
  }
}

template <class T, bool kIn, bool kOut>
void fill_one(AluTable& t) {
  using U = Unsigned<T>;
  const char* cc = kOut ? "cc" : nullptr;
  const char* n = kName<T>;
  add_carry<kIn, kOut, T, T, T>(t, {kIn ? "addc" : "add", cc, n}, [](T a, T b, bool in) {
    return sum(static_cast<U>(a), static_cast<U>(b), in);
  });
  add_carry<kIn, kOut, T, T, T>(t, {kIn ? "subc" : "sub", cc, n}, [](T a, T b, bool in) {
    return difference(static_cast<U>(a), static_cast<U>(b), in);
  });
  add_carry<kIn, kOut, T, T, T, T>(
      t, {kIn ? "madc" : "mad", "lo", cc, n}, [](T a, T b, T c, bool in) {
        return sum(static_cast<U>(static_cast<U>(a) * static_cast<U>(b)), static_cast<U>(c), in);
      });
  add_carry<kIn, kOut, T, T, T, T>(
      t, {kIn ? "madc" : "mad", "hi", cc, n},
      [](T a, T b, T c, bool in) { return sum(high_product(a, b), static_cast<U>(c), in); });
}

}  // namespace

void fill_carry(AluTable& t) {
  for_types<u32, s32, u64, s64>([&]<class T>() {
    fill_one<T, false, true>(t);
    fill_one<T, true, false>(t);
    fill_one<T, true, true>(t);
  });
}

}  // namespace slate::sim::SLATE_ALU_ISA
