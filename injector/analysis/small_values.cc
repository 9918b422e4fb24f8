#include "injector/analysis/small_values.h"

namespace slate::injector {

SmallValue small_value(std::int64_t integer) {
  if (integer == -1) return kAllBits;
  return integer >= 0 && integer < kNotZero ? static_cast<SmallValue>(integer) : kNotZero;
}

MaybeSmall combined(std::string_view opcode, MaybeSmall a, MaybeSmall b) {
  const auto is = [](MaybeSmall value, bool zero) { return value && (*value == 0) == zero; };
  const bool exact = a && b && *a < kNotZero && *b < kNotZero;
  if (opcode == "and") {
    if (is(a, true) || is(b, true)) return SmallValue{0};
    if (a == kAllBits) return b;
    if (b == kAllBits) return a;
    if (exact) return static_cast<SmallValue>(*a & *b);
  }
  if (opcode == "or") {
    if (a == kAllBits || b == kAllBits) return kAllBits;
    if (exact) return small_value(*a | *b);
    if (is(a, false) || is(b, false)) return kNotZero;
  }
  if (opcode == "xor" && exact) return small_value(*a ^ *b);
  return std::nullopt;
}

MaybeSmall compared(std::string_view relation, MaybeSmall a, MaybeSmall b) {
  if (!a || !b) return std::nullopt;
  const auto answer = [](bool holds) { return SmallValue{holds}; };
  const bool exact = *a < kNotZero && *b < kNotZero;
  const bool differ = exact ? *a != *b : *a == 0 || *b == 0;
  if (!exact && !differ) return std::nullopt;
  if (relation == "eq") return answer(!differ);
  if (relation == "ne") return answer(differ);
  if (!exact) return std::nullopt;  // of any sign
  if (relation == "lt" || relation == "lo") return answer(*a < *b);
  if (relation == "le" || relation == "ls") return answer(*a <= *b);
  if (relation == "gt" || relation == "hi") return answer(*a > *b);
  if (relation == "ge" || relation == "hs") return answer(*a >= *b);
  return std::nullopt;
}

}  // namespace slate::injector
