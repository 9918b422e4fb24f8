#include "injector/source/unit.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "injector/source/parser.h"

namespace slate::source {
namespace {

constexpr int kDeepestInclude = 100;
constexpr int kMostInclusions = 4;  // of a guarded header that was only included under conditions
constexpr std::size_t kMostBytes = 64 << 20;

/// "#ifndef X", "#define X" and the "#endif" of it around everything, or "#pragma once" among the
/// lines. An #else of it means that a second inclusion does something else.
void find_guard(const SourceFile& file, bool& guarded, bool& once) {
  std::string_view name, tested;
  int directives = 0, depth = 0;
  bool whole = !file.tokens.empty() && file.tokens[0].kind == TokenKind::kDirective;
  for (const auto& token : file.tokens) {
    if (token.kind != TokenKind::kDirective) {
      whole &= depth > 0;
      continue;
    }
    const auto [word, rest] = directive_of(file, token);
    if (word == "pragma" && rest.starts_with("once")) once = true;
    ++directives;
    if (directives == 1) {
      whole &= word == "ifndef" || (word == "if" && rest.starts_with("!defined"));
      tested = rest;
    } else if (directives == 2) {
      name = rest.substr(0, rest.find_first_of(" \t/"));
      whole &= word == "define" && !name.empty() && tested.find(name) != std::string_view::npos;
    }
    if (word.starts_with("if")) {
      whole &= depth > 0 || directives == 1;
      ++depth;
    } else if (word == "endif") {
      --depth;
    } else if (word.starts_with("el")) {
      whole &= depth > 1;
    }
  }
  guarded = whole && directives >= 3;
}

}  // namespace

void Unit::read(std::string_view text, std::string name, std::string directory) {
  main_ = make_file(std::move(name), std::move(directory), std::string(text));
  bytes_ = text.size();
  parse(*main_, false);
}

int Unit::add(Item item) {
  if (item.parent < 0 && !scopes_.empty()) item.parent = scopes_.back();
  items_.push_back(std::move(item));
  return static_cast<int>(items_.size()) - 1;
}

void Unit::parse(const SourceFile& file, bool guarded) {
  Parser parser(*this, file);
  const auto open = conditional_.size();
  mentions_std_ |= file.text.find("std") != std::string::npos;
  guards_ += guarded;
  parser.run();
  guards_ -= guarded;
  conditional_.resize(std::min(open, conditional_.size()));
}

bool Unit::never_holds(const Directive& directive) const {
  std::string_view name = directive.rest;
  if (directive.word == "if") {
    if (name == "0") return true;
    if (!name.starts_with("defined")) return false;
    name.remove_prefix(std::min(name.find_first_not_of(" (\t", 7), name.size()));
    if (name.ends_with(')')) name.remove_suffix(1);
  } else if (directive.word != "ifdef") {
    return false;
  }
  name = name.substr(0, name.find_first_of(" \t/"));
  const bool plain = !name.empty() && name.find_first_of("()&|!,") == std::string_view::npos;
  // Reserved names and CUDA's are the compiler's to know.
  if (!plain || name.starts_with('_') || name.starts_with("CUDA")) return false;
  return macros_.find(name) == nullptr &&
         std::find(defined_.begin(), defined_.end(), name) == defined_.end();
}

bool Unit::include(const SourceFile& from, const Include& spelt) {
  const auto path = find_header(spelt, from, directories_);
  if (!path || depth_ >= kDeepestInclude) return path.has_value();
  Header& header = headers_[*path];
  if (!header.file) {
    auto text = read_file(*path);
    if (!text) return false;
    header.file =
        make_file(*path, std::filesystem::path(*path).parent_path().string(), std::move(*text));
    header.file->path = *path;
    find_guard(*header.file, header.guarded, header.once);
  }
  const bool protects_itself = header.guarded || header.once;
  if (protects_itself && (header.taken_surely || header.times >= kMostInclusions)) return true;
  bytes_ += header.file->text.size();
  if (bytes_ > kMostBytes) return true;
  ++header.times;
  header.taken_surely |= conditional_.size() == static_cast<std::size_t>(guards_);
  const std::string macro = "SLATE_ONCE_" + std::to_string(std::hash<std::string>{}(*path));
  if (header.once) {
    add({.kind = ItemKind::kText, .text = "#ifndef " + macro + "\n#define " + macro + "\n"});
  }
  const SourceFile& file = *header.file;
  const bool guarded = header.guarded;
  const bool once = header.once;
  ++depth_;
  parse(file, guarded);
  --depth_;
  if (once) add({.kind = ItemKind::kText, .text = "#endif\n"});
  return true;
}

}  // namespace slate::source
