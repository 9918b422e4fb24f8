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

constexpr std::uint32_t kWarpThreads = 32;

unsigned bits_of(ptx::Type type) {
  return 8 * ptx::type_bytes(type);
}

/// The division whose rest a difference is: a - (a / b) * b. Each register there is written once,
/// so it is the same number in all of it.
std::optional<std::uint32_t> division_of_rest(const ptx::Function& function,
                                              const Registers& registers,
                                              const Addresses& addresses, std::uint32_t at) {
  const auto register_of = [&](const Operand& operand) -> std::optional<std::uint32_t> {
    const auto number = registers.of(operand);
    return number && addresses.is_written_once(*number) ? number : std::nullopt;
  };
  // What writes the operand of instruction `reader`, if it is this.
  const auto maker = [&](const Operand& operand, std::uint32_t reader,
                         std::string_view opcode) -> std::optional<std::uint32_t> {
    const auto number = register_of(operand);
    if (!number) return std::nullopt;
    const std::uint32_t made = addresses.definition(*number);
    const Instruction& instruction = function.instructions[made];
    const bool is_this = instruction.opcode == opcode && instruction.operands.size() == 3 &&
                         !instruction.has("wide") && !instruction.has("hi") &&
                         addresses.dominates(made, reader) &&
                         bits_of(instruction.type()) == bits_of(function.instructions[at].type());
    return is_this ? std::optional(made) : std::nullopt;
  };
  const auto is_same = [&](const Operand& a, const Operand& b) {
    if (a.kind == Operand::Kind::kInteger && b.kind == Operand::Kind::kInteger)
      return a.integer == b.integer;
    const auto number = register_of(a);
    return number && number == registers.of(b);
  };
  const Instruction& difference = function.instructions[at];
  const auto product = maker(difference.operands[2], at, "mul");
  if (!product) return std::nullopt;
  const auto& factors = function.instructions[*product].operands;
  for (const std::size_t i : {1u, 2u}) {
    const auto division = maker(factors[i], *product, "div");
    if (!division) continue;
    const auto& divided = function.instructions[*division].operands;
    if (is_same(divided[1], difference.operands[1]) && is_same(divided[2], factors[3 - i]))
      return division;
  }
  return std::nullopt;
}

}  // namespace

BoundFinder::BoundFinder(const ptx::Function& function, const ControlFlow& flow,
                         const Registers& registers, const Addresses& addresses, const Loops& loops,
                         const LaunchValues* launch)
    : function_(function),
      flow_(flow),
      registers_(registers),
      addresses_(addresses),
      loops_(loops),
      writes_(function, flow, registers),
      conditions_(function, flow, registers, addresses, writes_),
      counters_(function, flow, registers, addresses, writes_),
      drifts_(function, flow, registers, writes_, loops),
      layout_(function),
      steps_(function, layout_, launch) {}

BoundFinder::Value BoundFinder::address(const Operand& operand, std::uint32_t at) {
  if (operand.parts.empty()) return {.step = steps_.number(operand.integer)};
  Value value = of(operand.parts[0], at, at);
  if (operand.integer != 0) value = sum(value, {.step = steps_.number(operand.integer)});
  value.step = where_reached(value.step, at);
  return value;
}

std::uint32_t BoundFinder::parameter(const Operand& operand, std::int64_t more) {
  const std::uint32_t step = steps_.add(
      {.op = BoundOp::kParameter, .bits = 64, .is_signed = false, .value = parameter_at(operand)});
  return more == 0 ? step : steps_.add({.op = BoundOp::kAdd, .a = step, .b = steps_.number(more)});
}

std::uint32_t BoundFinder::parameter_at(const Operand& operand) const {
  return static_cast<std::uint32_t>(layout_.offset(operand.parts[0].index)) +
         static_cast<std::uint32_t>(operand.integer);
}

BoundClaim BoundFinder::has_threads(std::uint32_t axis, std::uint32_t threads) {
  return steps_.is_number(steps_.add({.op = BoundOp::kThreads, .value = axis}), threads);
}

