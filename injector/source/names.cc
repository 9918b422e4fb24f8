#include "injector/source/names.h"

#include <cxxabi.h>

#include <cstdlib>
#include <memory>

namespace slate::source {
namespace {

/// Cuts the parameter list off "ns::f<(int)3>(float*)": its '(' is the last one outside of
/// brackets.
std::string_view without_parameters(std::string_view name) {
  int depth = 0;
  for (std::size_t at = name.size(); at-- > 0;) {
    if (name[at] == ')' || name[at] == '>') ++depth;
    if (name[at] == '<') --depth;
    if (name[at] == '(' && --depth == 0) return name.substr(0, at);
  }
  return name;
}

/// Cuts "void " off; templates alone have a return type in their names.
std::string_view without_result(std::string_view name) {
  int depth = 0;
  for (std::size_t at = name.size(); at-- > 0;) {
    if (name[at] == ')' || name[at] == '>') ++depth;
    if (name[at] == '(' || name[at] == '<') --depth;
    if (name[at] == ' ' && depth == 0) return name.substr(at + 1);
  }
  return name;
}

}  // namespace

std::vector<std::string> entries_in(std::string_view ptx) {
  constexpr std::string_view kWord = ".entry";
  std::vector<std::string> names;
  for (auto at = ptx.find(kWord); at != std::string_view::npos; at = ptx.find(kWord, at + 1)) {
    const auto first = ptx.find_first_not_of(" \t", at + kWord.size());
    const auto last = ptx.find_first_of("( \t\r\n", first);
    const auto line = ptx.rfind('\n', at) + 1;
    const bool is_comment = ptx.substr(line, at - line).find("//") != std::string_view::npos;
    if (first == std::string_view::npos || last == std::string_view::npos || is_comment) continue;
    names.emplace_back(ptx.substr(first, last - first));
  }
  return names;
}

std::string written_name(const std::string& lowered) {
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> text(
      abi::__cxa_demangle(lowered.c_str(), nullptr, nullptr, &status), &std::free);
  if (status != 0 || text == nullptr) return lowered;
  return std::string(without_result(without_parameters(text.get())));
}

std::string_view trimmed(std::string_view text) {
  const auto first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

}  // namespace slate::source
