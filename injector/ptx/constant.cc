// Precedence climbing. Integer arithmetic wraps at 64 bits, in unsigned arithmetic, as the manual
// says.
#include "injector/ptx/constant.h"

#include <bit>
#include <charconv>
#include <cmath>
#include <limits>

namespace slate::ptx {
namespace {

constexpr int kMostParentheses = 64;  // of parentheses and unary operators; bounds the recursion
constexpr int kTernary = 1;           // the lowest precedence

using Kind = Constant::Kind;

Constant signed_constant(std::uint64_t bits) {
  return {.kind = Kind::kSigned, .bits = bits};
}
Constant float_constant(double value) {
  return {.kind = Kind::kFloat, .floating = value};
}

int precedence(const Token& token) {
  if (token.kind != TokenKind::kPunctuation) return 0;
  switch (token.op) {
    case '?':
      return kTernary;
    case op::kOr:
      return 2;
    case op::kAnd:
      return 3;
    case '|':
      return 4;
    case '^':
      return 5;
    case '&':
      return 6;
    case op::kEqual:
    case op::kNotEqual:
      return 7;
    case '<':
    case '>':
    case op::kLessEqual:
    case op::kGreaterEqual:
      return 8;
    case op::kShiftLeft:
    case op::kShiftRight:
      return 9;
    case '+':
    case '-':
      return 10;
    case '*':
    case '/':
    case '%':
      return 11;
    default:
      return 0;
  }
}

Constant parse_integer(Cursor& cursor) {
  std::string_view digits = cursor.view(cursor.peek());
  bool is_unsigned = false;
  if (digits.ends_with('U')) {
    is_unsigned = true;
    digits.remove_suffix(1);
  }
  int base = 10;
  if (digits.size() > 1 && digits[0] == '0') {
    const bool hexadecimal = digits[1] == 'x' || digits[1] == 'X';
    const bool binary = digits[1] == 'b' || digits[1] == 'B';
    base = hexadecimal ? 16 : binary ? 2 : 8;
    digits.remove_prefix(hexadecimal || binary ? 2 : 1);
  }
  std::uint64_t value = 0;
  const auto result = std::from_chars(digits.data(), digits.data() + digits.size(), value, base);
  if (result.ec != std::errc{}) {
    cursor.fail("integer beyond 64 bits");
    return {};
  }
  cursor.take();
  if (value > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
    is_unsigned = true;
  }
  return {.kind = is_unsigned ? Kind::kUnsigned : Kind::kSigned, .bits = value};
}

Constant parse_float(Cursor& cursor) {
  const std::string_view text = cursor.view(cursor.take());
  const char form = text.size() > 1 && text[0] == '0' ? text[1] : '\0';
  const char* end = text.data() + text.size();
  std::uint64_t bits = 0;
  if (form == 'f' || form == 'F') {
    std::from_chars(text.data() + 2, end, bits, 16);
    const auto value = std::bit_cast<float>(static_cast<std::uint32_t>(bits));
    return {.kind = Kind::kFloat, .float_bits = 32, .bits = bits, .floating = value};
  }
  if (form == 'd' || form == 'D') {
    std::from_chars(text.data() + 2, end, bits, 16);
    return {.kind = Kind::kFloat,
            .float_bits = 64,
            .bits = bits,
            .floating = std::bit_cast<double>(bits)};
  }
  double value = 0;
  const auto result = std::from_chars(text.data(), end, value);
  if (result.ec == std::errc::result_out_of_range) cursor.fail("number beyond a double");
  return float_constant(value);
}

bool is_integer_only(char operation) {
  return operation == '|' || operation == '^' || operation == '&' || operation == '%' ||
         operation == op::kShiftLeft || operation == op::kShiftRight;
}

Constant compute_float(char operation, double a, double b) {
  switch (operation) {
    case '+':
      return float_constant(a + b);
    case '-':
      return float_constant(a - b);
    case '*':
      return float_constant(a * b);
    case '/':
      return float_constant(b != 0 ? a / b : std::copysign(HUGE_VAL, a));
    case '<':
      return signed_constant(a < b);
    case '>':
      return signed_constant(a > b);
    case op::kLessEqual:
      return signed_constant(a <= b);
    case op::kGreaterEqual:
      return signed_constant(a >= b);
    case op::kEqual:
      return signed_constant(a == b);
    default:
      return signed_constant(a != b);
  }
}

/// Division and remainder. INT64_MIN / -1 wraps: it is -INT64_MIN in unsigned arithmetic.
std::uint64_t divide(bool is_unsigned, bool remainder, std::uint64_t a, std::uint64_t b) {
  if (is_unsigned) return remainder ? a % b : a / b;
  const auto x = static_cast<std::int64_t>(a);
  const auto y = static_cast<std::int64_t>(b);
  if (y == -1) return remainder ? 0 : 0 - a;
  return static_cast<std::uint64_t>(remainder ? x % y : x / y);
}

bool less(bool is_unsigned, std::uint64_t a, std::uint64_t b) {
  return is_unsigned ? a < b : static_cast<std::int64_t>(a) < static_cast<std::int64_t>(b);
}

/// A shift keeps the type of its left side; counts of 64 and more shift everything out.
Constant shift(char operation, const Constant& a, std::uint64_t count) {
  if (operation == op::kShiftLeft) {
    return {.kind = a.kind, .bits = count < 64 ? a.bits << count : 0};
  }
  if (a.kind == Kind::kUnsigned) return {.kind = a.kind, .bits = count < 64 ? a.bits >> count : 0};
  const auto value = static_cast<std::int64_t>(a.bits) >> (count < 64 ? count : 63);
  return signed_constant(static_cast<std::uint64_t>(value));
}

Constant compute_integer(Cursor& cursor, char operation, const Constant& a, const Constant& b) {
  const bool is_unsigned = a.kind == Kind::kUnsigned || b.kind == Kind::kUnsigned;
  const Kind kind = is_unsigned ? Kind::kUnsigned : Kind::kSigned;
  switch (operation) {
    case '+':
      return {.kind = kind, .bits = a.bits + b.bits};
    case '-':
      return {.kind = kind, .bits = a.bits - b.bits};
    case '*':
      return {.kind = kind, .bits = a.bits * b.bits};
    case '&':
      return {.kind = kind, .bits = a.bits & b.bits};
    case '|':
      return {.kind = kind, .bits = a.bits | b.bits};
    case '^':
      return {.kind = kind, .bits = a.bits ^ b.bits};
    case '/':
    case '%':
      if (b.bits == 0) {
        cursor.fail("division by zero in a constant expression");
        return {};
      }
      return {.kind = kind, .bits = divide(is_unsigned, operation == '%', a.bits, b.bits)};
    case op::kShiftLeft:
    case op::kShiftRight:
      return shift(operation, a, b.bits);
    case '<':
      return signed_constant(less(is_unsigned, a.bits, b.bits));
    case '>':
      return signed_constant(less(is_unsigned, b.bits, a.bits));
    case op::kLessEqual:
      return signed_constant(!less(is_unsigned, b.bits, a.bits));
    case op::kGreaterEqual:
      return signed_constant(!less(is_unsigned, a.bits, b.bits));
    case op::kEqual:
      return signed_constant(a.bits == b.bits);
    default:
      return signed_constant(a.bits != b.bits);
  }
}

class Expression {
 public:
  explicit Expression(Cursor& cursor) : cursor_(cursor) {}

