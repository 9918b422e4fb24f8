#include "injector/ptx/operand.h"

#include <algorithm>
#include <array>

#include "injector/ptx/constant.h"

namespace slate::ptx {
namespace {

constexpr int kMostBraces = 8;  // of braces and brackets; bounds the recursion
constexpr std::size_t kUsualParts = 4;

constexpr std::array<std::string_view, 54> kSpecial = {"%aggr_smem_size",
                                                       "%clock",
                                                       "%clock64",
                                                       "%clock_hi",
                                                       "%cluster_ctaid",
                                                       "%cluster_ctarank",
                                                       "%cluster_nctaid",
                                                       "%cluster_nctarank",
                                                       "%clusterid",
                                                       "%ctaid",
                                                       "%current_graph_exec",
                                                       "%dynamic_smem_size",
                                                       "%globaltimer",
                                                       "%globaltimer_hi",
                                                       "%globaltimer_lo",
                                                       "%gridid",
                                                       "%is_explicit_cluster",
                                                       "%laneid",
                                                       "%lanemask_eq",
                                                       "%lanemask_ge",
                                                       "%lanemask_gt",
                                                       "%lanemask_le",
                                                       "%lanemask_lt",
                                                       "%nclusterid",
                                                       "%nctaid",
                                                       "%nsmid",
                                                       "%ntid",
                                                       "%nwarpid",
                                                       "%pm0",
                                                       "%pm0_64",
                                                       "%pm1",
                                                       "%pm1_64",
                                                       "%pm2",
                                                       "%pm2_64",
                                                       "%pm3",
                                                       "%pm3_64",
                                                       "%pm4",
                                                       "%pm4_64",
                                                       "%pm5",
                                                       "%pm5_64",
                                                       "%pm6",
                                                       "%pm6_64",
                                                       "%pm7",
                                                       "%pm7_64",
                                                       "%reserved_smem_offset",
                                                       "%reserved_smem_offset_0",
                                                       "%reserved_smem_offset_1",
                                                       "%reserved_smem_offset_begin",
                                                       "%reserved_smem_offset_cap",
                                                       "%reserved_smem_offset_end",
                                                       "%smid",
                                                       "%tid",
                                                       "%total_smem_size",
                                                       "%warpid"};
static_assert(std::ranges::is_sorted(kSpecial));

bool is_special(std::string_view base) {
  return std::ranges::binary_search(kSpecial, base) || base.starts_with("%envreg");
}

char component_of(std::string_view tail) {
  constexpr std::array<std::pair<std::string_view, char>, 14> kComponents = {{{"x", 'x'},
                                                                              {"y", 'y'},
                                                                              {"z", 'z'},
                                                                              {"w", 'w'},
                                                                              {"r", 'x'},
                                                                              {"g", 'y'},
                                                                              {"b", 'z'},
                                                                              {"a", 'w'},
                                                                              {"b0", '0'},
                                                                              {"b1", '1'},
                                                                              {"b2", '2'},
                                                                              {"b3", '3'},
                                                                              {"h0", 'l'},
                                                                              {"h1", 'h'}}};
  for (const auto& [name, component] : kComponents) {
    if (name == tail) return component;
  }
  return 0;
}

}  // namespace

Operand OperandParser::parse(bool lists) {
  if (++depth_ > kMostBraces) cursor_.fail("operand nested too deep");
  cursor_.charge(sizeof(Operand));
  const std::uint32_t begin = cursor_.peek().span.begin;
  Operand operand = parse_primary(lists);
  const bool may_pair = operand.kind == Operand::Kind::kSymbol ||
                        operand.kind == Operand::Kind::kSink ||
                        operand.kind == Operand::Kind::kVector;
  if (may_pair && cursor_.accept('|')) {
    operand.span = {begin, cursor_.last_end() - 1};
    Operand pair;
    pair.kind = Operand::Kind::kPair;
    pair.parts.reserve(2);
    pair.parts.push_back(std::move(operand));
    pair.parts.push_back(parse(false));
    operand = std::move(pair);
  }
  operand.span = {begin, cursor_.last_end()};
  --depth_;
  return operand;
}

Operand OperandParser::parse_guard() {
  cursor_.take();
  const std::uint32_t begin = cursor_.peek().span.begin;
  const bool negated = cursor_.accept('!');
  if (!cursor_.at(TokenKind::kWord)) cursor_.fail("expected a predicate after @");
  Operand guard = parse_word();
  if (guard.kind != Operand::Kind::kSymbol) cursor_.fail("expected a predicate before this");
  guard.negated = negated;
  guard.span = {begin, cursor_.last_end()};
  return guard;
}

Operand OperandParser::parse_primary(bool lists) {
  if (cursor_.at(TokenKind::kWord)) {
    Operand operand = parse_word();
    const bool addend = cursor_.at('+') || cursor_.at('-');
    if (!addend || operand.kind != Operand::Kind::kSymbol) return operand;
    if (is_register(operand)) {
      cursor_.fail("a register plus something outside of brackets");
      return operand;
    }
    operand.integer = static_cast<std::int64_t>(parse_constant(cursor_).bits);
    return operand;
  }
  Operand operand;
  if (cursor_.at('!') || cursor_.at('-')) {
    if (cursor_.peek_second().kind != TokenKind::kWord) return parse_number();
    cursor_.take();
    operand = parse_word();
    operand.negated = true;
  } else if (cursor_.accept('{')) {
    operand.kind = Operand::Kind::kVector;
    parse_parts(operand, '}');
  } else if (cursor_.accept('[')) {
    operand = parse_address();
  } else if (lists && cursor_.accept('(')) {
    operand.kind = Operand::Kind::kList;
    if (!cursor_.accept(')')) parse_parts(operand, ')');
  } else if (at_constant(cursor_)) {
    operand = parse_number();
  } else {
    cursor_.fail("expected an operand");
  }
  return operand;
}

void OperandParser::parse_parts(Operand& operand, char end) {
  cursor_.charge(kUsualParts * sizeof(Operand));
  operand.parts.reserve(kUsualParts);
  do {
    if (cursor_.failed()) return;
    operand.parts.push_back(parse(false));
  } while (cursor_.accept(','));
  cursor_.expect(end, "after a list of operands");
}

Operand OperandParser::parse_word() {
  Operand operand;
  const Token token = cursor_.peek();
  const std::string_view whole = cursor_.view(token);
  if (whole == "WARP_SZ") {
    const Token next = cursor_.peek_second();
    const bool alone = next.kind == TokenKind::kPunctuation &&
                       std::string_view(",;)}]|").find(next.op) != std::string_view::npos;
    if (!alone) return parse_number();
    operand.kind = Operand::Kind::kSpecial;
    operand.text = whole;
  } else if (whole == "_") {
    operand.kind = Operand::Kind::kSink;
    operand.text = whole;
  } else {
    parse_symbol(operand, whole);
  }
  cursor_.take();
  operand.span = token.span;
  return operand;
}

void OperandParser::parse_symbol(Operand& operand, std::string_view whole) {
  const std::size_t dot = whole.find('.');
  operand.text = whole.substr(0, dot);
  const bool in_scope = symbols_.resolve(operand);
  if (!in_scope && operand.text.starts_with('%') && is_special(operand.text)) {
    operand.kind = Operand::Kind::kSpecial;
    operand.text = whole;
    return;
  }
  unresolved_ |= !in_scope;
  if (dot == std::string_view::npos) return;
  operand.component = component_of(whole.substr(dot + 1));
  if (operand.component == 0) cursor_.fail("unknown component of a vector");
}

Operand OperandParser::parse_number() {
  const Constant value = parse_constant(cursor_);
  Operand operand;
  operand.kind = value.is_float() ? Operand::Kind::kFloat : Operand::Kind::kInteger;
  operand.integer = static_cast<std::int64_t>(value.bits);
  operand.floating = value.floating;
  operand.float_bits = value.float_bits;
  return operand;
}

Operand OperandParser::parse_address() {
  cursor_.charge(sizeof(Operand));  // of its base
  Operand address;
  address.kind = Operand::Kind::kAddress;
  if (cursor_.at(TokenKind::kWord) && cursor_.view(cursor_.peek()) != "WARP_SZ") {
    address.parts.push_back(parse_word());
    if (cursor_.at('+') || cursor_.at('-')) {
      address.integer = static_cast<std::int64_t>(parse_constant(cursor_).bits);
    }
  } else {
    address.integer = parse_number().integer;
    if (cursor_.at(',')) {
      // A handle given as a number: keep it at its place before the coordinates.
      Operand handle;
      handle.kind = Operand::Kind::kInteger;
      handle.integer = std::exchange(address.integer, 0);
      address.parts.push_back(std::move(handle));
    }
  }
  while (cursor_.accept(',')) address.parts.push_back(parse(false));
  cursor_.expect(']', "after an address");
  return address;
}

bool OperandParser::is_register(const Operand& operand) const {
  switch (operand.reference) {
    case Reference::kLocal:
      return function_.variables[operand.index].space == Space::kReg;
    case Reference::kParameter:
      return function_.parameters[operand.index].space == Space::kReg;
    case Reference::kReturn:
      return function_.returns[operand.index].space == Space::kReg;
    default:
      return false;
  }
}

}  // namespace slate::ptx
