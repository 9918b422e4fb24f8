#include "injector/fence/bound_finder.h"

#include <algorithm>
#include <cstring>
#include <string_view>

#include "injector/analysis/dominators.h"

namespace slate::injector {
namespace {

using ptx::Instruction;
using ptx::Operand;
using ptx::Reference;

constexpr std::uint32_t kUnknown = 0;  // the step that is always there
constexpr std::uint32_t kWarpThreads = 32;

unsigned bits_of(ptx::Type type) {
  return 8 * ptx::type_bytes(type);
}

/// Parameters of a launch that works on small arrays.
std::vector<std::byte> small_parameters(const ptx::Function& function,
                                        const ParameterLayout& layout) {
  constexpr std::uint32_t kSize = 256;
  std::vector<std::byte> bytes;
  for (std::uint32_t i = 0; i < function.parameters.size(); ++i) {
    const std::uint64_t size = std::min<std::uint64_t>(function.parameters[i].bytes, 64 << 10);
    const bool is_long = size == sizeof(std::uint64_t);
    bytes.resize(layout.offset(i) + size);
    for (std::uint64_t at = 0; at + sizeof(kSize) <= size && !(is_long && at != 0);
         at += sizeof(kSize)) {
      std::memcpy(bytes.data() + layout.offset(i) + at, &kSize, sizeof(kSize));
    }
  }
  return bytes;
}

}  // namespace

BoundFinder::BoundFinder(const ptx::Function& function, const ControlFlow& flow,
                         const Registers& registers, const Addresses& addresses)
    : function_(function),
      flow_(flow),
      registers_(registers),
      addresses_(addresses),
      conditions_(function, flow, registers, addresses),
      counters_(function, flow, registers, addresses),
      layout_(function),
      parameters_(small_parameters(function, layout_)),
      many_launch_{.parameters = parameters_, .grid = {64, 64, 64}, .block = {16, 16, 4}},
      one_launch_{.parameters = parameters_},
      many_(many_launch_),
      one_(one_launch_) {
  add({});
}

std::uint32_t BoundFinder::add(BoundStep step) {
  if (steps_.size() >= kMostSteps) return kUnknown;
  many_.add(step);
  one_.add(step);
  steps_.push_back(step);
  return static_cast<std::uint32_t>(steps_.size() - 1);
}

std::uint32_t BoundFinder::read(std::uint32_t step, unsigned bits, bool is_signed) {
  return add({.op = BoundOp::kRead,
              .bits = static_cast<std::uint8_t>(bits),
              .is_signed = is_signed,
              .a = step});
}

BoundFinder::Value BoundFinder::address(const Operand& operand, std::uint32_t at) {
  if (operand.parts.empty()) return {.step = number(operand.integer)};
  const Value base = of(operand.parts[0], at, at);
  return operand.integer == 0 ? base : sum(base, {.step = number(operand.integer)});
}

std::uint32_t BoundFinder::parameter_at(const Operand& operand) const {
  return static_cast<std::uint32_t>(layout_.offset(operand.parts[0].index)) +
         static_cast<std::uint32_t>(operand.integer);
}

bool BoundFinder::may_hold(const BoundClaim& claim) const {
  return many_.is_narrow(claim.step) &&
         (claim.kind != BoundClaim::Kind::kInVariable || one_.holds(claim));
}

AccessBounds BoundFinder::bounds(std::vector<BoundClaim> claims) const {
  AccessBounds result{.steps = {}, .claims = std::move(claims)};
  std::vector<bool> is_needed(steps_.size(), false);
  is_needed[kUnknown] = true;
  for (const BoundClaim& claim : result.claims) is_needed[claim.step] = true;
  for (std::size_t i = steps_.size(); i-- > 0;) {
    if (!is_needed[i]) continue;
    for (const std::uint32_t used : {steps_[i].a, steps_[i].b, steps_[i].c}) is_needed[used] = true;
  }
  std::vector<std::uint32_t> places(steps_.size(), kUnknown);
  for (std::size_t i = 0; i < steps_.size(); ++i) {
    if (!is_needed[i]) continue;
    places[i] = static_cast<std::uint32_t>(result.steps.size());
    BoundStep& step = result.steps.emplace_back(steps_[i]);
    for (std::uint32_t* const used : {&step.a, &step.b, &step.c}) *used = places[*used];
  }
  for (BoundClaim& claim : result.claims) claim.step = places[claim.step];
  return result;
}

BoundFinder::Value BoundFinder::sum(Value a, Value b) {
  if (a.variable != nullptr && b.variable != nullptr) return {};
  return {.variable = a.variable != nullptr ? a.variable : b.variable,
          .step = add({.op = BoundOp::kAdd, .a = a.step, .b = b.step})};
}

BoundFinder::Value BoundFinder::of(const Operand& operand, std::uint32_t where, std::uint32_t at) {
  if (operand.negated || operand.component != 0) return {};
  if (operand.kind == Operand::Kind::kInteger) return {.step = number(operand.integer)};
  if (operand.kind == Operand::Kind::kSpecial) return {.step = special(operand)};
  if (operand.kind != Operand::Kind::kSymbol) return {};
  if (const auto r = registers_.of(operand)) return of_register(*r, where, at);
  const bool is_module = operand.reference == Reference::kGlobal;
  const bool is_own = operand.reference == Reference::kLocal &&
                      function_.variables[operand.index].space != ptx::Space::kReg &&
                      function_.variables[operand.index].space != ptx::Space::kParam;
  if (!is_module && !is_own) return {};
  return {.variable = &operand, .step = number(operand.integer)};
}

/// A number, not an address in a variable.
std::uint32_t BoundFinder::step_of(const Operand& operand, std::uint32_t where, std::uint32_t at) {
  const Value value = of(operand, where, at);
  return value.variable == nullptr ? value.step : kUnknown;
}

std::uint32_t BoundFinder::special(const Operand& operand) {
  const std::string_view name = operand.text;
  const std::int64_t axis = name.empty() ? 0 : name.back() - 'x';
  const bool has_axis = axis >= 0 && axis < 3;
  const auto is = [&](std::string_view wanted) {
    return has_axis && name.size() == wanted.size() + 1 && name.starts_with(wanted);
  };
  const auto index = [&](std::uint32_t size) { return add({.op = BoundOp::kIndex, .a = size}); };
  if (is("%tid.")) return index(add({.op = BoundOp::kThreads, .value = axis}));
  if (is("%ntid.")) return add({.op = BoundOp::kThreads, .value = axis});
  if (is("%ctaid.")) return index(add({.op = BoundOp::kBlocks, .value = axis}));
  if (is("%nctaid.")) return add({.op = BoundOp::kBlocks, .value = axis});
  if (name == "%laneid") return index(number(kWarpThreads));
  return name == "WARP_SZ" ? number(kWarpThreads) : kUnknown;
}

BoundFinder::Value BoundFinder::of_register(std::uint32_t number, std::uint32_t where,
                                            std::uint32_t at) {
  const bool is_once = addresses_.is_written_once(number);
  if (is_once && !addresses_.dominates(addresses_.definition(number), where)) return {};
  const std::uint32_t place = is_once ? conditions_.begin_of(flow_.block_of(at)) : where;
  const auto [known, is_new] = known_.try_emplace({number, place});
  // What is still being looked for is not known.
  if (!is_new || depth_ > kMostDepth) return known->second;
  ++depth_;
  Value value = is_once ? made_by(addresses_.definition(number), at) : of_changing(number, where);
  if (is_once && value.variable == nullptr)
    value.step = with_conditions(value.step, number, flow_.block_of(at), nullptr);
  --depth_;
  return known_[{number, place}] = value;
}

/// What an instruction writes, with the conditions that hold for its operands at `at`.
BoundFinder::Value BoundFinder::made_by(std::uint32_t made, std::uint32_t at) {
  const Instruction& instruction = function_.instructions[made];
  const std::string_view opcode = instruction.opcode;
  const auto& operands = instruction.operands;
  if (opcode == "ld") return loaded_by(instruction);
  const auto result = operands.empty() ? std::nullopt : registers_.of(operands[0]);
  if (operands.size() < 2 || !result || !is_integer(instruction.type()) || instruction.has("sat") ||
      instruction.has("cc") || instruction.has("relu")) {
    return {};
  }
  if (opcode == "cvt") return converted_by(made, at);
  const std::uint32_t bytes = ptx::type_bytes(instruction.type());
  if (registers_.bytes(*result) != (instruction.has("wide") ? 2 * bytes : bytes)) return {};
  if (opcode == "mov") return of(operands[1], made, at);
  if (opcode == "cvta") return converted_by(made, at);
  if (opcode == "add" && operands.size() == 3)
    return sum(of(operands[1], made, at), of(operands[2], made, at));
  if (opcode == "sub" && operands.size() == 3) {
    Value from = of(operands[1], made, at);
    from.step =
        add({.op = BoundOp::kSubtract, .a = from.step, .b = step_of(operands[2], made, at)});
    return from;
  }
  if (opcode == "mad" && operands.size() == 4 && !instruction.has("hi"))
    return sum({.step = product_by(made, at)}, of(operands[3], made, at));
  if (opcode == "selp" && operands.size() == 4) {
    const Value a = of(operands[1], made, at), b = of(operands[2], made, at);
    if (a.variable != b.variable) return {};
    return {.variable = a.variable,
            .step = add({.op = BoundOp::kEither, .a = a.step, .b = b.step})};
  }
  return {.step = computed_by(made, at)};
}

/// A parameter by its name, a row of the table of variables, or what a number of bits can be.
BoundFinder::Value BoundFinder::loaded_by(const Instruction& instruction) {
  const ptx::Type type = instruction.type();
  if (instruction.operands.size() < 2 || !is_integer(type)) return {};
  if (addresses_.table_row(instruction))
    return {.variable = &instruction.operands[1], .step = number(0)};
  const Operand& source = instruction.operands[1];
  const bool is_one = instruction.operands[0].kind == Operand::Kind::kSymbol;
  const bool is_parameter = is_one && instruction.has("param") && source.parts.size() == 1 &&
                            source.parts[0].reference == Reference::kParameter;
  std::uint32_t step = kUnknown;
  if (is_parameter && function_.is_entry) {
    step = add({.op = BoundOp::kParameter,
                .bits = static_cast<std::uint8_t>(bits_of(type)),
                .value = parameter_at(source)});
  }
  return {.step = read(step, bits_of(type), is_signed(type))};
}

BoundFinder::Value BoundFinder::converted_by(std::uint32_t made, std::uint32_t at) {
  const Instruction& instruction = function_.instructions[made];
  const Value from = of(instruction.operands[1], made, at);
  if (instruction.opcode == "cvta") {
    // Global and generic addresses are the same numbers.
    return instruction.has("global") && from.variable == nullptr ? from : Value{};
  }
  const ptx::Type to = instruction.type(1), source = instruction.type(0);
  if (!is_integer(to) || !is_integer(source) || from.variable != nullptr) return {};
  std::uint32_t step = from.step;
  if (bits_of(to) > bits_of(source)) step = read(step, bits_of(source), is_signed(source));
  // A register that is wider than the result gets the rest of its bits from the sign, or zeros.
  const auto result = registers_.of(instruction.operands[0]);
  const bool is_wider = !result || 8 * registers_.bytes(*result) > bits_of(to);
  return {.step = is_wider ? read(step, bits_of(to), is_signed(to)) : step};
}

/// Of the first two operands of mul and mad.
std::uint32_t BoundFinder::product_by(std::uint32_t made, std::uint32_t at) {
  const Instruction& instruction = function_.instructions[made];
  const ptx::Type type = instruction.type();
  std::uint32_t a = step_of(instruction.operands[1], made, at);
  std::uint32_t b = step_of(instruction.operands[2], made, at);
  if (instruction.has("wide") || instruction.has("hi")) {
    a = read(a, bits_of(type), is_signed(type));
    b = read(b, bits_of(type), is_signed(type));
  } else if (!instruction.has("lo")) {
    return kUnknown;  // mul24
  }
  const std::uint32_t product = add({.op = BoundOp::kMultiply, .a = a, .b = b});
  return instruction.has("hi")
             ? add({.op = BoundOp::kShiftRight, .a = product, .value = bits_of(type)})
             : product;
}

/// Divisions, shifts to the right and what else reads its operands as numbers.
std::uint32_t BoundFinder::divided_by(std::uint32_t made, std::uint32_t at) {
  const Instruction& instruction = function_.instructions[made];
  const std::string_view opcode = instruction.opcode;
  const ptx::Type type = instruction.type();
  const Operand& second = instruction.operands[2];
  const std::uint32_t a =
      read(step_of(instruction.operands[1], made, at), bits_of(type), is_signed(type));
  if (opcode == "shr") {
    const bool is_number = second.kind == Operand::Kind::kInteger && second.integer >= 0 &&
                           second.integer < bits_of(type);
    if (is_number) return add({.op = BoundOp::kShiftRight, .a = a, .value = second.integer});
    // Whatever it is shifted by, it does not grow.
    return add({.op = BoundOp::kAnd, .a = a, .b = kUnknown});
  }
  const std::uint32_t b = read(step_of(second, made, at), bits_of(type), is_signed(type));
  if (opcode == "div") return add({.op = BoundOp::kDivide, .a = a, .b = b});
  if (opcode == "rem") return add({.op = BoundOp::kRest, .a = a, .b = b});
  if (opcode == "min") return add({.op = BoundOp::kMin, .a = a, .b = b});
  return opcode == "max" ? add({.op = BoundOp::kMax, .a = a, .b = b}) : kUnknown;
}

std::uint32_t BoundFinder::computed_by(std::uint32_t made, std::uint32_t at) {
  const Instruction& instruction = function_.instructions[made];
  const std::string_view opcode = instruction.opcode;
  const auto& operands = instruction.operands;
  const auto operand = [&](std::size_t i) { return step_of(operands[i], made, at); };
  if (opcode == "neg") return add({.op = BoundOp::kSubtract, .a = number(0), .b = operand(1)});
  if (opcode == "not") return add({.op = BoundOp::kSubtract, .a = number(-1), .b = operand(1)});
  if (operands.size() != 3) return kUnknown;
  if (opcode == "mul") return product_by(made, at);
  if (opcode == "and") return add({.op = BoundOp::kAnd, .a = operand(1), .b = operand(2)});
  if (opcode == "or" || opcode == "xor")
    return add({.op = BoundOp::kOr, .a = operand(1), .b = operand(2)});
  if (opcode == "shl") {
    const std::int64_t by = operands[2].integer;
    if (operands[2].kind != Operand::Kind::kInteger || by < 0 || by >= 63) return kUnknown;
    return add({.op = BoundOp::kMultiply, .a = operand(1), .b = number(std::int64_t{1} << by)});
  }
  return divided_by(made, at);
}

std::uint32_t BoundFinder::with_limit(std::uint32_t step, const Limit& limit,
                                      std::uint32_t comparison) {
  using Kind = Limit::Kind;
  if (limit.kind == Kind::kOther) return step;
  const std::uint32_t other =
      limit.other == nullptr ? number(0) : step_of(*limit.other, comparison, comparison);
  const auto bounded = [&](BoundOp op) {
    step = add({.op = op,
                .bits = limit.bits,
                .is_signed = limit.is_signed,
                .a = step,
                .b = other,
                .value = limit.apart});
  };
  if (limit.kind != Kind::kAtLeast) bounded(BoundOp::kAtMost);
  if (limit.kind != Kind::kAtMost) bounded(BoundOp::kAtLeast);
  return step;
}

/// `counter`: the register's, if it is one. Then `step` is what it begins with, and only what was
/// compared before the loop counts.
std::uint32_t BoundFinder::with_conditions(std::uint32_t step, std::uint32_t number,
                                           std::uint32_t block, const Counter* counter) {
  const std::vector<Condition> found = conditions_.in(block);
  for (const Condition& condition : found) {
    const auto limit = conditions_.limit_on(number, condition);
    if (!limit) continue;
    if (counter == nullptr) {
      // A loop's comparison may read what the last turn has written.
      if (!addresses_.dominates(addresses_.definition(number), condition.comparison)) continue;
    } else if (!counters_.is_in_front(*counter, condition.comparison)) {
      continue;
    }
    step = with_limit(step, *limit, condition.comparison);
  }
  return step;
}

/// All values of a counter at `at`, by the condition on which a further turn begins.
std::optional<BoundFinder::Course> BoundFinder::course(std::uint32_t number, const Counter& counter,
                                                       std::uint32_t at) {
  const auto stays = counters_.way_on(counter, at);
  if (!stays) return std::nullopt;
  const std::uint32_t end = flow_.block_of(counter.change), here = flow_.block_of(at);
  for (const Condition& condition : conditions_.between(end, *stays)) {
    const bool is_behind = flow_.block_of(condition.comparison) == end &&
                           condition.comparison > counter.added &&
                           (counter.changed != number || condition.comparison > counter.change);
    const auto limit = is_behind ? conditions_.limit_on(counter.changed, condition) : std::nullopt;
    if (!limit || limit->other == nullptr) continue;
    const Value begins = made_by(counter.first, counter.first);
    if (begins.variable != nullptr) continue;
    Course course;
    course.first =
        read(with_conditions(begins.step, number, here, &counter), limit->bits, limit->is_signed);
    const std::uint32_t by = step_of(*counter.by, counter.added, counter.added);
    course.by = read(by, limit->bits, true);
    if (counter.is_less)
      course.by = add({.op = BoundOp::kSubtract, .a = this->number(0), .b = course.by});
    BoundStep step{.bits = limit->bits, .is_signed = limit->is_signed, .a = course.first};
    if (limit->kind == Limit::Kind::kOther) {
      const bool is_number = counter.by->kind == Operand::Kind::kInteger;
      if (!is_number) continue;
      step.op = BoundOp::kCounted;
      step.b = step_of(*limit->other, condition.comparison, condition.comparison);
      step.value = counter.is_less ? -counter.by->integer : counter.by->integer;
    } else if (limit->kind != Limit::Kind::kEqual) {
      const bool rises = limit->kind == Limit::Kind::kAtMost;
      step.op = rises ? BoundOp::kRising : BoundOp::kFalling;
      step.b = with_limit(kUnknown, *limit, condition.comparison);
      step.c = course.by;
    } else {
      continue;
    }
    course.all = add(step);
    return course;
  }
  return std::nullopt;
}

/// How often the register can have been changed at `at`: by another one, a counter of the same
/// loop.
std::optional<std::uint32_t> BoundFinder::turns(std::uint32_t number, const Counter& counter,
                                                std::uint32_t at) {
  if (!counters_.way_on(counter, at)) return std::nullopt;
  const ControlFlow::Block& end = flow_.blocks()[flow_.block_of(counter.change)];
  const std::uint32_t here = flow_.block_of(at);
  // At the beginning of its block both have been changed as often.
  const std::uint32_t begin = flow_.blocks()[here].first;
  for (std::uint32_t i = end.first; i < end.end; ++i) {
    std::optional<std::uint32_t> other;
    registers_.for_each_write(function_.instructions[i], [&](std::uint32_t r) { other = r; });
    if (!other || *other == number || addresses_.is_written_once(*other) ||
        registers_.is_predicate(*other)) {
      continue;
    }
    const auto its = counters_.find(*other);
    if (!its || its->change != i || flow_.block_of(its->first) != flow_.block_of(counter.first))
      continue;
    const auto found = course(*other, *its, begin);
    if (!found) continue;
    return add({.op = BoundOp::kTurns, .a = found->first, .b = found->all, .c = found->by});
  }
  return std::nullopt;
}

/// A register that several instructions write, or one under a predicate.
BoundFinder::Value BoundFinder::of_changing(std::uint32_t number, std::uint32_t at) {
  if (!counters_.is_surely_written(number, at)) return {};
  std::optional<std::uint32_t> last;
  for (const std::uint32_t write : counters_.writes(number)) {
    if (write < at && flow_.block_of(write) == flow_.block_of(at)) last = write;
  }
  if (last && !function_.instructions[*last].guard) return made_by(*last, *last);
  if (const auto counter = counters_.find(number)) {
    if (const auto found = course(number, *counter, at)) return {.step = found->all};
    const auto many = turns(number, *counter, at);
    if (!many) return {};
    const std::uint32_t by = read(step_of(*counter->by, counter->added, counter->added),
                                  8 * registers_.bytes(number), true);
    const std::uint32_t way = add({.op = BoundOp::kMultiply, .a = by, .b = *many});
    Value value = made_by(counter->first, counter->first);
    value.step = add(
        {.op = counter->is_less ? BoundOp::kSubtract : BoundOp::kAdd, .a = value.step, .b = way});
    return value;
  }
  std::optional<Value> all;
  for (const std::uint32_t write : counters_.writes(number)) {
    const Value value = made_by(write, write);
    if (all && all->variable != value.variable) return {};
    all = {
        .variable = value.variable,
        .step = all ? add({.op = BoundOp::kEither, .a = all->step, .b = value.step}) : value.step};
  }
  return all.value_or(Value{});
}

}  // namespace slate::injector
