#include "injector/link/builtins.h"

#include <algorithm>
#include <array>
#include <vector>

#include "injector/link/heap_blocks_text.h"
#include "injector/link/heap_pages_text.h"
#include "injector/link/heap_text.h"
#include "injector/link/heap_units_text.h"
#include "injector/link/printing_text.h"
#include "injector/ptx/printer.h"
#include "injector/ptx/scanner.h"

namespace slate::ptx {
namespace {

enum class Group { kPrinting, kHeap };

struct Builtin {
  std::string_view name, ours;
  Group group;
};
constexpr std::array<Builtin, 4> kBuiltins{
    {{"vprintf", "__libslate_vprintf", Group::kPrinting},
     {"__assertfail", "__libslate_assertfail", Group::kPrinting},
     {"malloc", "__libslate_malloc", Group::kHeap},
     {"free", "__libslate_free", Group::kHeap}}};

std::string_view text_of(std::string_view module, Span span) {
  return module.substr(span.begin, span.end - span.begin);
}

std::size_t number_of(std::string_view name) {
  return static_cast<std::size_t>(std::ranges::find(kBuiltins, name, &Builtin::name) -
                                  kBuiltins.begin());
}

std::string functions_of(Group group) {
  std::string text;
  if (group == Group::kPrinting) {
    for (const std::string_view part : {kRingText, kPutFormatText, kPrintfText, kAssertText}) {
      text += part;
    }
  } else {
    for (const std::string_view part :
         {kHeapPagesText, kHeapBlocksText, kHeapUnitsText, kHeapText}) {
      text += part;
    }
  }
  return text;
}

/// What the pass changes: declarations go, the first one of a group for its functions, and names
/// change behind their declarations.
class Redirector {
 public:
  explicit Redirector(std::string_view module) : module_(module), scanner_(module) {}

  std::optional<WithBuiltins> run() {
    for (Token token = scanner_.next(); token.kind != TokenKind::kEnd; token = scanner_.next()) {
      if (token.kind == TokenKind::kError) return std::nullopt;
      if (token.kind == TokenKind::kDirective && text_of(module_, token.span) == ".extern") {
        declaration(token.span.begin);
      } else if (token.kind == TokenKind::kWord) {
        use(token);
      }
    }
    if (!result_.prints && !result_.allocates) return std::nullopt;
    auto text = apply_edits(module_, std::move(edits_));
    if (!text) return std::nullopt;
    result_.text = std::move(*text);
    return std::move(result_);
  }

 private:
  /// A function's name is the first word outside the parentheses.
  void declaration(std::uint32_t begin) {
    bool is_function = false;
    int depth = 0;
    std::string_view name;
    Token token = scanner_.next();
    for (; token.kind != TokenKind::kEnd && token.kind != TokenKind::kError;
         token = scanner_.next()) {
      const std::string_view text = text_of(module_, token.span);
      is_function = is_function || (token.kind == TokenKind::kDirective && text == ".func");
      if (token.kind == TokenKind::kWord && depth == 0 && name.empty()) name = text;
      if (token.kind != TokenKind::kPunctuation) continue;
      if (token.op == '(') ++depth;
      if (token.op == ')') --depth;
      if (token.op == ';') break;
    }
    const std::size_t number = number_of(name);
    if (!is_function || number == kBuiltins.size()) return;
    const Group group = kBuiltins[number].group;
    bool& has = group == Group::kPrinting ? result_.prints : result_.allocates;
    edits_.push_back(replace({begin, token.span.end}, has ? "" : functions_of(group)));
    has = declared_[number] = true;
  }

  void use(const Token& token) {
    const std::size_t number = number_of(text_of(module_, token.span));
    if (number == kBuiltins.size() || !declared_[number]) return;
    edits_.push_back(replace(token.span, std::string(kBuiltins[number].ours)));
  }

  const std::string_view module_;
  Scanner scanner_;
  std::vector<Edit> edits_;
  std::array<bool, kBuiltins.size()> declared_{};
  WithBuiltins result_;
};

}  // namespace

bool is_device_builtin(std::string_view function) {
  return number_of(function) != kBuiltins.size();
}

std::optional<WithBuiltins> with_builtins(std::string_view module) {
  const bool may_have = module.find(".extern") != std::string_view::npos &&
                        std::ranges::any_of(kBuiltins, [&](const Builtin& each) {
                          return module.find(each.name) != std::string_view::npos;
                        });
  return may_have ? Redirector(module).run() : std::nullopt;
}

}  // namespace slate::ptx
