// Parser: turns the tokens of one file into items of a Unit. It knows only where declarations begin
// and end, and their names. Text that it does not understand becomes an item, too. Branches of #if
// are read one after the other, each from the state at the #if. Thread: one.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "injector/source/unit.h"

namespace slate::source {

class Parser {
 public:
  Parser(Unit& unit, const SourceFile& file)
      : unit_(unit), file_(file), tokens_(file.tokens), end_(file.tokens.size()) {}

  void run();

 private:
  /// The parts of a declaration seen so far.
  struct Seen {
    std::size_t key = 0;         // "struct", "class", "union", "enum"; 0: none (index + 1)
    std::size_t parameters = 0;  // the '(' behind the declared name (index + 1)
    std::size_t name = 0;        // the token before that '(' (index + 1)
    bool assigned = false;       // '=' outside of parentheses
    bool initialisers = false;   // ':' after the parameters
    bool is_template = false;
    bool is_instantiation = false;
  };

  std::string_view word(std::size_t at) const {
    return at < end_ && tokens_[at].kind == TokenKind::kName ? file_.word(tokens_[at])
                                                             : std::string_view{};
  }
  bool is(std::size_t at, char wanted) const { return at < end_ && tokens_[at].is(wanted); }
  bool at_line_start(std::size_t at) const;

  std::size_t directive(std::size_t at);
  std::size_t close_scope(std::size_t at);
  std::size_t declaration(std::size_t first);
  std::size_t short_item(std::size_t first);
  std::size_t name_token(std::size_t at, Seen& seen);
  /// Handles a '{' outside of parentheses. Returns 0 when the declaration goes on behind it (then
  /// `at` is moved).
  std::size_t brace(std::size_t& at, std::size_t first, const Seen& seen);
  bool other_branch_has_body(std::size_t at) const;
  std::size_t open_scope(std::size_t first, std::size_t brace, ItemKind kind, const Seen& seen);
  std::size_t finish(std::size_t first, std::size_t last, std::size_t body, const Seen& seen);

  /// Index behind the bracket that closes the one at `at`.
  std::size_t skip_group(std::size_t at) const;
  /// Index behind the '>' that closes the '<' at `at`; `at` itself when it is a comparison.
  std::size_t skip_angles(std::size_t at) const;

  void function_names(Item& item, const Seen& seen) const;
  void namespace_names(Item& item, std::size_t brace) const;
  void variable_names(Item& item) const;
  void type_names(Item& item, const Seen& seen) const;
  std::string_view class_name(std::size_t key, std::size_t brace) const;

  Unit& unit_;
  const SourceFile& file_;
  const std::vector<Token>& tokens_;
  const std::size_t end_;
};

}  // namespace slate::source
