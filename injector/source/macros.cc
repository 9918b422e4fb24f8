#include "injector/source/macros.h"

#include <algorithm>
#include <array>
#include <utility>

namespace slate::source {
namespace {

/// CUDA's own words, and macros of its headers that stand for them.
std::uint32_t own_marks(std::string_view name) {
  static constexpr std::array<std::pair<std::string_view, std::uint32_t>, 17> kWords = {{
      {"__global__", kGlobal},
      {"__device__", kDevice},
      {"__host__", kHost},
      {"__constant__", kConstant},
      {"__shared__", kShared},
      {"__managed__", kManaged},
      {"constexpr", kConstexpr},
      {"consteval", kConstexpr},
      {"__grid_constant__", 0},
      {"_CCCL_DEVICE", kDevice},
      {"_CCCL_HOST_DEVICE", kHost | kDevice},
      {"_CCCL_HOST_DEVICE_API", kHost | kDevice},
      {"_CCCL_DEVICE_API", kDevice},
      {"_CCCL_HOST", kHost},
      {"_CCCL_CONSTEXPR_CXX14", kConstexpr},
      {"__CUDA_HOSTDEVICE_FP16_DECL__", kHost | kDevice},
      {"__CUDA_FP16_DECL__", kDevice},
  }};
  for (const auto& [word, marks] : kWords) {
    if (word == name) return marks;
  }
  return 0;
}

/// "prefix_ ## X" and "X ## _suffix"; whatever is too short to tell anything is left out.
void add_pasted(Macro& macro, const Token& left, const Token& right, std::string_view text) {
  constexpr std::size_t kShortest = 3;
  if (left.kind == TokenKind::kName && left.end - left.begin >= kShortest) {
    macro.prefixes.push_back(left.in(text));
  }
  if (right.kind == TokenKind::kName && right.end - right.begin >= kShortest) {
    macro.suffixes.push_back(right.in(text));
  }
}

}  // namespace

void MacroTable::add(const SourceFile& file, const Token& directive) {
  const Directive parts = directive_of(file, directive);
  if (parts.word != "define") return;
  auto tokens = scan(parts.rest);
  if (tokens.empty() || tokens[0].kind != TokenKind::kName) return;
  Macro& macro = macros_[tokens[0].in(parts.rest)];
  macro.text = parts.rest;
  macro.parameters.clear();
  std::size_t body = 1;
  if (tokens.size() > 1 && tokens[1].is('(') && tokens[1].begin == tokens[0].end) {
    macro.takes_arguments = true;
    for (; body < tokens.size() && !tokens[body].is(')'); ++body) {
      const Token& token = tokens[body];
      if (token.kind == TokenKind::kName) macro.parameters.push_back(token.in(parts.rest));
      if (token.is('.') && tokens[body - 1].kind != TokenKind::kName && !tokens[body - 1].is('.')) {
        macro.parameters.emplace_back("__VA_ARGS__");
      }
    }
    ++body;
  }
  int depth = 0;
  for (std::size_t at = body; at < tokens.size(); ++at) {
    const Token& token = tokens[at];
    if (token.kind == TokenKind::kName) macro.names.push_back(token.in(parts.rest));
    const bool of_std =
        at > body + 1 && tokens[at - 1].is(op::kScope) && tokens[at - 2].in(parts.rest) == "std";
    if (of_std) macro.of_std.push_back(token.in(parts.rest));
    depth += token.is('{') ? 1 : token.is('}') ? -1 : 0;
    if (token.is(op::kPaste) && at > body && at + 1 < tokens.size()) {
      add_pasted(macro, tokens[at - 1], tokens[at + 1], parts.rest);
    }
  }
  macro.lone_brace |= depth != 0;
  macro.body = std::min(body, tokens.size());
  macro.tokens = std::move(tokens);
}

const Macro* MacroTable::find(std::string_view name) const {
  const auto found = macros_.find(name);
  return found == macros_.end() ? nullptr : &found->second;
}

std::uint32_t MacroTable::marks_of(std::string_view name) const {
  if (find(name) == nullptr) return own_marks(name);
  std::unordered_set<std::string_view> names;
  expand(name, names);
  std::uint32_t marks = 0;
  for (const auto inner : names) marks |= own_marks(inner);
  return marks;
}

bool MacroTable::has_lone_brace(std::string_view name) const {
  const Macro* macro = find(name);
  return macro != nullptr && macro->lone_brace;
}

void MacroTable::expand(std::string_view name, std::unordered_set<std::string_view>& into) const {
  std::vector<std::string_view> open{name};
  while (!open.empty()) {
    const auto next = open.back();
    open.pop_back();
    if (!into.insert(next).second) continue;
    if (const Macro* macro = find(next)) {
      open.insert(open.end(), macro->names.begin(), macro->names.end());
    }
  }
}

}  // namespace slate::source
