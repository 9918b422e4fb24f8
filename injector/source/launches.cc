#include "injector/source/launches.h"

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>

namespace slate::source {
namespace {

using Environment = std::map<std::string, std::string, std::less<>>;

constexpr int kAny = 1 << 20;
constexpr std::size_t kMostInstances = 4096;
constexpr std::size_t kLongestList = 1024;  // of template arguments, in bytes
constexpr std::size_t kMostVisits = 5000;   // of host templates with different arguments

struct Parameter {
  std::string name;
  std::string standard;  // its default argument
};

/// A host template, or a plain function or class: what is in it is read once for every set of
/// arguments that is seen.
struct Body {
  const Item* item = nullptr;
  std::vector<int> items = {};  // itself, or a class's members
  std::vector<Parameter> parameters;
  int fewest = 0, most = kAny;  // of its function arguments
};

std::string text_of(const SourceFile& file, std::uint32_t first, std::uint32_t last) {
  std::string text;
  for (std::uint32_t at = first; at < last; ++at) {
    if (!text.empty()) text += ' ';
    text += file.word(file.tokens[at]);
  }
  return text;
}

bool is_plain_word(std::string_view word) {
  static constexpr std::array<std::string_view, 26> kWords = {
      "int",         "float",          "double",  "char",    "short",         "long",   "unsigned",
      "signed",      "bool",           "void",    "const",   "true",          "false",  "size_t",
      "half",        "__half",         "__half2", "half2",   "__nv_bfloat16", "sizeof", "volatile",
      "nv_bfloat16", "__nv_bfloat162", "nullptr", "wchar_t", "auto"};
  if (std::find(kWords.begin(), kWords.end(), word) != kWords.end()) return true;
  // int8_t, float4, cuComplex and their like.
  if (word.ends_with("_t")) return true;
  const bool vector = !word.empty() && word.back() >= '1' && word.back() <= '4';
  return (vector &&
          (word.starts_with("float") || word.starts_with("double") || word.starts_with("int") ||
           word.starts_with("uint") || word.starts_with("char") || word.starts_with("uchar") ||
           word.starts_with("short") || word.starts_with("ushort"))) ||
         word == "cuComplex" || word == "cuDoubleComplex" || word == "cuFloatComplex" ||
         word == "cufftComplex" || word == "cufftDoubleComplex" || word == "dim3";
}

/// A host template mentioned with arguments.
struct Visit {
  std::string name;
  std::vector<std::string> arguments;
  int call = kAny;  // the number of its function arguments
};

class Finder {
 public:
  Finder(const Unit& unit, const Selection& selection)
      : unit_(unit), selection_(selection), owned_(unit.items().size(), 0) {
    collect();
    find_ways();
  }

  std::vector<std::string> run() {
    for (int index = 0; index < static_cast<int>(unit_.items().size()); ++index) {
      if (!owned_[index]) read(index, {});
    }
    while (!pending_.empty() && visits_ < kMostVisits) {
      const Visit visit = std::move(pending_.back());
      pending_.pop_back();
      ++visits_;
      for (const auto& body : bodies_[visit.name]) {
        const bool fits =
            visit.call == kAny || (body.fewest <= visit.call && visit.call <= body.most);
        if (fits) enter(body, visit.arguments);
      }
    }
    return std::move(found_);
  }

  std::string qualified(int index, std::string_view name) const {
    std::string result(name);
    for (int scope = unit_.items()[index].parent; scope >= 0; scope = unit_.items()[scope].parent) {
      const Item& item = unit_.items()[scope];
      const bool named = item.kind == ItemKind::kClass || item.kind == ItemKind::kNamespace;
      if (named && !item.names.empty()) result = std::string(item.names[0]) + "::" + result;
    }
    return result;
  }

