#include "injector/source/parser.h"

#include <algorithm>
#include <array>
#include <utility>

namespace slate::source {
namespace {

template <std::size_t N>
bool one_of(std::string_view word, const std::array<std::string_view, N>& words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

/// Words whose parentheses are not a parameter list.
bool is_attribute(std::string_view word) {
  static constexpr std::array<std::string_view, 15> kWords = {
      "__launch_bounds__", "__align__",      "__attribute__", "alignas",  "decltype",
      "__declspec",        "explicit",       "noexcept",      "requires", "__cluster_dims__",
      "__maxnreg__",       "__block_size__", "asm",           "__asm__",  "typeof"};
  return one_of(word, kWords);
}

bool is_class_key(std::string_view word) {
  static constexpr std::array<std::string_view, 4> kWords = {"struct", "class", "union", "enum"};
  return one_of(word, kWords);
}

bool is_access(std::string_view word) {
  static constexpr std::array<std::string_view, 3> kWords = {"public", "private", "protected"};
  return one_of(word, kWords);
}

bool is_specifier(std::string_view word) {
  static constexpr std::array<std::string_view, 6> kWords = {"const",    "override", "final",
                                                             "noexcept", "volatile", "mutable"};
  return one_of(word, kWords);
}

}  // namespace

void Parser::run() {
  std::size_t at = 0;
  while (at < end_) {
    const Token& token = tokens_[at];
    if (token.kind == TokenKind::kDirective) {
      at = directive(at);
    } else if (token.is('}')) {
      at = close_scope(at);
    } else if (token.is(';') || token.kind == TokenKind::kError) {
      ++at;
    } else {
      at = declaration(at);
    }
  }
}

bool Parser::at_line_start(std::size_t at) const {
  return at == 0 || file_.line_of(tokens_[at].begin) != file_.line_of(tokens_[at - 1].begin);
}

std::size_t Parser::directive(std::size_t at) {
  const Directive parts = directive_of(file_, tokens_[at]);
  if (parts.word == "include" || parts.word == "include_next" || parts.word == "import") {
    const auto spelt = include_of(parts);
    if (spelt && unit_.include(file_, *spelt)) return at + 1;
  } else if (parts.word == "define") {
    unit_.macros_.add(file_, tokens_[at]);
  } else if (parts.word == "if" || parts.word == "ifdef" || parts.word == "ifndef") {
    unit_.conditional_.push_back({unit_.scopes_, unit_.never_holds(parts)});
  } else if (parts.word.starts_with("el")) {  // else, elif, elifdef
    if (!unit_.conditional_.empty()) {
      unit_.scopes_ = unit_.conditional_.back().scopes;
      unit_.conditional_.back().never = false;
    }
  } else if (parts.word == "endif") {
    if (!unit_.conditional_.empty()) unit_.conditional_.pop_back();
  }
  const auto here = static_cast<std::uint32_t>(at);
  unit_.add({.kind = ItemKind::kDirective,
             .file = &file_,
             .first = here,
             .last = here + 1,
             .body = here + 1});
  return at + 1;
}

std::size_t Parser::close_scope(std::size_t at) {
  Item item{.kind = ItemKind::kClose, .file = &file_, .first = static_cast<std::uint32_t>(at)};
  std::size_t last = at + 1;
  const int scope = unit_.scopes_.empty() ? -1 : unit_.scopes_.back();
  item.of_class = scope >= 0 && unit_.items_[scope].kind == ItemKind::kClass;
  if (item.of_class) {
    while (last < end_ && !is(last, ';') && !is(last, '}')) {
      last = is(last, '{') || is(last, '(') ? skip_group(last) : last + 1;
    }
    last += is(last, ';');
  }
  item.last = item.body = static_cast<std::uint32_t>(last);
  if (scope >= 0) {
    unit_.scopes_.pop_back();
    item.parent = unit_.items_[scope].parent;
    variable_names(item);
    auto& names = unit_.items_[scope].names;
    names.insert(names.end(), item.names.begin(), item.names.end());
    unit_.items_[scope].closing = static_cast<int>(unit_.items_.size());
  }
  unit_.add(std::move(item));
  return last;
}

std::size_t Parser::skip_group(std::size_t at) const {
  const char close = is(at, '(') ? ')' : is(at, '{') ? '}' : ']';
  std::vector<int> conditions;
  bool alternative = false;
  int depth = 0;
  for (; at < end_; ++at) {
    const Token& token = tokens_[at];
    if (token.is('(') || token.is('{') || token.is('[')) {
      ++depth;
    } else if (token.is(')') || token.is('}') || token.is(']')) {
      if (--depth <= 0 && token.is(close)) return at + 1;
    } else if (token.kind == TokenKind::kDirective) {
      const auto kind = directive_of(file_, token).word;
      if (kind.starts_with("if")) {
        conditions.push_back(depth);
      } else if (kind.starts_with("el")) {
        // An #if from before the group: this branch repeats what opened it.
        depth = conditions.empty() ? 0 : conditions.back();
        alternative = true;
      } else if (kind == "endif" && !conditions.empty()) {
        conditions.pop_back();
      } else if (kind == "endif" && !alternative && !unit_.conditional_.empty() &&
                 unit_.conditional_.back().never) {
        return at;  // nobody ever compiled this branch, and it lacks a bracket
      }
    }
  }
  return end_;
}

std::size_t Parser::skip_angles(std::size_t at) const {
  int depth = 0;
  for (std::size_t next = at; next < end_; ++next) {
    const Token& token = tokens_[next];
    if (token.is('<')) {
      ++depth;
    } else if (token.is('>')) {
      if (--depth == 0) return next + 1;
    } else if (token.is('(') || token.is('[')) {
      next = skip_group(next) - 1;
    } else if (token.is(';') || token.is('{') || token.is('}') || token.is(op::kLaunch)) {
      return at;
    }
  }
  return at;
}

std::size_t Parser::short_item(std::size_t first) {
  const auto begin = static_cast<std::uint32_t>(first);
  const std::string_view name = word(first);
  if (is_access(name) && is(first + 1, ':')) {
    unit_.add({.kind = ItemKind::kAccess,
               .file = &file_,
               .first = begin,
               .last = begin + 2,
               .body = begin + 2});
    return first + 2;
  }
  const Macro* macro = unit_.macros_.find(name);
  if (macro == nullptr) return first;
  std::size_t last = first + 1;
  if (macro->takes_arguments && is(last, '(')) last = skip_group(last);
  // A call, not the beginning of a declaration: it opens a scope, or ends with its line.
  const bool alone = macro->takes_arguments &&
                     (is(last, ';') || last >= end_ ||
                      (at_line_start(last) && !is(last, '{') && !is(last, '(') && !is(last, ':')));
  if (!macro->lone_brace && !alone) return first;
  last += is(last, ';');
  Item item{.kind = ItemKind::kMacroCall,
            .file = &file_,
            .first = begin,
            .last = static_cast<std::uint32_t>(last),
            .body = static_cast<std::uint32_t>(last)};
  for (std::size_t at = first + 1; at < last; ++at) {
    if (!word(at).empty()) item.names.push_back(word(at));
  }
  unit_.add(std::move(item));
  return last;
}

std::size_t Parser::name_token(std::size_t at, Seen& seen) {
  const std::string_view name = word(at);
  if (name == "template") {
    if (!is(at + 1, '<')) {
      seen.is_instantiation |= seen.parameters == 0;
      return at + 1;
    }
    seen.is_template = true;
    const std::size_t beyond = skip_angles(at + 1);
    return beyond == at + 1 ? at + 2 : beyond;
  }
  if (is_attribute(name) && is(at + 1, '(')) return skip_group(at + 1);
  if (name == "operator" && seen.parameters == 0) {
    std::size_t open = at + 1;
    if (is(open, '(') && is(open + 1, ')')) open += 2;
    while (open < end_ && !is(open, '(') && !is(open, ';') && !is(open, '{')) ++open;
    if (!is(open, '(')) return open;
    seen.parameters = open + 1;
    seen.name = at + 1;
    return skip_group(open);
  }
  if (is_class_key(name) && seen.parameters == 0 && !seen.assigned && seen.key == 0) {
    seen.key = at + 1;
  }
  // "name < ... >" or "name<<<": the latter is no declaration, and passes.
  if (is(at + 1, '<') && !seen.assigned) return std::max(skip_angles(at + 1), at + 1);
  return at + 1;
}

std::size_t Parser::declaration(std::size_t first) {
  if (const std::size_t last = short_item(first); last != first) return last;
  Seen seen;
  int opened = 0;  // #if since `first`, and not yet closed
  std::size_t at = first;
  while (at < end_) {
    const Token& token = tokens_[at];
    if (token.kind == TokenKind::kName) {
      at = name_token(at, seen);
    } else if (token.is('(')) {
      // Behind a class key or a macro's name, with a name after it: an attribute.
      const std::size_t beyond = skip_group(at);
      const bool may_be = seen.key != 0 || (at > first && unit_.macros_.find(word(at - 1)));
      const bool attribute = may_be && !word(beyond).empty() && !is_specifier(word(beyond));
      if (seen.parameters == 0 && !seen.assigned && !attribute) {
        seen.parameters = at + 1;
        seen.name = at;
      }
      at = beyond;
    } else if (token.is('[')) {
      at = skip_group(at);
    } else if (token.is('=')) {
      seen.assigned = true;
      ++at;
    } else if (token.is(':')) {
      seen.initialisers |= seen.parameters != 0;
      ++at;
    } else if (token.kind == TokenKind::kDirective) {
      const auto kind = directive_of(file_, token).word;
      opened = std::max(0, opened + (kind.starts_with("if") ? 1 : kind == "endif" ? -1 : 0));
      ++at;
    } else if (token.is(';')) {
      const bool goes_on = opened > 0 && other_branch_has_body(at);
      if (!goes_on) return finish(first, at + 1, at + 1, seen);
      ++at;
    } else if (token.is('}') || token.kind == TokenKind::kError) {
      return finish(first, std::max(at, first + 1), std::max(at, first + 1), seen);
    } else if (token.is('{')) {
      if (const std::size_t last = brace(at, first, seen)) return last;
    } else {
      ++at;
    }
  }
  return finish(first, end_, end_, seen);
}

/// "#if A", ";", "#else", "{ ... }", "#endif": the ';' at `at` is not the end in all branches.
bool Parser::other_branch_has_body(std::size_t at) const {
  int depth = 0;
  for (++at; at + 1 < end_; ++at) {
    if (tokens_[at].kind != TokenKind::kDirective) continue;
    const auto kind = directive_of(file_, tokens_[at]).word;
    if (depth == 0 && kind == "endif") return false;
    if (depth == 0 && kind.starts_with("el") && is(at + 1, '{')) return true;
    depth += kind.starts_with("if") ? 1 : kind == "endif" ? -1 : 0;
  }
  return false;
}

std::size_t Parser::brace(std::size_t& at, std::size_t first, const Seen& seen) {
  const std::size_t start = word(first) == "inline" ? first + 1 : first;
  const bool is_linkage =
      word(first) == "extern" && first + 2 == at && tokens_[first + 1].kind == TokenKind::kString;
  if (word(start) == "namespace" || is_linkage) {
    return open_scope(first, at, ItemKind::kNamespace, seen);
  }
  if (seen.key != 0 && !seen.assigned) {
    const bool after_base = seen.parameters != 0 && seen.initialisers;
    const bool is_function = seen.parameters != 0 && !after_base;
    bool colon_before = false;
    for (std::size_t look = seen.key; look + 1 < seen.parameters; ++look) {
      colon_before |= is(look, ':');
    }
    if (word(seen.key - 1) == "enum") {
      if (!is_function) {
        at = skip_group(at);
        return 0;
      }
    } else if (!is_function || colon_before) {
      return open_scope(first, at, ItemKind::kClass, seen);
    }
  }
  if (seen.parameters == 0 || seen.assigned) {
    at = skip_group(at);
    return 0;
  }
  const std::size_t beyond = skip_group(at);
  if (seen.initialisers && at > first && (!word(at - 1).empty() || is(at - 1, '>')) &&
      (is(beyond, ',') || is(beyond, '{'))) {
    at = beyond;  // "a{1}" among a constructor's initialisers
    return 0;
  }
  return finish(first, beyond, at, seen);
}

std::size_t Parser::open_scope(std::size_t first, std::size_t brace, ItemKind kind,
                               const Seen& seen) {
  Item item{.kind = kind,
            .file = &file_,
            .first = static_cast<std::uint32_t>(first),
            .last = static_cast<std::uint32_t>(brace + 1),
            .body = static_cast<std::uint32_t>(brace + 1),
            .has_template = seen.is_template};
  if (kind == ItemKind::kClass) {
    if (const auto name = class_name(seen.key, brace); !name.empty()) item.names.push_back(name);
  } else {
    namespace_names(item, brace);
  }
  const int index = unit_.add(std::move(item));
  unit_.scopes_.push_back(index);
  return brace + 1;
}

/// As written ("a::b"), and the last part; nothing for an unnamed one.
void Parser::namespace_names(Item& item, std::size_t brace) const {
  std::size_t name = item.first;
  while (name < brace && word(name) != "namespace") ++name;
  if (++name >= brace || word(name).empty()) return;
  const std::uint32_t begin = tokens_[name].begin;
  item.names.push_back(std::string_view(file_.text).substr(begin, tokens_[brace - 1].end - begin));
  item.names.push_back(word(brace - 1));
}

std::string_view Parser::class_name(std::size_t key, std::size_t brace) const {
  std::string_view name;
  for (std::size_t at = key; at < brace; ++at) {
    if (is(at, ':')) break;
    if (is(at, '<')) {
      const std::size_t beyond = skip_angles(at);
      at = beyond == at ? at : beyond - 1;
    } else if (is(at, '(') || is(at, '[')) {
      at = skip_group(at) - 1;
    } else if (const auto candidate = word(at);
               !candidate.empty() && candidate != "final" && candidate != "class") {
      name = candidate;
    }
  }
  return name;
}

std::size_t Parser::finish(std::size_t first, std::size_t last, std::size_t body,
                           const Seen& seen) {
  Item item{.file = &file_,
            .first = static_cast<std::uint32_t>(first),
            .last = static_cast<std::uint32_t>(last),
            .body = static_cast<std::uint32_t>(body),
            .parameters = static_cast<std::uint32_t>(seen.parameters),
            .has_template = seen.is_template};
  for (std::size_t at = first; at < last; ++at) {
    if (tokens_[at].kind == TokenKind::kDirective) unit_.macros_.add(file_, tokens_[at]);
  }
  std::size_t lead = first;  // behind "template <...>"
  while (word(lead) == "template" && is(lead + 1, '<') && skip_angles(lead + 1) != lead + 1) {
    lead = skip_angles(lead + 1);
  }
  const std::string_view start = word(lead);
  if (start == "static_assert" || start == "_Static_assert") {
    item.kind = ItemKind::kAssert;
  } else if (seen.is_instantiation) {
    item.kind = ItemKind::kInstantiation;
    if (seen.parameters != 0) function_names(item, seen);
    type_names(item, seen);
  } else if (start == "using" && !seen.assigned) {
    item.kind = ItemKind::kUsing;
    if (!word(last - 2).empty()) item.names.push_back(word(last - 2));
  } else if (start == "typedef" || start == "namespace" || start == "using") {
    item.kind = ItemKind::kType;
    if (start == "using" && !word(lead + 1).empty()) {
      item.names.push_back(word(lead + 1));
    } else {
      type_names(item, seen);
    }
  } else if (seen.parameters != 0 && (body != last || !is(seen.parameters, '*'))) {
    item.kind = ItemKind::kFunction;
    function_names(item, seen);
    if (body == last) variable_names(item);  // "float table(3);" looks alike
  } else if (seen.key != 0) {
    item.kind = ItemKind::kType;
    type_names(item, seen);
    variable_names(item);
  } else {
    item.kind = ItemKind::kVariable;
    type_names(item, seen);  // "template <> using" and the like
    variable_names(item);
  }
  unit_.add(std::move(item));
  return last;
}

void Parser::function_names(Item& item, const Seen& seen) const {
  std::size_t name = seen.name - 1;
  if (word(name) != "operator" && is(name, '>')) {  // "f<int>(...)": back to the '<'
    int depth = 0;
    while (name > item.first) {
      depth += is(name, '>') ? 1 : is(name, '<') ? -1 : 0;
      if (depth == 0) break;
      --name;
    }
    --name;
  }
  // "A::f", "A<T>::f": the class comes first.
  std::size_t before = name;
  if (before > item.first && is(before - 1, '~')) --before;
  if (before > item.first + 1 && is(before - 1, op::kScope)) {
    std::size_t owner = before - 2;
    for (int depth = 0; owner > item.first; --owner) {
      depth += is(owner, '>') ? 1 : is(owner, '<') ? -1 : 0;
      if (depth == 0) break;
    }
    if (is(owner, '<')) --owner;
    if (!word(owner).empty()) {
      item.is_member = true;
      item.names.push_back(word(owner));
    }
  }
  if (word(name) == "operator") {
    const std::uint32_t begin = tokens_[name].begin;
    item.names.push_back(
        std::string_view(file_.text).substr(begin, tokens_[seen.parameters - 1].begin - begin));
  } else if (!word(name).empty()) {
    item.names.push_back(word(name));
  }
}

void Parser::variable_names(Item& item) const {
  for (std::size_t at = item.first; at + 1 < item.last; ++at) {
    if (is(at, '(')) {
      if (is(at + 1, '*') && !word(at + 2).empty()) item.names.push_back(word(at + 2));
      at = skip_group(at) - 1;
    } else if (is(at, '{') || is(at, '[')) {
      at = skip_group(at) - 1;
    } else if (!word(at).empty() && (is(at + 1, '=') || is(at + 1, ';') || is(at + 1, ',') ||
                                     is(at + 1, '[') || is(at + 1, '{') || is(at + 1, ':'))) {
      item.names.push_back(word(at));
    }
  }
}

void Parser::type_names(Item& item, const Seen& seen) const {
  if (seen.key != 0) {
    std::size_t brace = seen.key;
    while (brace < item.last && !is(brace, '{') && !is(brace, ';')) ++brace;
    if (const auto name = class_name(seen.key, brace); !name.empty()) item.names.push_back(name);
    if (word(seen.key - 1) == "enum" && is(brace, '{')) {
      const std::size_t beyond = skip_group(brace);
      for (std::size_t at = brace; at + 1 < beyond; ++at) {  // the enumerators
        if (!word(at).empty() && !is(at - 1, '=')) item.names.push_back(word(at));
      }
    }
  }
  for (std::size_t at = item.first; at + 1 < item.last; ++at) {
    if (!word(at).empty() && (is(at + 1, ';') || is(at + 1, ',') || is(at + 1, '[') ||
                              is(at + 1, '=') || is(at + 1, ')'))) {
      item.names.push_back(word(at));
    }
  }
}

}  // namespace slate::source
