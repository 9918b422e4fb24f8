// The module level of PTX: headers, variables, functions, debug sections. This folder's interface
// is ptx::parse() of module.h; the other parser files are its parts. Recursion is bounded
// everywhere, and what is built is proportional to the text.
#include <random>

#include "injector/ptx/body.h"
#include "injector/ptx/constant.h"
#include "injector/ptx/cursor.h"
#include "injector/ptx/declaration.h"
#include "injector/ptx/module.h"

namespace slate::ptx {
namespace {

// Flex counts in 31 bits.
constexpr std::size_t kMaxTextBytes = std::size_t{256} << 20;

class Parser {
 public:
  Parser(Module& module, std::string_view text, const ParseLimits& limits)
      : module_(module),
        cursor_(text, limits),
        declarations_(cursor_),
        hash_{std::random_device{}()},
        bodies_(limits.bodies) {}

  Result<void> parse() {
    while (!cursor_.at_end()) parse_item();
    if (module_.version_major == 0) cursor_.fail(".version is missing");
    if (module_.target.empty()) cursor_.fail(".target is missing");
    if (cursor_.failed()) {
      return fail(cursor_.error_code(), cursor_.error());
    }
    resolve_deferred();
    module_.tree_bytes = cursor_.charged();
    return {};
  }

 private:
  void parse_item() {
    if (!cursor_.at(TokenKind::kDirective)) {
      cursor_.fail("expected a directive");
      return;
    }
    const std::string_view name = cursor_.view(cursor_.peek());
    if (name == ".version") {
      parse_version();
    } else if (name == ".target") {
      parse_target();
    } else if (name == ".address_size") {
      cursor_.take();
      module_.address_size = static_cast<std::uint32_t>(parse_count(cursor_, 64, "address size"));
    } else if (name == ".file") {
      parse_file();
    } else if (name == ".section") {
      skip_section();
    } else if (name == ".pragma") {
      skip_pragma(cursor_);
    } else if (name == ".alias") {
      parse_alias();
    } else {
      parse_declaration();
    }
  }

  /// The scanner sees "9.0" as a floating-point number, but 8.10 is not 8.1.
  void parse_version() {
    cursor_.take();
    const std::string_view text = cursor_.view(cursor_.peek());
    const std::size_t dot = text.find('.');
    const auto number = [](std::string_view digits) {
      std::uint32_t value = 0;
      for (const char c : digits.substr(0, 4)) {
        if (c < '0' || c > '9') return std::uint32_t{0};
        value = value * 10 + static_cast<std::uint32_t>(c - '0');
      }
      return value;
    };
    if (!cursor_.at(TokenKind::kFloat) || dot == std::string_view::npos ||
        number(text.substr(0, dot)) == 0) {
      cursor_.fail("expected a version");
      return;
    }
    module_.version_major = number(text.substr(0, dot));
    module_.version_minor = number(text.substr(dot + 1));
    cursor_.take();
  }

  void parse_target() {
    cursor_.take();
    module_.target = cursor_.expect_name("a target");
    while (cursor_.accept(',')) cursor_.expect_name("a target option");
    if (!module_.target.starts_with("sm_") && !module_.target.starts_with("compute_")) return;
    std::uint32_t sm = 0;
    for (const char c : module_.target.substr(module_.target.find('_') + 1).substr(0, 4)) {
      if (c < '0' || c > '9') break;
      sm = sm * 10 + static_cast<std::uint32_t>(c - '0');
    }
    module_.sm = sm;
  }

  /// .file index "name" [, timestamp, size]
  void parse_file() {
    cursor_.take();
    parse_count(cursor_, UINT32_MAX, "file index");
    if (!cursor_.at(TokenKind::kString)) cursor_.fail("expected a file name");
    cursor_.take();
    while (cursor_.accept(',')) parse_constant(cursor_);
  }

  /// Debug data: nothing here needs it.
  void skip_section() {
    cursor_.take();
    cursor_.expect_directive("a section name");
    cursor_.expect('{', "after a section name");
    while (!cursor_.at_end() && !cursor_.at('}')) cursor_.take();
    cursor_.expect('}', "after a section");
  }

