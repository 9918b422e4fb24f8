// Scanner: C++ text to tokens, in text order, without a copy of a token's bytes. The rules are in
// scanner.l. Comments are dropped, a preprocessor line is one token, and macros are not expanded.
// It knows no grammar. Errors are tokens, too: the compiler behind it reports them better. Thread:
// any.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace slate::source {

enum class TokenKind : std::uint8_t {
  kEnd,
  kName,         // keywords included
  kNumber,       // a preprocessing number
  kString,       // with prefix, quotes and raw delimiters
  kCharacter,    //
  kPunctuation,  // `op` says which
  kDirective,    // from '#' (and blanks before it) to the end of the last continued line
  kError,        // an open comment or raw string: reaches to the end
};

/// `op` of punctuation longer than one character; ( ) { } [ ] < > , ; : = . ~ * & stand for
/// themselves. ">>" and ">>>" come as single '>'.
namespace op {
inline constexpr char kLaunch = 'L';  // <<<
inline constexpr char kScope = 'S';   // ::
inline constexpr char kArrow = 'A';   // ->
inline constexpr char kPaste = 'P';   // ##
inline constexpr char kOther = 'o';
}  // namespace op

struct Token {
  TokenKind kind = TokenKind::kEnd;
  char op = 0;
  std::uint32_t begin = 0;
  std::uint32_t end = 0;

  bool is(char wanted) const { return kind == TokenKind::kPunctuation && op == wanted; }
  std::string_view in(std::string_view text) const { return text.substr(begin, end - begin); }
};

/// State that the rules of scanner.l update.
struct ScanState {
  std::uint32_t begin = 0;
  std::uint32_t end = 0;
  char op = 0;
  bool in_token = false;  // whether the next match continues the token
  std::string delimiter;  // delimiter of the open raw string
};

/// All tokens of `text`, without a kEnd. Requires: under 2 GiB.
std::vector<Token> scan(std::string_view text);

}  // namespace slate::source
