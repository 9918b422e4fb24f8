// MacroTable: what the user's macros would bring into a declaration, without expanding them: which
// CUDA annotations, and which names. All definitions of a name count together, whatever the
// conditions around them. Thread: one.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "injector/source/files.h"

namespace slate::source {

/// CUDA's annotations, as bits of a set.
enum Mark : std::uint32_t {
  kGlobal = 1,
  kDevice = 2,
  kHost = 4,
  kConstant = 8,
  kShared = 16,
  kManaged = 32,
  kConstexpr = 64,
};

/// All definitions of one macro name.
struct Macro {
  std::string_view text;      // last definition, with name and parameters
  std::vector<Token> tokens;  // tokens of `text`; the body begins at `body`
  std::size_t body = 0;
  std::vector<std::string_view> parameters;  // "..." as __VA_ARGS__
  std::vector<std::string_view> names;       // names in all its bodies
  std::vector<std::string_view> of_std;      // x of each std::x in its bodies
  bool takes_arguments = false;
  bool lone_brace = false;  // whether it opens or closes a scope
  // Beginnings and ends of names that ## makes of an argument, which no scanner sees whole.
  std::vector<std::string_view> prefixes, suffixes;
};

class MacroTable {
 public:
  /// Reads a #define; ignores other directives. Requires: `file` outlives the table.
  void add(const SourceFile& file, const Token& directive);

  /// Null if no macro has that name.
  const Macro* find(std::string_view name) const;
  /// The marks of a word: its own, or those of the words that it stands for.
  std::uint32_t marks_of(std::string_view name) const;
  /// Whether the macro's expansion may open or close a scope.
  bool has_lone_brace(std::string_view name) const;
  /// Adds `name` and, through macros, all names that it stands for.
  void expand(std::string_view name, std::unordered_set<std::string_view>& into) const;
  /// The text with the user's macros replaced, as the preprocessor does. Bounded in size; a macro
  /// is not replaced inside itself; directives are left out.
  std::string expanded(std::string_view text) const;

 private:
  std::unordered_map<std::string_view, Macro> macros_;
};

}  // namespace slate::source
