// Constant expressions: PTX has C's operators on 64-bit integers and doubles, and folds them where
// they stand. Private to the parser.
#pragma once

#include <cstdint>

#include "injector/ptx/cursor.h"

namespace slate::ptx {

struct Constant {
  enum class Kind : std::uint8_t { kSigned, kUnsigned, kFloat };
  Kind kind = Kind::kSigned;
  std::uint8_t float_bits = 0;  // 32 or 64 when written 0f or 0d, and then `bits` is exactly that
  std::uint64_t bits = 0;
  double floating = 0;  // kFloat only

  bool is_float() const { return kind == Kind::kFloat; }
  bool truth() const { return is_float() ? floating != 0 : bits != 0; }
  double as_double() const;
};

/// True at a token that can only begin a constant.
bool at_constant(const Cursor& cursor);

/// Takes the longest expression; fails the cursor if there is none or it divides by zero.
Constant parse_constant(Cursor& cursor);

/// An expression that must be an integer, not negative and at most `limit`.
std::uint64_t parse_count(Cursor& cursor, std::uint64_t limit, std::string_view what);

}  // namespace slate::ptx