  Constant parse(int lowest) {
    if (!enter()) return {};
    Constant value = parse_unary();
    for (int level = precedence(cursor_.peek()); level >= lowest && !cursor_.failed();
         level = precedence(cursor_.peek())) {
      const char operation = cursor_.take().op;
      value = operation == '?' ? parse_choice(value) : parse_right(operation, level, value);
    }
    --depth_;
    return value;
  }

 private:
  bool enter() {
    if (++depth_ <= kMostParentheses) return true;
    cursor_.fail("constant expression nested too deep");
    return false;
  }

  Constant parse_choice(const Constant& condition) {
    const Constant yes = parse(kTernary);
    cursor_.expect(':', "in a constant expression");
    const Constant no = parse(kTernary);
    return condition.truth() ? yes : no;
  }

  Constant parse_right(char operation, int level, const Constant& left) {
    const Constant right = parse(level + 1);
    if (cursor_.failed()) return {};
    if (operation == op::kAnd) return signed_constant(left.truth() && right.truth());
    if (operation == op::kOr) return signed_constant(left.truth() || right.truth());
    if (!left.is_float() && !right.is_float()) {
      return compute_integer(cursor_, operation, left, right);
    }
    if (is_integer_only(operation)) {
      cursor_.fail("integer operator on a floating-point constant");
      return {};
    }
    return compute_float(operation, left.as_double(), right.as_double());
  }

