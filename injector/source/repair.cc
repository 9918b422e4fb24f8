#include "injector/source/repair.h"

#include <algorithm>
#include <string_view>

#include "injector/source/names.h"

namespace slate::source {
namespace {

bool speaks_of_absence(std::string_view text) {
  for (const std::string_view phrase :
       {"is undefined", "has no member", "is not a type name", "is not a class", "not declared",
        "must be a class or namespace name", "is not a template", "incomplete type",
        "not a function or static data member"}) {
    if (text.find(phrase) != std::string_view::npos) return true;
  }
  return false;
}

bool can_go(const Unit& unit, const Selection& selection, int index) {
  const Item& item = unit.items()[index];
  if (!selection.kept(index) || selection.banned(index) || item.file == nullptr) return false;
  switch (item.kind) {
    case ItemKind::kNamespace:
    case ItemKind::kClose:
    case ItemKind::kText:
    case ItemKind::kAccess:
      return false;
    case ItemKind::kDirective: {
      const auto word = directive_of(*item.file, item.file->tokens[item.first]).word;
      return word == "if" || word == "elif" || word == "error" || word.starts_with("include");
    }
    case ItemKind::kMacroCall:
      return !unit.macros().has_lone_brace(item.file->word(item.file->tokens[item.first]));
    default:
      return !selection.is_essential(index);
  }
}

/// The smallest items that stand on a line.
std::vector<int> items_at(const Unit& unit, const Selection& selection, const Place& place) {
  std::vector<int> found;
  const auto& items = unit.items();
  for (int index = 0; index < static_cast<int>(items.size()); ++index) {
    const Item& item = items[index];
    if (item.file == nullptr || item.last <= item.first || !selection.kept(index)) continue;
    if (item.file->name != place.file) continue;
    const auto& tokens = item.file->tokens;
    const auto first = item.file->line_of(tokens[item.first].begin);
    const auto last = item.file->line_of(tokens[item.last - 1].end - 1);
    if (first <= place.line && place.line <= last) found.push_back(index);
  }
  return found;
}

/// Forbids what stands at a place; a member that cannot be blamed passes it on to its class.
bool drop_at(const Unit& unit, Selection& selection, const Place& place, const Message& why) {
  bool changed = false;
  for (const int index : items_at(unit, selection, place)) {
    if (!can_go(unit, selection, index)) continue;
    selection.ban(index, why.whole);
    changed = true;
  }
  return changed;
}

/// For comparing: without blanks, quotes, parentheses and the suffixes of numbers.
std::string comparable(std::string_view text) {
  std::string result;
  for (const char c : text) {
    const bool suffix =
        (c == 'U' || c == 'L') && !result.empty() && result.back() >= '0' && result.back() <= '9';
    if (c != ' ' && c != '"' && c != '(' && c != ')' && !suffix) result += c;
  }
  return result;
}

/// Whether `text`, "void ns::f<T,n>(T *) [with T=float, n=4]", speaks of "ns::f<float, 4>".
bool names_instance(const std::string& text, const std::string& instance, bool exactly) {
  const auto open = instance.find('<');
  const auto scope = instance.rfind("::", open);
  const auto start = scope == std::string::npos || scope > open ? 0 : scope + 2;
  const std::string name = std::string(trimmed(instance.substr(start, open - start))) + "<";
  if (text.find(name) == std::string::npos) return false;
  if (!exactly) return true;
  const auto with = text.find("[with ");
  if (with == std::string::npos) return false;
  std::string values;
  bool value = false;
  for (std::size_t at = with + 6; at < text.size() && text[at] != ']'; ++at) {
    if (text[at] == '=') {
      value = true;
    } else if (text.compare(at, 2, ", ") == 0) {
      value = false;
      values += ',';
    } else if (value) {
      values += text[at];
    }
  }
  return comparable(values) + ">" == comparable(instance.substr(open + 1));
}

}  // namespace

bool fetch_missing(const Unit& unit, Selection& selection, const std::vector<Message>& errors) {
  bool changed = false;
  for (const auto& error : errors) {
    if (!speaks_of_absence(error.text)) continue;
    const std::string name = quoted_name(error.text);
    if (name.empty()) continue;
    // "class "A" has no member "f"": the second name is the missing one.
    const auto member = error.text.rfind("has no member \"");
    const std::string wanted = member == std::string::npos
                                   ? name
                                   : quoted_name(std::string_view(error.text).substr(member));
    changed |= selection.want(wanted);
  }
  if (changed) return true;
  const bool absent = std::any_of(errors.begin(), errors.end(), [](const Message& error) {
    return speaks_of_absence(error.text);
  });
  if (absent && unit.mentions_std() && selection.want_whole_std()) return true;
  return false;
}

bool drop_broken(const Unit& unit, Selection& selection, const std::vector<Message>& errors) {
  bool changed = false;
  for (const auto& error : errors) {
    bool dropped = drop_at(unit, selection, error.place, error);
    for (std::size_t at = 0; !dropped && at < error.behind.size(); ++at) {
      dropped = drop_at(unit, selection, error.behind[at], error);
    }
    changed |= dropped;
  }
  return changed;
}

bool drop_invalid(std::vector<std::string>& instances, const std::vector<Message>& errors) {
  constexpr std::string_view kPhrase = "Input name expression was: \"";
  const auto before = instances.size();
  for (const auto& error : errors) {
    const auto at = error.text.find(kPhrase);
    if (at == std::string::npos) continue;
    const auto name = comparable(std::string_view(error.text).substr(at + kPhrase.size()));
    std::erase_if(instances, [&](const auto& each) { return comparable(each) == name; });
  }
  return instances.size() != before;
}

bool drop_blamed(std::vector<std::string>& instances, const std::vector<Message>& errors,
                 bool exactly) {
  const auto before = instances.size();
  std::vector<std::string> blamed;
  for (const auto& error : errors)
    blamed.insert(blamed.end(), error.during.begin(), error.during.end());
  std::erase_if(instances, [&](const std::string& instance) {
    return std::any_of(blamed.begin(), blamed.end(), [&](const std::string& text) {
      return names_instance(text, instance, exactly);
    });
  });
  return instances.size() != before;
}

}  // namespace slate::source