BoundClaim BoundFinder::has_shared(std::uint32_t bytes) {
  return steps_.is_number(steps_.add({.op = BoundOp::kShared}), bytes);
}

BoundFinder::Value BoundFinder::sum(Value a, Value b) {
  if (a.variable != nullptr && b.variable != nullptr) return {};
  return {.variable = a.variable != nullptr ? a.variable : b.variable,
          .step = steps_.add({.op = BoundOp::kAdd, .a = a.step, .b = b.step})};
}

BoundFinder::Value BoundFinder::of(const Operand& operand, std::uint32_t where, std::uint32_t at) {
  if (operand.negated || operand.component != 0) return {};
  if (operand.kind == Operand::Kind::kInteger) return {.step = steps_.number(operand.integer)};
  if (operand.kind == Operand::Kind::kSpecial) return {.step = special(operand)};
  if (operand.kind != Operand::Kind::kSymbol) return {};
  if (const auto r = registers_.of(operand)) return of_register(*r, where, at);
  const bool is_module = operand.reference == Reference::kGlobal;
  const bool is_own = operand.reference == Reference::kLocal &&
                      function_.variables[operand.index].space != ptx::Space::kReg &&
                      function_.variables[operand.index].space != ptx::Space::kParam;
  if (!is_module && !is_own) return {};
  return {.variable = &operand, .step = steps_.number(operand.integer)};
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
  const auto index = [&](std::uint32_t size) {
    return steps_.add({.op = BoundOp::kIndex, .a = size});
  };
  if (is("%tid.")) return index(steps_.add({.op = BoundOp::kThreads, .value = axis}));
  if (is("%ntid.")) return steps_.add({.op = BoundOp::kThreads, .value = axis});
  if (is("%ctaid.")) return index(steps_.add({.op = BoundOp::kBlocks, .value = axis}));
  if (is("%nctaid.")) return steps_.add({.op = BoundOp::kBlocks, .value = axis});
  if (name == "%laneid") return index(steps_.number(kWarpThreads));
  return name == "WARP_SZ" ? steps_.number(kWarpThreads) : kUnknown;
}

BoundFinder::Value BoundFinder::of_register(std::uint32_t number, std::uint32_t where,
                                            std::uint32_t at) {
  const bool is_once = addresses_.is_written_once(number);
  if (is_once && !addresses_.dominates(addresses_.definition(number), where)) return {};
  if (!is_once) where = writes_.begin_of(number, where);
  const std::uint32_t place = is_once ? conditions_.begin_of(flow_.block_of(at)) : where;
  const auto [known, is_new] = known_.try_emplace({number, place});
  // What is still being looked for is not known.
  if (!is_new || depth_ > kMostDepth) return known->second;
  ++depth_;
  Value value = is_once ? made_by(addresses_.definition(number), at) : of_changing(number, where);
  if (value.variable == nullptr)
    value.step = with_conditions(value.step, number, is_once ? at : where, nullptr);
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
    if (const auto division = division_of_rest(function_, registers_, addresses_, made))
      return {.step = ratio(BoundOp::kRest, *division, at)};
    Value from = of(operands[1], made, at);
    from.step =
        steps_.add({.op = BoundOp::kSubtract, .a = from.step, .b = step_of(operands[2], made, at)});
    return from;
  }
  if (opcode == "mad" && operands.size() == 4 && !instruction.has("hi"))
    return sum({.step = product_by(made, at)}, of(operands[3], made, at));
  if (opcode == "selp" && operands.size() == 4) {
    const Value a = of(operands[1], made, at), b = of(operands[2], made, at);
    if (a.variable != b.variable) return {};
    return {.variable = a.variable,
            .step = steps_.add({.op = BoundOp::kEither, .a = a.step, .b = b.step})};
  }
  return {.step = computed_by(made, at)};
}