  Constant parse_unary() {
    if (cursor_.at(TokenKind::kInteger)) return parse_integer(cursor_);
    if (cursor_.at(TokenKind::kFloat)) return parse_float(cursor_);
    if (cursor_.at('(')) return parse_parenthesis();
    if (cursor_.at(TokenKind::kWord) && cursor_.view(cursor_.peek()) == "WARP_SZ") {
      cursor_.take();
      return signed_constant(32);
    }
    if (cursor_.at('-') || cursor_.at('+') || cursor_.at('~') || cursor_.at('!')) {
      const char operation = cursor_.take().op;
      if (!enter()) return {};
      const Constant value = apply(operation, parse_unary());
      --depth_;
      return value;
    }
    cursor_.fail("expected a constant");
    return {};
  }

  Constant apply(char operation, Constant value) {
    switch (operation) {
      case '!':
        return signed_constant(!value.truth());
      case '~':
        if (value.is_float()) cursor_.fail("integer operator on a floating-point constant");
        value.bits = ~value.bits;
        return value;
      case '-':
        return negate(value);
      default:
        return value;
    }
  }

  static Constant negate(Constant value) {
    value.floating = -value.floating;
    if (!value.is_float()) {
      value.bits = 0 - value.bits;
    } else if (value.float_bits != 0) {
      value.bits ^= std::uint64_t{1} << (value.float_bits - 1);
    }
    return value;
  }

  Constant parse_parenthesis() {
    cursor_.take();
    if (cursor_.at_directive(".s64") || cursor_.at_directive(".u64")) {
      const Kind kind = cursor_.at_directive(".u64") ? Kind::kUnsigned : Kind::kSigned;
      cursor_.take();
      cursor_.expect(')', "after the type of a cast");
      if (!enter()) return {};
      Constant value = parse_unary();
      --depth_;
      if (value.is_float()) cursor_.fail("cast of a floating-point constant");
      value.kind = kind;
      return value;
    }
    const Constant value = parse(kTernary);
    cursor_.expect(')', "in a constant expression");
    return value;
  }

  Cursor& cursor_;
  int depth_ = 0;
};

}  // namespace

double Constant::as_double() const {
  if (is_float()) return floating;
  return kind == Kind::kSigned ? static_cast<double>(static_cast<std::int64_t>(bits))
                               : static_cast<double>(bits);
}

bool at_constant(const Cursor& cursor) {
  return cursor.at(TokenKind::kInteger) || cursor.at(TokenKind::kFloat) || cursor.at('(') ||
         cursor.at('-') || cursor.at('+') || cursor.at('~') || cursor.at('!');
}

Constant parse_constant(Cursor& cursor) {
  return Expression(cursor).parse(kTernary);
}

std::uint64_t parse_count(Cursor& cursor, std::uint64_t limit, std::string_view what) {
  const Constant value = parse_constant(cursor);
  if (cursor.failed()) return 0;
  if (value.is_float() || value.bits > limit) {
    cursor.fail(std::string(what) + " out of range before this");
    return 0;
  }
  return value.bits;
}

}  // namespace slate::ptx
