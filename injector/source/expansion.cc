// MacroTable::expanded(): a small preprocessor for reading what host code says behind macros. Its
// output is only looked at, never compiled.
#include <algorithm>
#include <unordered_map>

#include "injector/source/macros.h"

namespace slate::source {
namespace {

constexpr std::size_t kMostText = 256 << 10;  // of one declaration, with all that is thrown away
constexpr int kDeepest = 64;

class Expander {
 public:
  explicit Expander(const MacroTable& macros) : macros_(macros) {}

  std::string run(std::string_view text, int depth) {
    std::string out;
    const auto tokens = scan(text);
    for (std::size_t at = 0; at < tokens.size() && written_ < kMostText; ++at) {
      const Token& token = tokens[at];
      if (token.kind == TokenKind::kDirective) continue;
      const std::string_view word = token.in(text);
      const Macro* macro = token.kind == TokenKind::kName ? macros_.find(word) : nullptr;
      const bool open = std::find(open_.begin(), open_.end(), macro) != open_.end();
      const bool called = at + 1 < tokens.size() && tokens[at + 1].is('(');
      if (macro == nullptr || open || depth > kDeepest || (macro->takes_arguments && !called)) {
        put(out, word);
        continue;
      }
      std::vector<std::string> arguments;
      if (macro->takes_arguments) at = read_arguments(text, tokens, at + 1, *macro, arguments);
      const std::string body = substitute(*macro, arguments, depth);
      open_.push_back(macro);
      put(out, run(body, depth + 1));
      open_.pop_back();
    }
    return out;
  }

 private:
  void put(std::string& out, std::string_view word) {
    if (!out.empty()) out += ' ';
    out += word;
    written_ += word.size() + 1;
  }

  /// From the '(' at `at`; gives the index of its ')'.
  static std::size_t read_arguments(std::string_view text, const std::vector<Token>& tokens,
                                    std::size_t at, const Macro& macro,
                                    std::vector<std::string>& arguments) {
    int depth = 0;
    std::size_t first = at + 1;
    const auto take = [&](std::size_t last) {
      arguments.emplace_back(first < last ? text.substr(tokens[first].begin,
                                                        tokens[last - 1].end - tokens[first].begin)
                                          : std::string_view{});
      first = last + 1;
    };
    const bool variadic = !macro.parameters.empty() && macro.parameters.back() == "__VA_ARGS__";
    for (; at < tokens.size(); ++at) {
      const Token& token = tokens[at];
      if (token.is('(') || token.is('[') || token.is('{')) ++depth;
      if ((token.is(')') || token.is(']') || token.is('}')) && --depth == 0) {
        take(at);
        return at;
      }
      const bool last_one = variadic && arguments.size() + 1 >= macro.parameters.size();
      if (token.is(',') && depth == 1 && !last_one) take(at);
    }
    return tokens.size();
  }

  std::string substitute(const Macro& macro, const std::vector<std::string>& arguments, int depth) {
    std::string out;
    bool glue = false;
    for (std::size_t at = macro.body; at < macro.tokens.size(); ++at) {
      const Token& token = macro.tokens[at];
      if (token.is(op::kPaste)) {
        glue = true;
        continue;
      }
      const std::string_view word = token.in(macro.text);
      const bool pasted =
          glue || (at + 1 < macro.tokens.size() && macro.tokens[at + 1].is(op::kPaste));
      const auto parameter = std::find(macro.parameters.begin(), macro.parameters.end(), word);
      std::string piece(word);
      if (token.kind == TokenKind::kName && parameter != macro.parameters.end()) {
        const auto index = static_cast<std::size_t>(parameter - macro.parameters.begin());
        piece = index < arguments.size() ? arguments[index] : std::string{};
        if (!pasted) piece = run(piece, depth + 1);
      }
      if (!out.empty() && !glue) out += ' ';
      out += piece;
      glue = false;
      written_ += piece.size();
      if (written_ > kMostText) break;
    }
    return out;
  }

  const MacroTable& macros_;
  std::vector<const Macro*> open_;
  std::size_t written_ = 0;
};

}  // namespace

std::string MacroTable::expanded(std::string_view text) const {
  return Expander(*this).run(text, 0);
}

}  // namespace slate::source
