#include "injector/ptx/declaration.h"

#include <algorithm>

#include "injector/ptx/constant.h"

namespace slate::ptx {
namespace {

constexpr std::uint64_t kMaxVariableBytes = std::uint64_t{1} << 40;
constexpr std::uint64_t kMaxCount = 1u << 30;
constexpr std::size_t kMaxDimensions = 16;
// Of a variable, with its place in the tables of names.
constexpr std::uint64_t kVariableCharge = sizeof(Variable) + 128;

}  // namespace

Space DeclarationParser::space_of(std::string_view directive) {
  if (directive == ".reg") return Space::kReg;
  if (directive == ".param") return Space::kParam;
  if (directive == ".local") return Space::kLocal;
  if (directive == ".shared") return Space::kShared;
  if (directive == ".global") return Space::kGlobal;
  if (directive == ".const") return Space::kConst;
  if (directive == ".sreg") return Space::kSreg;
  if (directive == ".tex") return Space::kTex;
  return Space::kNone;
}

Linkage DeclarationParser::parse_linkage() {
  Linkage linkage;
  while (true) {
    if (cursor_.at_directive(".extern")) {
      linkage.is_extern = true;
    } else if (cursor_.at_directive(".visible") || cursor_.at_directive(".weak") ||
               cursor_.at_directive(".common")) {
      linkage.is_visible = true;
    } else {
      return linkage;
    }
    cursor_.take();
  }
}

void DeclarationParser::skip_attribute(bool* is_managed) {
  cursor_.take();
  if (!cursor_.expect('(', "after .attribute")) return;
  // .unified(uuid, uuid) nests once more.
  for (int depth = 1; depth > 0 && !cursor_.at_end();) {
    if (cursor_.at_directive(".managed") && is_managed != nullptr) *is_managed = true;
    if (cursor_.at('(')) ++depth;
    if (cursor_.at(')')) --depth;
    cursor_.take();
  }
}

bool DeclarationParser::parse_specifier(Variable& base, bool& is_pointer) {
  const std::string_view name = cursor_.view(cursor_.peek());
  if (const Type type = parse_type(name.substr(1)); type != Type::kNone) {
    base.type = type;
  } else if (name == ".v2" || name == ".v4" || name == ".v8") {
    base.vector = static_cast<std::uint32_t>(name[2] - '0');
  } else if (name == ".ptr") {
    is_pointer = true;
  } else if (name == ".align") {
    cursor_.take();
    const std::uint64_t align = parse_count(cursor_, 1u << 20, "alignment");
    // After .ptr it is the alignment of what the pointer points to.
    if (!is_pointer) base.align = static_cast<std::uint32_t>(align);
    return true;
  } else if (name == ".attribute") {
    skip_attribute(&base.is_managed);
    return true;
  } else if (!is_pointer || space_of(name) == Space::kNone) {
    return false;
  }
  cursor_.take();
  return true;
}

void DeclarationParser::parse_specifiers(Variable& base) {
  base.line = cursor_.peek().line;
  base.span.begin = cursor_.peek().span.begin;
  base.space = space_of(cursor_.expect_directive("a state space"));
  if (base.space == Space::kNone && !cursor_.failed())
    cursor_.fail("unknown state space before this");
  if (base.space == Space::kConst && cursor_.accept('[')) {  // the banks of PTX 1 and 2
    parse_count(cursor_, 16, "constant bank");
    cursor_.expect(']', "after the constant bank");
  }
  bool is_pointer = false;
  while (cursor_.at(TokenKind::kDirective)) {
    if (!parse_specifier(base, is_pointer)) {
      cursor_.fail("unknown directive in a declaration");
      return;
    }
  }
  if (base.type == Type::kNone && !cursor_.failed()) cursor_.fail("declaration without a type");
}

void DeclarationParser::parse_dimensions(Variable& variable,
                                         std::vector<std::uint64_t>& dimensions) {
  while (cursor_.accept('[')) {
    variable.is_array = true;
    if (dimensions.size() == kMaxDimensions) {
      cursor_.fail("array of too many dimensions");
      return;
    }
    const bool open = cursor_.at(']');
    if (open && !dimensions.empty()) cursor_.fail("expected an array bound");
    dimensions.push_back(open ? 0 : parse_count(cursor_, kMaxVariableBytes, "array bound"));
    cursor_.expect(']', "after an array bound");
  }
  for (const std::uint64_t bound : dimensions) {
    variable.elements *= bound;
    if (variable.elements > kMaxVariableBytes) {
      cursor_.fail("array too large before this");
      return;
    }
  }
}

void DeclarationParser::set_size(Variable& variable) {
  const std::uint64_t natural = std::uint64_t{type_bytes(variable.type)} * variable.vector;
  variable.bytes = natural * variable.elements;
  if (variable.bytes > kMaxVariableBytes) cursor_.fail("array too large before this");
  if (variable.align == 0)
    variable.align = static_cast<std::uint32_t>(std::max<std::uint64_t>(natural, 1));
}

Declared DeclarationParser::parse_declarator(const Variable& base) {
  cursor_.charge(kVariableCharge);
  Declared declared{.variable = base, .count = {}};
  Variable& variable = declared.variable;
  variable.name = cursor_.expect_name("a name");
  if (cursor_.accept('<')) {
    // Not an expression: its `>` would be an operator.
    const Token count = cursor_.peek();
    std::uint64_t value = 0;
    for (const char c : cursor_.view(count)) {
      value =
          c >= '0' && c <= '9' ? std::min(value * 10 + (c - '0'), kMaxCount + 1) : kMaxCount + 1;
    }
    if (count.kind != TokenKind::kInteger || value > kMaxCount) {
      cursor_.fail("bad number of registers");
    } else {
      cursor_.take();
      cursor_.expect('>', "after the number of registers");
      declared.count = static_cast<std::uint32_t>(value);
    }
  }
  std::vector<std::uint64_t> dimensions;
  parse_dimensions(variable, dimensions);
  set_size(variable);
  if (cursor_.at('=') && declared.count) cursor_.fail("initial values of a range");
  if (cursor_.accept('=')) parse_initialiser(cursor_, variable, dimensions, implied_);
  return declared;
}

void DeclarationParser::parse_variables(const Linkage& linkage, std::uint32_t begin,
                                        std::vector<Declared>& out) {
  const std::size_t first = out.size();
  Variable base;
  parse_specifiers(base);
  base.is_extern = linkage.is_extern;
  base.is_visible = linkage.is_visible;
  do {
    if (cursor_.failed()) return;
    out.push_back(parse_declarator(base));
  } while (cursor_.accept(','));
  cursor_.expect(';', "after a declaration");
  for (std::size_t i = first; i < out.size(); ++i) {
    out[i].variable.span = {begin, cursor_.last_end()};
  }
}

void DeclarationParser::parse_parameters(std::vector<Variable>& out) {
  if (cursor_.at(')')) return;
  do {
    Variable base;
    parse_specifiers(base);
    if (cursor_.failed()) return;
    Declared declared = parse_declarator(base);
    if (declared.count) cursor_.fail("a range of parameters before this");
    declared.variable.span.end = cursor_.last_end();
    out.push_back(std::move(declared.variable));
  } while (cursor_.accept(','));
}

void DeclarationParser::parse_signature(Function& function) {
  cursor_.charge(sizeof(Function));
  if (cursor_.at_directive(".attribute")) skip_attribute(nullptr);
  if (cursor_.accept('(')) {
    parse_parameters(function.returns);
    cursor_.expect(')', "after the return parameters");
  }
  function.name = cursor_.expect_name("a function name");
  if (cursor_.accept('(')) {
    function.parameters_span.begin = cursor_.last_end();
    parse_parameters(function.parameters);
    function.parameters_span.end = cursor_.peek().span.begin;
    cursor_.expect(')', "after the parameters");
  } else {
    function.parameters_span = {cursor_.last_end(), cursor_.last_end()};
  }
  parse_function_directives(function);
}

void DeclarationParser::parse_function_directives(Function& function) {
  while (cursor_.at(TokenKind::kDirective)) {
    if (cursor_.at_directive(".attribute")) {
      skip_attribute(nullptr);
      continue;
    }
    const Token token = cursor_.take();
    Function::Directive directive{
        .name = cursor_.view(token).substr(1), .values = {}, .span = token.span};
    if (directive.name == "pragma") {
      while (cursor_.at(TokenKind::kString)) {
        cursor_.take();
        cursor_.accept(',');
      }
      // Its semicolon, unless that ends a declaration without a body.
      if (cursor_.at(';') && cursor_.peek_second().kind != TokenKind::kEnd) cursor_.take();
    } else if (at_constant(cursor_)) {
      do {
        cursor_.charge(sizeof(std::uint64_t));
        directive.values.push_back(parse_count(cursor_, ~std::uint64_t{0}, "value"));
      } while (cursor_.accept(','));
    }
    directive.span.end = cursor_.last_end();
    cursor_.charge(sizeof(directive));
    function.directives.push_back(std::move(directive));
  }
}

}  // namespace slate::ptx
