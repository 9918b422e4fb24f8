// Arithmetic in f16 and bf16, single or two to a register (f16x2, bf16x2). Computed in float, or
// double where float would round twice, then rounded to the half. Pure functions, any thread.
#include <cmath>

#include "device/sim/alu_narrow.h"

namespace slate::sim::SLATE_ALU_ISA {
namespace {

/// F over the 64 halves of 32 registers.
template <class F, class H, int kSources>
struct PairOp {
  static void run(const AluOperands& o, Mask active) {
    const Source<H> a(o.s[0]), b(o.s[kSources > 1 ? 1 : 0]), c(o.s[kSources > 2 ? 2 : 0]);
    alignas(kRegisterAlign) u16 r[2 * kWarpSize];
    for (int i = 0; i < 2 * kWarpSize; ++i) r[i] = call(a.at(i), b.at(i), c.at(i)).bits;
    const Source<u32> pairs(r);
    for_lanes<u32>(o.d, active, [=](int i) { return pairs.at(i); });
  }
  [[gnu::always_inline]] static H call(H a, H b, H c) {
    if constexpr (kSources == 1) return F()(a);
    if constexpr (kSources == 2) return F()(a, b);
    if constexpr (kSources == 3) return F()(a, b, c);
  }
};

template <class F, class H, class... S>
void add_pair(AluTable& t, const AluName& name, ptx::Type type, H (F::*)(S...) const) {
  constexpr int kSources = sizeof...(S);
  AluOp op{.fn = &PairOp<F, H, kSources>::run,
           .d = type,
           .s = {type},
           .sources = kSources,
           .writes_carry = false,
           .reads_carry = false};
  for (int k = 1; k < kSources; ++k) op.s[k] = type;
  add_entry(t, name, op);
}

/// Under the names of both the single and the paired type; `name` gets them appended.
template <class H, class F>
void add_both(AluTable& t, AluName name, F f) {
  constexpr bool kIsF16 = std::is_same_v<H, f16>;
  const char** last = name.part + sizeof(name.part) / sizeof(name.part[0]) - 1;
  *last = kIsF16 ? "f16" : "bf16";
  add(t, name, f);
  *last = kIsF16 ? "f16x2" : "bf16x2";
  add_pair(t, name, kIsF16 ? ptx::Type::kF16x2 : ptx::Type::kBf16x2, &F::operator());
}

template <bool kFtz, class H>
[[gnu::always_inline]] inline float value(H h) {
  return decode(flush_if<kFtz>(h));
}

// A float has room for the sum or product of two halves, or for twice their bits and two more,
// which is as good. Not so for products of bf16 among the denormals and for three operands: those
// are rounded to odd on the way.
[[gnu::always_inline]] inline float multiply(float a, float b, f16) {
  return a * b;
}
[[gnu::always_inline]] inline float multiply(float a, float b, bf16) {
  return to_float_odd(static_cast<double>(a) * static_cast<double>(b));
}
[[gnu::always_inline]] inline float multiply_add(float a, float b, float c, f16) {
  return add_odd(a * b, c);
}
[[gnu::always_inline]] inline float multiply_add(float a, float b, float c, bf16) {
  return to_float_odd(
      add_odd(static_cast<double>(a) * static_cast<double>(b), static_cast<double>(c)));
}

/// Which of .sat and .relu.
enum class Clamp : u8 { kNone, kSat, kRelu };

template <class H, bool kFtz, Clamp kClamp>
[[gnu::always_inline]] inline H result(float x) {
  float r = x;
  if constexpr (kClamp == Clamp::kSat) r = saturate(r);
  if constexpr (kClamp == Clamp::kRelu) r = r <= 0 ? 0.0f : r;
  return flush_if<kFtz>(encode_half<H>(r));
}

template <class H, bool kFtz, Clamp kClamp>
void fill_sums(AluTable& t) {
  const char* f = kFtz ? "ftz" : nullptr;
  const char* c = kClamp == Clamp::kSat ? "sat" : kClamp == Clamp::kRelu ? "relu" : nullptr;
  if constexpr (kClamp != Clamp::kRelu) {
    add_both<H>(t, {"add", f, c}, [](H a, H b) -> H {
      return result<H, kFtz, kClamp>(value<kFtz>(a) + value<kFtz>(b));
    });
    add_both<H>(t, {"sub", f, c}, [](H a, H b) -> H {
      return result<H, kFtz, kClamp>(value<kFtz>(a) - value<kFtz>(b));
    });
    add_both<H>(t, {"mul", f, c}, [](H a, H b) -> H {
      return result<H, kFtz, kClamp>(multiply(value<kFtz>(a), value<kFtz>(b), H()));
    });
  }
  add_both<H>(t, {"fma", "rn", f, c}, [](H a, H b, H x) -> H {
    return result<H, kFtz, kClamp>(
        multiply_add(value<kFtz>(a), value<kFtz>(b), value<kFtz>(x), H()));
  });
}

/// `bits`, or the canonical NaN if x is a NaN.
template <class H>
[[gnu::always_inline]] inline H without_nan(H x, u16 bits) {
  constexpr u16 kInfinity = std::is_same_v<H, f16> ? 0x7c00 : 0x7f80;
  return {(x.bits & 0x7fff) > kInfinity ? u16{0x7fff} : bits};
}

template <class H, bool kFtz>
void fill_signs(AluTable& t) {
  const char* f = kFtz ? "ftz" : nullptr;
  add_both<H>(t, {"neg", f}, [](H a) -> H {
    return without_nan<H>(a, static_cast<u16>(flush_if<kFtz>(a).bits ^ 0x8000));
  });
  add_both<H>(t, {"abs", f}, [](H a) -> H {
    return without_nan<H>(a, static_cast<u16>(flush_if<kFtz>(a).bits & 0x7fff));
  });
}

template <class H, bool kFtz, bool kNan>
void fill_extremes(AluTable& t) {
  const char* f = kFtz ? "ftz" : nullptr;
  const char* nan = kNan ? "NaN" : nullptr;
  const auto both = [&]<bool kMin>(const char* name) {
    add_both<H>(t, {name, f, nan}, [](H a, H b) -> H {
      return encode_half<H>(extreme<kMin, kNan>(value<kFtz>(a), value<kFtz>(b)));
    });
    add_both<H>(t, {name, f, nan, "xorsign", "abs"}, [](H a, H b) -> H {
      const H x{static_cast<u16>(a.bits & 0x7fff)};
      const H y{static_cast<u16>(b.bits & 0x7fff)};
      const H r = encode_half<H>(extreme<kMin, kNan>(value<kFtz>(x), value<kFtz>(y)));
      return without_nan<H>(r, static_cast<u16>(r.bits ^ ((a.bits ^ b.bits) & 0x8000)));
    });
  };
  both.template operator()<true>("min");
  both.template operator()<false>("max");
}

template <class H, bool kFtz>
void fill_approximations(AluTable& t) {
  add_both<H>(t, {"ex2", "approx", kFtz ? "ftz" : nullptr}, [](H a) -> H {
    return flush_if<kFtz>(encode_half<H>(::exp2f(decode(flush_if<kFtz>(a)))));
  });
}

template <class H>
void fill_type(AluTable& t) {
  fill_sums<H, false, Clamp::kNone>(t);
  fill_sums<H, false, Clamp::kRelu>(t);
  fill_signs<H, false>(t);
  fill_extremes<H, false, false>(t);
  fill_extremes<H, false, true>(t);
  add_both<H>(t, {"tanh", "approx"}, [](H a) -> H { return encode_half<H>(::tanhf(decode(a))); });
}

}  // namespace

void fill_half(AluTable& t) {
  fill_type<f16>(t);
  fill_type<bf16>(t);
  fill_sums<f16, true, Clamp::kNone>(t);
  fill_sums<f16, true, Clamp::kSat>(t);
  fill_sums<f16, true, Clamp::kRelu>(t);
  fill_sums<f16, false, Clamp::kSat>(t);
  fill_signs<f16, true>(t);
  fill_extremes<f16, true, false>(t);
  fill_extremes<f16, true, true>(t);
  fill_approximations<f16, false>(t);
  fill_approximations<bf16, true>(t);
}

}  // namespace slate::sim::SLATE_ALU_ISA
