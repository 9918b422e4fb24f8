// OperandParser: operands of instructions, resolved by Symbols. It does not know what an opcode
// does with them. Private to the parser. Thread: one.
#pragma once

#include "injector/ptx/cursor.h"
#include "injector/ptx/module.h"
#include "injector/ptx/symbols.h"

namespace slate::ptx {

class OperandParser {
 public:
  OperandParser(Cursor& cursor, const Function& function, Symbols& symbols)
      : cursor_(cursor), function_(function), symbols_(symbols) {}

  /// Takes an operand. `lists`: a parenthesis begins a list (call), not an expression.
  Operand parse(bool lists);
  /// Takes the p of @p and @!p, from the @ on.
  Operand parse_guard();
  /// Whether some operand since the last call named nothing in scope.
  bool take_unresolved() { return std::exchange(unresolved_, false); }

 private:
  Operand parse_primary(bool lists);
  Operand parse_word();
  Operand parse_number();
  Operand parse_address();
  void parse_parts(Operand& operand, char end);
  void parse_symbol(Operand& operand, std::string_view whole);
  bool is_register(const Operand& operand) const;

  Cursor& cursor_;
  const Function& function_;
  Symbols& symbols_;
  bool unresolved_ = false;
  int depth_ = 0;
};

}  // namespace slate::ptx
