#include "injector/link/link.h"

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <unordered_map>
#include <vector>

#include "injector/link/builtins.h"
#include "injector/ptx/module.h"
#include "injector/ptx/printer.h"
#include "injector/ptx/scanner.h"

namespace slate::ptx {
namespace {

/// How strongly a declaration insists on being the definition.
enum class Strength { kExtern, kPrivate, kWeak, kStrong };

/// A variable or function at module scope, as one module has it.
struct Symbol {
  std::size_t module = 0;
  std::string_view name;
  Strength strength = Strength::kExtern;
  const Variable* variable = nullptr;  // exactly one of the two is set
  const Function* function = nullptr;
  Span span() const { return variable != nullptr ? variable->span : function->span; }
};

struct Input {
  std::unique_ptr<const Module> module;
  std::vector<Symbol> symbols;
  std::map<std::string_view, std::string> new_names;  // of private symbols
};

std::string_view text_of(const Module& module, Span span) {
  return std::string_view(module.text).substr(span.begin, span.end - span.begin);
}

/// `.weak` and `.common` among the words before the name: the model calls both visible.
bool is_weak(const Module& module, Span span, std::string_view name) {
  const auto name_at = static_cast<std::uint32_t>(name.data() - module.text.data());
  const std::string_view before = text_of(module, {span.begin, name_at});
  return before.find(".weak") != before.npos || before.find(".common") != before.npos;
}

Strength strength_of(const Module& module, bool is_extern, bool is_visible, Span span,
                     std::string_view name) {
  if (is_extern) return Strength::kExtern;
  if (!is_visible) return Strength::kPrivate;
  return is_weak(module, span, name) ? Strength::kWeak : Strength::kStrong;
}

std::vector<Symbol> symbols_of(const Module& module, std::size_t number) {
  std::vector<Symbol> symbols;
  for (const Variable& variable : module.variables) {
    symbols.push_back(
        {number, variable.name,
         strength_of(module, variable.is_extern, variable.is_visible, variable.span, variable.name),
         &variable, nullptr});
  }
  std::set<std::string_view> bodies;
  for (const Function& function : module.functions) {
    if (function.has_body) bodies.insert(function.name);
  }
  for (const Function& function : module.functions) {
    // Forward declarations of what this module defines are written anew.
    if (function.is_prototype || (!function.has_body && bodies.contains(function.name))) continue;
    const auto strength = function.has_body
                              ? strength_of(module, function.is_extern, function.is_visible,
                                            function.span, function.name)
                              : Strength::kExtern;
    symbols.push_back({number, function.name, strength, nullptr, &function});
  }
  return symbols;
}

/// What all modules together say of each name that is not private.
class Names {
 public:
  Result<void> add(const Symbol& symbol) {
    taken_.insert(symbol.name);
    if (symbol.strength == Strength::kPrivate) return {};
    auto [at, is_new] = chosen_.try_emplace(symbol.name, symbol);
    if (is_new) return {};
    Symbol& known = at->second;
    if ((known.function == nullptr) != (symbol.function == nullptr)) {
      return fail(ErrorCode::kInvalidPtx, std::string(symbol.name) +
                                              " is a function in one module and a variable in "
                                              "another");
    }
    if (known.strength == Strength::kStrong && symbol.strength == Strength::kStrong) {
      return fail(ErrorCode::kInvalidPtx, std::string(symbol.name) + " is defined in two modules");
    }
    const bool stronger = symbol.strength > known.strength;
    // Dynamic shared memory stays extern; the strictest alignment holds for all.
    const bool stricter = symbol.strength == Strength::kExtern && is_dynamic_shared(known) &&
                          is_dynamic_shared(symbol) &&
                          symbol.variable->align > known.variable->align;
    if (stronger || stricter) known = symbol;
    return {};
  }

  Result<void> check_complete() const {
    for (const auto& [name, symbol] : chosen_) {
      if (symbol.strength != Strength::kExtern || is_dynamic_shared(symbol)) continue;
      if (symbol.function != nullptr && is_device_builtin(name)) continue;
      return fail(ErrorCode::kNotSupported,
                  "no module of the program defines " + std::string(name));
    }
    return {};
  }

  /// True for the one symbol of its name that goes into the result.
  bool is_chosen(const Symbol& symbol) const {
    if (symbol.strength == Strength::kPrivate) return true;
    const Symbol& chosen = chosen_.at(symbol.name);
    return chosen.variable == symbol.variable && chosen.function == symbol.function;
  }

