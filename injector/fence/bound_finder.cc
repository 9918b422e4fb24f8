#include "injector/fence/bound_finder.h"

#include <algorithm>
#include <bit>
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
/// in front of the division on every way: so it is the same number in all of it.
std::optional<std::uint32_t> division_of_rest(const ptx::Function& function,
                                              const Registers& registers,
                                              const Addresses& addresses, std::uint32_t at) {
  const auto register_of = [&](const Operand& operand) -> std::optional<std::uint32_t> {
    const auto number = operand.negated ? std::nullopt : registers.of(operand);
    return number && addresses.is_written_once(*number) ? number : std::nullopt;
  };
  // What writes the operand of instruction `reader`, if it is this.
  const auto maker = [&](const Operand& operand, std::uint32_t reader,
                         std::string_view opcode) -> std::optional<std::uint32_t> {
    const auto number = register_of(operand);
    if (!number) return std::nullopt;
    const std::uint32_t made = addresses.definition(*number);
    const Instruction& instruction = function.instructions[made];
    const std::uint32_t bytes = ptx::type_bytes(function.instructions[at].type());
    const bool is_this = instruction.opcode == opcode && instruction.operands.size() == 3 &&
                         computes_whole(instruction, bytes) &&
                         (opcode == "div" || instruction.has("lo")) &&
                         addresses.dominates(made, reader);
    return is_this ? std::optional(made) : std::nullopt;
  };
  const auto is_same = [&](const Operand& a, const Operand& b, std::uint32_t division) {
    if (a.kind == Operand::Kind::kInteger && b.kind == Operand::Kind::kInteger)
      return a.integer == b.integer;
    const auto number = register_of(a);
    return number && number == register_of(b) &&
           addresses.dominates(addresses.definition(*number), division);
  };
  const Instruction& difference = function.instructions[at];
  const auto product = maker(difference.operands[2], at, "mul");
  if (!product) return std::nullopt;
  const auto& factors = function.instructions[*product].operands;
  for (const std::size_t i : {1u, 2u}) {
    const auto division = maker(factors[i], *product, "div");
    if (!division) continue;
    const auto& divided = function.instructions[*division].operands;
    if (is_same(divided[1], difference.operands[1], *division) &&
        is_same(divided[2], factors[3 - i], *division)) {
      return division;
    }
  }
  return std::nullopt;
}

}  // namespace

BoundFinder::BoundFinder(const ptx::Function& function, const ControlFlow& flow,
                         const Registers& registers, const Addresses& addresses, const Loops& loops,
                         const LaunchValues* launch)
    : facts_{function, flow, registers, addresses, loops},
      layout_(function),
      steps_(function, layout_, launch),
      turns_(facts_, steps_, *this),
      invariants_(facts_, steps_, *this) {}

