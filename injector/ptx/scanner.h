// Scanner: PTX text to tokens, in text order, without a copy of a token's bytes. The rules are in
// scanner.l; this is the interface for the parser. It knows no grammar: a modifier, a directive and
// a type are all "a word after a dot". Errors are tokens, too. Thread: one.
#pragma once

#include <cstdint>
#include <string_view>

#include "injector/ptx/module.h"

namespace slate::ptx {

enum class TokenKind : std::uint8_t {
  kEnd,
  kWord,         // name with its dotted tail: "ld.global.f32", "%tid.x", "$L__BB0_1", "_"
  kDirective,    // ".reg", ".f32", ".L2::128B": a word after a dot at the start of a token
  kInteger,      // decimal, octal, 0x, 0b; with or without U
  kFloat,        // 1.5, 2e3, 0f3F800000, 0d...
  kString,       // with its quotes
  kPunctuation,  // `op` says which
  kError,        // `op`: 'c' open comment, 's' open string, 'n' bad number, 0 a stray character
};

/// `op` of punctuation longer than one character. Other punctuation stands for itself.
namespace op {
inline constexpr char kShiftLeft = 'L';
inline constexpr char kShiftRight = 'R';
inline constexpr char kLessEqual = 'l';
inline constexpr char kGreaterEqual = 'g';
inline constexpr char kEqual = 'e';
inline constexpr char kNotEqual = 'n';
inline constexpr char kAnd = 'a';
inline constexpr char kOr = 'o';
}  // namespace op

struct Token {
  TokenKind kind = TokenKind::kEnd;
  char op = 0;
  std::uint32_t line = 1;
  Span span;
};

/// State that the rules of scanner.l update.
struct ScanState {
  std::uint32_t begin = 0;  // beginning of the token just matched
  std::uint32_t end = 0;
  std::uint32_t line = 1;
  char op = 0;
};

class Scanner {
 public:
  /// Copies `text` once (flex writes into its buffer). Requires: under 2 GiB.
  explicit Scanner(std::string_view text);
  ~Scanner();
  Scanner(const Scanner&) = delete;
  Scanner& operator=(const Scanner&) = delete;

  /// The next token; kEnd for ever once the text has ended.
  Token next();

 private:
  void* flex_ = nullptr;
  ScanState state_;
  bool ended_ = false;
};

}  // namespace slate::ptx
