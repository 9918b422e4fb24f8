// The C++ face of the flex scanner. A file of its own so that the generated code is the only one
// that is compiled without our warnings.
#include "injector/ptx/scanner.h"

#include "ptx_scanner.h"  // generated

namespace slate::ptx {

Scanner::Scanner(std::string_view text) {
  slate_ptx_yylex_init_extra(&state_, &flex_);
  slate_ptx_yy_scan_bytes(text.data(), static_cast<int>(text.size()), flex_);
}

Scanner::~Scanner() {
  slate_ptx_yylex_destroy(flex_);
}

Token Scanner::next() {
  // A call after the end would make flex look for more input.
  if (ended_) return {.line = state_.line, .span = {state_.end, state_.end}};
  const auto kind = static_cast<TokenKind>(slate_ptx_yylex(flex_));
  if (kind == TokenKind::kEnd) {
    ended_ = true;
    return {.line = state_.line, .span = {state_.end, state_.end}};
  }
  // Only these two say what they are in `op`; for the others it holds a former token's.
  const bool has_op = kind == TokenKind::kPunctuation || kind == TokenKind::kError;
  return {kind, has_op ? state_.op : '\0', state_.line, {state_.begin, state_.end}};
}

}  // namespace slate::ptx
