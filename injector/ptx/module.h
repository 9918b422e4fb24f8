// Module: what the parser makes of PTX text. A light tree in which every node remembers its bytes
// in the text. Passes splice text, and what they do not touch stays byte for byte the same. It
// knows syntax and names, not what an opcode means: analysis and sim do.
//
// Immutable after parse(). All string_views and Spans point into Module::text, which the Module
// owns; so a Module is neither copied nor moved. Thread: any.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace slate::ptx {

/// Bytes [begin, end) of Module::text.
struct Span {
  std::uint32_t begin = 0;
  std::uint32_t end = 0;
};

enum class Space : std::uint8_t {
  kNone,
  kReg,
  kGlobal,
  kShared,
  kConst,
  kLocal,
  kParam,
  kSreg,
  kTex
};

enum class Type : std::uint8_t {
  kNone,
  kPred,
  kB8,
  kB16,
  kB32,
  kB64,
  kB128,
  kU8,
  kU16,
  kU32,
  kU64,
  kS8,
  kS16,
  kS32,
  kS64,
  kF16,
  kF16x2,
  kBf16,
  kBf16x2,
  kTf32,
  kF32,
  kF64,
  kTexref,
  kSamplerref,
  kSurfref,
};
/// The type of "u32", "pred", ... without the dot; kNone for anything else.
Type parse_type(std::string_view name);
std::string_view type_name(Type type);
/// Bytes of a value; 0 for kPred and the opaque types.
std::uint32_t type_bytes(Type type);
constexpr bool is_float(Type type) {
  return type >= Type::kF16 && type <= Type::kF64;
}
/// Whether values of the type are integers of 8 to 64 bits, or bits that may be one.
constexpr bool is_integer(Type type) {
  return type >= Type::kB8 && type <= Type::kS64 && type != Type::kB128;
}
constexpr bool is_signed(Type type) {
  return type >= Type::kS8 && type <= Type::kS64;
}

/// A declared name: register, variable or parameter. Names in operands are resolved to one of these
/// by scope. With `.reg .b32 %r<100>;` each of the hundred becomes a Variable at its first use, so
/// that a module's size follows its text.
struct Variable {
  std::string_view name;
  Space space = Space::kNone;
  Type type = Type::kNone;     // type of an element
  std::uint32_t vector = 1;    // 2 for .v2, 4 for .v4
  std::uint64_t elements = 1;  // product of the array bounds; 0 for `[]` (extern shared)
  bool is_array = false;
  std::uint32_t align = 0;  // bytes, as declared or the type's natural one
  bool is_extern = false;
  bool is_visible = false;  // .visible, .weak or .common
  bool is_managed = false;  // .attribute(.managed)
  std::uint64_t bytes = 0;  // whole size; 0 for `[]`
  std::uint32_t line = 0;
  Span span;  // the whole declaration
  /// Initial contents, padded with zeros to `bytes`; empty: zeros. Addresses of variables or
  /// functions in it are in `fixups`.
  std::vector<std::uint8_t> initial;
  struct Fixup {
    std::uint64_t offset;  // offset in `initial`
    std::string_view symbol;
    std::int64_t addend;
    bool generic;             // whether it is written generic(symbol)
    std::uint8_t bytes = 8;   // bytes of the field
    std::uint32_t shift = 0;  // right shift in bits, of mask() initialisers
  };
  std::vector<Fixup> fixups;
};

/// What a name in an operand stands for.
enum class Reference : std::uint8_t {
  kNone,       // an external or undefined name
  kLocal,      // Function::variables[index]
  kParameter,  // Function::parameters[index]
  kReturn,     // Function::returns[index]
  kGlobal,     // Module::variables[index]
  kFunction,   // Module::functions[index]
  kLabel,      // Function::labels[index]
};

struct Operand {
  enum class Kind : std::uint8_t {
    kSymbol,   // register, variable, label or function: `text`, `reference`, `index`; `symbol+4`
               // outside brackets leaves 4 in `integer`
    kSpecial,  // %tid.x, %laneid, %clock64, WARP_SZ ...: `text`
    kInteger,  // `integer` (constant expressions are folded)
    kFloat,  // `floating`; 0f/0d forms keep their exact bits in `integer`, `float_bits` = 32 or 64
    kAddress,  // [ parts[0] + integer ]; no parts for a plain number. Textures and tensor maps have
               // more parts: [ texture, sampler, {coordinates} ]
    kVector,   // { parts... }
    kList,     // ( parts... ): the argument and return lists of call
    kPair,     // p|q of setp, shfl and others: parts[0], parts[1]
    kSink,     // _
  };
  Kind kind = Kind::kSymbol;
  bool negated = false;  // !p, or unary minus on a register in a vector op
  Reference reference = Reference::kNone;
  std::uint8_t float_bits = 0;
  char component = 0;  // 'x','y','z','w' of %v.x or %v.r; '0'-'3' of %r.b0, 'l','h' of %r.h0,
                       // %r.h1 (video instructions); 0 when none
  std::uint32_t index = 0;
  std::string_view text;
  std::int64_t integer = 0;
  double floating = 0;
  std::vector<Operand> parts;
  Span span;
};

