#include "injector/ptx/body.h"

#include <algorithm>
#include <type_traits>

#include "injector/ptx/constant.h"

namespace slate::ptx {
namespace {

constexpr std::size_t kMaxScopes = 128;
constexpr std::size_t kBodyDepth = 2;  // below the scope of the parameters
constexpr std::size_t kUsualOperands = 4;
// A label's place in the tables of names.
constexpr std::uint64_t kNameBytes = 64;

// Deferred operands are found again by address: whatever holds them must move, not copy.
static_assert(std::is_nothrow_move_constructible_v<Instruction>);
static_assert(std::is_nothrow_move_constructible_v<Function>);
static_assert(std::is_nothrow_move_constructible_v<Label>);

}  // namespace

void skip_pragma(Cursor& cursor) {
  cursor.take();
  do {
    if (!cursor.at(TokenKind::kString)) cursor.fail("expected a string after .pragma");
    cursor.take();
  } while (cursor.accept(','));
  cursor.expect(';', "after .pragma");
}

BodyParser::BodyParser(Cursor& cursor, DeclarationParser& declarations, Module& module,
                       Function& function, NameHash hash)
    : cursor_(cursor),
      declarations_(declarations),
      module_(module),
      function_(function),
      symbols_(function, hash),
      operands_(cursor, function, symbols_) {
  for (std::uint32_t i = 0; i < function.parameters.size(); ++i) {
    symbols_.declare(function.parameters[i].name, Reference::kParameter, i);
  }
  for (std::uint32_t i = 0; i < function.returns.size(); ++i) {
    symbols_.declare(function.returns[i].name, Reference::kReturn, i);
  }
}

std::vector<Operand*> BodyParser::parse() {
  const std::size_t outside = symbols_.depth();
  function_.body.begin = cursor_.peek().span.begin;
  do {
    parse_statement();
    if (cursor_.at_end() && symbols_.depth() > outside) cursor_.fail("expected `}`");
  } while (symbols_.depth() > outside && !cursor_.failed());
  function_.body.end = cursor_.last_end();
  while (symbols_.depth() > 0) symbols_.close();
  return symbols_.take_deferred();
}

void BodyParser::parse_statement() {
  if (cursor_.at('{')) {
    open_scope();
  } else if (cursor_.accept('}')) {
    close_scope();
  } else if (cursor_.at(TokenKind::kDirective)) {
    parse_directive();
  } else if (cursor_.at('@')) {
    parse_instruction();
  } else if (cursor_.at(TokenKind::kWord)) {
    const Token second = cursor_.peek_second();
    const bool is_label = second.kind == TokenKind::kPunctuation && second.op == ':';
    is_label ? parse_label() : parse_instruction();
  } else if (!cursor_.accept(';')) {
    cursor_.fail("expected a statement");
  }
}

void BodyParser::open_scope() {
  if (symbols_.depth() >= kMaxScopes) cursor_.fail("scopes nested too deep");
  const std::uint32_t begin = cursor_.take().span.begin;
  if (symbols_.depth() == kBodyDepth) {
    inner_.first = static_cast<std::uint32_t>(function_.instructions.size());
    inner_.span.begin = begin;
  }
  symbols_.open();
}

void BodyParser::close_scope() {
  symbols_.close();
  if (symbols_.depth() != kBodyDepth) return;
  inner_.end = static_cast<std::uint32_t>(function_.instructions.size());
  inner_.span.end = cursor_.last_end();
  if (inner_.first != inner_.end) function_.scopes.push_back(inner_);
}

void BodyParser::parse_directive() {
  const std::string_view name = cursor_.view(cursor_.peek());
  if (name == ".loc") {
    parse_location();
  } else if (name == ".pragma") {
    skip_pragma(cursor_);
  } else {
    parse_variables();
  }
}

void BodyParser::parse_variables() {
  declared_.clear();
  const std::uint32_t begin = cursor_.peek().span.begin;
  const Linkage linkage = declarations_.parse_linkage();
  if (DeclarationParser::space_of(cursor_.view(cursor_.peek())) == Space::kNone) {
    cursor_.fail("unknown directive in a body");
    return;
  }
  declarations_.parse_variables(linkage, begin, declared_);
  for (Declared& declared : declared_) {
    if (declared.count) {
      if (!symbols_.declare_range(std::move(declared.variable), *declared.count)) {
        cursor_.fail("a range of registers declared twice before this");
      }
      continue;
    }
    symbols_.declare(declared.variable.name, Reference::kLocal,
                     static_cast<std::uint32_t>(function_.variables.size()));
    function_.variables.push_back(std::move(declared.variable));
  }
}

/// .loc file line column [, function_name label [+ n] , inlined_at file line column]: no semicolon
/// ends it.
void BodyParser::parse_location() {
  cursor_.take();
  for (int i = 0; i < 3; ++i) parse_count(cursor_, UINT32_MAX, "source position");
  while (cursor_.accept(',')) {
    const std::string_view attribute = cursor_.expect_name("an attribute of .loc");
    if (attribute == "function_name") {
      cursor_.expect_name("a label");
      if (cursor_.accept('+')) parse_count(cursor_, UINT32_MAX, "offset");
    } else if (attribute == "inlined_at") {
      for (int i = 0; i < 3; ++i) parse_count(cursor_, UINT32_MAX, "source position");
    } else {
      cursor_.fail("unknown attribute of .loc before this");
    }
  }
}

void BodyParser::parse_label() {
  cursor_.charge(sizeof(Label) + kNameBytes);
  Label label;
  label.line = cursor_.peek().line;
  label.span.begin = cursor_.peek().span.begin;
  label.name = cursor_.expect_name("a label");
  label.target = static_cast<std::uint32_t>(function_.instructions.size());
  cursor_.expect(':', "after a label");
  if (cursor_.at_directive(".callprototype")) {
    parse_prototype(label);
  } else if (cursor_.at_directive(".branchtargets") || cursor_.at_directive(".calltargets")) {
    parse_targets(label);
  }
  label.span.end = cursor_.last_end();
  symbols_.declare_label(label.name, static_cast<std::uint32_t>(function_.labels.size()));
  function_.labels.push_back(std::move(label));
}

void BodyParser::parse_prototype(Label& label) {
  Function prototype;
  prototype.is_prototype = true;
  prototype.line = cursor_.peek().line;
  prototype.span.begin = cursor_.take().span.begin;
  declarations_.parse_signature(prototype);
  cursor_.expect(';', "after .callprototype");
  prototype.span.end = cursor_.last_end();
  label.prototype = static_cast<std::uint32_t>(module_.functions.size());
  module_.functions.push_back(std::move(prototype));
}

void BodyParser::parse_targets(Label& label) {
  cursor_.take();
  do {
    cursor_.charge(sizeof(Operand));
    Operand target;
    target.span = cursor_.peek().span;
    target.text = cursor_.expect_name("a target");
    label.targets.push_back(std::move(target));
  } while (cursor_.accept(','));
  cursor_.expect(';', "after the targets");
  // Only now, as they no longer move.
  for (Operand& target : label.targets) symbols_.defer(target);
}

void BodyParser::parse_opcode(Instruction& instruction) {
  if (!cursor_.at(TokenKind::kWord)) {
    cursor_.fail("expected an opcode");
    return;
  }
  instruction.opcode_span = cursor_.peek().span;
  std::string_view rest = cursor_.view(cursor_.take());
  instruction.modifiers.reserve(static_cast<std::size_t>(std::ranges::count(rest, '.')));
  std::size_t dot = rest.find('.');
  instruction.opcode = rest.substr(0, dot);
  while (dot != std::string_view::npos) {
    rest.remove_prefix(dot + 1);
    dot = rest.find('.');
    instruction.modifiers.push_back(rest.substr(0, dot));
  }
  // "add .s32" is legal too.
  while (cursor_.at(TokenKind::kDirective)) {
    instruction.modifiers.push_back(cursor_.view(cursor_.take()).substr(1));
  }
  instruction.opcode_span.end = cursor_.last_end();
  cursor_.charge(instruction.modifiers.size() * sizeof(std::string_view));
}

void BodyParser::parse_instruction() {
  cursor_.charge(sizeof(Instruction));
  Instruction& instruction = function_.instructions.emplace_back();
  instruction.line = cursor_.peek().line;
  instruction.span.begin = cursor_.peek().span.begin;
  if (cursor_.at('@')) instruction.guard = operands_.parse_guard();
  operands_.take_unresolved();  // a guard is a register: nothing else can become of it
  parse_opcode(instruction);
  const bool is_call = instruction.opcode == "call";
  if (!cursor_.at(';')) {
    cursor_.charge(kUsualOperands * sizeof(Operand));
    instruction.operands.reserve(kUsualOperands);
    do {
      if (cursor_.failed()) return;
      instruction.operands.push_back(operands_.parse(is_call));
    } while (cursor_.accept(','));
  }
  cursor_.expect(';', "after an instruction");
  instruction.span.end = cursor_.last_end();
  // Only now, as the operands no longer move.
  if (operands_.take_unresolved()) {
    for (Operand& operand : instruction.operands) defer_unresolved(operand);
  }
}

void BodyParser::defer_unresolved(Operand& operand) {
  if (operand.kind == Operand::Kind::kSymbol && operand.reference == Reference::kNone) {
    symbols_.defer(operand);
  }
  for (Operand& part : operand.parts) defer_unresolved(part);
}

}  // namespace slate::ptx