/// A parameter by its name, a row of the table of variables, or what a number of bits can be.
BoundFinder::Value BoundFinder::loaded_by(const Instruction& instruction) {
  const ptx::Type type = instruction.type();
  if (instruction.operands.size() < 2 || !is_integer(type)) return {};
  if (addresses_.table_row(instruction))
    return {.variable = &instruction.operands[1], .step = steps_.number(0)};
  const Operand& source = instruction.operands[1];
  const bool is_one = instruction.operands[0].kind == Operand::Kind::kSymbol;
  const bool is_parameter = is_one && instruction.has("param") && source.parts.size() == 1 &&
                            source.parts[0].reference == Reference::kParameter;
  std::uint32_t step = kUnknown;
  if (is_parameter && function_.is_entry) {
    step = steps_.add({.op = BoundOp::kParameter,
                       .bits = static_cast<std::uint8_t>(bits_of(type)),
                       .value = parameter_at(source)});
  }
  return {.step = steps_.read(step, bits_of(type), is_signed(type))};
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
  if (bits_of(to) > bits_of(source)) step = steps_.read(step, bits_of(source), is_signed(source));
  // A register that is wider than the result gets the rest of its bits from the sign, or zeros.
  const auto result = registers_.of(instruction.operands[0]);
  const bool is_wider = !result || 8 * registers_.bytes(*result) > bits_of(to);
  return {.step = is_wider ? steps_.read(step, bits_of(to), is_signed(to)) : step};
}

/// Of the first two operands of mul and mad.
std::uint32_t BoundFinder::product_by(std::uint32_t made, std::uint32_t at) {
  const Instruction& instruction = function_.instructions[made];
  const ptx::Type type = instruction.type();
  std::uint32_t a = step_of(instruction.operands[1], made, at);
  std::uint32_t b = step_of(instruction.operands[2], made, at);
  if (instruction.has("wide") || instruction.has("hi")) {
    a = steps_.read(a, bits_of(type), is_signed(type));
    b = steps_.read(b, bits_of(type), is_signed(type));
  } else if (!instruction.has("lo")) {
    return kUnknown;  // mul24
  }
  const std::uint32_t product = steps_.add({.op = BoundOp::kMultiply, .a = a, .b = b});
  return instruction.has("hi")
             ? steps_.add({.op = BoundOp::kShiftRight, .a = product, .value = bits_of(type)})
             : product;
}

/// What a division gives, or leaves.
std::uint32_t BoundFinder::ratio(BoundOp op, std::uint32_t division, std::uint32_t at) {
  const Instruction& instruction = function_.instructions[division];
  const auto operand = [&](std::size_t i) {
    return steps_.read(step_of(instruction.operands[i], division, at), bits_of(instruction.type()),
                       is_signed(instruction.type()));
  };
  const std::uint32_t a = operand(1);
  return steps_.add({.op = op, .a = a, .b = operand(2)});
}

/// Divisions, shifts to the right and what else reads its operands as numbers.
std::uint32_t BoundFinder::divided_by(std::uint32_t made, std::uint32_t at) {
  const Instruction& instruction = function_.instructions[made];
  const std::string_view opcode = instruction.opcode;
  if (opcode == "div") return ratio(BoundOp::kDivide, made, at);
  if (opcode == "rem") return ratio(BoundOp::kRest, made, at);
  const ptx::Type type = instruction.type();
  const Operand& second = instruction.operands[2];
  const std::uint32_t a =
      steps_.read(step_of(instruction.operands[1], made, at), bits_of(type), is_signed(type));
  if (opcode == "shr") {
    const bool is_number = second.kind == Operand::Kind::kInteger && second.integer >= 0 &&
                           second.integer < bits_of(type);
    if (is_number) return steps_.add({.op = BoundOp::kShiftRight, .a = a, .value = second.integer});
    // Whatever it is shifted by, it does not grow.
    return steps_.add({.op = BoundOp::kAnd, .a = a, .b = kUnknown});
  }
  const std::uint32_t b = steps_.read(step_of(second, made, at), bits_of(type), is_signed(type));
  if (opcode == "min") return steps_.add({.op = BoundOp::kMin, .a = a, .b = b});
  return opcode == "max" ? steps_.add({.op = BoundOp::kMax, .a = a, .b = b}) : kUnknown;
}

