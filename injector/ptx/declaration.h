// Declarations: variables with their initial contents, parameters, and function signatures. They
// look the same at module level, in bodies and in parameter lists. Private to the parser. Thread:
// one.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "injector/ptx/cursor.h"
#include "injector/ptx/module.h"

namespace slate::ptx {

/// A declared variable, or a range of them.
struct Declared {
  Variable variable;
  /// Number of `name<count>`; the variable is then the shape of each.
  std::optional<std::uint32_t> count;
};

struct Linkage {
  bool is_extern = false;
  bool is_visible = false;
};

/// Most bytes of zeros that nested initialisers of one module may imply beyond what is written.
inline constexpr std::uint64_t kMaxImpliedBytes = 16u << 20;

class DeclarationParser {
 public:
  explicit DeclarationParser(Cursor& cursor) : cursor_(cursor) {}

  /// The space of ".reg", ".global" and so on; kNone for a directive that begins no variable.
  static Space space_of(std::string_view directive);

  /// Takes .extern, .visible, .weak and .common, in any number.
  Linkage parse_linkage();
  /// Takes from the state space through the semicolon, and appends the variables to `out`. `begin`:
  /// beginning of their linkage.
  void parse_variables(const Linkage& linkage, std::uint32_t begin, std::vector<Declared>& out);
  /// Takes [ (returns) ] name [ (parameters) ] [directives].
  void parse_signature(Function& function);
  /// Takes .maxntid and similar directives, up to the body or the semicolon.
  void parse_function_directives(Function& function);
  void skip_attribute(bool* is_managed);

 private:
  void parse_specifiers(Variable& base);
  bool parse_specifier(Variable& base, bool& is_pointer);
  Declared parse_declarator(const Variable& base);
  void parse_dimensions(Variable& variable, std::vector<std::uint64_t>& dimensions);
  void set_size(Variable& variable);
  void parse_parameters(std::vector<Variable>& out);

  Cursor& cursor_;
  std::uint64_t implied_ = 0;
};

/// Takes the value behind `=`. `dimensions`: the array bounds; if the first is 0, it is counted,
/// and the variable's elements and bytes are set. Adds zeros to `implied` and fails beyond
/// kMaxImpliedBytes.
void parse_initialiser(Cursor& cursor, Variable& variable,
                       const std::vector<std::uint64_t>& dimensions, std::uint64_t& implied);

}  // namespace slate::ptx
