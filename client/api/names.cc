#include "client/api/names.h"

#include <cxxabi.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <memory>

namespace slate::api {
namespace {

bool is_word(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '$' || c == '%' ||
         c == '.';
}
bool is_identifier(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
}

/// Words and single signs of PTX, without comments; a string is one word that begins with '"'.
class Words {
 public:
  explicit Words(std::string_view text) : text_(text) {}

  /// Empty at the end.
  std::string_view next() {
    skip_blanks();
    const std::size_t begin = at_;
    if (at_ == text_.size()) return {};
    if (text_[at_] == '"') {
      const std::size_t end = text_.find('"', at_ + 1);
      at_ = end == text_.npos ? text_.size() : end + 1;
    } else if (is_word(text_[at_])) {
      while (at_ < text_.size() && is_word(text_[at_])) ++at_;
    } else {
      ++at_;
    }
    return text_.substr(begin, at_ - begin);
  }

 private:
  void skip_blanks() {
    while (at_ < text_.size()) {
      const std::string_view rest = text_.substr(at_);
      if (std::isspace(static_cast<unsigned char>(rest[0])) != 0) {
        ++at_;
      } else if (rest.starts_with("//")) {
        skip_to("\n", 0);
      } else if (rest.starts_with("/*")) {
        skip_to("*/", 2);
      } else {
        return;
      }
    }
  }
  void skip_to(std::string_view end, std::size_t opening) {
    const std::size_t found = text_.find(end, at_ + opening);
    at_ = found == text_.npos ? text_.size() : found + end.size();
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

bool begins_name(std::string_view word) {
  return is_word(word[0]) && word[0] != '.' &&
         std::isdigit(static_cast<unsigned char>(word[0])) == 0;
}

/// "void ns::scale<float>(float*, int)" for a mangled name; empty for one that is not mangled.
std::string demangle(const std::string& name) {
  if (!name.starts_with("_Z")) return {};
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> text(
      abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status), std::free);
  return status == 0 && text != nullptr ? std::string(text.get()) : std::string();
}

/// Without the return type, which only templates have and which is void for a kernel.
std::string_view without_result(std::string_view signature) {
  constexpr std::string_view kVoid = "void ";
  return signature.starts_with(kVoid) ? signature.substr(kVoid.size()) : signature;
}

/// Cuts a parameter list off the end: "(float*, int)".
std::string_view without_parameters(std::string_view signature) {
  if (!signature.ends_with(')')) return signature;
  int depth = 0;
  for (std::size_t i = signature.size(); i-- > 0;) {
    if (signature[i] == ')') ++depth;
    if (signature[i] == '(' && --depth == 0) return signature.substr(0, i);
  }
  return signature;
}

bool means(const std::string& wanted, const std::string& mangled) {
  const std::string signature = demangle(mangled);
  const std::string_view plain = without_result(signature);
  return !plain.empty() &&
         (spelling(plain) == wanted || spelling(without_parameters(plain)) == wanted);
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
  return Words(text).next() == ".version";
}

PtxNames names_in(std::string_view ptx) {
  enum class Expect { kNothing, kKernel, kVariable } expect = Expect::kNothing;
  PtxNames names;
  int depth = 0;  // of braces and parentheses: parameters may be ".ptr .global" too
  Words words(ptx);
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
  const std::string signature = demangle(name);
  if (signature.empty()) return name;
  return std::string(without_parameters(without_result(signature)));
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
