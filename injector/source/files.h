// SourceFile: one file of a translation unit with its tokens, and how #include lines find others.
// Any thread; reads files as the caller.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "injector/source/scanner.h"

namespace slate::source {

struct SourceFile {
  std::string name;       // as messages call it
  std::string path;       // on disk; empty for text that was handed over
  std::string directory;  // where its #include "..." is looked up first
  std::string text;
  std::vector<Token> tokens;
  std::vector<std::uint32_t> line_starts;

  std::uint32_t line_of(std::uint32_t offset) const;  // from 1
  std::string_view word(const Token& token) const { return token.in(text); }
};

std::unique_ptr<SourceFile> make_file(std::string name, std::string directory, std::string text);
std::optional<std::string> read_file(const std::string& path);

/// What a preprocessor line says: for `#  define N 4` the word is "define" and the rest "N 4".
struct Directive {
  std::string_view word;
  std::string_view rest;
};
Directive directive_of(const SourceFile& file, const Token& token);

struct Include {
  std::string spelling;
  bool quoted = false;
};
/// Nothing when the line has a macro in the file's place.
std::optional<Include> include_of(const Directive& directive);

/// The path of a header that is the user's own: beside `from`, else in `directories`.
std::optional<std::string> find_header(const Include& include, const SourceFile& from,
                                       const std::vector<std::string>& directories);

}  // namespace slate::source
