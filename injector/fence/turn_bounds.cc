#include "injector/fence/turn_bounds.h"

#include "injector/fence/bound_finder.h"

namespace slate::injector {

using ptx::Operand;

/// What a condition at the end of a turn says of what the turn has made of the counter.
std::optional<Limit> TurnBounds::limit_on_changed(std::uint32_t number, const Counter& counter,
                                                  const Condition& condition) const {
  const auto limit = facts_.conditions.limit_on(counter.changed, condition);
  const bool is_of_turn =
      limit && facts_.flow.block_of(limit->reader) == facts_.flow.block_of(counter.change) &&
      limit->reader > counter.added &&
      (counter.changed != number || limit->reader > counter.change);
  return is_of_turn ? limit : std::nullopt;
}

/// The same, also where what the counter was before is compared.
std::optional<Limit> TurnBounds::limit_in_turn(std::uint32_t number, const Counter& counter,
                                               const Condition& condition) const {
  if (const auto changed = limit_on_changed(number, counter, condition)) return changed;
  auto before = facts_.conditions.limit_on(number, condition);
  if (!before || facts_.flow.block_of(before->reader) != facts_.flow.block_of(counter.change) ||
      before->reader >= counter.change || counter.by != nullptr) {
    return std::nullopt;
  }
  before->offset -= counter.growth;
  return before;
}

/// What a turn adds to a counter, as a number with a sign.
std::uint32_t TurnBounds::growth(const Counter& counter, unsigned bits) {
  if (counter.by == nullptr) return steps_.number(counter.growth);
  const std::uint32_t by =
      steps_.read(finder_.step_of(*counter.by, counter.added, counter.added), bits, true);
  return counter.is_less ? steps_.add({.op = BoundOp::kSubtract, .a = steps_.number(0), .b = by})
                         : by;
}

/// All values of a counter at `at`, by the condition on which a further turn begins. What is
/// compared may be the counter plus a constant, or the lower half of that: it grows as the counter
/// does, as long as it does not wrap.
std::optional<TurnBounds::Course> TurnBounds::course(std::uint32_t number, const Counter& counter,
                                                     std::uint32_t at) {
  const auto stays = facts_.counters.way_on(counter, at);
  if (!stays) return std::nullopt;
  const bool is_number = counter.by == nullptr;
  for (const Condition& condition :
       facts_.conditions.between(facts_.flow.block_of(counter.change), *stays)) {
    auto limit = limit_in_turn(number, counter, condition);
    if (!limit || limit->other == nullptr || limit->kind == Limit::Kind::kEqual) continue;
    const bool is_sum = limit->offset != 0 || limit->is_cut;
    if (!is_number && (is_sum || limit->kind == Limit::Kind::kUnequal)) continue;
    const BoundNumber begins = finder_.made_by(counter.first, at);
    if (begins.variable != nullptr) continue;
    const auto typed = [&](std::uint32_t of) {
      return steps_.read(of, limit->bits, limit->is_signed);
    };
    const std::uint32_t first = finder_.with_conditions(begins.step, number, at, &counter);
    const std::uint32_t compared =
        is_sum ? typed(steps_.add(
                     {.op = BoundOp::kAdd, .a = first, .b = steps_.number(limit->offset)}))
               : typed(first);
    Course course{.first = is_sum ? first : compared, .by = growth(counter, limit->bits)};
    BoundStep step{.bits = limit->bits, .is_signed = limit->is_signed, .a = compared};
    if (limit->kind == Limit::Kind::kUnequal) {
      step.op = BoundOp::kCounted;
      step.b = finder_.other_of(*limit, condition.comparison);
      step.value = counter.growth;
    } else {
      step.op = limit->kind == Limit::Kind::kAtMost ? BoundOp::kRising : BoundOp::kFalling;
      limit->offset = 0;
      limit->is_cut = false;
      step.b = finder_.with_limit(kUnknown, *limit, condition.comparison);
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

std::vector<std::uint32_t> TurnBounds::changed_in(std::uint32_t block,
                                                  std::optional<std::uint32_t> but) const {
  std::vector<std::uint32_t> found;
  const ControlFlow::Block& code = facts_.flow.blocks()[block];
  for (std::uint32_t i = code.first; i < code.end; ++i) {
    facts_.registers.for_each_write(facts_.function.instructions[i], [&](std::uint32_t r) {
      if (r != but && !facts_.addresses.is_written_once(r) && !facts_.registers.is_predicate(r))
        found.push_back(r);
    });
  }
  return found;
}

/// How often the register can have been changed at `at`: by another one, a counter of the same
/// loop. At the beginning of its block both have been changed as often.
std::optional<std::uint32_t> TurnBounds::turns(std::uint32_t number, const Counter& counter,
                                               std::uint32_t at) {
  if (!facts_.counters.way_on(counter, at)) return std::nullopt;
  const std::uint32_t begin = facts_.flow.blocks()[facts_.flow.block_of(at)].first;
  for (const std::uint32_t other : companions(number, counter)) {
    if (const auto its = facts_.counters.find(other, begin);
        its && facts_.counters.have_same_turns(counter, *its)) {
      const auto found = course(other, *its, begin);
      if (found)
        return steps_.add(
            {.op = BoundOp::kTurns, .a = found->first, .b = found->all, .c = found->by});
    }
    if (const auto its = facts_.counters.find_shifted(other, begin);
        its && facts_.counters.have_same_turns(counter, *its)) {
      if (const auto most = most_shifts(other, *its, begin)) return most;
    }
  }
  return std::nullopt;
}

/// The same by a register that is shifted until nothing is left of it.
std::optional<std::uint32_t> TurnBounds::most_shifts(std::uint32_t number, const Counter& shifted,
                                                     std::uint32_t at) {
  const auto stays = facts_.counters.way_on(shifted, at);
  if (!stays) return std::nullopt;
  for (const Condition& condition :
       facts_.conditions.between(facts_.flow.block_of(shifted.change), *stays)) {
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
std::optional<std::uint32_t> TurnBounds::tied(const Counter& counter, std::uint32_t other,
                                              std::uint32_t at) {
  const std::uint32_t begin = facts_.flow.blocks()[facts_.flow.block_of(at)].first;
  const auto its = facts_.counters.find(other, begin);
  if (!its || !facts_.counters.have_same_turns(counter, *its) || counter.by != nullptr ||
      its->by != nullptr || its->growth == 0 || counter.growth % its->growth != 0) {
    return std::nullopt;
  }
  const auto bits = static_cast<std::uint8_t>(8 * facts_.registers.bytes(other));
  const BoundNumber mine_first = finder_.made_by(counter.first, at),
                    its_first = finder_.made_by(its->first, at);
  if (its_first.variable != nullptr) return std::nullopt;
  const std::uint32_t first =
      steps_.read(finder_.with_conditions(its_first.step, other, at, &*its), bits, true);
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
  const std::uint32_t here = finder_.with_conditions(all, other, begin, nullptr);
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

BoundNumber TurnBounds::counted(std::uint32_t number, const Counter& counter, std::uint32_t at) {
  if (const auto found = course(number, counter, at)) return {.step = found->all};
  const auto many = turns(number, counter, at);
  if (!many) return {};
  // Where no thread comes to the change, it is not changed.
  const std::uint32_t by = steps_.add({.op = BoundOp::kEither,
                                       .a = growth(counter, 8 * facts_.registers.bytes(number)),
                                       .b = steps_.number(0)});
  const std::uint32_t way = steps_.add({.op = BoundOp::kMultiply, .a = by, .b = *many});
  BoundNumber value = finder_.made_by(counter.first, at);
  value.step = steps_.add({.op = BoundOp::kAdd, .a = value.step, .b = way});
  for (const std::uint32_t other : companions(number, counter)) {
    const auto closer = tied(counter, other, at);
    if (closer && steps_.is_narrower(*closer, value.step)) value.step = *closer;
  }
  return value;
}

/// How many turns of the loop can have ended at `at`, by a counter that each of them changes.
std::optional<std::uint32_t> TurnBounds::turns_of(std::uint32_t loop, std::uint32_t at) {
  const std::uint32_t tail = facts_.loops.tails(loop).front();
  const std::uint32_t begin = facts_.flow.blocks()[facts_.flow.block_of(at)].first;
  for (const std::uint32_t number : changed_in(tail)) {
    const auto counter = facts_.counters.find(number, begin);
    if (!counter || facts_.flow.block_of(counter->change) != tail ||
        facts_.loops.contains(loop, facts_.flow.block_of(counter->first))) {
      continue;
    }
    const auto found = course(number, *counter, begin);
    if (!found) continue;
    const std::uint32_t here =
        steps_.add({.op = BoundOp::kCloser,
                    .bits = static_cast<std::uint8_t>(8 * facts_.registers.bytes(number)),
                    .a = found->all,
                    .b = finder_.with_conditions(found->all, number, begin, nullptr)});
    return steps_.add({.op = BoundOp::kTurns, .a = found->first, .b = here, .c = found->by});
  }
  return std::nullopt;
}

/// What the sums add if each is carried out up to `times` times.
std::uint32_t TurnBounds::added(const std::vector<DriftSum>& sums, std::uint32_t times,
                                unsigned bits) {
  std::uint32_t all = steps_.number(0);
  for (const DriftSum& sum : sums) {
    std::uint32_t by = sum.by == nullptr
                           ? steps_.number(sum.number)
                           : steps_.read(finder_.step_of(*sum.by, sum.at, sum.at), bits, true);
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
std::optional<BoundNumber> TurnBounds::drifted(std::uint32_t number, std::uint32_t at) {
  const auto drift = facts_.drifts.find(number, at);
  const auto many = drift ? turns_of(drift->loop, at) : std::nullopt;
  if (!many) return std::nullopt;
  std::vector<BoundNumber> begins;
  if (drift->may_be_unset) begins.push_back({.step = steps_.number(0)});
  for (const std::uint32_t write : drift->beginnings) begins.push_back(finder_.begun_by(write, at));
  for (const std::uint32_t write : drift->restarts) begins.push_back(finder_.made_by(write, write));
  const unsigned bits = 8 * facts_.registers.bytes(number);
  std::uint32_t way = added(drift->of_turns, *many, bits);
  way = steps_.add(
      {.op = BoundOp::kAdd, .a = way, .b = added(drift->of_present, steps_.number(1), bits)});
  const auto value = steps_.any_of(begins);
  return value ? std::optional(steps_.sum(*value, {.step = way})) : std::nullopt;
}

}  // namespace slate::injector