  /// A name like this one that nothing has yet.
  std::string new_name(std::string_view name) {
    std::string made;
    do {
      made = std::string(name) + "__slate" + std::to_string(++renamed_);
    } while (taken_.contains(made));
    return made;
  }

  static bool is_dynamic_shared(const Symbol& symbol) {
    return symbol.variable != nullptr && symbol.variable->space == Space::kShared;
  }

 private:
  std::map<std::string_view, Symbol> chosen_;
  std::set<std::string_view> taken_;
  std::uint64_t renamed_ = 0;
};

/// Gives private names that several modules use a new name in all modules but the first.
void rename_private(std::vector<Input>& inputs, Names& names) {
  std::map<std::string_view, std::size_t> owner;
  for (const Input& input : inputs) {
    for (const Symbol& symbol : input.symbols) {
      if (symbol.strength != Strength::kPrivate) owner[symbol.name] = inputs.size();  // nobody's
    }
  }
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    for (const Symbol& symbol : inputs[i].symbols) {
      if (symbol.strength != Strength::kPrivate) continue;
      const auto [at, is_first] = owner.try_emplace(symbol.name, i);
      if (is_first || at->second == i) continue;
      inputs[i].new_names.try_emplace(symbol.name, names.new_name(symbol.name));
    }
  }
}

/// The edits that take a module's private names and its debug information (.loc, .file, .section)
/// out of its text.
std::vector<Edit> edits_of(const Input& input) {
  const std::string& text = input.module->text;
  std::vector<Edit> edits;
  Scanner scanner(text);
  for (Token token = scanner.next(); token.kind != TokenKind::kEnd; token = scanner.next()) {
    const std::string_view word = text_of(*input.module, token.span);
    if (token.kind == TokenKind::kWord) {
      const auto renamed = input.new_names.find(word);
      if (renamed != input.new_names.end()) edits.push_back(replace(token.span, renamed->second));
    } else if (token.kind == TokenKind::kDirective && word == ".loc") {
      const std::size_t line_end = text.find('\n', token.span.begin);
      const auto end = static_cast<std::uint32_t>(line_end == text.npos ? text.size() : line_end);
      edits.push_back(remove({token.span.begin, end}));
      while (token.kind != TokenKind::kEnd && token.span.end < end) token = scanner.next();
    }
  }
  return edits;
}

/// Pieces of one module's text, each with those edits that fall into it.
class Pieces {
 public:
  explicit Pieces(const Input& input) : text_(input.module->text), edits_(edits_of(input)) {}

  Result<std::string> operator()(Span span) const {
    std::vector<Edit> inside;
    const auto first = std::ranges::lower_bound(edits_, span.begin, {},
                                                [](const Edit& edit) { return edit.span.begin; });
    for (auto at = first; at != edits_.end() && at->span.end <= span.end; ++at) {
      inside.push_back({{at->span.begin - span.begin, at->span.end - span.begin}, at->text});
    }
    return apply_edits(std::string_view(text_).substr(span.begin, span.end - span.begin),
                       std::move(inside));
  }

 private:
  const std::string& text_;
  const std::vector<Edit> edits_;  // in text order
};

std::string header(const std::vector<Input>& inputs) {
  std::pair<std::uint32_t, std::uint32_t> version;
  const Module* newest = inputs.front().module.get();
  for (const Input& input : inputs) {
    const Module& module = *input.module;
    version = std::max(version, std::pair(module.version_major, module.version_minor));
    if (module.sm > newest->sm ||
        (module.sm == newest->sm && module.target.size() > newest->target.size())) {
      newest = &module;
    }
  }
  return ".version " + std::to_string(version.first) + "." + std::to_string(version.second) +
         "\n.target " + std::string(newest->target) + "\n.address_size " +
         std::to_string(newest->address_size) + "\n\n";
}

class Linker {
 public:
  explicit Linker(std::vector<Input> inputs) : inputs_(std::move(inputs)) {}

  Result<std::string> run() {
    for (const Input& input : inputs_) {
      for (const Symbol& symbol : input.symbols) {
        if (auto ok = names_.add(symbol); !ok) return std::unexpected(ok.error());
      }
    }
    if (auto ok = names_.check_complete(); !ok) return std::unexpected(ok.error());
    rename_private(inputs_, names_);
    for (const Input& input : inputs_) pieces_.emplace_back(input);
    collect_variables();
    out_ = header(inputs_);
    // Whatever order the modules came in, a name has to be declared before it is used.
    auto ok = write_declarations();
    if (ok) ok = write_variables();
    if (ok) ok = write_bodies();
    if (!ok) return std::unexpected(ok.error());
    return std::move(out_);
  }