 private:
  /// Finds the host's templates and to which of them other items belong.
  void collect() {
    const auto& items = unit_.items();
    for (int index = 0; index < static_cast<int>(items.size()); ++index) {
      const Item& item = items[index];
      const bool scope = item.kind == ItemKind::kClass;
      if (!item.has_template || owned_[index] || item.names.empty()) continue;
      if (!scope && item.kind != ItemKind::kFunction) continue;
      if (selection_.marks(index) & kGlobal) continue;
      Body body{.item = &item, .parameters = parameters_of(item)};
      if (body.parameters.empty()) continue;  // "template <>": an ordinary one
      if (!scope) count_parameters(body);
      const int last = scope ? std::max(item.closing, index + 1) : index + 1;
      for (int inner = index; inner < last; ++inner) {
        body.items.push_back(inner);
        owned_[inner] = true;
      }
      bodies_[std::string(item.names[0])].push_back(std::move(body));
    }
  }

  /// All names in an item, those that its macros may bring included.
  template <typename Take>
  void each_name(int index, const Take& take) {
    const Item& item = unit_.items()[index];
    if (item.file == nullptr) return;
    for (std::uint32_t at = item.first; at < item.last; ++at) {
      const Token& token = item.file->tokens[at];
      if (token.kind != TokenKind::kName) continue;
      const std::string_view word = item.file->word(token);
      if (unit_.macros().find(word) == nullptr) {
        take(word);
        continue;
      }
      auto& names = behind_[word];
      if (names.empty()) unit_.macros().expand(word, names);
      for (const auto each : names) take(each);
    }
  }

  bool concerns_kernels(int index) {
    bool found = false;
    each_name(index, [&](std::string_view word) {
      found = found || selection_.kernel_templates().contains(word) ||
              leads_to_kernel_.contains(std::string(word));
    });
    return found;
  }

  /// Which host templates mention a kernel, or another that does: the only ones worth a visit.
  void find_ways() {
    std::unordered_map<std::string_view, std::vector<const std::string*>> mentioned_in;
    for (const auto& [name, bodies] : bodies_) {
      for (const auto& body : bodies) {
        for (const int index : body.items) {
          each_name(index, [&](std::string_view word) { mentioned_in[word].push_back(&name); });
        }
      }
    }
    std::vector<std::string_view> open(selection_.kernel_templates().begin(),
                                       selection_.kernel_templates().end());
    while (!open.empty()) {
      const auto found = mentioned_in.find(open.back());
      open.pop_back();
      if (found == mentioned_in.end()) continue;
      for (const std::string* name : found->second) {
        if (leads_to_kernel_.insert(*name).second) open.push_back(*name);
      }
    }
  }

  /// How many arguments a call may give: overloads differ in it.
  static void count_parameters(Body& body) {
    const Item& item = *body.item;
    const auto& tokens = item.file->tokens;
    if (item.parameters == 0) return;
    int depth = 1, angles = 0, count = 0, defaults = 0;
    bool any = false;
    for (std::uint32_t at = item.parameters; at < item.last && depth > 0; ++at) {
      const Token& token = tokens[at];
      if (token.is('(') || token.is('[') || token.is('{')) ++depth;
      if (token.is(')') || token.is(']') || token.is('}')) --depth;
      if (depth == 0) break;
      if (token.is('<')) ++angles;
      if (token.is('>')) --angles;
      if (token.is('.')) return;  // "...": any number
      any |= token.kind == TokenKind::kName;
      if (depth != 1 || angles > 0) continue;
      if (token.is('=')) ++defaults;
      if (token.is(',')) ++count;
    }
    body.most = any ? count + 1 : 0;
    body.fewest = body.most - defaults;
  }

  /// The number of arguments of the call whose '(' is at `open`; kAny when it is none.
  static int count_arguments(const SourceFile& file, std::uint32_t open, std::uint32_t last) {
    if (open >= last || !file.tokens[open].is('(')) return kAny;
    int depth = 0, count = 0;
    for (std::uint32_t at = open; at < last; ++at) {
      const Token& token = file.tokens[at];
      if (token.is('<')) {
        std::uint32_t end = at;
        arguments_of(file, at, last, &end);
        if (end > at + 1) at = end - 1;
        continue;
      }
      if (token.is('(') || token.is('[') || token.is('{')) ++depth;
      if (token.is(')') || token.is(']') || token.is('}')) --depth;
      if (depth == 0) return at == open + 1 ? 0 : count + 1;
      if (token.is(',') && depth == 1) ++count;
    }
    return kAny;
  }

