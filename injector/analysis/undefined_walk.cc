#include "injector/analysis/undefined_walk.h"

#include <algorithm>

#include "injector/analysis/facts.h"
#include "injector/analysis/uniformity.h"

namespace slate::injector {
namespace {

using ptx::Instruction;
using ptx::Operand;

// Visits of blocks, each with other facts: so many, and so many for each block.
constexpr std::size_t kFreeVisits = 1024;
constexpr std::size_t kVisitsPerBlock = 8;
// What looking something up in a tree costs.
constexpr std::size_t kSteps = 8;
// Flags whose values are told apart: at first, and after so many attempts.
constexpr std::size_t kFewestTracked = 3;
constexpr std::size_t kMostTracked = 48;

bool is_way_on(const Instruction& last) {
  return last.opcode == "bra" || last.opcode == "brx" || last.opcode == "trap" || leaves(last);
}

/// Its second operand goes to other lanes, into its result.
bool hands_to_lane(const Instruction& instruction) {
  return instruction.opcode == "shfl" && instruction.operands.size() > 1;
}

/// Its second operand goes where only threads of its block, or the thread itself, may get it.
bool hands_to_block(const Instruction& instruction) {
  return instruction.opcode == "st" && instruction.operands.size() > 1 &&
         (instruction.has("shared") || instruction.has("shared::cta") || instruction.has("local"));
}

void forget(std::vector<std::uint32_t>& facts, std::uint32_t r) {
  std::erase_if(facts, [&](std::uint32_t fact) { return fact / kSmallValues == r; });
}

void learn(std::vector<std::uint32_t>& facts, std::uint32_t r, SmallValue value) {
  forget(facts, r);
  const std::uint32_t fact = kSmallValues * r + value;
  facts.insert(std::ranges::lower_bound(facts, fact), fact);
}

/// True if something was added.
bool add_to(std::vector<bool>& all, const std::vector<bool>& more) {
  bool grows = false;
  for (std::size_t i = 0; i < more.size(); ++i) {
    if (!more[i] || all[i]) continue;
    all[i] = grows = true;
  }
  return grows;
}

}  // namespace

UndefinedWalk::UndefinedWalk(const ptx::Function& function, const ControlFlow& flow,
                             const Registers& registers, Effort& effort)
    : function_(function),
      flow_(flow),
      registers_(registers),
      predicate_groups_(function, flow, registers),
      accesses_(function, flow, registers, &predicate_groups_),
      liveness_(flow, accesses_, effort),
      effort_(effort),
      carry_(registers.count()),
      uses_(function, registers),
      compared_(registers.count() + 1),
      branches_(function, flow, registers, effort),
      tracked_(function, flow, registers, predicate_groups_, uses_, branches_, effort),
      suspects_(registers.count() + 1),
      interesting_(flow.blocks().size()) {
  for (std::uint32_t g = 0; g < predicate_groups_.groups().size(); ++g) {
    for (const std::uint32_t r : predicate_groups_.groups()[g].inputs) compared_[r].push_back(g);
  }
}

/// With few flags there are few states, but what they do not tell apart may seem to be undefined.
/// So it begins with few, and where something is found it tries again with more: those first that
/// decide whether the finding is reached.
std::optional<UndefinedRead> UndefinedWalk::find(std::uint32_t exposed) {
  find_suspects(exposed);
  // Instructions that were found to make something of it, with fewer flags tracked.
  List decisive;
  std::optional<UndefinedRead> found;
  for (std::size_t most = kFewestTracked; most <= kMostTracked; most *= 2) {
    tracked_.choose(suspects_.all(), decisive, most);
    found = walk(exposed);
    if (!found || found->surely) break;
    decisive.push_back(found_at_);
  }
  return found;
}

std::optional<UndefinedRead> UndefinedWalk::walk(std::uint32_t exposed) {
  find_interesting();
  State start{.facts = {},
              .undefined = std::vector<bool>(suspects_.all().size(), false),
              .stale = std::vector<bool>(tracked_.all().size(), true)};
  start.undefined[suspects_.at(exposed)] = true;
  origins_.assign(suspects_.all().size(), std::nullopt);
  states_.clear();
  waiting_.clear();
  parts_.clear();
  found_.reset();
  const auto& reads = uses_.reads(exposed);  // none if only the caller gets it
  found_at_ =
      reads.empty() ? static_cast<std::uint32_t>(function_.instructions.size() - 1) : reads.front();
  enter(0, std::move(start));
  const std::size_t most_visits = kFreeVisits + kVisitsPerBlock * flow_.blocks().size();
  for (std::size_t visits = 0; !waiting_.empty() && !found_; ++visits) {
    if (!effort_.take(kSteps)) return std::nullopt;
    if (visits == most_visits) return origin_of(exposed, found_at_);
    const auto [block, facts] = *waiting_.begin();
    waiting_.erase(waiting_.begin());
    const auto& [undefined, stale] = states_.at({block, facts});
    visit(block, {facts, undefined, stale});
  }
  return found_;
}

// --- What to look at

/// To which its value may flow.
void UndefinedWalk::find_suspects(std::uint32_t exposed) {
  suspects_.clear();
  suspects_.add(exposed);
  for (std::size_t s = 0; s < suspects_.all().size(); ++s) {
    for (const std::uint32_t i : uses_.reads(suspects_.all()[s])) {
      const Instruction& instruction = function_.instructions[i];
      if (!effort_.take(1)) return;
      if (passes_on(instruction) || hands_to_lane(instruction)) {
        for_each_written(registers_, instruction, [&](std::uint32_t r) { suspects_.add(r); });
      } else if (const List* writes = branches_.quiet_writes(flow_.block_of(i))) {
        if (!effort_.take(writes->size())) return;
        for (const std::uint32_t r : *writes) suspects_.add(r);
      }
    }
  }
}

void UndefinedWalk::find_interesting() {
  for (const std::uint32_t block : touched_) interesting_[block].clear();
  touched_.clear();
  List found;
  const auto add = [&](const List& list) {
    effort_.take(kSteps * list.size());  // they are sorted
    found.insert(found.end(), list.begin(), list.end());
  };
  for (const std::uint32_t r : suspects_.all()) {
    add(uses_.reads(r));
    add(uses_.writes(r));
  }
  for (const std::uint32_t r : tracked_.all()) {
    add(uses_.writes(r));
    const std::uint32_t group = predicate_groups_.group_of(r);
    if (group == PredicateGroups::kNone) continue;
    for (const std::uint32_t input : predicate_groups_.groups()[group].inputs)
      add(uses_.writes(input));
  }
  std::ranges::sort(found);
  const auto rest = std::ranges::unique(found);
  found.erase(rest.begin(), rest.end());
  for (const std::uint32_t i : found) {
    List& list = interesting_[flow_.block_of(i)];
    if (list.empty()) touched_.push_back(flow_.block_of(i));
    list.push_back(i);
  }
}

bool UndefinedWalk::is_live(std::uint32_t flag, std::uint32_t block) {
  const auto [known, is_new] = live_.try_emplace(flag);
  if (is_new) {
    effort_.take(flow_.blocks().size() / 8);
    known->second.resize(flow_.blocks().size());
    liveness_.for_each_block(flag, [&](std::uint32_t b) { known->second[b] = true; });
  }
  return known->second[block];
}

// --- One block

void UndefinedWalk::enter(std::uint32_t block, State state) {
  if (std::ranges::find(state.undefined, true) == state.undefined.end()) return;
  std::erase_if(state.facts,
                [&](std::uint32_t fact) { return !is_live(fact / kSmallValues, block); });
  effort_.take(1 + (state.undefined.size() + state.stale.size()) / 4);
  const Key key{block, std::move(state.facts)};
  const auto [present, is_new] = states_.try_emplace(key, state.undefined, state.stale);
  bool grows = is_new;
  if (!is_new) {
    grows = add_to(present->second.first, state.undefined);
    grows |= add_to(present->second.second, state.stale);
  }
  if (grows) waiting_.insert(key);
}

void UndefinedWalk::visit(std::uint32_t block, State state) {
  parts_.push_back({std::move(state)});
  const auto& interesting = interesting_[block];
  while (!parts_.empty() && !found_) {
    Part part = std::move(parts_.back());
    parts_.pop_back();
    while (part.next < interesting.size() && !found_) {
      if (!effort_.take(1)) return;
      run(interesting[part.next++], part);
    }
    if (!found_) leave(block, std::move(part.state));
  }
}

/// To the blocks that follow, and with what the branch says of its predicate.
void UndefinedWalk::leave(std::uint32_t number, State state) {
  const ControlFlow::Block& block = flow_.blocks()[number];
  const Instruction& last = function_.instructions[block.end - 1];
  if (block.exits) {
    registers_.for_each_returned([&](std::uint32_t r) { demand(r, block.end - 1, state); });
  }
  const auto guard = registers_.guard_of(last);
  if (guard && is_way_on(last) && is_undefined(*guard, state)) {
    take_either_way(number, *guard, std::move(state));
    return;
  }
  if (!guard || !tracked_.has(*guard) || !is_way_on(last)) {
    for (const std::uint32_t next : block.successors) {
      if (!branches_.jumps_loop(number) || next != block.meeting) enter(next, state);
    }
    return;
  }
  const auto known = fact(state, *guard);
  for (const std::uint32_t next : block.successors) {
    if (branches_.jumps_loop(number) && next == block.meeting) continue;
    const bool is_behind = next == number + 1;
    const bool both = is_behind && std::ranges::count(block.successors, next) > 1;
    const bool value = is_behind == last.guard->negated;
    if (!both && known && (*known != 0) != value) continue;
    State there = state;
    if (!both) learn(there.facts, *guard, value);
    enter(next, std::move(there));
  }
}

/// Which way was taken matters for what is written on either.
void UndefinedWalk::take_either_way(std::uint32_t number, std::uint32_t guard, State state) {
  const ControlFlow::Block& block = flow_.blocks()[number];
  const List* writes = branches_.quiet_writes(number);
  if (writes == nullptr) {
    demand(guard, block.end - 1, state);
    return;
  }
  const UndefinedRead origin = origin_of(guard, block.end - 1);
  if (!effort_.take(writes->size())) return;
  for (const std::uint32_t r : *writes) {
    write(r, std::nullopt, false, state);
    state.undefined[suspects_.at(r)] = true;
    auto& known = origins_[suspects_.at(r)];
    if (!known || !known->surely) known = origin;
  }
  enter(block.meeting, std::move(state));
}

// --- One instruction

void UndefinedWalk::run(std::uint32_t index, Part& part) {
  const Instruction& instruction = function_.instructions[index];
  bool surely = true;  // it is carried out
  if (const auto guard = registers_.guard_of(instruction)) {
    const auto known = fact(part.state, *guard);
    if (known && (*known != 0) == instruction.guard->negated) return;
    if (!known) {
      if (is_way_on(instruction)) {
        demand_inputs(index, part.state);  // the guard is for leave()
        return;
      }
      const bool is_open = is_undefined(*guard, part.state);
      if (is_open && !passes_on(instruction)) demand(*guard, index, part.state);
      surely = tracked_.has(*guard) && !is_open;
      if (surely) split(part, *guard, !instruction.guard->negated);
    }
  }
  if (instruction.opcode == "selp") choose(instruction, part);
  if (!passes_on(instruction)) demand_inputs(index, part.state);
  const auto value = made_by(instruction, part.state);
  const bool is_exact = value && *value < kNotZero;
  auto undefined = is_exact ? std::nullopt : undefined_input(instruction, part.state);
  const auto guard = registers_.guard_of(instruction);
  if (!undefined && guard && is_undefined(*guard, part.state)) undefined = guard;
  const bool hands_over = hands_to_lane(instruction) && undefined;
  const bool flows_on = hands_over ? origin_of(*undefined, index).surely : passes_on(instruction);
  for_each_written(registers_, instruction, [&](std::uint32_t r) {
    write(r, value, surely, part.state);
    if (!suspects_.has(r)) return;
    const bool flows = undefined && flows_on;
    if (flows || surely) part.state.undefined[suspects_.at(r)] = flows;
    if (!flows) return;
    auto& origin = origins_[suspects_.at(r)];
    if (!origin || !origin->surely) origin = origin_of(*undefined, index);
  });
  forget_choice(instruction, part.state);
}

/// Of a predicate that is not tracked, nobody sees when it changes.
void UndefinedWalk::forget_choice(const Instruction& selp, State& state) const {
  if (selp.opcode != "selp" || selp.operands.size() != 4) return;
  const auto predicate = registers_.of(selp.operands[3]);
  if (predicate && !tracked_.has(*predicate)) forget(state.facts, *predicate);
}

/// What is known of predicates afterwards.
void UndefinedWalk::write(std::uint32_t r, MaybeSmall value, bool surely, State& state) {
  for (const std::uint32_t g : compared_[r]) {
    for (const std::uint32_t p : predicate_groups_.groups()[g].predicates) {
      if (tracked_.has(p)) state.stale[tracked_.at(p)] = true;
    }
  }
  if (!tracked_.has(r)) return;
  forget(state.facts, r);
  if (surely && value) learn(state.facts, r, *value);
  if (surely) state.stale[tracked_.at(r)] = false;
}

/// This part goes on with the predicate at `value`, another one with the opposite. It is not to
/// run the present instruction, or, with `again`, is to run it too.
void UndefinedWalk::split(Part& part, std::uint32_t predicate, bool value, bool again) {
  Part other = part;
  if (again) --other.next;
  learn(other.state.facts, predicate, !value);
  parts_.push_back(std::move(other));
  learn(part.state.facts, predicate, value);
}

/// Which of the two a selp takes matters only if one of them is undefined, or if it makes a flag of
/// the predicate.
void UndefinedWalk::choose(const Instruction& selp, Part& part) {
  if (selp.operands.size() != 4) return;
  const auto result = registers_.of(selp.operands[0]);
  const auto predicate = registers_.of(selp.operands[3]);
  if (!predicate || is_undefined(*predicate, part.state) || fact(part.state, *predicate)) return;
  const bool makes_flag = result && tracked_.has(*result);
  const bool matters =
      is_undefined(selp.operands[1], part.state) || is_undefined(selp.operands[2], part.state);
  if (!makes_flag && !(matters && tracked_.has(*predicate))) return;
  if (selp.guard && registers_.guard_of(selp) == predicate) return;
  split(part, *predicate, true, true);
}

bool UndefinedWalk::is_undefined(std::uint32_t r, const State& state) const {
  return suspects_.has(r) && state.undefined[suspects_.at(r)];
}

bool UndefinedWalk::is_undefined(const Operand& operand, const State& state) const {
  const auto r = registers_.of(operand);
  return r && is_undefined(*r, state);
}

std::optional<std::uint32_t> UndefinedWalk::undefined_input(const Instruction& instruction,
                                                            const State& state) const {
  std::optional<std::uint32_t> found;
  const auto look = [&](std::uint32_t r) {
    if (!found && is_undefined(r, state)) found = r;
  };
  if (instruction.opcode == "selp" && instruction.operands.size() == 4) {
    const auto predicate = registers_.of(instruction.operands[3]);
    const auto known = predicate ? fact(state, *predicate) : std::nullopt;
    if (known) {
      const auto r = registers_.of(instruction.operands[*known != 0 ? 1 : 2]);
      if (r) look(*r);
      return found;
    }
  }
  registers_.for_each_read(instruction, look);
  if (reads_carry(instruction)) look(carry_);
  return found;
}

// --- Facts

MaybeSmall UndefinedWalk::fact(const State& state, std::uint32_t r) const {
  const auto found = std::ranges::lower_bound(state.facts, kSmallValues * r);
  if (found == state.facts.end() || *found / kSmallValues != r) return std::nullopt;
  return static_cast<SmallValue>(*found % kSmallValues);
}

MaybeSmall UndefinedWalk::value_of(const Operand& operand, const State& state) const {
  if (operand.kind == Operand::Kind::kInteger) return small_value(operand.integer);
  const auto r = registers_.of(operand);
  const auto known = r ? fact(state, *r) : std::nullopt;
  return known && operand.negated ? SmallValue{*known == 0} : known;
}

/// What is known of the result. Whatever else its inputs are, a number is not undefined.
MaybeSmall UndefinedWalk::made_by(const Instruction& instruction, const State& state) const {
  const auto& operands = instruction.operands;
  const std::string_view opcode = instruction.opcode;
  // Of two results, each is something else.
  if (operands.empty() || operands[0].kind != Operand::Kind::kSymbol) return std::nullopt;
  if (opcode == "setp") return comparison_made_by(instruction, state);
  if (opcode == "selp") return selected_by(instruction, state);
  if (operands.size() < 2) return std::nullopt;
  const bool is_predicate = instruction.has("pred");
  const auto as_predicate = [&](MaybeSmall value) {
    return is_predicate && value ? SmallValue{*value != 0} : value;
  };
  const auto first = as_predicate(value_of(operands[1], state));
  if (opcode == "mov") return first;
  if (opcode == "not" && is_predicate) return first ? MaybeSmall(*first == 0) : std::nullopt;
  if (opcode == "cvt" && !converts_integers(instruction)) return std::nullopt;
  // A wider integer may have bits that are not set, and a saturated one be 0.
  if (opcode == "cvt" && first == kAllBits && !instruction.has("sat")) return kNotZero;
  if (opcode == "cvt") return first && *first < kNotZero ? first : std::nullopt;
  if (operands.size() != 3) return std::nullopt;
  return as_predicate(combined(opcode, first, as_predicate(value_of(operands[2], state))));
}

MaybeSmall UndefinedWalk::selected_by(const Instruction& selp, const State& state) const {
  const auto& operands = selp.operands;
  if (operands.size() != 4) return std::nullopt;
  const auto predicate = registers_.of(operands[3]);
  const auto known = predicate ? fact(state, *predicate) : std::nullopt;
  if (known) return value_of(operands[*known != 0 ? 1 : 2], state);
  const auto first = value_of(operands[1], state);
  return first == value_of(operands[2], state) ? first : std::nullopt;
}

/// Of constants, or from another comparison of the same, if nothing has been written to its inputs
/// since.
MaybeSmall UndefinedWalk::comparison_made_by(const Instruction& setp, const State& state) const {
  if (compares_with_constant(setp)) {
    const auto known = compared(setp.modifiers[0], value_of(setp.operands[1], state),
                                value_of(setp.operands[2], state));
    if (known) return known;
  }
  const auto r = registers_.of(setp.operands[0]);
  const std::uint32_t group = r ? predicate_groups_.group_of(*r) : PredicateGroups::kNone;
  if (group == PredicateGroups::kNone) return std::nullopt;
  for (const std::uint32_t same : predicate_groups_.groups()[group].predicates) {
    if (!tracked_.has(same) || state.stale[tracked_.at(same)]) continue;
    const auto known = fact(state, same);
    if (!known) continue;
    const bool opposite = predicate_groups_.is_opposite(same) != predicate_groups_.is_opposite(*r);
    return SmallValue{(*known != 0) != opposite};
  }
  return std::nullopt;
}

// --- What comes of it

/// The instruction makes something of the register.
void UndefinedWalk::demand(std::uint32_t r, std::uint32_t index, const State& state) {
  if (found_ || !is_undefined(r, state)) return;
  found_ = origin_of(r, index);
  found_at_ = index;
}

/// What is handed on to others of the block matters where they would surely find nothing. Else it
/// is for the program's own protocol to know which of it is there: who reads an exchange of data
/// for parts of which there was none looks at the others only.
void UndefinedWalk::demand_inputs(std::uint32_t index, const State& state) {
  const Instruction& instruction = function_.instructions[index];
  const bool to_lane = hands_to_lane(instruction);
  std::vector<std::uint32_t> handed;
  if (to_lane || hands_to_block(instruction)) {
    const auto add = [&](const Operand& operand) {
      if (const auto r = registers_.of(operand)) handed.push_back(*r);
    };
    add(instruction.operands[1]);
    for_each_operand(instruction.operands[1].parts, add);
  }
  registers_.for_each_read(instruction, [&](std::uint32_t r) {
    if (found_ || !is_undefined(r, state)) return;
    const bool is_handed = std::ranges::find(handed, r) != handed.end();
    const UndefinedRead origin = origin_of(r, index);
    if (is_handed && !(origin.surely && !to_lane)) return;
    found_ = origin;
    found_at_ = index;
  });
}

UndefinedRead UndefinedWalk::origin_of(std::uint32_t r, std::uint32_t reader) {
  const auto& known = origins_[suspects_.at(r)];
  if (known) return *known;
  return {.line = function_.instructions[reader].line,
          .register_name = r == carry_ ? "the carry flag" : std::string(registers_.name(r)),
          .surely = is_surely_undefined(r, reader)};
}

/// No write can come before the first time that the instruction reads it.
bool UndefinedWalk::is_surely_undefined(std::uint32_t r, std::uint32_t reader) {
  const auto& writes = uses_.writes(r);
  if (writes.empty()) return true;
  const auto [known, is_new] = surely_.try_emplace({r, reader}, false);
  if (!is_new) return known->second;
  const std::uint32_t home = flow_.block_of(reader);
  std::vector<bool> marked(flow_.blocks().size(), false);
  marked[home] = true;
  const std::vector<bool> leads_here = flow_.leading_to(marked);
  const std::vector<bool> before = flow_.reachable_before(home);
  effort_.take(2 * marked.size() + writes.size());
  known->second = std::ranges::none_of(writes, [&](std::uint32_t write) {
    const std::uint32_t block = flow_.block_of(write);
    return block == home ? write < reader : before[block] && leads_here[block];
  });
  return known->second;
}

}  // namespace slate::injector
