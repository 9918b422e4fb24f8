#include "injector/fence/rehearsal.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "injector/analysis/facts.h"
#include "injector/fence/moves.h"

namespace slate::injector {
namespace {

using ptx::Instruction;

constexpr std::uint32_t kNone = ControlFlow::kNone;
constexpr std::uint64_t kMostSharedBytes = 1 << 18;

using Range = SharedRange;
using Ranges = std::vector<SharedRange>;

/// In order, without gaps that are none.
Ranges joined(Ranges ranges) {
  std::ranges::sort(ranges, {}, [](const Range& of) { return std::pair(of.variable, of.first); });
  Ranges result;
  for (const Range& range : ranges) {
    if (!result.empty() && result.back().variable == range.variable &&
        range.first <= result.back().end) {
      result.back().end = std::max(result.back().end, range.end);
    } else {
      result.push_back(range);
    }
  }
  return result;
}

/// What is in both. Requires: both are joined().
Ranges common(const Ranges& a, const Ranges& b) {
  Ranges result;
  for (std::size_t i = 0, j = 0; i < a.size() && j < b.size();) {
    const Range &one = a[i], &other = b[j];
    if (one.variable == other.variable) {
      const std::uint64_t first = std::max(one.first, other.first);
      const std::uint64_t end = std::min(one.end, other.end);
      if (first < end) result.push_back({one.variable, first, end});
    }
    const bool ends_first =
        one.variable != other.variable ? one.variable < other.variable : one.end < other.end;
    ends_first ? ++i : ++j;
  }
  return result;
}

void mark(const Range& range, std::vector<std::vector<bool>>& bytes) {
  std::vector<bool>& all = bytes[range.variable];
  for (std::uint64_t byte = range.first; byte < range.end; ++byte) all[byte] = true;
}

}  // namespace

bool only_stores(const Instruction& instruction, const InstructionEffect& effect) {
  return instruction.opcode == "st" && !instruction.has("async") && effect.accesses.size() == 1;
}

/// Carries out one thread after the other. It has more than 15 members: the text in five views, the
/// present thread's state, and what is kept from thread to thread.
class Rehearser {
 public:
  Rehearser(const ptx::Function& function, const ControlFlow& flow, const Registers& registers,
            const SharedVariables& variables, std::span<const InstructionEffect> effects,
            const ThreadStep::Index& block, Rehearsal& result)
      : function_(function),
        flow_(flow),
        registers_(registers),
        variables_(variables),
        block_(block),
        result_(result),
        ways_(flow.blocks().size()),
        stops_(flow.blocks().size(), 0),
        values_(registers.count()),
        scratch_(registers.count()) {
    for (std::uint32_t i = 0; i < function.instructions.size(); ++i) decode(i, effects[i]);
  }

  bool carry_out() {
    ThreadStep::Index& at = thread_;
    for (at[2] = 0; at[2] < block_[2]; ++at[2]) {
      for (at[1] = 0; at[1] < block_[1]; ++at[1]) {
        for (at[0] = 0; at[0] < block_[0]; ++at[0]) {
          carry_out_thread();
          if (has_failed_) return false;
          ++number_;
        }
      }
    }
    return true;
  }

 private:
  static constexpr std::uint64_t kMostSteps = 1 << 21;  // of all threads
  static constexpr std::size_t kMostStores = 1 << 18;   // of FirstStore
  static constexpr std::size_t kMostTrail = 1 << 18;    // of changes that may be undone
  static constexpr int kMostDepth = 200;                // of branches that part ways within others

  /// What is known of a condition.
  enum class Truth : std::uint8_t { kFalse, kTrue, kUnknown };

  struct SharedAccess {
    ThreadStep::Source base;
    std::int64_t offset = 0;
    std::uint32_t bytes = 0;  // 0: not known
    std::uint32_t align = 1;
    bool is_generic = false;
    bool only_stores = false;
  };

  struct Decoded {
    ThreadStep step;
    std::optional<ThreadStep::Source> guard{};
    std::vector<std::uint32_t> writes{};  // registers
    std::vector<SharedAccess> accesses{};
    bool ends = false;  // the thread
    bool is_barrier = false;
    bool is_whole_barrier = false;
  };

