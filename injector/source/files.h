// SourceFile: one file of a translation unit with its tokens, and how #include lines find others.
// Reads files with the caller's rights. Thread: any.
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
  std::string name;       // in messages
  std::string path;       // path on disk; empty: the text was passed in
  std::string directory;  // first place to search for its #include "..."
  std::string text;
  std::vector<Token> tokens;
  std::vector<std::uint32_t> line_starts;

  std::uint32_t line_of(std::uint32_t offset) const;  // from 1
  std::string_view word(const Token& token) const { return token.in(text); }
};

std::unique_ptr<SourceFile> make_file(std::string name, std::string directory, std::string text);
/// The file's text; nullopt when it cannot be read.
std::optional<std::string> read_file(const std::string& path);

/// A preprocessor line in parts: for `#  define N 4` the word is "define" and the rest "N 4".
struct Directive {
  std::string_view word;
  std::string_view rest;
};
Directive directive_of(const SourceFile& file, const Token& token);

struct Include {
  std::string spelling;
  bool quoted = false;
};
/// The file of an #include line; nullopt when a macro stands in its place.
std::optional<Include> include_of(const Directive& directive);

/// The path of a header of the user: beside `from`, else in `directories`; nullopt if it is in
/// neither.
std::optional<std::string> find_header(const Include& include, const SourceFile& from,
                                       const std::vector<std::string>& directories);

}  // namespace slate::source
