#include "injector/fence/thread_step.h"

#include <algorithm>
#include <string_view>

namespace slate::injector {
namespace {

using ptx::Instruction;
using ptx::Operand;
using ptx::Reference;

constexpr ThreadValue kNotKnown{};

std::uint64_t low_bits(std::uint64_t number, std::uint32_t bits) {
  return bits >= 64 ? number : number & ((std::uint64_t{1} << bits) - 1);
}

std::uint32_t bits_of(ptx::Type type) {
  return type == ptx::Type::kPred ? 1 : 8 * ptx::type_bytes(type);
}

std::optional<std::uint32_t> axis_of(std::string_view name, std::string_view wanted) {
  if (name.size() != wanted.size() + 1 || !name.starts_with(wanted)) return std::nullopt;
  const auto axis = static_cast<std::uint32_t>(name.back() - 'x');
  return axis < 3 ? std::optional(axis) : std::nullopt;
}

}  // namespace

enum class ThreadStep::Op : std::uint8_t {
  kNone,
  kMove,
  kAdd,
  kSubtract,
  kMultiply,
  kMultiplyAdd,
  kShiftLeft,
  kShiftRight,
  kAnd,
  kOr,
  kExclusiveOr,
  kNot,
  kNegate,
  kMin,
  kMax,
  kDivide,
  kRest,
  kConvert,
  kConvertAddress,
  kSelect,
  kCompare,
};

enum class ThreadStep::Comparison : std::uint8_t {
  kEqual,
  kUnequal,
  kLess,
  kLessOrEqual,
  kMore,
  kMoreOrEqual,
};

struct ThreadStep::Named {
  std::string_view opcode;
  Op op;
  std::size_t operands;
};

const ThreadStep::Named ThreadStep::kNamed[] = {
    {"mov", Op::kMove, 2},        {"add", Op::kAdd, 3},         {"sub", Op::kSubtract, 3},
    {"mul", Op::kMultiply, 3},    {"mad", Op::kMultiplyAdd, 4}, {"shl", Op::kShiftLeft, 3},
    {"shr", Op::kShiftRight, 3},  {"and", Op::kAnd, 3},         {"or", Op::kOr, 3},
    {"xor", Op::kExclusiveOr, 3}, {"not", Op::kNot, 2},         {"neg", Op::kNegate, 2},
    {"min", Op::kMin, 3},         {"max", Op::kMax, 3},         {"div", Op::kDivide, 3},
    {"rem", Op::kRest, 3},        {"cvt", Op::kConvert, 2},     {"cvta", Op::kConvertAddress, 2},
    {"selp", Op::kSelect, 4},     {"setp", Op::kCompare, 3},
};

SharedVariables::SharedVariables(const ptx::Module& module, const ptx::Function& function,
                                 std::uint32_t dynamic_bytes)
    : module_(module), function_(function), dynamic_bytes_(dynamic_bytes) {
  const auto add = [&](const ptx::Variable& variable) {
    const bool is_shared = variable.space == ptx::Space::kShared;
    if (!is_shared || all_.size() > kMost || index_of(variable)) return;
    all_.push_back(&variable);
    dynamics_ += variable.bytes == 0 ? 1 : 0;
  };
  for (const ptx::Variable& variable : function.variables) add(variable);
  for (const Instruction& instruction : function.instructions) {
    for_each_operand(instruction.operands, [&](const Operand& operand) {
      if (operand.reference == Reference::kGlobal) add(module.variables[operand.index]);
    });
  }
}

std::uint64_t SharedVariables::bytes(std::uint32_t index) const {
  const std::uint64_t own = all_[index]->bytes;
  return own == 0 && dynamics_ == 1 ? dynamic_bytes_ : own;
}

std::optional<std::uint32_t> SharedVariables::of(const Operand& operand) const {
  if (operand.reference == Reference::kLocal) return index_of(function_.variables[operand.index]);
  if (operand.reference == Reference::kGlobal) return index_of(module_.variables[operand.index]);
  return std::nullopt;
}

std::optional<std::uint32_t> SharedVariables::index_of(const ptx::Variable& variable) const {
  const auto found = std::ranges::find(all_, &variable);
  if (found == all_.end()) return std::nullopt;
  return static_cast<std::uint32_t>(found - all_.begin());
}

ThreadStep::Source ThreadStep::source_of(const Operand& operand, const Registers& registers,
                                         const SharedVariables& variables, const Index& block) {
  using Kind = Source::Kind;
  const auto fixed = [](std::uint32_t base, std::int64_t number) {
    return Source{.kind = Kind::kFixed, .fixed = {base, static_cast<std::uint64_t>(number)}};
  };
  if (operand.component != 0) return {};
  if (operand.kind == Operand::Kind::kInteger && !operand.negated)
    return fixed(ThreadValue::kNumber, operand.integer);
  if (operand.kind == Operand::Kind::kSpecial && !operand.negated) {
    if (const auto axis = axis_of(operand.text, "%tid."))
      return {.kind = Kind::kThread, .index = *axis};
    if (const auto axis = axis_of(operand.text, "%ntid."))
      return fixed(ThreadValue::kNumber, block[*axis]);
    return {};
  }
  if (operand.kind != Operand::Kind::kSymbol) return {};
  if (const auto number = registers.of(operand)) {
    // Of numbers it is another number.
    if (operand.negated && !registers.is_predicate(*number)) return {};
    return {.kind = Kind::kRegister, .is_negated = operand.negated, .index = *number};
  }
  const auto variable = variables.of(operand);
  return variable && !operand.negated ? fixed(2 * *variable, operand.integer) : Source{};
}

ThreadValue ThreadStep::read(const Source& source, std::span<const ThreadValue> registers,
                             const Index& thread) {
  switch (source.kind) {
    case Source::Kind::kNothing:
      break;
    case Source::Kind::kFixed:
      return source.fixed;
    case Source::Kind::kThread:
      return {ThreadValue::kNumber, thread[source.index]};
    case Source::Kind::kRegister: {
      ThreadValue value = registers[source.index];
      if (source.is_negated && value.is_number()) value.number ^= 1;
      return value;
    }
  }
  return kNotKnown;
}

ThreadStep::ThreadStep(const Instruction& instruction, const Registers& registers,
                       const SharedVariables& variables, const Index& block) {
  const auto named = std::ranges::find(kNamed, instruction.opcode, &Named::opcode);
  const auto& operands = instruction.operands;
  if (named == std::end(kNamed)) return;
  const bool has_more = named->op == Op::kCompare && operands.size() == 4;
  if (operands.size() != named->operands && !has_more) return;
  op_ = named->op;
  for (std::size_t i = 1; i < operands.size(); ++i)
    sources_[i - 1] = source_of(operands[i], registers, variables, block);
  decode(instruction, registers);
  if (type_ != ptx::Type::kPred) return;
  // Any constant but 0 is true.
  for (Source& source : sources_) {
    if (source.kind == Source::Kind::kFixed) source.fixed.number = source.fixed.number != 0 ? 1 : 0;
  }
}

/// Sets result() if it knows how to compute what the instruction writes.
void ThreadStep::decode(const Instruction& instruction, const Registers& registers) {
  if (instruction.operands[0].component != 0) return;
  const auto result = registers.of(instruction.operands[0]);
  type_ = instruction.type();
  const bool is_logic = op_ == Op::kMove || op_ == Op::kAnd || op_ == Op::kOr ||
                        op_ == Op::kExclusiveOr || op_ == Op::kNot;
  const bool is_predicate = type_ == ptx::Type::kPred && is_logic;
  if (!result || (!is_integer(type_) && !is_predicate)) return;
  for (const std::string_view word : {"sat", "cc", "relu", "hi", "wide", "to"}) {
    if (!instruction.has(word)) continue;
    if (word == "wide")
      is_wide_ = true;
    else if (word == "to")
      is_to_ = true;
    else
      return;
  }
  const bool multiplies = op_ == Op::kMultiply || op_ == Op::kMultiplyAdd;
  if (multiplies && !is_wide_ && !instruction.has("lo")) return;
  result_bits_ = registers.is_predicate(*result) ? 1 : 8 * registers.bytes(*result);
  std::uint32_t wanted = is_wide_ ? 2 * bits_of(type_) : bits_of(type_);
  if (op_ == Op::kCompare) {
    if (!decode_comparison(instruction)) return;
    wanted = 1;
  } else if (op_ == Op::kConvert) {
    to_ = instruction.type(1);
    if (!is_integer(to_) || result_bits_ < bits_of(to_) || instruction.modifiers.size() != 2)
      return;
    wanted = result_bits_;
  } else if (op_ == Op::kConvertAddress && !instruction.has("shared")) {
    return;
  }
  if (wanted == result_bits_) result_ = result;
}

bool ThreadStep::decode_comparison(const Instruction& instruction) {
  struct Word {
    std::string_view word;
    Comparison comparison;
    bool has_no_sign = false;
  };
  static constexpr Word kWords[] = {
      {"eq", Comparison::kEqual},      {"ne", Comparison::kUnequal},
      {"lt", Comparison::kLess},       {"le", Comparison::kLessOrEqual},
      {"gt", Comparison::kMore},       {"ge", Comparison::kMoreOrEqual},
      {"lo", Comparison::kLess, true}, {"ls", Comparison::kLessOrEqual, true},
      {"hi", Comparison::kMore, true}, {"hs", Comparison::kMoreOrEqual, true},
  };
  const auto found = std::ranges::find(kWords, instruction.modifiers[0], &Word::word);
  if (found == std::end(kWords) || (found->has_no_sign && is_signed(type_))) return false;
  comparison_ = found->comparison;
  if (instruction.operands.size() == 3) return instruction.modifiers.size() == 2;
  if (instruction.has("and")) joined_ = Op::kAnd;
  if (instruction.has("or")) joined_ = Op::kOr;
  if (instruction.has("xor")) joined_ = Op::kExclusiveOr;
  return joined_ != Op::kNone && instruction.modifiers.size() == 3;
}

ThreadValue ThreadStep::value(std::span<const ThreadValue> registers, const Index& thread) const {
  std::array<ThreadValue, 3> values;
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = read(sources_[i], registers, thread);
  return computed(values);
}

/// The bits of a register of the type, as a number with its sign.
std::uint64_t ThreadStep::extended(std::uint64_t bits, ptx::Type type) const {
  const std::uint32_t width = bits_of(type);
  bits = low_bits(bits, width);
  if (!is_signed(type) || width == 64) return bits;
  const std::uint64_t sign = std::uint64_t{1} << (width - 1);
  return (bits ^ sign) - sign;
}

ThreadValue ThreadStep::number(std::uint64_t bits) const {
  return {ThreadValue::kNumber, low_bits(bits, result_bits_)};
}

ThreadValue ThreadStep::computed(const std::array<ThreadValue, 3>& values) const {
  const auto& [a, b, c] = values;
  switch (op_) {
    case Op::kMove:
      return a.is_number() ? number(a.number) : sum(a, {ThreadValue::kNumber, 0}, false);
    case Op::kAdd:
    case Op::kSubtract:
      return sum(a, b, op_ == Op::kSubtract);
    case Op::kMultiply:
      return product(a, b);
    case Op::kMultiplyAdd:
      return sum(product(a, b), c, false);
    case Op::kAnd:
    case Op::kOr:
    case Op::kExclusiveOr:
      return logic(a, b);
    case Op::kSelect:
      return c.is_number() ? sum(c.number != 0 ? a : b, {ThreadValue::kNumber, 0}, false)
                           : kNotKnown;
    case Op::kCompare:
      return compared(values);
    case Op::kConvert:
      return converted(a);
    case Op::kConvertAddress:
      if (!a.is_address() || result_bits_ != 64 || (a.base % 2 == 1) != is_to_) return kNotKnown;
      return {a.base ^ 1, a.number};
    default:
      break;
  }
  if (!a.is_number()) return kNotKnown;
  if (op_ == Op::kNot) return number(~a.number);
  if (op_ == Op::kNegate) return number(0 - a.number);
  if (!b.is_number()) return kNotKnown;
  if (op_ == Op::kShiftLeft || op_ == Op::kShiftRight)
    return shifted(a.number, low_bits(b.number, 32));
  return divided(a.number, b.number);
}

/// Addresses have 32 or 64 bits.
ThreadValue ThreadStep::sum(const ThreadValue& a, const ThreadValue& b, bool is_less) const {
  const std::uint64_t bits =
      low_bits(is_less ? a.number - b.number : a.number + b.number, result_bits_);
  if (a.is_number() && b.is_number()) return {ThreadValue::kNumber, bits};
  if (result_bits_ < 32) return kNotKnown;
  if (a.is_address() && b.is_number()) return {a.base, bits};
  return a.is_number() && b.is_address() && !is_less ? ThreadValue{b.base, bits} : kNotKnown;
}

ThreadValue ThreadStep::product(const ThreadValue& a, const ThreadValue& b) const {
  if (!a.is_number() || !b.is_number()) return kNotKnown;
  return number(extended(a.number, type_) * extended(b.number, type_));
}

/// One operand may decide it.
ThreadValue ThreadStep::logic(const ThreadValue& a, const ThreadValue& b) const {
  if (a.is_number() && b.is_number()) {
    if (op_ == Op::kAnd) return number(a.number & b.number);
    return number(op_ == Op::kOr ? a.number | b.number : a.number ^ b.number);
  }
  if (type_ != ptx::Type::kPred || op_ == Op::kExclusiveOr) return kNotKnown;
  const std::uint64_t decides = op_ == Op::kOr ? 1 : 0;
  const bool is_decided =
      (a.is_number() && a.number == decides) || (b.is_number() && b.number == decides);
  return is_decided ? number(decides) : kNotKnown;
}

/// Beyond the width nothing is left but the sign.
ThreadValue ThreadStep::shifted(std::uint64_t a, std::uint64_t by) const {
  const std::uint32_t width = bits_of(type_);
  if (op_ == Op::kShiftLeft) return number(by >= width ? 0 : a << by);
  const std::uint64_t bits = extended(a, type_);
  if (!is_signed(type_)) return number(by >= width ? 0 : bits >> by);
  const auto with_sign = static_cast<std::int64_t>(bits);
  return number(static_cast<std::uint64_t>(with_sign >> std::min<std::uint64_t>(by, 63)));
}

ThreadValue ThreadStep::divided(std::uint64_t a, std::uint64_t b) const {
  a = extended(a, type_);
  b = extended(b, type_);
  const auto signed_a = static_cast<std::int64_t>(a), signed_b = static_cast<std::int64_t>(b);
  const bool is_less = is_signed(type_) ? signed_a < signed_b : a < b;
  if (op_ == Op::kMin) return number(is_less ? a : b);
  if (op_ == Op::kMax) return number(is_less ? b : a);
  if (b == 0 || (is_signed(type_) && signed_b == -1)) return kNotKnown;
  if (op_ == Op::kDivide)
    return number(is_signed(type_) ? static_cast<std::uint64_t>(signed_a / signed_b) : a / b);
  // What is left of a negative number depends on the machine.
  const bool is_plain = !is_signed(type_) || (signed_a >= 0 && signed_b > 0);
  return op_ == Op::kRest && is_plain ? number(a % b) : kNotKnown;
}

ThreadValue ThreadStep::compared(const std::array<ThreadValue, 3>& values) const {
  std::optional<bool> is_true;
  if (values[0].is_number() && values[1].is_number()) {
    const std::uint64_t a = extended(values[0].number, type_);
    const std::uint64_t b = extended(values[1].number, type_);
    const bool is_less =
        is_signed(type_) ? static_cast<std::int64_t>(a) < static_cast<std::int64_t>(b) : a < b;
    switch (comparison_) {
      case Comparison::kEqual:
      case Comparison::kUnequal:
        is_true = (a == b) == (comparison_ == Comparison::kEqual);
        break;
      case Comparison::kLess:
      case Comparison::kMoreOrEqual:
        is_true = is_less == (comparison_ == Comparison::kLess);
        break;
      case Comparison::kLessOrEqual:
      case Comparison::kMore:
        is_true = (is_less || a == b) == (comparison_ == Comparison::kLessOrEqual);
        break;
    }
  }
  if (joined_ == Op::kNone) return is_true ? number(*is_true ? 1 : 0) : kNotKnown;
  if (!is_true || !values[2].is_number()) return kNotKnown;
  const bool other = values[2].number != 0;
  if (joined_ == Op::kAnd) return number(*is_true && other ? 1 : 0);
  return number((joined_ == Op::kOr ? *is_true || other : *is_true != other) ? 1 : 0);
}

/// The register may be wider than the result: then it has the result's sign.
ThreadValue ThreadStep::converted(const ThreadValue& a) const {
  if (!a.is_number()) return kNotKnown;
  return number(extended(extended(a.number, type_), to_));
}

}  // namespace slate::injector