std::uint32_t BoundFinder::computed_by(std::uint32_t made, std::uint32_t at) {
  const Instruction& instruction = function_.instructions[made];
  const std::string_view opcode = instruction.opcode;
  const auto& operands = instruction.operands;
  const auto operand = [&](std::size_t i) { return step_of(operands[i], made, at); };
  if (opcode == "neg")
    return steps_.add({.op = BoundOp::kSubtract, .a = steps_.number(0), .b = operand(1)});
  if (opcode == "not")
    return steps_.add({.op = BoundOp::kSubtract, .a = steps_.number(-1), .b = operand(1)});
  if (operands.size() != 3) return kUnknown;
  if (opcode == "mul") return product_by(made, at);
  if (opcode == "and") return steps_.add({.op = BoundOp::kAnd, .a = operand(1), .b = operand(2)});
  if (opcode == "or" || opcode == "xor")
    return steps_.add({.op = BoundOp::kOr, .a = operand(1), .b = operand(2)});
  if (opcode == "shl") {
    const std::int64_t by = operands[2].integer;
    if (operands[2].kind != Operand::Kind::kInteger || by < 0 || by >= 63) return kUnknown;
    return steps_.add(
        {.op = BoundOp::kMultiply, .a = operand(1), .b = steps_.number(std::int64_t{1} << by)});
  }
  return divided_by(made, at);
}

/// What the register is compared with.
std::uint32_t BoundFinder::other_of(const Limit& limit, std::uint32_t comparison) {
  const std::uint32_t other =
      limit.other == nullptr ? steps_.number(0) : step_of(*limit.other, comparison, comparison);
  if (limit.less == nullptr) return other;
  const std::uint32_t less = step_of(*limit.less, limit.reader, limit.reader);
  return steps_.read(steps_.add({.op = BoundOp::kSubtract, .a = other, .b = less}), limit.bits,
                     limit.is_signed);
}

std::uint32_t BoundFinder::with_limit(std::uint32_t step, const Limit& limit,
                                      std::uint32_t comparison) {
  using Kind = Limit::Kind;
  const std::uint32_t other = other_of(limit, comparison);
  if (limit.offset != 0)
    step = steps_.add({.op = BoundOp::kAdd, .a = step, .b = steps_.number(limit.offset)});
  const std::uint32_t whole = step;
  const auto bounded = [&](BoundOp op) {
    step = steps_.add({.op = op,
                       .bits = limit.bits,
                       .is_signed = limit.is_signed,
                       .a = step,
                       .b = other,
                       .value = limit.apart});
  };
  if (limit.kind == Kind::kUnequal) {
    bounded(BoundOp::kUnequal);
  } else {
    if (limit.kind != Kind::kAtLeast) bounded(BoundOp::kAtMost);
    if (limit.kind != Kind::kAtMost) bounded(BoundOp::kAtLeast);
  }
  // The lower half is the whole where that is no larger.
  if (limit.is_cut) {
    step = steps_.add({.op = BoundOp::kWithin,
                       .bits = limit.bits,
                       .is_signed = limit.is_signed,
                       .a = whole,
                       .b = step});
  }
  if (limit.offset == 0) return step;
  return steps_.add({.op = BoundOp::kSubtract, .a = step, .b = steps_.number(limit.offset)});
}

/// Whether what was compared is the register's number at `at`. With `counter`, whether it is what
/// the counter begins with.
bool BoundFinder::counts(std::uint32_t number, const Limit& limit, std::uint32_t at,
                         const Counter* counter) const {
  if (counter != nullptr) return counters_.is_in_front(*counter, limit.reader);
  // A loop's comparison may read what the last turn has written.
  if (addresses_.is_written_once(number))
    return addresses_.dominates(addresses_.definition(number), limit.reader);
  return addresses_.dominates(limit.reader, at) && writes_.is_unchanged(number, limit.reader, at);
}

