#include "injector/forms/work.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>
#include <utility>

#include "injector/ptx/words.h"

namespace slate::injector {
namespace {

using ptx::begins_with_one_of;
using ptx::Instruction;
using ptx::is_one_of;
using ptx::Operand;

constexpr double kWarp = 32;
constexpr double kWarpGroup = 128;

/// Elements of a floating-point type; 0 for others.
double elements_of(std::string_view type) {
  if (is_one_of(type, {"f16x2", "bf16x2", "f32x2"})) return 2;
  return is_one_of(type, {"f16", "bf16", "tf32", "f32", "f64"}) ? 1 : 0;
}

/// Of the widest floating-point type among the modifiers.
double float_elements(const Instruction& instruction) {
  double most = 0;
  for (const std::string_view word : instruction.modifiers)
    most = std::max(most, elements_of(word));
  return most;
}

double vector_of(const Instruction& instruction) {
  for (const std::string_view word : instruction.modifiers) {
    if (word == "v2") return 2;
    if (word == "v4") return 4;
    if (word == "v8") return 8;
  }
  return 1;
}

double operations_of(std::string_view opcode) {
  if (is_one_of(opcode, {"fma", "mad"})) return 2;
  return is_one_of(opcode, {"add", "sub", "mul", "div", "rcp", "sqrt", "rsqrt", "sin", "cos", "lg2",
                            "ex2", "tanh"})
             ? 1
             : 0;
}

struct MatrixShape {
  double m = 0, n = 0, k = 0;
};

/// "m16n8k16".
std::optional<MatrixShape> parse_shape(std::string_view word) {
  MatrixShape shape;
  const std::pair<char, double*> sizes[] = {{'m', &shape.m}, {'n', &shape.n}, {'k', &shape.k}};
  for (const auto& [letter, size] : sizes) {
    unsigned number = 0;
    if (!word.starts_with(letter)) return std::nullopt;
    const auto end = std::from_chars(word.data() + 1, word.data() + word.size(), number);
    if (end.ec != std::errc()) return std::nullopt;
    word.remove_prefix(static_cast<std::size_t>(end.ptr - word.data()));
    *size = number;
  }
  return word.empty() ? std::optional(shape) : std::nullopt;
}

std::optional<MatrixShape> shape_of(const Instruction& instruction) {
  for (const std::string_view word : instruction.modifiers) {
    if (const auto shape = parse_shape(word)) return shape;
  }
  return std::nullopt;
}

double matrix_flops(const Instruction& instruction) {
  const auto shape = shape_of(instruction);
  if (!shape || float_elements(instruction) == 0) return 0;
  double flops = 2 * shape->m * shape->n * shape->k;
  const bool is_sparse = std::ranges::any_of(instruction.modifiers, [](std::string_view word) {
    return begins_with_one_of(word, {"sp"});
  });
  if (is_sparse) flops /= 2;
  // The first shape of all has every quarter of a warp do one of its own.
  const bool is_quarter = shape->m == 8 && shape->n == 8 && shape->k == 4;
  if (is_quarter && !instruction.has("f64") && instruction.opcode == "mma") flops *= 4;
  return flops / (instruction.opcode == "wgmma" ? kWarpGroup : kWarp);
}

double flops_of(const Instruction& instruction) {
  const std::string_view opcode = instruction.opcode;
  const bool multiplies = opcode == "mma" || (opcode == "wmma" && instruction.has("mma")) ||
                          (opcode == "wgmma" && instruction.has("mma_async"));
  if (multiplies) return matrix_flops(instruction);
  if (is_one_of(opcode, {"atom", "red"})) {
    return instruction.has("add") ? float_elements(instruction) * vector_of(instruction) : 0;
  }
  return operations_of(opcode) * float_elements(instruction);
}

AccessSpace named_space(const Instruction& instruction) {
  bool elsewhere = false;
  for (const std::string_view word : instruction.modifiers) {
    if (word == "global" || word.starts_with("global::")) return AccessSpace::kGlobal;
    elsewhere |= begins_with_one_of(word, {"shared", "local", "param", "const", "reg"});
  }
  return elsewhere ? AccessSpace::kNone : AccessSpace::kGeneric;
}

bool is_register(const ptx::Function& function, const Operand& operand) {
  if (operand.kind != Operand::Kind::kSymbol || operand.component != 0) return false;
  switch (operand.reference) {
    case ptx::Reference::kLocal:
      return function.variables[operand.index].space == ptx::Space::kReg;
    case ptx::Reference::kParameter:
      return function.parameters[operand.index].space == ptx::Space::kReg;
    default:
      return false;
  }
}

const Operand* address_of(const ptx::Function& function, const Instruction& instruction) {
  const auto found =
      std::ranges::find(instruction.operands, Operand::Kind::kAddress, &Operand::kind);
  if (found == instruction.operands.end() || found->parts.size() != 1) return nullptr;
  const Operand& base = found->parts.front();
  return is_register(function, base) ? &base : nullptr;
}

/// A thread's share of a matrix that its warp loads or stores.
double fragment_bytes(const Instruction& instruction) {
  const auto shape = shape_of(instruction);
  if (!shape) return 0;
  double elements = shape->m * shape->n;
  if (instruction.has("a")) elements = shape->m * shape->k;
  if (instruction.has("b")) elements = shape->k * shape->n;
  double bytes = ptx::type_bytes(instruction.type());
  for (const std::string_view word : instruction.modifiers) {
    if (is_one_of(word, {"s8", "u8"})) bytes = 1;
    if (is_one_of(word, {"s4", "u4"})) bytes = 0.5;
    if (word == "b1") bytes = 0.125;
  }
  return elements * bytes / kWarp;
}

/// cp.async: the size is an operand.
void add_copy(const ptx::Function& function, const Instruction& instruction,
              InstructionWork& result) {
  const bool is_copy = instruction.has("async") &&
                       named_space(instruction) == AccessSpace::kGlobal &&
                       !instruction.has("tensor") && !instruction.has("prefetch");
  if (!is_copy || instruction.operands.size() < 3) return;
  const Operand& size = instruction.operands[2];
  result.space = AccessSpace::kGlobal;
  if (size.kind == Operand::Kind::kInteger) {
    result.work.bytes = static_cast<double>(size.integer);
  } else if (is_register(function, size)) {
    result.amount = &size;
  }
}

}  // namespace

Work& Work::operator+=(const Work& other) {
  flops += other.flops;
  bytes += other.bytes;
  instructions += other.instructions;
  return *this;
}

Work Work::operator*(double times) const {
  return {flops * times, bytes * times, instructions * times};
}

InstructionWork work_of(const ptx::Function& function, const Instruction& instruction) {
  InstructionWork result;
  result.work = {.flops = flops_of(instruction), .bytes = 0, .instructions = 1};
  const std::string_view opcode = instruction.opcode;
  const bool loads_fragment =
      opcode == "wmma" && (instruction.has("load") || instruction.has("store"));
  if (is_one_of(opcode, {"ld", "ldu", "st", "red", "atom"}) || loads_fragment) {
    result.space = named_space(instruction);
    if (result.space == AccessSpace::kNone) return result;
    result.address = address_of(function, instruction);
    result.work.bytes = loads_fragment
                            ? fragment_bytes(instruction)
                            : ptx::type_bytes(instruction.type()) * vector_of(instruction);
  } else if (opcode == "cp") {
    add_copy(function, instruction, result);
  }
  return result;
}

}  // namespace slate::injector