struct Instruction {
  Span span;  // from the guard or opcode through the semicolon
  std::uint32_t line = 0;
  std::string_view opcode;                  // "ld"
  std::vector<std::string_view> modifiers;  // {"global", "nc", "v4", "f32"}
  std::vector<Operand> operands;
  std::optional<Operand> guard;  // @p or @!p (negated)
  Span opcode_span;              // "ld.global.nc.v4.f32"

  bool has(std::string_view modifier) const;
  /// The type modifier that is n-th from the end (0: the last); kNone when there is none.
  Type type(std::uint32_t nth_from_last = 0) const;
};

struct Label {
  std::string_view name;
  std::uint32_t target = 0;  // index into Function::instructions; its size at the end
  std::uint32_t line = 0;
  Span span;
  std::vector<Operand> targets;            // names in a .branchtargets or .calltargets directive
  std::optional<std::uint32_t> prototype;  // index into Module::functions of a .callprototype
};

/// A pair of braces in a function's body that is not within another one, as compilers put around
/// calls and inline PTX. Its labels cannot be jumped to from outside, and its registers are not
/// known there.
struct InnerScope {
  std::uint32_t first = 0;  // instructions [first, end), at least one
  std::uint32_t end = 0;
  Span span;  // from { to and including }
};

struct Function {
  std::string_view name;
  bool is_entry = false;
  bool is_extern = false;
  bool is_visible = false;    // .visible or .weak
  bool is_prototype = false;  // a nameless signature, of a .callprototype
  bool has_body = false;
  std::vector<Variable> parameters;  // space kParam, or kReg for old-style .func
  std::vector<Variable> returns;
  /// Registers, and local, shared and param variables of all scopes.
  std::vector<Variable> variables;
  std::vector<Label> labels;
  std::vector<Instruction> instructions;  // flat, in text order; scopes are resolved away
  std::vector<InnerScope> scopes;         // in text order
  /// Performance directives: ".maxntid" -> {256,1,1}, ".minnctapersm", ".maxnreg", ".reqntid",
  /// ".reqnctapercluster", ".explicitcluster" ...
  struct Directive {
    std::string_view name;  // "maxntid"
    std::vector<std::uint64_t> values;
    Span span;
  };
  std::vector<Directive> directives;
  std::uint32_t line = 0;
  Span span;             // the whole definition
  Span parameters_span;  // inside the parentheses
  Span body;             // from { to and including }

  const Directive* directive(std::string_view directive_name) const;
};

/// The declaration `.alias name, target;`
struct Alias {
  std::string_view name;
  std::string_view target;
};

struct Module {
  std::string text;
  std::uint32_t version_major = 0;  // .version 9.0
  std::uint32_t version_minor = 0;
  std::string_view target;  // "sm_90a"
  std::uint32_t sm = 0;     // 90
  std::uint32_t address_size = 64;
  std::vector<Variable> variables;
  std::vector<Function> functions;  // entries, functions, prototypes, in text order
  std::vector<Alias> aliases;       // operands and find_function() see through them
  std::uint64_t tree_bytes = 0;     // about the bytes that the tree takes, without the text

  Module() = default;
  Module(Module&&) = delete;  // string_views point into text: held by unique_ptr only
  Module& operator=(Module&&) = delete;

  // The definition, where there is also a declaration; null if there is none.
  const Function* find_entry(std::string_view name) const;
  /// An entry or a function.
  const Function* find_function(std::string_view name) const;
  const Variable* find_variable(std::string_view name) const;
};

/// Limits of parse(), for text of unknown origin.
struct ParseLimits {
  /// Most bytes of a tree. The tree of a compiler's PTX takes about 20 times the text's size:
  /// enough for an image of 50 MB.
  static constexpr std::uint64_t kTreeBytes = std::uint64_t{1} << 30;
  std::uint64_t tree_bytes = kTreeBytes;
  /// Whether functions with bodies are parsed; without them the tree is enough for the module's
  /// variables.
  bool bodies = true;
  /// Whether nobody wants the tree any more, asked every kTokensPerQuestion tokens. Null: never.
  std::function<bool()> is_over = nullptr;
  static constexpr std::uint64_t kTokensPerQuestion = 1 << 16;  // some milliseconds

  /// Limits for text of `bytes` bytes by any author, whose tree could take 150 times as much: at
  /// most three times that of a compiler's text.
  static ParseLimits for_text(std::uint64_t bytes) {
    ParseLimits limits;
    limits.tree_bytes = std::min(kTreeBytes, (std::uint64_t{16} << 20) + 64 * bytes);
    return limits;
  }
};

/// Parses a whole module. No input makes it crash or hang. Errors: kInvalidPtx with "line N:
/// reason" for malformed or truncated text; kLimit with the same for a tree beyond the limits; kIo
/// with the same once `is_over` says so.
Result<std::unique_ptr<const Module>> parse(std::string text, const ParseLimits& limits = {});

}  // namespace slate::ptx
