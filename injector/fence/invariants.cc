#include "injector/fence/invariants.h"

#include <algorithm>

#include "injector/analysis/dominators.h"
#include "injector/fence/bound_finder.h"

namespace slate::injector {

/// What a register is behind a write.
BoundNumber Invariants::written_by(std::uint32_t write, std::uint32_t number) {
  const BoundNumber value = finder_.made_by(write, write);
  if (!facts_.function.instructions[write].guard) return value;
  return steps_.any_of({value, finder_.of_register(number, write, write)}).value_or(BoundNumber{});
}

BoundNumber Invariants::at_end_of(std::uint32_t block, std::uint32_t number) {
  const std::uint32_t last = facts_.flow.blocks()[block].end - 1;
  return facts_.writes.writes(last, number) ? written_by(last, number)
                                            : finder_.of_register(number, last, last);
}

/// A limit on what the register was in a block in front of its last change there, as one on what it
/// is at the end, if the change is a sum.
std::optional<Limit> Invariants::limit_behind_sum(std::uint32_t number, std::uint32_t block,
                                                  const Limit& limit) const {
  const ControlFlow::Block& code = facts_.flow.blocks()[block];
  const std::uint32_t behind = facts_.writes.begin_of(number, code.end - 1);
  if (behind == code.first) return std::nullopt;
  // Both the limit and the sum are about the register as it was since the write before.
  const std::uint32_t change = behind - 1, before = facts_.writes.begin_of(number, change);
  const auto sum = facts_.counters.sum_by(number, change);
  if (!sum || sum->by != nullptr || sum->added < before || limit.reader < before ||
      limit.reader > change) {
    return std::nullopt;
  }
  Limit moved = limit;
  moved.offset -= sum->growth;
  return moved;
}

/// What a register is on the way from a block to the next one.
BoundNumber Invariants::along(std::uint32_t number, std::uint32_t from, std::uint32_t to) {
  const std::uint32_t last = facts_.flow.blocks()[from].end - 1;
  BoundNumber value = at_end_of(from, number);
  if (value.variable != nullptr) return value;
  for (const Condition& condition : facts_.conditions.between(from, to)) {
    auto limit = facts_.conditions.limit_on(number, condition);
    if (limit && !finder_.counts(number, *limit, last, nullptr))
      limit = limit_behind_sum(number, from, *limit);
    if (limit) value.step = finder_.with_limit(value.step, *limit, condition.comparison);
  }
  return value;
}

std::optional<BoundNumber> Invariants::any_along(std::uint32_t number,
                                                 const std::vector<std::uint32_t>& from,
                                                 std::uint32_t to) {
  std::vector<BoundNumber> values;
  for (const std::uint32_t block : from) values.push_back(along(number, block, to));
  return steps_.any_of(values);
}

std::optional<BoundNumber> Invariants::by_ways(std::uint32_t number, std::uint32_t at) {
  const std::uint32_t block = facts_.flow.block_of(at);
  const auto& loops = facts_.loops.around(block);
  const auto changes = [&](std::uint32_t loop) { return facts_.drifts.changes_in(loop, number); };
  if (std::ranges::none_of(loops, changes)) return std::nullopt;
  if (at != facts_.flow.blocks()[block].first) return written_by(at - 1, number);
  const std::uint32_t above = facts_.addresses.dominators()[block];
  if (above != kNoDominator &&
      facts_.writes.is_unchanged(number, facts_.flow.blocks()[above].end - 1, at))
    return at_end_of(above, number);
  const auto begun = std::ranges::find(
      loops, block, [&](std::uint32_t loop) { return facts_.loops.header(loop); });
  if (begun != loops.end() && changes(*begun)) return invariant(*begun, number);
  return any_along(number, facts_.writes.predecessors(block), block);
}

/// What a loop leaves a register within, by induction over its turns: what it begins with; or that,
/// and the numbers up to the nearest that the loop compares it with.
std::optional<BoundNumber> Invariants::invariant(std::uint32_t loop, std::uint32_t number) {
  const std::uint32_t header = facts_.loops.header(loop), at = facts_.flow.blocks()[header].first;
  const auto begins = any_along(number, facts_.loops.entries(loop), header);
  if (!begins || !steps_.may_be_narrow(begins->step)) return std::nullopt;
  const std::uint32_t count = steps_.count();
  std::uint32_t assumed = begins->step, first = kUnknown;
  for (int i = 0; i < kMostTries && assumptions_ < kMostAssumed; ++i) {
    ++assumptions_;
    // Any of these numbers: not the same one as what they were found of.
    assumed = steps_.add({.op = BoundOp::kEither, .a = assumed, .b = assumed});
    const auto turn =
        finder_.assuming(number, at, {.variable = begins->variable, .step = assumed},
                         [&] { return any_along(number, facts_.loops.tails(loop), header); });
    if (!turn || turn->variable != begins->variable || !steps_.may_be_narrow(turn->step)) break;
    const std::uint32_t found =
        steps_.add({.op = BoundOp::kInvariant, .a = assumed, .b = turn->step, .c = begins->step});
    const bool is_one = steps_.may_be_narrow(found);
    if (i == 0) {
      // Where the first holds, other launches may still need the second.
      if (is_one) first = found;
      const auto limits = begins->variable == nullptr ? limits_in(loop, number) : Limits{};
      if (is_one && limits.low.empty() && limits.high.empty()) break;
      assumed = up_to(limits, assumed, turn->step);
    } else if (is_one) {
      const std::uint32_t all =
          first == kUnknown ? found : steps_.add({.op = BoundOp::kElse, .a = first, .b = found});
      return BoundNumber{.variable = begins->variable, .step = all};
    } else if (first != kUnknown) {
      break;
    } else {
      assumed = steps_.add({.op = BoundOp::kEither, .a = assumed, .b = turn->step});
    }
  }
  if (first != kUnknown) return BoundNumber{.variable = begins->variable, .step = first};
  steps_.go_back_to(count);
  return std::nullopt;
}

/// The numbers with which a loop compares a register, or their neighbours.
Invariants::Limits Invariants::limits_in(std::uint32_t loop, std::uint32_t number) {
  Limits found;
  const auto look_at = [&](const Condition& condition) {
    const auto limit = facts_.conditions.limit_on(number, condition);
    if (!limit) return;
    const std::uint32_t other =
        steps_.read(finder_.other_of(*limit, condition.comparison), limit->bits, limit->is_signed);
    const auto with = [&](std::int64_t apart) {
      return steps_.add({.op = BoundOp::kAdd,
                         .a = other,
                         .b = steps_.number(apart + limit->apart - limit->offset)});
    };
    const bool is_apart = limit->kind == Limit::Kind::kUnequal;
    if (limit->kind != Limit::Kind::kAtMost) found.low.push_back(with(is_apart ? 1 : 0));
    if (limit->kind != Limit::Kind::kAtLeast) found.high.push_back(with(is_apart ? -1 : 0));
  };
  const std::uint32_t at = facts_.flow.blocks()[facts_.loops.header(loop)].first;
  return finder_.assuming(number, at, {}, [&] {
    for (std::uint32_t block = 0; block < facts_.flow.blocks().size(); ++block) {
      if (!facts_.loops.contains(loop, block)) continue;
      for (const std::uint32_t next : facts_.flow.blocks()[block].successors) {
        if (!facts_.loops.contains(loop, next)) continue;
        for (const Condition& condition : facts_.conditions.between(block, next))
          look_at(condition);
      }
    }
    return found;
  });
}

/// `begins` and the numbers of `turn`, up to the nearest limits beyond these. Where all these are
/// multiples of a power of two, so are the limits made.
std::uint32_t Invariants::up_to(const Limits& limits, std::uint32_t begins, std::uint32_t turn) {
  constexpr unsigned kMostZeros = 12;
  const unsigned zeros = std::min({steps_.zeros(begins), steps_.zeros(turn), kMostZeros});
  const std::int64_t multiple = std::int64_t{1} << zeros;
  std::uint32_t all = begins;
  const auto reach = [&](const std::vector<std::uint32_t>& ends, std::int64_t more,
                         const auto& is_beyond) {
    std::optional<std::uint32_t> nearest;
    for (std::uint32_t end : ends) {
      if (more != 0) end = steps_.add({.op = BoundOp::kAdd, .a = end, .b = steps_.number(more)});
      if (zeros != 0)
        end = steps_.add({.op = BoundOp::kAnd, .a = end, .b = steps_.number(-multiple)});
      const bool is_near = steps_.may_be_narrow(end) && !steps_.is_empty(end) &&
                           !is_beyond(turn, end) && !(nearest && is_beyond(end, *nearest));
      if (is_near) nearest = end;
    }
    if (nearest || is_beyond(turn, begins))
      all = steps_.add({.op = BoundOp::kEither, .a = all, .b = nearest.value_or(turn)});
  };
  reach(limits.low, multiple - 1, [&](auto a, auto b) { return steps_.begins_below(a, b); });
  reach(limits.high, 0, [&](auto a, auto b) { return steps_.ends_above(a, b); });
  return all;
}

}  // namespace slate::injector
