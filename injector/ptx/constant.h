// Constant expressions: PTX has C's operators on 64-bit integers and doubles, and they are folded
// at once. Private to the parser. Thread: one.
#pragma once

#include <cstdint>

#include "injector/ptx/cursor.h"

namespace slate::ptx {

/// The value of an expression.
struct Constant {
  enum class Kind : std::uint8_t { kSigned, kUnsigned, kFloat };
  Kind kind = Kind::kSigned;
  std::uint8_t float_bits = 0;  // 32 or 64 if written 0f or 0d, with the exact bits in `bits`
  std::uint64_t bits = 0;
  double floating = 0;  // kFloat only

  bool is_float() const { return kind == Kind::kFloat; }
  bool truth() const { return is_float() ? floating != 0 : bits != 0; }
  double as_double() const;
};

/// Whether the token can only begin a constant.
bool at_constant(const Cursor& cursor);

/// Takes the longest expression. Fails the cursor if there is none or it divides by zero.
Constant parse_constant(Cursor& cursor);

/// Takes an expression that must be an integer from 0 to `limit`; else fails the cursor.
std::uint64_t parse_count(Cursor& cursor, std::uint64_t limit, std::string_view what);

}  // namespace slate::ptx