/// `counter`: the register's, if it is one. Then `step` is what it begins with, and only what was
/// compared before the loop counts.
std::uint32_t BoundFinder::with_conditions(std::uint32_t step, std::uint32_t number,
                                           std::uint32_t at, const Counter* counter) {
  const std::vector<Condition> found = conditions_.in(flow_.block_of(at));
  for (const Condition& condition : found) {
    const auto limit = conditions_.limit_on(number, condition);
    if (limit && counts(number, *limit, at, counter))
      step = with_limit(step, *limit, condition.comparison);
  }
  return step;
}

/// What a condition at the end of a turn says of what the turn has made of the counter.
std::optional<Limit> BoundFinder::limit_on_changed(std::uint32_t number, const Counter& counter,
                                                   const Condition& condition) const {
  const auto limit = conditions_.limit_on(counter.changed, condition);
  const bool is_of_turn = limit &&
                          flow_.block_of(limit->reader) == flow_.block_of(counter.change) &&
                          limit->reader > counter.added &&
                          (counter.changed != number || limit->reader > counter.change);
  return is_of_turn ? limit : std::nullopt;
}

/// The same, also where what the counter was before is compared.
std::optional<Limit> BoundFinder::limit_in_turn(std::uint32_t number, const Counter& counter,
                                                const Condition& condition) const {
  if (const auto changed = limit_on_changed(number, counter, condition)) return changed;
  auto before = conditions_.limit_on(number, condition);
  if (!before || flow_.block_of(before->reader) != flow_.block_of(counter.change) ||
      before->reader >= counter.change || counter.by != nullptr) {
    return std::nullopt;
  }
  before->offset -= counter.growth;
  return before;
}

/// What a turn adds to a counter, as a number with a sign.
std::uint32_t BoundFinder::growth(const Counter& counter, unsigned bits) {
  if (counter.by == nullptr) return steps_.number(counter.growth);
  const std::uint32_t by =
      steps_.read(step_of(*counter.by, counter.added, counter.added), bits, true);
  return counter.is_less ? steps_.add({.op = BoundOp::kSubtract, .a = steps_.number(0), .b = by})
                         : by;
}

/// All values of a counter at `at`, by the condition on which a further turn begins. What is
/// compared may be the counter plus a constant, or the lower half of that: it grows as the counter
/// does, as long as it does not wrap.
std::optional<BoundFinder::Course> BoundFinder::course(std::uint32_t number, const Counter& counter,
                                                       std::uint32_t at) {
  const auto stays = counters_.way_on(counter, at);
  if (!stays) return std::nullopt;
  const bool is_number = counter.by == nullptr;
  for (const Condition& condition : conditions_.between(flow_.block_of(counter.change), *stays)) {
    auto limit = limit_in_turn(number, counter, condition);
    if (!limit || limit->other == nullptr || limit->kind == Limit::Kind::kEqual) continue;
    const bool is_sum = limit->offset != 0 || limit->is_cut;
    if (!is_number && (is_sum || limit->kind == Limit::Kind::kUnequal)) continue;
    const Value begins = made_by(counter.first, at);
    if (begins.variable != nullptr) continue;
    const auto typed = [&](std::uint32_t of) {
      return steps_.read(of, limit->bits, limit->is_signed);
    };
    const std::uint32_t first = with_conditions(begins.step, number, at, &counter);
    const std::uint32_t compared =
        is_sum ? typed(steps_.add(
                     {.op = BoundOp::kAdd, .a = first, .b = steps_.number(limit->offset)}))
               : typed(first);
    Course course{.first = is_sum ? first : compared, .by = growth(counter, limit->bits)};
    BoundStep step{.bits = limit->bits, .is_signed = limit->is_signed, .a = compared};
    if (limit->kind == Limit::Kind::kUnequal) {
      step.op = BoundOp::kCounted;
      step.b = other_of(*limit, condition.comparison);
      step.value = counter.growth;
    } else {
      step.op = limit->kind == Limit::Kind::kAtMost ? BoundOp::kRising : BoundOp::kFalling;
      limit->offset = 0;
      limit->is_cut = false;
      step.b = with_limit(kUnknown, *limit, condition.comparison);
      step.c = course.by;
    }
    course.all = steps_.add(step);
    if (is_sum) {
      const std::uint32_t apart = steps_.add({.op = BoundOp::kSubtract, .a = first, .b = compared});
      course.all = steps_.add({.op = BoundOp::kAdd, .a = course.all, .b = apart});
    }
    return course;
  }
  return std::nullopt;
}