  void parse_alias() {
    cursor_.take();
    cursor_.charge(sizeof(Alias));
    Alias alias;
    alias.name = cursor_.expect_name("a name");
    cursor_.expect(',', "between the names of .alias");
    alias.target = cursor_.expect_name("a name");
    cursor_.expect(';', "after .alias");
    module_.aliases.push_back(alias);
  }

  void parse_declaration() {
    const Token first = cursor_.peek();
    const Linkage linkage = declarations_.parse_linkage();
    if (cursor_.at_directive(".entry") || cursor_.at_directive(".func")) {
      parse_function(linkage, first);
    } else if (cursor_.at(TokenKind::kDirective) &&
               DeclarationParser::space_of(cursor_.view(cursor_.peek())) != Space::kNone) {
      parse_variables(linkage, first);
    } else {
      cursor_.fail("unknown directive");
    }
  }

  void parse_variables(const Linkage& linkage, const Token& first) {
    declared_.clear();
    declarations_.parse_variables(linkage, first.span.begin, declared_);
    for (Declared& declared : declared_) {
      if (declared.count) cursor_.fail("a range of variables outside of a function before this");
      module_.variables.push_back(std::move(declared.variable));
    }
  }

  void parse_function(const Linkage& linkage, const Token& first) {
    Function function;
    function.is_entry = cursor_.at_directive(".entry");
    function.is_extern = linkage.is_extern;
    function.is_visible = linkage.is_visible;
    function.line = first.line;
    function.span.begin = first.span.begin;
    cursor_.take();
    declarations_.parse_signature(function);
    if (cursor_.at('{')) {
      function.has_body = true;
      if (!bodies_) {
        skip_body();
        return;
      }
      BodyParser body(cursor_, declarations_, module_, function, hash_);
      const std::vector<Operand*> deferred = body.parse();
      deferred_.insert(deferred_.end(), deferred.begin(), deferred.end());
    } else {
      cursor_.expect(';', "or a body after a function's name");
    }
    function.span.end = cursor_.last_end();
    module_.functions.push_back(std::move(function));
  }

  /// Nothing remains of the function.
  void skip_body() {
    std::size_t depth = 0;
    do {
      if (cursor_.at('{')) ++depth;
      if (cursor_.at('}')) --depth;
      cursor_.take();
    } while (depth > 0 && !cursor_.at_end());
    if (depth > 0) cursor_.fail("expected `}`");
  }

  /// Names of the module may be used before they are declared, so they come last.
  void resolve_deferred() {
    struct Target {
      Reference reference;
      std::uint32_t index;
    };
    NameMap<Target> names(module_.variables.size() + module_.functions.size(), hash_);
    for (std::uint32_t i = 0; i < module_.variables.size(); ++i) {
      names.insert_or_assign(module_.variables[i].name, Target{Reference::kGlobal, i});
    }
    for (std::uint32_t i = 0; i < module_.functions.size(); ++i) {
      const Function& function = module_.functions[i];
      if (function.is_prototype) continue;
      const Target target{Reference::kFunction, i};
      const auto [present, inserted] = names.try_emplace(function.name, target);
      if (!inserted && function.has_body) present->second = target;
    }
    for (const Alias& alias : module_.aliases) {
      if (const auto target = names.find(alias.target); target != names.end()) {
        names.insert_or_assign(alias.name, Target(target->second));
      }
    }
    for (Operand* operand : deferred_) {
      const auto found = names.find(operand->text);
      if (found == names.end()) continue;
      operand->reference = found->second.reference;
      operand->index = found->second.index;
    }
  }

  Module& module_;
  Cursor cursor_;
  DeclarationParser declarations_;
  NameHash hash_;
  const bool bodies_;
  std::vector<Declared> declared_;
  std::vector<Operand*> deferred_;
};

}  // namespace

Result<std::unique_ptr<const Module>> parse(std::string text, const ParseLimits& limits) {
  if (text.size() > kMaxTextBytes) return fail(ErrorCode::kInvalidPtx, "line 1: text over 256 MiB");
  auto module = std::make_unique<Module>();
  module->text = std::move(text);
  // Fat binaries end PTX with zero bytes.
  std::string_view scanned = module->text;
  while (scanned.ends_with('\0')) scanned.remove_suffix(1);
  if (auto parsed = Parser(*module, scanned, limits).parse(); !parsed) {
    return std::unexpected(std::move(parsed.error()));
  }
  return module;
}

}  // namespace slate::ptx
