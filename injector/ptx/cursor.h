// Cursor: the parser's place in the token stream, with two tokens of look-ahead and the first
// error. After an error every token is kEnd, so loops that stop at the end need no other check.
// Private to the parser. Thread: one.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "injector/ptx/scanner.h"

namespace slate::ptx {

class Cursor {
 public:
  /// Requires: `text` outlives the Cursor and all views read through it. charge() may add up to
  /// `limits.tree_bytes`.
  explicit Cursor(std::string_view text, ParseLimits limits = {});

  const Token& peek() const { return current_; }
  const Token& peek_second();
  Token take();

  bool at_end() const { return current_.kind == TokenKind::kEnd; }
  bool at(char op) const { return current_.kind == TokenKind::kPunctuation && current_.op == op; }
  bool at(TokenKind kind) const { return current_.kind == kind; }
  bool at_directive(std::string_view name) const {
    return at(TokenKind::kDirective) && view(current_) == name;
  }
  /// Takes `op` if it is next. Returns whether it was.
  bool accept(char op);
  /// Takes `op`, or fails with "expected `op` <where>".
  bool expect(char op, std::string_view where);
  /// Takes a name without a dotted tail, or fails and returns an empty view.
  std::string_view expect_name(std::string_view what);
  std::string_view expect_directive(std::string_view what);

  std::string_view view(const Token& token) const { return view(token.span); }
  std::string_view view(Span span) const { return text_.substr(span.begin, span.end - span.begin); }
  /// End of the last token taken.
  std::uint32_t last_end() const { return last_end_; }

  bool failed() const { return error_.has_value(); }
  /// Stores "line N: reason" for the present token. Only the first failure counts.
  void fail(std::string_view reason);
  const std::string& error() const { return *error_; }

  /// Counts bytes that the tree takes, and fails beyond the limit: text can ask for much more than
  /// its own size.
  void charge(std::uint64_t bytes) {
    charged_ += bytes;
    if (charged_ > limits_.tree_bytes) [[unlikely]]
      fail_of_room();
  }
  std::uint64_t charged() const { return charged_; }
  /// Why it failed.
  ErrorCode error_code() const { return error_code_; }

 private:
  Token scan();
  void fail_of_room();
  void fail_if_over();

  std::string_view text_;
  Scanner scanner_;
  Token current_;
  std::optional<Token> second_;
  std::uint32_t last_end_ = 0;
  std::optional<std::string> error_;
  ErrorCode error_code_ = ErrorCode::kInvalidPtx;
  const ParseLimits limits_;
  std::uint64_t charged_ = 0;
  std::uint64_t tokens_ = 0;  // tokens taken
};

}  // namespace slate::ptx
