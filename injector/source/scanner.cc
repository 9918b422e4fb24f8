#include "injector/source/scanner.h"

#include "source_scanner.h"  // made by flex

namespace slate::source {

std::vector<Token> scan(std::string_view text) {
  std::vector<Token> tokens;
  ScanState state;
  yyscan_t flex = nullptr;
  if (slate_source_yylex_init_extra(&state, &flex) != 0) return tokens;
  slate_source_yy_scan_bytes(text.data(), static_cast<int>(text.size()), flex);
  slate_source_yyset_lineno(1, flex);
  tokens.reserve(text.size() / 5);
  while (int kind = slate_source_yylex(flex)) {
    tokens.push_back({static_cast<TokenKind>(kind), state.op, state.begin, state.end});
    state.op = 0;
  }
  slate_source_yylex_destroy(flex);
  return tokens;
}

}  // namespace slate::source
