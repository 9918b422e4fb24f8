// Declarations: variables with their initial contents, parameters, and function signatures. They
// look the same at module level, in bodies and in parameter lists. Private to the parser.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "injector/ptx/cursor.h"
#include "injector/ptx/module.h"

namespace slate::ptx {

struct Declared {
  Variable variable;
  std::optional<std::uint32_t> count;  // of `name<count>`: the variable is then the shape of each
};

struct Linkage {
  bool is_extern = false;
  bool is_visible = false;
};

/// Bytes of zeros that one module's nested initialisers may imply beyond what is written.
inline constexpr std::uint64_t kMaxImpliedBytes = 16u << 20;

class DeclarationParser {
 public:
  explicit DeclarationParser(Cursor& cursor) : cursor_(cursor) {}

  /// ".reg", ".global" ...; kNone for a directive that begins no variable.
  static Space space_of(std::string_view directive);

  /// Takes .extern, .visible, .weak and .common, in any number.
  Linkage parse_linkage();
  /// From the state space through the semicolon, appended to `out`. `begin` is where its linkage
  /// began.
  void parse_variables(const Linkage& linkage, std::uint32_t begin, std::vector<Declared>& out);
  /// [ (returns) ] name [ (parameters) ] [directives]
  void parse_signature(Function& function);
  /// .maxntid and its like, up to the body or the semicolon.
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

/// The value after `=`. `dimensions` are the array bounds; the first is 0 when it is to be counted,
/// and then the variable's elements and bytes are set. Adds to `implied` and fails beyond
/// kMaxImpliedBytes.
void parse_initialiser(Cursor& cursor, Variable& variable,
                       const std::vector<std::uint64_t>& dimensions, std::uint64_t& implied);

}  // namespace slate::ptx
