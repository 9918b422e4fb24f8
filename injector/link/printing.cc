#include "injector/link/printing.h"

#include <array>
#include <vector>

#include "injector/link/printing_text.h"
#include "injector/ptx/printer.h"
#include "injector/ptx/scanner.h"

namespace slate::ptx {
namespace {

struct Redirection {
  std::string_view from, to;
};
constexpr std::array<Redirection, 2> kRedirections{
    {{"vprintf", "__libslate_vprintf"}, {"__assertfail", "__libslate_assertfail"}}};

std::string_view text_of(std::string_view module, Span span) {
  return module.substr(span.begin, span.end - span.begin);
}

const Redirection* redirection_of(std::string_view name) {
  for (const Redirection& each : kRedirections) {
    if (each.from == name) return &each;
  }
  return nullptr;
}

std::string all_functions() {
  std::string text;
  for (const std::string_view part : {kRingText, kPutFormatText, kPrintfText, kAssertText}) {
    text += part;
  }
  return text;
}

/// What the pass changes: declarations go, the first one for the new functions, and names change.
class Redirector {
 public:
  explicit Redirector(std::string_view module) : module_(module), scanner_(module) {}

  std::optional<std::string> run() {
    for (Token token = scanner_.next(); token.kind != TokenKind::kEnd; token = scanner_.next()) {
      if (token.kind == TokenKind::kError) return std::nullopt;
      if (token.kind == TokenKind::kDirective && text_of(module_, token.span) == ".extern") {
        declaration(token.span.begin);
      } else if (token.kind == TokenKind::kWord) {
        use(token);
      }
    }
    if (!declared_) return std::nullopt;
    auto text = apply_edits(module_, std::move(edits_));
    if (!text) return std::nullopt;
    return std::move(*text);
  }

 private:
  void declaration(std::uint32_t begin) {
    bool is_ours = false;
    Token token = scanner_.next();
    for (; token.kind != TokenKind::kEnd && token.kind != TokenKind::kError;
         token = scanner_.next()) {
      is_ours = is_ours || (token.kind == TokenKind::kWord &&
                            redirection_of(text_of(module_, token.span)) != nullptr);
      if (token.kind == TokenKind::kPunctuation && token.op == ';') break;
    }
    if (!is_ours) return;
    edits_.push_back(replace({begin, token.span.end}, declared_ ? "" : all_functions()));
    declared_ = true;
  }

  void use(const Token& token) {
    const Redirection* const found = redirection_of(text_of(module_, token.span));
    if (found != nullptr) edits_.push_back(replace(token.span, std::string(found->to)));
  }

  const std::string_view module_;
  Scanner scanner_;
  std::vector<Edit> edits_;
  bool declared_ = false;
};

}  // namespace

std::optional<std::string> with_printing(std::string_view module) {
  for (const Redirection& each : kRedirections) {
    if (module.find(each.from) != std::string_view::npos) return Redirector(module).run();
  }
  return std::nullopt;
}

}  // namespace slate::ptx
