// The module model: what the parser makes of PTX text. A light tree whose every node remembers its
// bytes in the text, so that passes splice text and whatever they do not touch stays byte for byte
// the same. It knows syntax and names, not what an opcode means: that is the business of analysis
// and of sim.
//
// Everything is immutable after parse() and may be read by several threads. All string_views and
// Spans point into Module::text, which the Module owns; a Module is therefore movable but never
// copied.
#pragma once

#include <algorithm>
#include <cstdint>
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
/// "u32", "pred", ... without the dot; kNone for anything else.
Type parse_type(std::string_view name);
std::string_view type_name(Type type);
/// 0 for kPred and the opaque types.
std::uint32_t type_bytes(Type type);

/// A declared name: register, variable or parameter; names in operands are resolved to one of these
/// by scope.
/// `.reg .b32 %r<100>;` makes one for each of the hundred that some operand uses, at its first use,
/// so that a module's size follows its text.
struct Variable {
  std::string_view name;
  Space space = Space::kNone;
  Type type = Type::kNone;     // element type
  std::uint32_t vector = 1;    // 2 for .v2, 4 for .v4
  std::uint64_t elements = 1;  // product of the array bounds; 0 for `[]` (extern shared)
  bool is_array = false;
  std::uint32_t align = 0;  // bytes; as declared, else the natural one
  bool is_extern = false;
  bool is_visible = false;  // .visible, .weak or .common
  bool is_managed = false;  // .attribute(.managed)
  std::uint64_t bytes = 0;  // whole size; 0 for `[]`
  std::uint32_t line = 0;
  Span span;  // the whole declaration
  /// Initial contents, zero-padded to `bytes` when used; empty means zeros. Addresses of other
  /// variables or functions inside it are in `fixups`.
  std::vector<std::uint8_t> initial;
  struct Fixup {
    std::uint64_t offset;  // into initial
    std::string_view symbol;
    std::int64_t addend;
    bool generic;             // written generic(symbol)
    std::uint8_t bytes = 8;   // width of the field
    std::uint32_t shift = 0;  // mask() initialisers: right shift in bits
  };
  std::vector<Fixup> fixups;
};

/// What a name in an operand stands for.
enum class Reference : std::uint8_t {
  kNone,       // not resolved: an external or undefined name
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
  /// The n-th modifier from the end that is a type (0 = the last); kNone when there is none.
  Type type(std::uint32_t nth_from_last = 0) const;
};

struct Label {
  std::string_view name;
  std::uint32_t target = 0;  // index into Function::instructions; size() at the end
  std::uint32_t line = 0;
  Span span;
  std::vector<Operand> targets;            // of a .branchtargets / .calltargets directive
  std::optional<std::uint32_t> prototype;  // index into Module::functions of a .callprototype
};

/// A pair of braces in a function's body, not within another one: compilers put calls into them,
/// and so does inline PTX. A label in one cannot be jumped to from outside, nor are its registers
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
  bool is_prototype = false;  // of a .callprototype: a nameless signature
  bool has_body = false;
  std::vector<Variable> parameters;  // space kParam, or kReg for old-style .func
  std::vector<Variable> returns;
  std::vector<Variable> variables;  // registers, local, shared and param variables of all scopes
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

/// `.alias name, target;`
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
  std::uint64_t tree_bytes = 0;     // about so much all of this takes, beside the text

  Module() = default;
  Module(Module&&) = delete;  // string_views point into text: held by unique_ptr only
  Module& operator=(Module&&) = delete;

  // Those with a body, where there is also a declaration.
  const Function* find_entry(std::string_view name) const;
  /// An entry or function.
  const Function* find_function(std::string_view name) const;
  const Variable* find_variable(std::string_view name) const;
};

struct ParseLimits {
  /// The tree of compilers' PTX takes about 20 times the text's size: for an image of 50 MB.
  static constexpr std::uint64_t kTreeBytes = std::uint64_t{1} << 30;
  std::uint64_t tree_bytes = kTreeBytes;
  /// Without, functions with bodies are left out: enough for the module's variables.
  bool bodies = true;

  /// For a stranger's text of that size, which could take 150 times as much: no more than three
  /// times what a compiler's takes.
  static ParseLimits for_text(std::uint64_t bytes) {
    return {.tree_bytes = std::min(kTreeBytes, (std::uint64_t{16} << 20) + 64 * bytes)};
  }
};

/// Parses a whole module. Malformed or truncated text gives kInvalidPtx with "line N: reason", and
/// kLimit so too what would take more room than the limits; no input makes it crash or hang.
Result<std::unique_ptr<const Module>> parse(std::string text, const ParseLimits& limits = {});

}  // namespace slate::ptx