BoundNumber BoundFinder::address(const Operand& operand, std::uint32_t at) {
  if (operand.parts.empty()) return {.step = steps_.number(operand.integer)};
  BoundNumber value = of(operand.parts[0], at, at);
  if (operand.integer != 0) value = steps_.sum(value, {.step = steps_.number(operand.integer)});
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

BoundClaim BoundFinder::has_whole_warps() {
  std::uint32_t threads = steps_.add({.op = BoundOp::kThreads, .value = 0});
  for (const std::int64_t axis : {1, 2}) {
    const std::uint32_t more = steps_.add({.op = BoundOp::kThreads, .value = axis});
    threads = steps_.add({.op = BoundOp::kMultiply, .a = threads, .b = more});
  }
  return {.kind = BoundClaim::Kind::kMultiple, .step = threads, .bytes = 32};
}

BoundClaim BoundFinder::has_shared(std::uint32_t bytes) {
  return steps_.is_number(steps_.add({.op = BoundOp::kShared}), bytes);
}

BoundNumber BoundFinder::of(const Operand& operand, std::uint32_t where, std::uint32_t at) {
  if (operand.negated || operand.component != 0) return {};
  if (operand.kind == Operand::Kind::kInteger) return {.step = steps_.number(operand.integer)};
  if (operand.kind == Operand::Kind::kSpecial) return {.step = special(operand)};
  if (operand.kind != Operand::Kind::kSymbol) return {};
  if (const auto r = facts_.registers.of(operand)) return of_register(*r, where, at);
  const bool is_module = operand.reference == Reference::kGlobal;
  const bool is_own = operand.reference == Reference::kLocal &&
                      facts_.function.variables[operand.index].space != ptx::Space::kReg &&
                      facts_.function.variables[operand.index].space != ptx::Space::kParam;
  if (!is_module && !is_own) return {};
  return {.variable = &operand, .step = steps_.number(operand.integer)};
}

std::uint32_t BoundFinder::step_of(const Operand& operand, std::uint32_t where, std::uint32_t at) {
  const BoundNumber value = of(operand, where, at);
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

BoundNumber BoundFinder::of_register(std::uint32_t number, std::uint32_t where, std::uint32_t at) {
  const bool is_once = facts_.addresses.is_written_once(number);
  if (is_once && !facts_.addresses.dominates(facts_.addresses.definition(number), where)) return {};
  if (!is_once) where = facts_.writes.begin_of(number, where);
  const std::uint32_t place =
      is_once ? facts_.conditions.begin_of(facts_.flow.block_of(at)) : where;
  const auto [known, is_new] = known_.try_emplace({number, place});
  // What is still being looked for is not known.
  if (!is_new || depth_ > kMostDepth) return known->second;
  ++depth_;
  BoundNumber value =
      is_once ? made_by(facts_.addresses.definition(number), at) : of_changing(number, where);
  if (value.variable == nullptr)
    value.step = with_conditions(value.step, number, is_once ? at : where, nullptr);
  --depth_;
  return known_[{number, place}] = value;
}

BoundNumber BoundFinder::made_by(std::uint32_t made, std::uint32_t at) {
  const Instruction& instruction = facts_.function.instructions[made];
  const std::string_view opcode = instruction.opcode;
  const auto& operands = instruction.operands;
  if (opcode == "ld") return loaded_by(instruction);
  const auto result = operands.empty() ? std::nullopt : facts_.registers.of(operands[0]);
  if (operands.size() < 2 || !result || !is_integer(instruction.type()) || instruction.has("sat") ||
      instruction.has("cc") || instruction.has("relu")) {
    return {};
  }
  if (opcode == "cvt") return converted_by(made, at);
  const std::uint32_t bytes = ptx::type_bytes(instruction.type());
  if (facts_.registers.bytes(*result) != (instruction.has("wide") ? 2 * bytes : bytes)) return {};
  if (opcode == "mov") return of(operands[1], made, at);
  if (opcode == "cvta") return converted_by(made, at);
  if (opcode == "add" && operands.size() == 3)
    return steps_.sum(of(operands[1], made, at), of(operands[2], made, at));
  if (opcode == "sub" && operands.size() == 3) {
    if (const auto division =
            division_of_rest(facts_.function, facts_.registers, facts_.addresses, made))
      return {.step = ratio(BoundOp::kRest, *division, at)};
    if (const auto rounded = rounded_by(made, at)) return {.step = *rounded};
    BoundNumber from = of(operands[1], made, at);
    from.step =
        steps_.add({.op = BoundOp::kSubtract, .a = from.step, .b = step_of(operands[2], made, at)});
    return from;
  }
  if (opcode == "mad" && operands.size() == 4 && !instruction.has("hi"))
    return steps_.sum({.step = product_by(made, at)}, of(operands[3], made, at));
  if (opcode == "selp" && operands.size() == 4) {
    const BoundNumber a = of(operands[1], made, at), b = of(operands[2], made, at);
    if (a.variable != b.variable) return {};
    return {.variable = a.variable,
            .step = steps_.add({.op = BoundOp::kEither, .a = a.step, .b = b.step})};
  }
  return {.step = computed_by(made, at)};
}

/// A parameter by its name, a row of the table of variables, or what a number of bits can be.
BoundNumber BoundFinder::loaded_by(const Instruction& instruction) {
  const ptx::Type type = instruction.type();
  if (instruction.operands.size() < 2 || !is_integer(type)) return {};
  if (facts_.addresses.table_row(instruction))
    return {.variable = &instruction.operands[1], .step = steps_.number(0)};
  const Operand& source = instruction.operands[1];
  const bool is_one = instruction.operands[0].kind == Operand::Kind::kSymbol;
  const bool is_parameter = is_one && instruction.has("param") && source.parts.size() == 1 &&
                            source.parts[0].reference == Reference::kParameter;
  std::uint32_t step = kUnknown;
  if (is_parameter && facts_.function.is_entry) {
    step = steps_.add({.op = BoundOp::kParameter,
                       .bits = static_cast<std::uint8_t>(bits_of(type)),
                       .value = parameter_at(source)});
  }
  return {.step = steps_.read(step, bits_of(type), is_signed(type))};
}

BoundNumber BoundFinder::converted_by(std::uint32_t made, std::uint32_t at) {
  const Instruction& instruction = facts_.function.instructions[made];
  const BoundNumber from = of(instruction.operands[1], made, at);
  if (instruction.opcode == "cvta") {
    // Global and generic addresses are the same numbers.
    return instruction.has("global") && from.variable == nullptr ? from : BoundNumber{};
  }
  const ptx::Type to = instruction.type(1), source = instruction.type(0);
  if (!is_integer(to) || !is_integer(source) || from.variable != nullptr) return {};
  std::uint32_t step = from.step;
  if (bits_of(to) > bits_of(source)) step = steps_.read(step, bits_of(source), is_signed(source));
  // A register that is wider than the result gets the rest of its bits from the sign, or zeros.
  const auto result = facts_.registers.of(instruction.operands[0]);
  const bool is_wider = !result || 8 * facts_.registers.bytes(*result) > bits_of(to);
  return {.step = is_wider ? steps_.read(step, bits_of(to), is_signed(to)) : step};
}

/// Of the first two operands of mul and mad.
std::uint32_t BoundFinder::product_by(std::uint32_t made, std::uint32_t at) {
  const Instruction& instruction = facts_.function.instructions[made];
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
  const Instruction& instruction = facts_.function.instructions[division];
  const auto operand = [&](std::size_t i) {
    return steps_.read(step_of(instruction.operands[i], division, at), bits_of(instruction.type()),
                       is_signed(instruction.type()));
  };
  const std::uint32_t a = operand(1);
  return steps_.add({.op = op, .a = a, .b = operand(2)});
}

/// The difference a - (a & m) if m has its lowest bits only, as nvcc computes how many turns of a
/// loop it can unroll.
std::optional<std::uint32_t> BoundFinder::rounded_by(std::uint32_t made, std::uint32_t at) {
  const auto& operands = facts_.function.instructions[made].operands;
  const auto from = facts_.registers.of(operands[1]), less = facts_.registers.of(operands[2]);
  if (!from || !less || operands[1].negated || operands[2].negated ||
      !facts_.addresses.is_written_once(*less)) {
    return std::nullopt;
  }
  const std::uint32_t masked = facts_.addresses.definition(*less);
  const Instruction& mask = facts_.function.instructions[masked];
  if (mask.opcode != "and" || mask.guard || mask.operands.size() != 3 ||
      !facts_.addresses.dominates(masked, made) || mask.operands[1].negated ||
      facts_.registers.of(mask.operands[1]) != from ||
      !facts_.writes.is_unchanged(*from, masked, made) ||
      mask.operands[2].kind != Operand::Kind::kInteger) {
    return std::nullopt;
  }
  const std::int64_t bits = mask.operands[2].integer;
  if (bits <= 0 || bits > 0xffff || (bits & (bits + 1)) != 0) return std::nullopt;
  const std::uint32_t all = step_of(operands[1], made, at);
  const std::uint32_t rest = steps_.add({.op = BoundOp::kAnd, .a = all, .b = steps_.number(bits)});
  return steps_.add({.op = BoundOp::kRounded,
                     .a = steps_.add({.op = BoundOp::kSubtract, .a = all, .b = rest}),
                     .value = std::popcount(static_cast<std::uint64_t>(bits))});
}

/// Divisions, shifts to the right and what else reads its operands as numbers.
std::uint32_t BoundFinder::divided_by(std::uint32_t made, std::uint32_t at) {
  const Instruction& instruction = facts_.function.instructions[made];
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
  const Instruction& instruction = facts_.function.instructions[made];
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

BoundNumber BoundFinder::begun_by(std::uint32_t write, std::uint32_t at) {
  const bool is_last = facts_.addresses.dominates(write, at) || !facts_.writes.may_repeat(write);
  return made_by(write, is_last ? at : write);
}

bool BoundFinder::counts(std::uint32_t number, const Limit& limit, std::uint32_t at,
                         const Counter* counter) const {
  if (counter != nullptr) return facts_.counters.is_in_front(*counter, limit.reader);
  // A loop's comparison may read what the last turn has written.
  if (facts_.addresses.is_written_once(number))
    return facts_.addresses.dominates(facts_.addresses.definition(number), limit.reader);
  return facts_.addresses.dominates(limit.reader, at) &&
         facts_.writes.is_unchanged(number, limit.reader, at);
}

std::uint32_t BoundFinder::with_conditions(std::uint32_t step, std::uint32_t number,
                                           std::uint32_t at, const Counter* counter) {
  const std::vector<Condition> found = facts_.conditions.in(facts_.flow.block_of(at));
  for (const Condition& condition : found) {
    const auto limit = facts_.conditions.limit_on(number, condition);
    if (limit && counts(number, *limit, at, counter))
      step = with_limit(step, *limit, condition.comparison);
  }
  return step;
}

/// A register that several instructions write, or one under a predicate. What no instruction has
/// written is 0 behind the fence.
BoundNumber BoundFinder::of_changing(std::uint32_t number, std::uint32_t at) {
  const bool is_written = facts_.writes.is_surely_written(number, at);
  const auto writes = facts_.writes.reaching(number, at);
  if (is_written && writes.size() == 1 && !facts_.function.instructions[writes.front()].guard)
    return made_by(writes.front(), writes.front());
  BoundNumber found;
  const auto is_enough = [&](const std::optional<BoundNumber>& value) {
    if (!value || value->step == kUnknown) return false;
    const bool is_narrow = steps_.may_be_narrow(value->step);
    if (is_narrow || found.step == kUnknown) found = *value;
    return is_narrow;
  };
  const auto counter = is_written ? facts_.counters.find(number, at) : std::nullopt;
  if (counter && is_enough(turns_.counted(number, *counter, at))) return found;
  if (is_enough(turns_.drifted(number, at)) || is_enough(invariants_.by_ways(number, at)))
    return found;
  std::vector<BoundNumber> values;
  if (!is_written) values.push_back({.step = steps_.number(0)});
  for (const std::uint32_t write : writes) values.push_back(begun_by(write, at));
  is_enough(steps_.any_of(values));
  return found;
}

/// The step, for blocks that some thread comes to by what is known of the compared registers. Only
/// those count of which neither the launch leaves anything nor one with other parameters and
/// blocks.
std::uint32_t BoundFinder::where_reached(std::uint32_t step, std::uint32_t at) {
  const std::uint32_t block = facts_.conditions.begin_of(facts_.flow.block_of(at));
  const auto [known, is_new] = reached_.try_emplace(block, kUnknown);
  if (is_new) {
    const std::vector<Condition> found = facts_.conditions.in(block);
    for (const Condition& condition : found) {
      const auto& operands = facts_.function.instructions[condition.comparison].operands;
      for (std::size_t i = 1; i < std::min<std::size_t>(operands.size(), 3); ++i) {
        const auto r = facts_.registers.of(operands[i]);
        if (!r || !facts_.addresses.is_written_once(*r) || facts_.registers.is_predicate(*r))
          continue;
        const BoundNumber value = of_register(*r, condition.comparison, at);
        if (value.variable == nullptr && steps_.is_empty(value.step)) known->second = value.step;
      }
    }
  }
  const std::uint32_t compared = reached_[block];
  return compared == kUnknown ? step
                              : steps_.add({.op = BoundOp::kWhere, .a = step, .b = compared});
}

}  // namespace slate::injector