 private:
  std::string name_in_result(std::size_t module, std::string_view name) const {
    const auto& renamed = inputs_[module].new_names;
    const auto at = renamed.find(name);
    return at == renamed.end() ? std::string(name) : at->second;
  }

  Result<void> write_declarations() {
    for (const Input& input : inputs_) {
      for (const Symbol& symbol : input.symbols) {
        const Function* function = symbol.function;
        if (function == nullptr || function->is_entry || !names_.is_chosen(symbol)) continue;
        const Span whole = function->span;
        const Span head{whole.begin, function->has_body ? function->body.begin : whole.end};
        auto text = pieces_[symbol.module](head);
        if (!text) return std::unexpected(text.error());
        // What a body may be preceded by, as .noreturn, belongs to the declaration as well.
        out_ += *text + (function->has_body ? ";\n" : "\n");
      }
    }
    return {};
  }

  void collect_variables() {
    for (const Input& input : inputs_) {
      for (const Symbol& symbol : input.symbols) {
        if (symbol.variable == nullptr || !names_.is_chosen(symbol)) continue;
        variables_.emplace(name_in_result(symbol.module, symbol.name), symbol);
      }
    }
  }

  Result<void> write_variables() {
    for (const Input& input : inputs_) {
      for (const Symbol& symbol : input.symbols) {
        if (symbol.variable == nullptr || !names_.is_chosen(symbol)) continue;
        if (auto ok = write_variable(symbol); !ok) return ok;
      }
    }
    return {};
  }

  /// Those whose addresses its initial contents have come first. A circle of them is cut somewhere,
  /// as their own module cut it.
  Result<void> write_variable(const Symbol& symbol) {
    std::vector<const Symbol*> stack{&symbol};
    while (!stack.empty()) {
      const Symbol& now = *stack.back();
      if (written_.contains(now.variable)) {
        stack.pop_back();
        continue;
      }
      const bool is_second_visit = !visited_.insert(now.variable).second;
      if (!is_second_visit) {
        for (const Variable::Fixup& fixup : now.variable->fixups) {
          const auto at = variables_.find(name_in_result(now.module, fixup.symbol));
          if (at != variables_.end() && !visited_.contains(at->second.variable)) {
            stack.push_back(&at->second);
          }
        }
        if (stack.back() != &now) continue;
      }
      auto text = pieces_[now.module](now.variable->span);
      if (!text) return std::unexpected(text.error());
      out_ += *text + "\n";
      written_.insert(now.variable);
      stack.pop_back();
    }
    return {};
  }

  Result<void> write_bodies() {
    for (const Input& input : inputs_) {
      for (const Symbol& symbol : input.symbols) {
        if (symbol.function == nullptr || !symbol.function->has_body) continue;
        if (!names_.is_chosen(symbol)) continue;
        auto text = pieces_[symbol.module](symbol.function->span);
        if (!text) return std::unexpected(text.error());
        out_ += "\n" + *text + "\n";
      }
    }
    return {};
  }

  std::vector<Input> inputs_;
  Names names_;
  std::vector<Pieces> pieces_;
  std::unordered_map<std::string, Symbol> variables_;  // by their names in the result
  std::set<const Variable*> visited_, written_;
  std::string out_;
};

}  // namespace

Result<std::string> link(std::span<const std::string_view> modules) {
  std::vector<Input> inputs;
  for (const std::string_view text : modules) {
    auto module = parse(std::string(text));
    if (!module) return std::unexpected(module.error());
    if (!(*module)->aliases.empty()) {
      return fail(ErrorCode::kNotSupported, "a module with .alias cannot be linked");
    }
    const auto& variables = (*module)->variables;
    for (std::size_t i = 1; i < variables.size(); ++i) {
      if (variables[i].span.begin == variables[i - 1].span.begin) {
        return fail(ErrorCode::kNotSupported, "a declaration of several variables");
      }
    }
    auto symbols = symbols_of(**module, inputs.size());
    inputs.push_back({std::move(*module), std::move(symbols), {}});
  }
  return Linker(std::move(inputs)).run();
}

}  // namespace slate::ptx
