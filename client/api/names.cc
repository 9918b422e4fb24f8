#include "client/api/names.h"

#include <algorithm>
#include <cctype>

#include "base/kernel_name.h"
#include "client/session/ptx_words.h"

namespace slate::api {
namespace {

bool is_identifier(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
}

bool begins_name(std::string_view word) {
  return client::PtxWords::is_word(word[0]) && word[0] != '.' &&
         std::isdigit(static_cast<unsigned char>(word[0])) == 0;
}

/// Without the return type, which only templates have and which is void for a kernel.
std::string_view without_result(std::string_view signature) {
  constexpr std::string_view kVoid = "void ";
  return signature.starts_with(kVoid) ? signature.substr(kVoid.size()) : signature;
}

bool means(const std::string& wanted, const std::string& mangled) {
  const std::string signature = demangle(mangled);
  if (signature == mangled) return false;
  return spelling(without_result(signature)) == wanted ||
         spelling(short_kernel_name(signature)) == wanted;
}

std::string list(const std::vector<std::string>& names) {
  constexpr std::size_t kMost = 20;
  std::string text;
  for (std::size_t i = 0; i < names.size() && i < kMost; ++i) {
    const std::string plain = demangled_name(names[i]);
    text += (i == 0 ? "" : ", ") + plain + (plain == names[i] ? "" : " (" + names[i] + ")");
  }
  return names.size() > kMost ? text + ", ..." : text;
}

}  // namespace

bool is_ptx(std::string_view text) {
  return client::PtxWords(text).next() == ".version";
}

PtxNames names_in(std::string_view ptx) {
  enum class Expect { kNothing, kKernel, kVariable } expect = Expect::kNothing;
  PtxNames names;
  int depth = 0;  // of braces and parentheses: parameters may be ".ptr .global" too
  client::PtxWords words(ptx);
  for (std::string_view word = words.next(); !word.empty(); word = words.next()) {
    if (word == "{" || word == "(") ++depth;
    if (word == "}" || word == ")") --depth;
    if (depth != 0) continue;
    if (word == ".entry") {
      expect = Expect::kKernel;
    } else if (word == ".global" || word == ".const") {
      expect = Expect::kVariable;
    } else if (expect != Expect::kNothing && begins_name(word)) {
      (expect == Expect::kKernel ? names.kernels : names.variables).emplace_back(word);
      expect = Expect::kNothing;
    }
  }
  return names;
}

std::string spelling(std::string_view name) {
  std::string result;
  bool gap = false;
  for (const char c : name) {
    if (std::isspace(static_cast<unsigned char>(c)) != 0) {
      gap = true;
      continue;
    }
    // A blank counts only where it keeps two words apart: "unsigned int".
    if (gap && !result.empty() && is_identifier(result.back()) && is_identifier(c)) result += ' ';
    gap = false;
    result += c;
  }
  if (result.starts_with("::")) result.erase(0, 2);
  return result;
}

std::string demangled_name(const std::string& name) {
  return std::string(short_kernel_name(demangle(name)));
}

std::expected<std::string, NoName> resolve(std::string_view wanted,
                                           const std::vector<std::string>& candidates,
                                           const WrittenNames& written) {
  const auto there = [&](std::string_view name) {
    return std::find(candidates.begin(), candidates.end(), name) != candidates.end();
  };
  if (there(wanted)) return std::string(wanted);
  const std::string spelled = spelling(wanted);
  std::vector<std::string> found;
  const auto add = [&](const std::string& name) {
    if (std::find(found.begin(), found.end(), name) == found.end()) found.push_back(name);
  };
  for (const auto& [as_written, in_ptx] : written) {
    if (spelling(as_written) == spelled && there(in_ptx)) add(in_ptx);
  }
  if (found.empty()) {
    for (const std::string& name : candidates) {
      if (means(spelled, name)) add(name);
    }
  }
  if (found.size() == 1) return found.front();
  const std::string quoted = '"' + std::string(wanted) + '"';
  if (found.empty()) {
    return std::unexpected(NoName{
        false, quoted + " is not among " + (candidates.empty() ? "none" : list(candidates))});
  }
  std::string several;
  for (const std::string& name : found) several += (several.empty() ? "" : ", ") + name;
  return std::unexpected(NoName{true, quoted + " may be any of " + several});
}

}  // namespace slate::api