  std::vector<Parameter> parameters_of(const Item& item) const {
    const SourceFile& file = *item.file;
    std::uint32_t at = item.first;
    while (at < item.last && file.word(file.tokens[at]) != "template") ++at;
    std::vector<Parameter> result;
    if (at + 1 >= item.last) return result;
    for (const auto& [first, last] : arguments_of(file, at + 1, item.last)) {
      Parameter parameter;
      std::uint32_t assign = first;
      while (assign < last && !file.tokens[assign].is('=')) ++assign;
      if (assign == first) continue;
      if (file.tokens[assign - 1].kind == TokenKind::kName) {
        parameter.name = file.word(file.tokens[assign - 1]);
      }
      if (assign < last) parameter.standard = text_of(file, assign + 1, last);
      result.push_back(std::move(parameter));
    }
    return result;
  }

  /// The token ranges between the commas of "< ... >"; empty when it is no such list. `end` is set
  /// one beyond the '>'.
  static std::vector<std::pair<std::uint32_t, std::uint32_t>> arguments_of(
      const SourceFile& file, std::uint32_t open, std::uint32_t limit,
      std::uint32_t* end = nullptr) {
    std::vector<std::pair<std::uint32_t, std::uint32_t>> result;
    int angles = 0, others = 0;
    std::uint32_t first = open + 1;
    for (std::uint32_t at = open; at < limit; ++at) {
      const Token& token = file.tokens[at];
      if (token.is('(') || token.is('[')) ++others;
      if (token.is(')') || token.is(']')) --others;
      if (others < 0 || token.is(';') || token.is('{') || token.is(op::kLaunch)) return {};
      if (others > 0) continue;
      if (token.is('<')) ++angles;
      if (token.is('>') && --angles == 0) {
        if (at > first) result.emplace_back(first, at);
        if (end != nullptr) *end = at + 1;
        return result;
      }
      if (token.is(',') && angles == 1) {
        result.emplace_back(first, at);
        first = at + 1;
      }
    }
    return {};
  }

  void enter(const Body& body, const std::vector<std::string>& arguments) {
    Environment environment;
    for (std::size_t at = 0; at < body.parameters.size(); ++at) {
      const Parameter& parameter = body.parameters[at];
      if (at < arguments.size()) {
        environment[parameter.name] = arguments[at];
      } else if (!parameter.standard.empty()) {
        environment[parameter.name] = parameter.standard;
      }
    }
    for (const int index : body.items) read(index, environment);
  }

  void read(int index, Environment environment) {
    const Item& item = unit_.items()[index];
    if (item.file == nullptr || (selection_.marks(index) & (kGlobal | kDevice))) return;
    if (item.kind == ItemKind::kDirective || !concerns_kernels(index)) return;
    const SourceFile& file = expanded(index);
    const auto last = static_cast<std::uint32_t>(file.tokens.size());
    std::uint32_t at = 0;
    if (item.has_template) {  // not its own parameter list
      std::uint32_t end = at;
      arguments_of(file, at + 1, last, &end);
      at = std::max(end, at);
    }
    for (; at < last; ++at) {
      const Token& token = file.tokens[at];
      if (token.kind != TokenKind::kName) continue;
      const std::string_view word = file.word(token);
      if (word == "const" || word == "constexpr" || word == "using") {
        local_name(file, at, last, environment);
      } else if (at + 1 < last && file.tokens[at + 1].is('<')) {
        mention(file, at, last, environment);
      }
    }
  }

  /// An item's text behind its macros, made once.
  const SourceFile& expanded(int index) {
    auto& file = expanded_[index];
    if (file == nullptr) {
      const Item& item = unit_.items()[index];
      const auto& tokens = item.file->tokens;
      std::string_view text = item.file->text;
      if (item.last > item.first) {
        text = text.substr(tokens[item.first].begin,
                           tokens[item.last - 1].end - tokens[item.first].begin);
      }
      file = make_file({}, {}, unit_.macros().expanded(text));
    }
    return *file;
  }

