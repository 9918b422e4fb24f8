#include "injector/ptx/cursor.h"

#include <utility>

namespace slate::ptx {
namespace {

std::string_view scan_error(char op) {
  switch (op) {
    case 'c':
      return "comment without end";
    case 's':
      return "string without end";
    case 'n':
      return "malformed number";
    default:
      return "unexpected character";
  }
}

}  // namespace

Cursor::Cursor(std::string_view text, ParseLimits limits)
    : text_(text), scanner_(text), current_(scanner_.next()), limits_(std::move(limits)) {
  if (current_.kind == TokenKind::kError) fail(scan_error(current_.op));
}

Token Cursor::scan() {
  if (!second_) return scanner_.next();
  const Token token = *second_;
  second_.reset();
  return token;
}

const Token& Cursor::peek_second() {
  if (!second_) second_ = failed() ? current_ : scanner_.next();
  return *second_;
}

Token Cursor::take() {
  const Token token = current_;
  if (token.kind == TokenKind::kEnd) return token;
  last_end_ = token.span.end;
  current_ = scan();
  if (current_.kind == TokenKind::kError) [[unlikely]]
    fail(scan_error(current_.op));
  if (++tokens_ % ParseLimits::kTokensPerQuestion == 0) [[unlikely]]
    fail_if_over();
  return token;
}

bool Cursor::accept(char op) {
  if (!at(op)) return false;
  take();
  return true;
}

bool Cursor::expect(char op, std::string_view where) {
  if (accept(op)) return true;
  fail(std::string("expected `") + op + "` " + std::string(where));
  return false;
}

std::string_view Cursor::expect_name(std::string_view what) {
  if (at(TokenKind::kWord) && view(current_).find('.') == std::string_view::npos) {
    return view(take());
  }
  fail("expected " + std::string(what));
  return {};
}

std::string_view Cursor::expect_directive(std::string_view what) {
  if (at(TokenKind::kDirective)) return view(take());
  fail("expected " + std::string(what));
  return {};
}

void Cursor::fail_of_room() {
  if (failed()) return;
  error_code_ = ErrorCode::kLimit;
  fail("more code than fits into " + std::to_string(limits_.tree_bytes >> 20) + " MiB of memory");
}

void Cursor::fail_if_over() {
  if (failed() || !limits_.is_over || !limits_.is_over()) return;
  error_code_ = ErrorCode::kIo;
  fail("nobody waits for the module any more");
}

void Cursor::fail(std::string_view reason) {
  if (failed()) return;
  std::string message = "line " + std::to_string(current_.line) + ": " + std::string(reason);
  if (current_.kind == TokenKind::kEnd) {
    message += ", found the end of the text";
  } else {
    // Hostile text may hold a token of any length and any bytes.
    message += " at `";
    for (const char c : view(current_).substr(0, 40)) message += c >= 32 && c < 127 ? c : '?';
    message += '`';
  }
  error_ = std::move(message);
  current_ = {.line = current_.line, .span = {current_.span.begin, current_.span.begin}};
  second_.reset();
}

}  // namespace slate::ptx
