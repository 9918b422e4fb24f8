// BodyParser: bodies of functions: statements, scopes and labels. Private to the parser. Thread:
// one.
#pragma once

#include <vector>

#include "injector/ptx/cursor.h"
#include "injector/ptx/declaration.h"
#include "injector/ptx/module.h"
#include "injector/ptx/operand.h"
#include "injector/ptx/symbols.h"

namespace slate::ptx {

class BodyParser {
 public:
  /// Requires: `function` has its signature already. Appends prototypes of indirect calls to
  /// `module`.
  BodyParser(Cursor& cursor, DeclarationParser& declarations, Module& module, Function& function,
             NameHash hash);

  /// Parses from the opening brace through the closing one. Returns the operands that name nothing
  /// of the function; they stay valid when the function is moved.
  std::vector<Operand*> parse();

 private:
  void parse_statement();
  void open_scope();
  void close_scope();
  void parse_directive();
  void parse_variables();
  void parse_location();
  void parse_label();
  void parse_prototype(Label& label);
  void parse_targets(Label& label);
  void parse_instruction();
  void parse_opcode(Instruction& instruction);
  void defer_unresolved(Operand& operand);

  Cursor& cursor_;
  DeclarationParser& declarations_;
  Module& module_;
  Function& function_;
  Symbols symbols_;
  OperandParser operands_;
  InnerScope inner_;  // the scope being parsed
  std::vector<Declared> declared_;
};

/// Skips .pragma "..." ;
void skip_pragma(Cursor& cursor);

}  // namespace slate::ptx