std::vector<std::uint32_t> BoundFinder::changed_in(std::uint32_t block,
                                                   std::optional<std::uint32_t> but) const {
  std::vector<std::uint32_t> found;
  const ControlFlow::Block& code = flow_.blocks()[block];
  for (std::uint32_t i = code.first; i < code.end; ++i) {
    registers_.for_each_write(function_.instructions[i], [&](std::uint32_t r) {
      if (r != but && !addresses_.is_written_once(r) && !registers_.is_predicate(r))
        found.push_back(r);
    });
  }
  return found;
}

/// How often the register can have been changed at `at`: by another one, a counter of the same
/// loop. At the beginning of its block both have been changed as often.
std::optional<std::uint32_t> BoundFinder::turns(std::uint32_t number, const Counter& counter,
                                                std::uint32_t at) {
  if (!counters_.way_on(counter, at)) return std::nullopt;
  const std::uint32_t begin = flow_.blocks()[flow_.block_of(at)].first;
  for (const std::uint32_t other : companions(number, counter)) {
    if (const auto its = counters_.find(other, begin);
        its && counters_.have_same_turns(counter, *its)) {
      const auto found = course(other, *its, begin);
      if (found)
        return steps_.add(
            {.op = BoundOp::kTurns, .a = found->first, .b = found->all, .c = found->by});
    }
    if (const auto its = counters_.find_shifted(other, begin);
        its && counters_.have_same_turns(counter, *its)) {
      if (const auto most = most_shifts(other, *its, begin)) return most;
    }
  }
  return std::nullopt;
}

/// The same by a register that is shifted until nothing is left of it.
std::optional<std::uint32_t> BoundFinder::most_shifts(std::uint32_t number, const Counter& shifted,
                                                      std::uint32_t at) {
  const auto stays = counters_.way_on(shifted, at);
  if (!stays) return std::nullopt;
  for (const Condition& condition : conditions_.between(flow_.block_of(shifted.change), *stays)) {
    const auto limit = limit_on_changed(number, shifted, condition);
    if (!limit || limit->kind != Limit::Kind::kUnequal || limit->is_cut || limit->offset != 0 ||
        limit->less != nullptr || limit->other == nullptr ||
        limit->other->kind != Operand::Kind::kInteger || limit->other->integer != 0) {
      continue;
    }
    const std::int64_t by = shifted.growth;
    return steps_.add({.op = BoundOp::kTurns,
                       .a = steps_.number(0),
                       .b = steps_.number((limit->bits + by - 1) / by - 1),
                       .c = steps_.number(1)});
  }
  return std::nullopt;
}

