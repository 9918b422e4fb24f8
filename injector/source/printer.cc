#include "injector/source/printer.h"

#include <algorithm>

#include "injector/source/headers.h"

namespace slate::source {
namespace {

constexpr std::uint32_t kMostEmptyLines = 6;  // instead of a #line directive

class Printer {
 public:
  Printer(const Unit& unit, const Selection& selection, const std::vector<std::string>& toolkit)
      : unit_(unit), selection_(selection), toolkit_(toolkit) {}

  std::string run() {
    out_ = "#include <" + std::string(kPrelude) + ">\n";
    if (selection_.needs_whole_std()) out_ += "#include <" + std::string(kStandardName) + ">\n";
    const auto& items = unit_.items();
    for (int index = 0; index < static_cast<int>(items.size()); ++index) {
      const Item& item = items[index];
      if (item.kind == ItemKind::kText) {
        start_line();
        out_ += item.text;
        file_ = nullptr;
      } else if (item.kind == ItemKind::kDirective) {
        directive(*item.file, item.file->tokens[item.first], selection_.banned(index));
      } else if (selection_.kept(index)) {
        whole(item);
      } else {
        directives_within(item);
      }
    }
    start_line();
    return std::move(out_);
  }

 private:
  void start_line() {
    if (out_.empty() || out_.back() == '\n') return;
    out_ += '\n';
    ++line_;
  }

  void move_to(const SourceFile& file, std::uint32_t line) {
    if (file_ == &file && line_ == line && !out_.empty()) return;
    start_line();
    if (file_ == &file && line >= line_ && line - line_ <= kMostEmptyLines) {
      out_.append(line - line_, '\n');
    } else {
      std::string name;
      for (const char c : file.name) {
        if (c == '"' || c == '\\') name += '\\';
        name += c;
      }
      out_ += "#line " + std::to_string(line) + " \"" + name + "\"\n";
    }
    file_ = &file;
    line_ = line;
  }

  void put(std::string_view text) {
    out_ += text;
    line_ += static_cast<std::uint32_t>(std::count(text.begin(), text.end(), '\n'));
  }

  void directive(const SourceFile& file, const Token& token, bool banned) {
    const Directive parts = directive_of(file, token);
    if (parts.word.empty() || parts.word == "line" || parts.word == "warning") return;
    if (parts.word == "pragma" && parts.rest.starts_with("once")) return;
    std::string_view text = file.word(token);
    std::string replaced;
    if (parts.word.starts_with("include")) {
      const auto spelt = include_of(parts);
      if (banned || !spelt) return;
      if (fate_of(*spelt, selection_.needs_whole_std(), toolkit_) == Fate::kDrop) return;
      text = replaced = "#include <" + spelt->spelling + ">";
    } else if (banned) {
      if (parts.word != "if" && parts.word != "elif") return;
      text = replaced = "#" + std::string(parts.word) + " 0";
    }
    move_to(file, file.line_of(token.begin));
    start_line();
    put(text);
    put("\n");
  }

  /// A declaration as written, comments and directives inside included.
  void whole(const Item& item) {
    if (item.last <= item.first) return;
    const Token& first = item.file->tokens[item.first];
    move_to(*item.file, item.file->line_of(first.begin));
    const bool directives =
        std::any_of(item.file->tokens.begin() + item.first, item.file->tokens.begin() + item.last,
                    [](const Token& token) { return token.kind == TokenKind::kDirective; });
    const std::uint32_t end = item.file->tokens[item.last - 1].end;
    if (!directives) {
      put(std::string_view(item.file->text).substr(first.begin, end - first.begin));
    } else {
      pieces(item, first.begin, end);
    }
    put(item.file->tokens[item.last - 1].kind == TokenKind::kDirective ? "\n" : " ");
  }

  /// The same, but for #include lines, whose fate is decided one by one.
  void pieces(const Item& item, std::uint32_t begin, std::uint32_t end) {
    const std::string_view text = item.file->text;
    for (std::uint32_t at = item.first; at < item.last; ++at) {
      const Token& token = item.file->tokens[at];
      if (token.kind != TokenKind::kDirective) continue;
      const Directive parts = directive_of(*item.file, token);
      if (!parts.word.starts_with("include")) continue;
      put(text.substr(begin, token.begin - begin));
      begin = token.end;
      const auto spelt = include_of(parts);
      if (!spelt) continue;
      if (const auto path = find_header(*spelt, *item.file, unit_.directories())) {
        put("#include \"" + *path + "\"");
      } else {
        put("#include <" + spelt->spelling + ">");
      }
    }
    put(text.substr(begin, end - begin));
  }

  void directives_within(const Item& item) {
    if (item.file == nullptr) return;
    for (std::uint32_t at = item.first; at < item.last; ++at) {
      const Token& token = item.file->tokens[at];
      if (token.kind != TokenKind::kDirective) continue;
      const auto word = directive_of(*item.file, token).word;
      if (word == "pragma" || word == "error" || word.starts_with("include")) continue;
      directive(*item.file, token, false);
    }
  }

  const Unit& unit_;
  const Selection& selection_;
  const std::vector<std::string>& toolkit_;
  std::string out_;
  const SourceFile* file_ = nullptr;
  std::uint32_t line_ = 0;
};

}  // namespace

std::string print(const Unit& unit, const Selection& selection,
                  const std::vector<std::string>& toolkit) {
  return Printer(unit, selection, toolkit).run();
}

}  // namespace slate::source
