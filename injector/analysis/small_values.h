// SmallValue: what is known of a predicate or of an integer that a program keeps a condition in:
// one of the numbers 0 to 13, that all its bits are set, or that it is not 0. Predicates are 0 or
// 1. Pure functions, any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace slate::injector {

/// A number, kNotZero or kAllBits.
using SmallValue = std::uint8_t;
inline constexpr SmallValue kNotZero = 14;
inline constexpr SmallValue kAllBits = 15;         // the mask -1, of any width
inline constexpr std::uint32_t kSmallValues = 16;  // how many there are

/// An unknown value is nothing.
using MaybeSmall = std::optional<SmallValue>;

SmallValue small_value(std::int64_t integer);

/// The result of and, or, xor; unknown for other opcodes.
MaybeSmall combined(std::string_view opcode, MaybeSmall a, MaybeSmall b);

/// What a comparison of integers says, by its name in setp.
MaybeSmall compared(std::string_view relation, MaybeSmall a, MaybeSmall b);

}  // namespace slate::injector