/// A counter's values at `at` by those of another one of its loop: `counter` grows by a number of
/// times what the other one grows by. So it is what the two begin with, and that often the other.
std::optional<std::uint32_t> BoundFinder::tied(const Counter& counter, std::uint32_t other,
                                               std::uint32_t at) {
  const std::uint32_t begin = flow_.blocks()[flow_.block_of(at)].first;
  const auto its = counters_.find(other, begin);
  if (!its || !counters_.have_same_turns(counter, *its) || counter.by != nullptr ||
      its->by != nullptr || its->growth == 0 || counter.growth % its->growth != 0) {
    return std::nullopt;
  }
  const auto bits = static_cast<std::uint8_t>(8 * registers_.bytes(other));
  const Value mine_first = made_by(counter.first, at), its_first = made_by(its->first, at);
  if (its_first.variable != nullptr) return std::nullopt;
  const std::uint32_t first =
      steps_.read(with_conditions(its_first.step, other, at, &*its), bits, true);
  std::uint32_t all = kUnknown;
  const auto found = course(other, *its, begin);
  if (found) {
    all = found->all;
  } else if (const auto many = turns(other, *its, begin)) {
    all = steps_.add({.op = BoundOp::kMultiply, .a = *many, .b = steps_.number(its->growth)});
    all = steps_.add({.op = BoundOp::kAdd, .a = first, .b = all});
  } else {
    return std::nullopt;
  }
  const std::uint32_t here = with_conditions(all, other, begin, nullptr);
  if (here == all && !found) return std::nullopt;  // it says no more than the turns
  const std::int64_t times = counter.growth / its->growth;
  const std::uint32_t its_part =
      steps_.add({.op = BoundOp::kMultiply, .a = first, .b = steps_.number(times)});
  const std::uint32_t rest =
      steps_.add({.op = BoundOp::kSubtract, .a = mine_first.step, .b = its_part});
  return steps_.add({.op = BoundOp::kTied,
                     .bits = bits,
                     .is_signed = true,
                     .a = rest,
                     .b = all,
                     .c = here,
                     .value = times});
}

BoundFinder::Value BoundFinder::counted(std::uint32_t number, const Counter& counter,
                                        std::uint32_t at) {
  if (const auto found = course(number, counter, at)) return {.step = found->all};
  const auto many = turns(number, counter, at);
  if (!many) return {};
  // Where no thread comes to the change, it is not changed.
  const std::uint32_t by = steps_.add({.op = BoundOp::kEither,
                                       .a = growth(counter, 8 * registers_.bytes(number)),
                                       .b = steps_.number(0)});
  const std::uint32_t way = steps_.add({.op = BoundOp::kMultiply, .a = by, .b = *many});
  Value value = made_by(counter.first, at);
  value.step = steps_.add({.op = BoundOp::kAdd, .a = value.step, .b = way});
  for (const std::uint32_t other : companions(number, counter)) {
    const auto closer = tied(counter, other, at);
    if (closer && steps_.is_narrower(*closer, value.step)) value.step = *closer;
  }
  return value;
}

/// How many turns of the loop can have ended at `at`, by a counter that each of them changes.
std::optional<std::uint32_t> BoundFinder::turns_of(std::uint32_t loop, std::uint32_t at) {
  const std::uint32_t tail = loops_.tails(loop).front();
  const std::uint32_t begin = flow_.blocks()[flow_.block_of(at)].first;
  for (const std::uint32_t number : changed_in(tail)) {
    const auto counter = counters_.find(number, begin);
    if (!counter || flow_.block_of(counter->change) != tail ||
        loops_.contains(loop, flow_.block_of(counter->first))) {
      continue;
    }
    const auto found = course(number, *counter, begin);
    if (!found) continue;
    const std::uint32_t here = with_conditions(found->all, number, begin, nullptr);
    return steps_.add({.op = BoundOp::kTurns, .a = found->first, .b = here, .c = found->by});
  }
  return std::nullopt;
}

/// What instruction `write` has written, as instruction `at` finds it: with the conditions there,
/// if no thread can have come to others since.
BoundFinder::Value BoundFinder::begun_by(std::uint32_t write, std::uint32_t at) {
  const bool is_last = addresses_.dominates(write, at) || !writes_.may_repeat(write);
  return made_by(write, is_last ? at : write);
}

/// What the sums add if each is carried out up to `times` times.
std::uint32_t BoundFinder::added(const std::vector<DriftSum>& sums, std::uint32_t times,
                                 unsigned bits) {
  std::uint32_t all = steps_.number(0);
  for (const DriftSum& sum : sums) {
    std::uint32_t by = sum.by == nullptr
                           ? steps_.number(sum.number)
                           : steps_.read(step_of(*sum.by, sum.at, sum.at), bits, true);
    if (sum.by != nullptr && sum.is_less)
      by = steps_.add({.op = BoundOp::kSubtract, .a = steps_.number(0), .b = by});
    // Where no thread comes to it, it adds nothing.
    by = steps_.add({.op = BoundOp::kEither, .a = by, .b = steps_.number(0)});
    all = steps_.add({.op = BoundOp::kAdd,
                      .a = all,
                      .b = steps_.add({.op = BoundOp::kMultiply, .a = by, .b = times})});
  }
  return all;
}