  /// "const int n = 4;" and "using T = float;" inside a body.
  void local_name(const SourceFile& file, std::uint32_t at, std::uint32_t last,
                  Environment& environment) const {
    std::uint32_t assign = at + 1;
    while (assign < last && file.tokens[assign].kind == TokenKind::kName) ++assign;
    if (assign >= last || assign == at + 1 || !file.tokens[assign].is('=')) return;
    std::uint32_t end = assign + 1;
    while (end < last && !file.tokens[end].is(';') && !file.tokens[end].is(',')) ++end;
    auto value = substitute(file, assign + 1, end, environment);
    if (!value) return;
    const bool is_type = file.word(file.tokens[at]) == "using";
    environment[std::string(file.word(file.tokens[assign - 1]))] =
        is_type ? *value : "(" + *value + ")";
  }

  void mention(const SourceFile& file, std::uint32_t at, std::uint32_t last,
               const Environment& environment) {
    const std::string name(file.word(file.tokens[at]));
    const bool is_kernel = selection_.kernel_templates().contains(name);
    if (!is_kernel && !leads_to_kernel_.contains(name)) return;
    std::vector<std::string> arguments;
    std::uint32_t behind = at + 1;
    for (const auto& [first, end] : arguments_of(file, at + 1, last, &behind)) {
      auto text = substitute(file, first, end, environment);
      if (!text) return;
      arguments.push_back(std::move(*text));
    }
    if (arguments.empty()) return;
    std::string joined;
    for (const auto& argument : arguments) joined += (joined.empty() ? "" : ", ") + argument;
    if (joined.size() > kLongestList) return;  // a template that instantiates ever larger ones
    const int call = is_kernel ? kAny : count_arguments(file, behind, last);
    if (!seen_.insert(name + "<" + joined + ">" + std::to_string(call)).second) return;
    if (!is_kernel) {
      pending_.push_back({name, std::move(arguments), call});
    } else if (found_.size() < kMostInstances) {
      found_.push_back(kernel_name(name) + "<" + joined + ">");
    }
  }

  std::string kernel_name(std::string_view name) const {
    for (const int index : *selection_.declaring(name)) {
      if (selection_.marks(index) & kGlobal) return qualified(index, name);
    }
    return std::string(name);
  }

  /// Nothing when a name in it means nothing at namespace scope.
  std::optional<std::string> substitute(const SourceFile& file, std::uint32_t first,
                                        std::uint32_t last, const Environment& environment) const {
    std::string text;
    for (std::uint32_t at = first; at < last; ++at) {
      const Token& token = file.tokens[at];
      const std::string_view word = file.word(token);
      if (token.kind == TokenKind::kDirective) return std::nullopt;
      const bool after_scope = at > first && file.tokens[at - 1].is(op::kScope);
      if (!text.empty() && token.kind == TokenKind::kName && !after_scope) text += ' ';
      if (token.kind != TokenKind::kName || after_scope) {
        text += word;
      } else if (const auto known = environment.find(word); known != environment.end()) {
        text += known->second;
      } else if (is_plain_word(word) || word == "std" || unit_.macros().find(word) != nullptr) {
        text += word;
      } else if (const auto* list = selection_.declaring(word)) {
        if (unit_.items()[list->front()].kind == ItemKind::kFunction) return std::nullopt;
        text += qualified(list->front(), word);
      } else {
        return std::nullopt;
      }
    }
    return text;
  }

  const Unit& unit_;
  const Selection& selection_;
  std::vector<char> owned_;  // belongs to a template: read only with its arguments
  std::unordered_map<std::string, std::vector<Body>> bodies_;
  std::unordered_set<std::string> leads_to_kernel_;
  std::unordered_map<std::string_view, std::unordered_set<std::string_view>> behind_;  // macros
  std::vector<Visit> pending_;
  std::unordered_map<int, std::unique_ptr<SourceFile>> expanded_;
  std::set<std::string> seen_;
  std::vector<std::string> found_;
  std::size_t visits_ = 0;
};

}  // namespace

std::vector<std::string> launched_instances(const Unit& unit, const Selection& selection) {
  if (selection.kernel_templates().empty()) return {};
  return Finder(unit, selection).run();
}

}  // namespace slate::source
