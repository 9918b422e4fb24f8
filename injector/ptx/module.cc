// The look-ups of the module model and the table of types.
#include "injector/ptx/module.h"

#include <algorithm>
#include <array>

namespace slate::ptx {
namespace {

struct TypeRow {
  std::string_view name;
  Type type;
  std::uint32_t bytes;
};

// In the order of the enum, so that type_name() and type_bytes() index it.
constexpr std::array kTypes = {
    TypeRow{"", Type::kNone, 0},          TypeRow{"pred", Type::kPred, 0},
    TypeRow{"b8", Type::kB8, 1},          TypeRow{"b16", Type::kB16, 2},
    TypeRow{"b32", Type::kB32, 4},        TypeRow{"b64", Type::kB64, 8},
    TypeRow{"b128", Type::kB128, 16},     TypeRow{"u8", Type::kU8, 1},
    TypeRow{"u16", Type::kU16, 2},        TypeRow{"u32", Type::kU32, 4},
    TypeRow{"u64", Type::kU64, 8},        TypeRow{"s8", Type::kS8, 1},
    TypeRow{"s16", Type::kS16, 2},        TypeRow{"s32", Type::kS32, 4},
    TypeRow{"s64", Type::kS64, 8},        TypeRow{"f16", Type::kF16, 2},
    TypeRow{"f16x2", Type::kF16x2, 4},    TypeRow{"bf16", Type::kBf16, 2},
    TypeRow{"bf16x2", Type::kBf16x2, 4},  TypeRow{"tf32", Type::kTf32, 4},
    TypeRow{"f32", Type::kF32, 4},        TypeRow{"f64", Type::kF64, 8},
    TypeRow{"texref", Type::kTexref, 0},  TypeRow{"samplerref", Type::kSamplerref, 0},
    TypeRow{"surfref", Type::kSurfref, 0}};

constexpr bool rows_match_enum() {
  for (std::size_t i = 0; i < kTypes.size(); ++i) {
    if (static_cast<std::size_t>(kTypes[i].type) != i) return false;
  }
  return true;
}
static_assert(rows_match_enum());

const TypeRow& row(Type type) {
  return kTypes[static_cast<std::size_t>(type)];
}

template <typename Named>
const Named* find_named(const std::vector<Named>& all, std::string_view name) {
  const auto found = std::ranges::find(all, name, &Named::name);
  return found == all.end() ? nullptr : &*found;
}

}  // namespace

Type parse_type(std::string_view name) {
  if (name.size() < 2 || name.size() > 10) return Type::kNone;
  for (const TypeRow& candidate : kTypes) {
    if (candidate.name == name) return candidate.type;
  }
  return Type::kNone;
}

std::string_view type_name(Type type) {
  return row(type).name;
}

std::uint32_t type_bytes(Type type) {
  return row(type).bytes;
}

bool Instruction::has(std::string_view modifier) const {
  return std::ranges::find(modifiers, modifier) != modifiers.end();
}

Type Instruction::type(std::uint32_t nth_from_last) const {
  for (auto modifier = modifiers.rbegin(); modifier != modifiers.rend(); ++modifier) {
    const Type found = parse_type(*modifier);
    if (found != Type::kNone && nth_from_last-- == 0) return found;
  }
  return Type::kNone;
}

const Function::Directive* Function::directive(std::string_view directive_name) const {
  return find_named(directives, directive_name);
}

const Function* Module::find_entry(std::string_view name) const {
  const Function* declared = nullptr;
  for (const Function& function : functions) {
    if (!function.is_entry || function.name != name) continue;
    if (function.has_body) return &function;
    if (declared == nullptr) declared = &function;
  }
  return declared;
}

const Function* Module::find_function(std::string_view name) const {
  if (const Alias* alias = find_named(aliases, name)) name = alias->target;
  const Function* declared = nullptr;
  for (const Function& function : functions) {
    if (function.is_prototype || function.name != name) continue;
    if (function.has_body) return &function;
    if (declared == nullptr) declared = &function;
  }
  return declared;
}

const Variable* Module::find_variable(std::string_view name) const {
  return find_named(variables, name);
}

}  // namespace slate::ptx