/// What a loop adds to a register on some of its ways.
std::optional<BoundFinder::Value> BoundFinder::drifted(std::uint32_t number, std::uint32_t at) {
  const auto drift = drifts_.find(number, at);
  const auto many = drift ? turns_of(drift->loop, at) : std::nullopt;
  if (!many) return std::nullopt;
  std::vector<Value> begins;
  if (drift->may_be_unset) begins.push_back({.step = steps_.number(0)});
  for (const std::uint32_t write : drift->beginnings) begins.push_back(begun_by(write, at));
  for (const std::uint32_t write : drift->restarts) begins.push_back(made_by(write, write));
  const unsigned bits = 8 * registers_.bytes(number);
  std::uint32_t way = added(drift->of_turns, *many, bits);
  way = steps_.add(
      {.op = BoundOp::kAdd, .a = way, .b = added(drift->of_present, steps_.number(1), bits)});
  const auto value = any_of(begins);
  return value ? std::optional(sum(*value, {.step = way})) : std::nullopt;
}

/// One of the values. Null: of none, or of addresses in several variables.
std::optional<BoundFinder::Value> BoundFinder::any_of(const std::vector<Value>& values) {
  std::optional<Value> all;
  for (const Value& value : values) {
    if (all && all->variable != value.variable) return std::nullopt;
    all = {.variable = value.variable,
           .step = all ? steps_.add({.op = BoundOp::kEither, .a = all->step, .b = value.step})
                       : value.step};
  }
  return all;
}

/// A register that several instructions write, or one under a predicate. What no instruction has
/// written is 0 behind the fence.
BoundFinder::Value BoundFinder::of_changing(std::uint32_t number, std::uint32_t at) {
  const bool is_written = writes_.is_surely_written(number, at);
  const auto writes = writes_.reaching(number, at);
  if (is_written && writes.size() == 1 && !function_.instructions[writes.front()].guard)
    return made_by(writes.front(), writes.front());
  const auto counter = is_written ? counters_.find(number, at) : std::nullopt;
  if (counter) {
    const Value value = counted(number, *counter, at);
    if (value.step != kUnknown) return value;
  }
  if (const auto value = drifted(number, at)) return *value;
  std::vector<Value> values;
  if (!is_written) values.push_back({.step = steps_.number(0)});
  for (const std::uint32_t write : writes) values.push_back(begun_by(write, at));
  return any_of(values).value_or(Value{});
}

/// The step, for blocks that some thread comes to by what is known of the compared registers. Only
/// those count of which neither the launch leaves anything nor one with other parameters and
/// blocks.
std::uint32_t BoundFinder::where_reached(std::uint32_t step, std::uint32_t at) {
  const std::uint32_t block = conditions_.begin_of(flow_.block_of(at));
  const auto [known, is_new] = reached_.try_emplace(block, kUnknown);
  if (is_new) {
    const std::vector<Condition> found = conditions_.in(block);
    for (const Condition& condition : found) {
      const auto& operands = function_.instructions[condition.comparison].operands;
      for (std::size_t i = 1; i < std::min<std::size_t>(operands.size(), 3); ++i) {
        const auto r = registers_.of(operands[i]);
        if (!r || !addresses_.is_written_once(*r) || registers_.is_predicate(*r)) continue;
        const Value value = of_register(*r, condition.comparison, at);
        if (value.variable == nullptr && steps_.is_empty(value.step)) known->second = value.step;
      }
    }
  }
  const std::uint32_t compared = reached_[block];
  return compared == kUnknown ? step
                              : steps_.add({.op = BoundOp::kWhere, .a = step, .b = compared});
}

}  // namespace slate::injector
