#include "injector/analysis/scopes.h"

#include <algorithm>

namespace slate::injector {
namespace {

/// Where the comment or string that begins at `at` ends; `at` if none does.
std::uint32_t behind_words(std::string_view text, std::uint32_t at) {
  const auto end_of = [&](std::string_view mark) {
    const std::size_t found = text.find(mark, at + 1);
    return found == text.npos ? text.size() : found + mark.size();
  };
  const std::string_view rest = text.substr(at);
  std::size_t end = at;
  if (rest.starts_with("//")) end = end_of("\n");
  if (rest.starts_with("/*")) end = end_of("*/");
  if (rest.starts_with("\"")) end = end_of("\"");
  return static_cast<std::uint32_t>(end);
}

}  // namespace

std::vector<InnerScope> inner_scopes(const ptx::Module& module, const ptx::Function& function) {
  std::vector<InnerScope> scopes;
  std::uint32_t next = 0;  // instruction
  int depth = 0;
  InnerScope scope;
  for (std::uint32_t at = function.body.begin + 1; at + 1 < function.body.end;) {
    if (next < function.instructions.size() && at == function.instructions[next].span.begin) {
      at = function.instructions[next++].span.end;
      continue;
    }
    if (const std::uint32_t end = behind_words(module.text, at); end != at) {
      at = end;
      continue;
    }
    if (module.text[at] == '{' && depth++ == 0) {
      scope.first = next;
      scope.span.begin = at;
    } else if (module.text[at] == '}' && --depth == 0) {
      scope.end = next;
      scope.span.end = at + 1;
      if (scope.first != scope.end) scopes.push_back(scope);
    }
    ++at;
  }
  return scopes;
}

const InnerScope* scope_of(const std::vector<InnerScope>& scopes, std::uint32_t instruction) {
  const auto found = std::ranges::upper_bound(scopes, instruction, {}, &InnerScope::end);
  return found != scopes.end() && found->first <= instruction ? &*found : nullptr;
}

}  // namespace slate::injector