  /// Of a branch on something unknown.
  struct Ways {
    bool is_known = false;
    bool is_loop = false;                // whether the branch may come again before its ways meet
    bool is_open = false;                // whether its ways are being gone
    std::vector<std::uint32_t> written;  // registers, on the ways of a loop
  };

  struct Mark {
    std::size_t trail = 0, stored = 0;
    bool is_in_front = true;
  };

  /// What a way has changed.
  struct Changes {
    std::vector<std::pair<std::uint32_t, ThreadValue>> values;
    std::vector<SharedRange> stored;
    bool is_in_front = true;
  };

  struct Scratch {
    std::uint64_t question = 0, other_question = 0;
    ThreadValue value, before;
  };

  void decode(std::uint32_t at, const InstructionEffect& effect);
  void carry_out_thread();
  bool run(std::uint32_t block, std::uint32_t stop);
  bool carry_out(std::uint32_t at);
  std::uint32_t next_of(std::uint32_t block, std::uint32_t stop);
  std::uint32_t part(std::uint32_t block, std::uint32_t one, std::uint32_t other,
                     std::uint32_t stop);
  Ways& ways_of(std::uint32_t block);
  void access(std::uint32_t at, Truth truth);
  std::optional<Range> place_of(const SharedAccess& access) const;
  void store(const Range& range, bool is_sure);
  void settle();
  void end_thread();
  Truth truth_of(const std::optional<ThreadStep::Source>& guard) const;
  void set(std::uint32_t number, const ThreadValue& value);
  Mark here() const { return {trail_.size(), stored_.size(), is_in_front_}; }
  Changes changes_since(const Mark& mark);
  void undo(const Mark& mark);
  void apply(const Changes& changes);
  void join(const Mark& mark, const Changes& other);
  void charge(std::uint64_t steps) {
    steps_ += steps;
    has_failed_ |= steps_ > kMostSteps;
  }

