#include "injector/source/files.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <utility>

namespace slate::source {
namespace {

std::string_view without_blanks(std::string_view text) {
  const auto first = text.find_first_not_of(" \t\r\f\v\n\\");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\r\f\v\n") - first + 1);
}

bool is_name_character(char c) {
  return c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

}  // namespace

std::uint32_t SourceFile::line_of(std::uint32_t offset) const {
  const auto after = std::upper_bound(line_starts.begin(), line_starts.end(), offset);
  return static_cast<std::uint32_t>(after - line_starts.begin());
}

std::unique_ptr<SourceFile> make_file(std::string name, std::string directory, std::string text) {
  auto file = std::make_unique<SourceFile>();
  file->name = std::move(name);
  file->directory = std::move(directory);
  file->text = std::move(text);
  file->tokens = scan(file->text);
  file->line_starts.push_back(0);
  for (std::size_t at = file->text.find('\n'); at != std::string::npos;
       at = file->text.find('\n', at + 1)) {
    file->line_starts.push_back(static_cast<std::uint32_t>(at + 1));
  }
  return file;
}

std::optional<std::string> read_file(const std::string& path) {
  std::ifstream stream(path, std::ios::binary);
  if (!stream) return std::nullopt;
  std::ostringstream text;
  text << stream.rdbuf();
  return std::move(text).str();
}

Directive directive_of(const SourceFile& file, const Token& token) {
  std::string_view text = file.word(token);
  text = without_blanks(text.substr(text.find('#') + 1));
  std::size_t length = 0;
  while (length < text.size() && is_name_character(text[length])) ++length;
  return {text.substr(0, length), without_blanks(text.substr(length))};
}

std::optional<Include> include_of(const Directive& directive) {
  if (directive.rest.empty()) return std::nullopt;
  const char open = directive.rest.front();
  if (open != '"' && open != '<') return std::nullopt;
  const auto close = directive.rest.find(open == '"' ? '"' : '>', 1);
  if (close == std::string_view::npos) return std::nullopt;
  return Include{std::string(directive.rest.substr(1, close - 1)), open == '"'};
}

std::optional<std::string> find_header(const Include& include, const SourceFile& from,
                                       const std::vector<std::string>& directories) {
  namespace fs = std::filesystem;
  std::vector<std::string> candidates;
  if (include.quoted) {
    candidates.push_back(from.directory.empty() ? "." : from.directory);
  }
  candidates.insert(candidates.end(), directories.begin(), directories.end());
  for (const auto& directory : candidates) {
    const fs::path path = fs::path(directory) / include.spelling;
    std::error_code error;
    if (fs::is_regular_file(path, error)) return path.lexically_normal().string();
  }
  return std::nullopt;
}

}  // namespace slate::source
