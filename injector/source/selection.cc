#include "injector/source/selection.h"

#include <algorithm>
#include <array>
#include <utility>

#include "injector/source/headers.h"

namespace slate::source {
namespace {

constexpr std::uint32_t kVariableMarks = kDevice | kConstant | kManaged;

bool has_word(const Item& item, std::string_view wanted, std::uint32_t last) {
  for (std::uint32_t at = item.first; at < last; ++at) {
    const Token& token = item.file->tokens[at];
    if (token.kind == TokenKind::kName && item.file->word(token) == wanted) return true;
    if (token.is('=') || token.is('{')) break;
  }
  return false;
}

bool is_operator(const Item& item) {
  return item.names.empty() || item.names.back().starts_with("operator");
}

std::string member_key(std::string_view owner, std::string_view name) {
  return std::string(owner).append("::").append(name);
}

/// "= default", "= delete", "= 0": no host code.
bool is_given_by_language(const Item& item) {
  if (item.body != item.last || item.last < item.first + 3) return false;
  const auto& tokens = item.file->tokens;
  if (!tokens[item.last - 3].is('=')) return false;
  const auto value = item.file->word(tokens[item.last - 2]);
  return value == "default" || value == "delete" || value == "0";
}

}  // namespace

Selection::Selection(const Unit& unit) : unit_(unit) {
  const auto& items = unit.items();
  const auto count = static_cast<int>(items.size());
  marks_.resize(count);
  roots_.resize(count);
  kept_.resize(count);
  banned_.resize(count);
  for (int index = 0; index < count; ++index) {
    const Item& item = items[index];
    marks_[index] = find_marks(item);
    if (item.kind == ItemKind::kNamespace) {
      namespaces_.insert(item.names.begin(), item.names.end());
      continue;
    }
    const bool is_device = marks_[index] & (kDevice | kConstexpr);
    if (in_class(index)) {
      const auto& owner = items[item.parent].names;
      for (const auto name : item.names) {
        member_names_.insert(name);
        if (!owner.empty()) device_members_[member_key(owner[0], name)] |= is_device;
      }
      continue;
    }
    for (const auto name : item.names) {
      std::unordered_set<std::string_view> names;
      unit.macros().expand(name, names);  // "#define NAME f_3" and a function called NAME
      for (const auto each : names) {
        auto& list = declaring_[each];
        if (list.empty() || list.back() != index) list.push_back(index);
      }
    }
    const bool is_template = item.kind == ItemKind::kFunction && item.has_template;
    if (is_template && (marks_[index] & kGlobal) && !item.names.empty()) {
      templates_.insert(item.names.back());
    }
  }
  for (int index = 0; index < count; ++index) roots_[index] = find_root(index);
}

std::uint32_t Selection::find_marks(const Item& item) const {
  if (item.file == nullptr || item.kind == ItemKind::kClass || item.kind == ItemKind::kClose) {
    return 0;
  }
  std::uint32_t marks = 0;
  for (std::uint32_t at = item.first; at < item.body; ++at) {
    const Token& token = item.file->tokens[at];
    if (item.kind == ItemKind::kVariable && (token.is('=') || token.is('{'))) break;
    if (token.kind == TokenKind::kName) marks |= unit_.macros().marks_of(item.file->word(token));
  }
  return marks;
}

bool Selection::in_class(int index) const {
  const int parent = unit_.items()[index].parent;
  return parent >= 0 && unit_.items()[parent].kind == ItemKind::kClass;
}

bool Selection::find_root(int index) const {
  const Item& item = unit_.items()[index];
  if (in_class(index)) return false;
  switch (item.kind) {
    case ItemKind::kFunction:
      // Nobody names an operator by its name.
      return (marks_[index] & kGlobal) ||
             ((marks_[index] & kDevice) && !item.is_member && is_operator(item));
    case ItemKind::kMacroCall:
      return marks_[index] & (kGlobal | kDevice | kConstant);
    case ItemKind::kVariable:
      return (marks_[index] & kVariableMarks) && !has_word(item, "extern", item.last);
    case ItemKind::kInstantiation:
      return (marks_[index] & kGlobal) ||
             std::any_of(item.names.begin(), item.names.end(),
                         [&](auto name) { return templates_.contains(name); });
    default:
      return false;
  }
}

bool Selection::is_essential(int index) const {
  const Item& item = unit_.items()[index];
  const bool may_go = item.kind == ItemKind::kFunction || item.kind == ItemKind::kInstantiation;
  return roots_[index] && !(may_go && !(marks_[index] & kGlobal));
}

bool Selection::is_host_alone(int index) const {
  const std::uint32_t marks = marks_[index];
  return (marks & kHost) && !(marks & (kDevice | kGlobal));
}

/// Whether a macro stands for "template void f<int>();" of a host template.
bool Selection::is_instantiation(int index) const {
  const Item& item = unit_.items()[index];
  const auto& tokens = item.file->tokens;
  if (item.last <= item.first) return false;
  const std::uint32_t begin = tokens[item.first].begin;
  const std::string text = unit_.macros().expanded(
      std::string_view(item.file->text).substr(begin, tokens[item.last - 1].end - begin));
  return text.starts_with("template ") && !text.starts_with("template <");
}

bool Selection::may_follow(int index) const {
  const Item& item = unit_.items()[index];
  const std::uint32_t marks = marks_[index];
  if (banned_[index] || is_host_alone(index)) return false;
  const bool wanted = std::any_of(item.names.begin(), item.names.end(),
                                  [&](auto name) { return wanted_.contains(std::string(name)); });
  if (wanted || roots_[index]) return true;
  switch (item.kind) {
    case ItemKind::kFunction:
      if (marks & (kDevice | kConstexpr | kGlobal) || is_given_by_language(item)) return true;
      if (item.is_member && item.names.size() == 2) {
        const auto found = device_members_.find(member_key(item.names[0], item.names[1]));
        return found != device_members_.end() && found->second;
      }
      return false;
    case ItemKind::kVariable:
      return in_class(index) || (marks & (kVariableMarks | kShared | kConstexpr)) ||
             has_word(item, "const", item.last);
    case ItemKind::kInstantiation:
      return false;
    case ItemKind::kMacroCall:
      return in_class(index) || !is_instantiation(index);
    default:
      return true;
  }
}

const std::vector<int>* Selection::declaring(std::string_view name) const {
  const auto found = declaring_.find(name);
  return found == declaring_.end() ? nullptr : &found->second;
}

bool Selection::want(std::string_view name) {
  if (!wanted_.insert(std::string(name)).second) return false;
  const auto* list = declaring(name);
  const bool declared = list != nullptr && std::any_of(list->begin(), list->end(), [&](int index) {
                          return !kept_[index] && !banned_[index] && !is_host_alone(index);
                        });
  return declared || member_names_.contains(name);
}

bool Selection::want_whole_std() {
  return !std::exchange(wants_whole_std_, true) && !needs_whole_std_;
}

void Selection::use_also(std::string_view text) {
  for (const Token& token : scan(text)) {
    if (token.kind == TokenKind::kName) also_.insert(std::string(token.in(text)));
  }
}

void Selection::use(std::string_view name) {
  std::unordered_set<std::string_view> names;
  if (used_.contains(name)) return;
  unit_.macros().expand(name, names);
  for (const auto each : names) {
    if (used_.insert(each).second) pending_.push_back(each);
    if (const Macro* macro = unit_.macros().find(each)) {
      for (const auto of_std : macro->of_std) needs_whole_std_ |= !is_in_core(of_std);
      use_pasted(*macro);
    }
  }
}

/// All declared names that the macro's ## could have made.
void Selection::use_pasted(const Macro& macro) {
  if (macro.prefixes.empty() && macro.suffixes.empty()) return;
  for (const auto& [name, list] : declaring_) {
    const bool begins = std::any_of(macro.prefixes.begin(), macro.prefixes.end(),
                                    [&](auto part) { return name.starts_with(part); });
    const bool ends = std::any_of(macro.suffixes.begin(), macro.suffixes.end(),
                                  [&](auto part) { return name.ends_with(part); });
    if ((begins || ends) && used_.insert(name).second) pending_.push_back(name);
  }
}

void Selection::use_names_of(const Item& item) {
  for (std::uint32_t at = item.first; at < item.last; ++at) {
    const Token& token = item.file->tokens[at];
    if (token.kind != TokenKind::kName) continue;
    const auto word = item.file->word(token);
    const auto& tokens = item.file->tokens;
    if (at > item.first + 1 && tokens[at - 1].is(op::kScope) &&
        item.file->word(tokens[at - 2]) == "std") {
      needs_whole_std_ |= !is_in_core(word);
      continue;
    }
    // "a.size" is a member, whatever else is called size.
    if (at > item.first && (tokens[at - 1].is('.') || tokens[at - 1].is(op::kArrow))) {
      if (unit_.macros().find(word) == nullptr) continue;
    }
    use(word);
  }
}

void Selection::keep(int index) {
  if (kept_[index] || !may_follow(index)) return;
  kept_[index] = true;
  const Item& item = unit_.items()[index];
  use_names_of(item);
  if (item.kind == ItemKind::kClass) keep_class(index);
}

/// The members that follow the opening, and what closes it.
void Selection::keep_class(int index) {
  const auto& items = unit_.items();
  const int closing = items[index].closing;
  if (closing < 0) return;
  kept_[closing] = true;
  use_names_of(items[closing]);
  for (int member = index + 1; member < closing; ++member) {
    if (items[member].parent == index && items[member].kind != ItemKind::kClose) keep(member);
  }
}

void Selection::decide() {
  const auto& items = unit_.items();
  std::fill(kept_.begin(), kept_.end(), false);
  used_.clear();
  needs_whole_std_ = false;
  for (const auto& name : also_) use(name);
  for (int index = 0; index < static_cast<int>(items.size()); ++index) {
    const Item& item = items[index];
    const bool scope = item.kind == ItemKind::kNamespace || item.kind == ItemKind::kText;
    const bool opens =
        item.kind == ItemKind::kMacroCall &&
        unit_.macros().has_lone_brace(item.file->word(item.file->tokens[item.first]));
    if (item.kind == ItemKind::kDirective || scope || opens) kept_[index] = !banned_[index];
    if (item.kind == ItemKind::kClose && !item.of_class) kept_[index] = true;
    if (roots_[index]) keep(index);
  }
  while (!pending_.empty()) {
    const auto name = pending_.back();
    pending_.pop_back();
    if (const auto* list = declaring(name)) {
      for (const int index : *list) keep(index);
    }
  }
  for (int index = 0; index < static_cast<int>(items.size()); ++index) {
    const Item& item = items[index];
    if (in_class(index) || banned_[index]) continue;
    if (item.kind == ItemKind::kUsing && has_word(item, "namespace", item.last)) {
      static constexpr std::array<std::string_view, 5> kKnown = {"std", "cuda", "nvcuda",
                                                                 "cooperative_groups", "wmma"};
      const auto name = item.names.empty() ? std::string_view{} : item.names[0];
      kept_[index] = namespaces_.contains(name) ||
                     std::find(kKnown.begin(), kKnown.end(), name) != kKnown.end();
      if (kept_[index]) use(name);
    } else if (item.kind == ItemKind::kAssert) {
      kept_[index] = keeps_whole_assert(item);
    }
  }
  pending_.clear();
}

/// An assertion stays when nothing that it speaks of is gone.
bool Selection::keeps_whole_assert(const Item& item) const {
  for (std::uint32_t at = item.first + 1; at < item.last; ++at) {
    const Token& token = item.file->tokens[at];
    if (token.kind != TokenKind::kName) continue;
    const auto* list = declaring(item.file->word(token));
    if (item.file->word(token) == "std") return used_.contains("std");
    if (list == nullptr) continue;
    if (std::none_of(list->begin(), list->end(), [&](int index) { return kept_[index]; })) {
      return false;
    }
  }
  return true;
}

}  // namespace slate::source