  const ptx::Function& function_;
  const ControlFlow& flow_;
  const Registers& registers_;
  const SharedVariables& variables_;
  const ThreadStep::Index block_;
  Rehearsal& result_;
  std::vector<Decoded> decoded_;      // by instruction
  std::vector<Ways> ways_;            // by block
  std::vector<std::uint32_t> stops_;  // by block: how many open branches' ways meet there
  std::uint64_t steps_ = 0;
  bool has_failed_ = false;
  // Of the present thread.
  ThreadStep::Index thread_{};
  std::uint32_t number_ = 0;
  std::vector<ThreadValue> values_;                           // by register
  std::vector<std::pair<std::uint32_t, ThreadValue>> trail_;  // what registers held before
  std::vector<SharedRange> stored_;                           // surely, on the present way
  std::optional<std::vector<SharedRange>> settled_;           // on all ways so far
  bool is_in_front_ = true;                                   // of its first barrier
  int depth_ = 0;
  std::vector<Scratch> scratch_;  // by register
  std::uint64_t question_ = 0;
};

void Rehearser::decode(std::uint32_t at, const InstructionEffect& effect) {
  const Instruction& instruction = function_.instructions[at];
  Decoded& decoded = decoded_.emplace_back(
      Decoded{.step = ThreadStep(instruction, registers_, variables_, block_)});
  // In inner braces a register loses what it holds each time that they end.
  const bool is_known_here = !is_in_scope(function_, at);
  if (!is_known_here) decoded.step = ThreadStep();
  const auto source = [&](const ptx::Operand& operand) {
    return is_known_here ? ThreadStep::source_of(operand, registers_, variables_, block_)
                         : ThreadStep::Source{};
  };
  if (instruction.guard) decoded.guard = source(*instruction.guard);
  registers_.for_each_write(instruction, [&](std::uint32_t r) { decoded.writes.push_back(r); });
  decoded.ends = leaves(instruction) || effect.end != Violation::kNone;
  if (is_block_barrier(instruction)) {
    decoded.is_barrier = true;
    const BarrierKind kind = barrier_kind(instruction);
    decoded.is_whole_barrier =
        kind.whole_block && kind.named_by_number && !instruction.has("arrive");
  }
  has_failed_ |= instruction.opcode == "call" || instruction.opcode == "brx";
  for (const Access& access : effect.accesses) {
    const bool is_generic = access.space == MemorySpace::kGeneric;
    if (!is_generic && access.space != MemorySpace::kShared) continue;
    const ptx::Operand& address = *access.address;
    const bool is_known = access.amount == nullptr && address.parts.size() == 1;
    decoded.accesses.push_back({.base = is_known ? source(address.parts[0]) : ThreadStep::Source{},
                                .offset = address.integer,
                                .bytes = is_known ? access.bytes : 0,
                                .align = access.align,
                                .is_generic = is_generic,
                                .only_stores = injector::only_stores(instruction, effect)});
  }
}

void Rehearser::carry_out_thread() {
  std::ranges::fill(values_, ThreadValue{});
  trail_.clear();
  stored_.clear();
  settled_.reset();
  is_in_front_ = true;
  depth_ = 0;
  run(0, kNone);
  if (!settled_) return;
  for (const Range& range : *settled_) mark(range, result_.filled_);
}

/// Whether the thread comes to the block `stop`; otherwise it has ended, or goes round in a loop
/// that was looked at.
bool Rehearser::run(std::uint32_t block, std::uint32_t stop) {
  while (block != stop && !has_failed_) {
    // Ways that should have met before.
    if (stops_[block] != 0) has_failed_ = true;
    const ControlFlow::Block& code = flow_.blocks()[block];
    for (std::uint32_t i = code.first; i < code.end; ++i) {
      if (!carry_out(i)) return false;
    }
    charge(code.end - code.first);
    block = next_of(block, stop);
    if (block == kNone) return false;
  }
  return !has_failed_;
}

/// Whether the thread goes on.
bool Rehearser::carry_out(std::uint32_t at) {
  const Decoded& decoded = decoded_[at];
  Rehearsed& all = result_.rehearsed_[at];
  all.is_reached = true;
  all.is_in_front |= is_in_front_;
  const Truth truth = truth_of(decoded.guard);
  if (truth == Truth::kFalse) return true;
  if (!decoded.accesses.empty()) access(at, truth);
  if (decoded.is_barrier && is_in_front_) {
    result_.meets_first_ &= decoded.is_whole_barrier;
    settle();
    is_in_front_ = truth == Truth::kUnknown;
  }
  if (decoded.ends) {
    end_thread();
    return truth == Truth::kUnknown;
  }
  const auto known = decoded.step.result();
  ThreadValue value;
  if (known) value = decoded.step.value(values_, thread_);
  for (const std::uint32_t r : decoded.writes) {
    const bool is_certain = truth == Truth::kTrue || values_[r] == value;
    set(r, r == known && is_certain ? value : ThreadValue{});
  }
  return true;
}

/// The block to which the thread goes on; none: it has ended.
std::uint32_t Rehearser::next_of(std::uint32_t block, std::uint32_t stop) {
  const std::uint32_t end = flow_.blocks()[block].end;
  const auto block_at = [&](std::uint32_t at) {
    return at < function_.instructions.size() ? flow_.block_of(at) : kNone;
  };
  const auto gone = [&](std::uint32_t to) {
    if (to == kNone) end_thread();
    return to;
  };
  const Instruction& last = function_.instructions[end - 1];
  if (last.opcode != "bra") return gone(block_at(end));
  const std::uint32_t target = block_at(*target_of(function_, last)), behind = block_at(end);
  const Truth truth = truth_of(decoded_[end - 1].guard);
  if (truth != Truth::kUnknown || target == behind)
    return gone(truth == Truth::kFalse ? behind : target);
  if (target == kNone || behind == kNone) {
    end_thread();
    return target == kNone ? behind : target;
  }
  return part(block, target, behind, stop);
}

/// Goes both ways to where they meet, or to `stop`.
std::uint32_t Rehearser::part(std::uint32_t block, std::uint32_t one, std::uint32_t other,
                              std::uint32_t stop) {
  Ways& ways = ways_of(block);
  // The first time, all was unknown that a turn of the loop may change.
  if (ways.is_open) return kNone;
  if (++depth_ > kMostDepth) has_failed_ = true;
  for (const std::uint32_t r : ways.written) set(r, {});
  charge(ways.written.size());
  ways.is_open = ways.is_loop;
  const std::uint32_t meeting = flow_.blocks()[block].meeting;
  const std::uint32_t to = meeting != kNone ? meeting : stop;
  const bool is_new_stop = stop != kNone && stop != to;
  if (is_new_stop) ++stops_[stop];
  const Mark before = here();
  const bool first = run(one, to);
  Changes changes;
  if (first) changes = changes_since(before);
  undo(before);
  const bool second = run(other, to);
  if (first && second) {
    join(before, changes);
  } else if (first) {
    undo(before);
    apply(changes);
  }
  if (is_new_stop) --stops_[stop];
  ways.is_open = false;
  if (--depth_ == 0) trail_.clear();
  return first || second ? to : kNone;
}

Rehearser::Ways& Rehearser::ways_of(std::uint32_t block) {
  Ways& ways = ways_[block];
  if (std::exchange(ways.is_known, true)) return ways;
  const std::vector<std::uint32_t> between = flow_.influence_of(block);
  charge(between.size());
  ways.is_loop = std::ranges::find(between, block) != between.end();
  if (!ways.is_loop) return ways;
  for (const std::uint32_t each : between) {
    const ControlFlow::Block& code = flow_.blocks()[each];
    charge(code.end - code.first);
    if (has_failed_) break;
    for (std::uint32_t i = code.first; i < code.end; ++i)
      std::ranges::copy(decoded_[i].writes, std::back_inserter(ways.written));
  }
  std::ranges::sort(ways.written);
  const auto [first, last] = std::ranges::unique(ways.written);
  ways.written.erase(first, last);
  return ways;
}

void Rehearser::access(std::uint32_t at, Truth truth) {
  const Decoded& decoded = decoded_[at];
  Rehearsed& all = result_.rehearsed_[at];
  constexpr std::uint32_t kAtOnce = 16;  // bytes
  for (const SharedAccess& each : decoded.accesses) {
    charge(each.bytes / kAtOnce);
    const auto place = place_of(each);
    if (!place) {
      all.is_within = false;
      continue;
    }
    if (std::ranges::find(all.variables, place->variable) == all.variables.end())
      all.variables.push_back(place->variable);
    if (!each.only_stores)
      mark(*place, result_.read_);
    else if (is_in_front_)
      store(*place, truth == Truth::kTrue);
  }
}

/// Where the access goes, if that is known, aligned and within a variable.
std::optional<Range> Rehearser::place_of(const SharedAccess& access) const {
  const ThreadValue value = ThreadStep::read(access.base, values_, thread_);
  if (!value.is_address() || (value.base % 2 == 1) != access.is_generic) return std::nullopt;
  const ptx::Variable& variable = *variables_.all()[value.base / 2];
  const bool is_long = access.base.kind == ThreadStep::Source::Kind::kRegister
                           ? registers_.bytes(access.base.index) == sizeof(std::uint64_t)
                           : true;
  std::uint64_t first = value.number + static_cast<std::uint64_t>(access.offset);
  if (!is_long) first = static_cast<std::uint32_t>(first);
  const std::uint64_t its_bytes = variables_.bytes(value.base / 2);
  const bool fits =
      access.bytes != 0 && access.bytes <= its_bytes && first <= its_bytes - access.bytes;
  if (!fits || variable.align < access.align || first % access.align != 0) return std::nullopt;
  return Range{value.base / 2, first, first + access.bytes};
}

void Rehearser::store(const Range& range, bool is_sure) {
  if (result_.first_stores_.size() >= kMostStores) has_failed_ = true;
  if (has_failed_) return;
  result_.first_stores_.push_back({number_, range});
  if (is_sure) stored_.push_back(range);
}

/// What is not stored to by now may be read by others.
void Rehearser::settle() {
  if (!is_in_front_) return;
  charge(stored_.size());
  const Ranges here = joined(stored_);
  settled_ = settled_ ? common(*settled_, here) : here;
}

/// No barrier shows others what a thread has stored that ends.
void Rehearser::end_thread() {
  if (!is_in_front_) return;
  result_.may_end_first_ = true;
  settled_ = Ranges();
}

Rehearser::Truth Rehearser::truth_of(const std::optional<ThreadStep::Source>& guard) const {
  if (!guard) return Truth::kTrue;
  const ThreadValue value = ThreadStep::read(*guard, values_, thread_);
  if (!value.is_number()) return Truth::kUnknown;
  return value.number != 0 ? Truth::kTrue : Truth::kFalse;
}

void Rehearser::set(std::uint32_t number, const ThreadValue& value) {
  // Outside of all parted ways nothing is undone.
  if (depth_ > 0) trail_.emplace_back(number, values_[number]);
  has_failed_ |= trail_.size() > kMostTrail;
  values_[number] = value;
}

Rehearser::Changes Rehearser::changes_since(const Mark& mark) {
  Changes changes{
      .values = {},
      .stored = {stored_.begin() + static_cast<std::ptrdiff_t>(mark.stored), stored_.end()},
      .is_in_front = is_in_front_};
  ++question_;
  for (std::size_t i = mark.trail; i < trail_.size(); ++i) {
    const std::uint32_t r = trail_[i].first;
    if (std::exchange(scratch_[r].question, question_) != question_)
      changes.values.emplace_back(r, values_[r]);
  }
  charge(changes.values.size() + changes.stored.size());
  return changes;
}

void Rehearser::undo(const Mark& mark) {
  charge(trail_.size() - mark.trail);
  for (; trail_.size() > mark.trail; trail_.pop_back())
    values_[trail_.back().first] = trail_.back().second;
  stored_.resize(mark.stored);
  is_in_front_ = mark.is_in_front;
}

void Rehearser::apply(const Changes& changes) {
  for (const auto& [r, value] : changes.values) set(r, value);
  stored_.insert(stored_.end(), changes.stored.begin(), changes.stored.end());
  is_in_front_ = changes.is_in_front;
}

/// What both ways agree on, the present one since `mark` and another one.
void Rehearser::join(const Mark& mark, const Changes& other) {
  ++question_;
  for (const auto& [r, value] : other.values) {
    scratch_[r].question = question_;
    scratch_[r].value = value;
  }
  const std::size_t end = trail_.size();
  for (std::size_t i = mark.trail; i < end; ++i) {
    const auto [r, before] = trail_[i];
    Scratch& scratch = scratch_[r];
    if (std::exchange(scratch.other_question, question_) == question_) continue;
    const ThreadValue& its = scratch.question == question_ ? scratch.value : before;
    if (values_[r] != its) set(r, {});
  }
  for (const auto& [r, value] : other.values) {
    if (scratch_[r].other_question != question_ && values_[r] != value) set(r, {});
  }
  charge(end - mark.trail + other.values.size() + stored_.size() - mark.stored);
  const Ranges mine{stored_.begin() + static_cast<std::ptrdiff_t>(mark.stored), stored_.end()};
  stored_.resize(mark.stored);
  const Ranges both = common(joined(mine), joined(other.stored));
  stored_.insert(stored_.end(), both.begin(), both.end());
  is_in_front_ |= other.is_in_front;
}

Rehearsal::Rehearsal(const ptx::Function& function, const ControlFlow& flow,
                     const Registers& registers, const SharedVariables& variables,
                     std::span<const InstructionEffect> effects, const ThreadStep::Index& block)
    : rehearsed_(function.instructions.size()) {
  std::uint64_t bytes = 0;
  for (std::uint32_t i = 0; i < variables.all().size(); ++i) {
    bytes += variables.bytes(i);
    if (bytes > kMostSharedBytes) return;
    filled_.emplace_back(variables.bytes(i), false);
    read_.emplace_back(variables.bytes(i), false);
  }
  if (function.instructions.empty() || !function.is_entry) return;
  is_complete_ = Rehearser(function, flow, registers, variables, effects, block, *this).carry_out();
}

}  // namespace slate::injector
