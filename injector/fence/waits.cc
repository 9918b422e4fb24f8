#include "injector/fence/waits.h"

#include <algorithm>

#include "injector/analysis/analysis.h"
#include "injector/analysis/facts.h"
#include "injector/analysis/uniformity.h"
#include "injector/ptx/words.h"

namespace slate::injector {
namespace {

using ptx::begins_with_one_of;
using ptx::Instruction;
using ptx::is_one_of;
using ptx::Operand;
using ptx::Reference;

/// Whether no other thread changes what it loads.
bool loads_own(const Instruction& load) {
  return load.opcode == "ld" && std::ranges::any_of(load.modifiers, [](std::string_view word) {
           return begins_with_one_of(word, {"local", "param", "const"});
         });
}

bool pauses(const Instruction& instruction) {
  return is_one_of(instruction.opcode, {"call", "nanosleep"});
}

/// Whether a thread may learn by it what another one has done, or waits there.
bool learns(const Instruction& instruction) {
  if (pauses(instruction)) return true;
  return has_result(instruction) && !only_computes(instruction) && !loads_own(instruction);
}

/// Whether it gives a number that does not change while a thread runs.
bool is_fixed(std::string_view special) {
  return begins_with_one_of(special, {"%tid", "%ntid", "%ctaid", "%nctaid", "%laneid", "WARP_SZ"});
}

/// Whether what it gives differs from what it is given, for most operands. Not so `mov` and `min`.
bool changes(const Instruction& instruction) {
  return is_one_of(instruction.opcode,
                   {"add", "sub", "mul", "mad", "fma", "div", "shl", "shr", "shf"});
}

}  // namespace

Waits::Waits(const ptx::Function& function, const ControlFlow& flow, const Registers& registers,
             const Addresses& addresses, const Loops& loops, bool skips_own)
    : function_(function),
      flow_(flow),
      registers_(registers),
      addresses_(addresses),
      loops_(loops),
      writes_(registers.count()),
      learns_(flow.blocks().size(), false),
      pauses_(flow.blocks().size(), false),
      is_programs_(flow.blocks().size(), !skips_own),
      steps_(kFreeSteps + kStepsEach * function.instructions.size()) {
  for (std::uint32_t i = 0; i < function.instructions.size(); ++i) {
    const Instruction& instruction = function.instructions[i];
    registers.for_each_write(instruction, [&](std::uint32_t r) { writes_[r].push_back(i); });
    if (learns(instruction)) learns_[flow.block_of(i)] = true;
    if (pauses(instruction)) pauses_[flow.block_of(i)] = true;
  }
  for (const ptx::Label& label : function.labels) {
    const bool is_own =
        label.name.starts_with('$') && label.name.substr(1).starts_with(kReservedPrefix);
    if (is_own || label.target >= function.instructions.size()) continue;
    const std::uint32_t block = flow.block_of(label.target);
    if (flow.blocks()[block].first == label.target) is_programs_[block] = true;
  }
}

std::vector<Wait> Waits::find() {
  std::vector<Wait> found;
  if (std::ranges::find(learns_, true) == learns_.end()) return found;
  const auto count = static_cast<std::uint32_t>(flow_.blocks().size());
  std::vector<std::uint32_t> loops(count, kNone);  // by the block that they begin with
  for (std::uint32_t loop = 0; loop < loops_.count(); ++loop) loops[loops_.header(loop)] = loop;
  // Whether a way leads back there that is not a turn of a loop with one beginning.
  std::vector<bool> headers(count, false), is_odd(count, false);
  for (const auto& [from, to] : flow_.ways_back()) {
    headers[to] = true;
    if (loops[to] == kNone || !loops_.contains(loops[to], from)) is_odd[to] = true;
  }
  for (std::uint32_t block = 0; block < count; ++block) {
    if (!headers[block] || !is_programs_[block]) continue;
    const std::uint32_t loop = loops[block];
    if (!is_odd[block] && (!may_learn(loop) || ends(loop))) continue;
    found.push_back({flow_.blocks()[block].first, !is_odd[block] && is_slow(loop)});
  }
  return found;
}

bool Waits::may_learn(std::uint32_t loop) const {
  for (std::uint32_t block = 0; block < learns_.size(); ++block) {
    if (learns_[block] && loops_.contains(loop, block)) return true;
  }
  return false;
}

bool Waits::is_slow(std::uint32_t loop) const {
  for (std::uint32_t block = 0; block < pauses_.size(); ++block) {
    if (!loops_.contains(loop, block)) continue;
    if (pauses_[block] || loops_.around(block).front() != loop) return true;
  }
  return false;
}

/// Whether some block of each turn leaves the loop once a counter has come to its limit.
bool Waits::ends(std::uint32_t loop) {
  const auto& blocks = flow_.blocks();
  for (std::uint32_t block = 0; block < blocks.size(); ++block) {
    if (!loops_.contains(loop, block)) continue;
    const std::uint32_t last = blocks[block].end - 1;
    const Instruction& branch = function_.instructions[last];
    steps_of_test_ = kStepsOfTest;
    if (!branch.guard || !is_in_each_turn(last, loop)) continue;
    bool leaves_if_taken = leaves(branch), leaves_else = false;
    if (branch.opcode == "bra") {
      const auto target = target_of(function_, branch);
      if (!target || *target == blocks[block].end) continue;
      const auto is_outside = [&](std::uint32_t at) {
        return at >= function_.instructions.size() || !loops_.contains(loop, flow_.block_of(at));
      };
      leaves_if_taken = is_outside(*target);
      leaves_else = is_outside(blocks[block].end);
    }
    const bool is_taken_if = !branch.guard->negated;
    if (leaves_if_taken && comes_to(*branch.guard, is_taken_if, loop, 0)) return true;
    if (leaves_else && comes_to(*branch.guard, !is_taken_if, loop, 0)) return true;
  }
  return false;
}

bool Waits::take(std::uint64_t steps) {
  steps_ -= std::min(steps, steps_);
  steps_of_test_ -= std::min(steps, steps_of_test_);
  return steps_ != 0 && steps_of_test_ != 0;
}

/// Whether each turn carries it out once.
bool Waits::is_in_each_turn(std::uint32_t at, std::uint32_t loop) {
  const auto& tails = loops_.tails(loop);
  const auto& around = loops_.around(flow_.block_of(at));
  if (!take(tails.size()) || around.empty() || around.front() != loop) return false;
  return std::ranges::all_of(tails, [&](std::uint32_t tail) {
    const std::uint32_t end = flow_.blocks()[tail].end - 1;
    return at == end || addresses_.dominates(at, end);
  });
}

/// The only instruction of the loop that writes the register, if each turn carries it out; kNone if
/// nothing in the loop writes it.
std::optional<std::uint32_t> Waits::only_write(std::uint32_t number, std::uint32_t loop) {
  std::uint32_t found = kNone;
  for (const std::uint32_t write : writes_[number]) {
    if (!take(1)) return std::nullopt;
    if (!loops_.contains(loop, flow_.block_of(write))) continue;
    if (found != kNone) return std::nullopt;
    found = write;
  }
  if (found == kNone) return found;
  const bool is_sure = !function_.instructions[found].guard && is_in_each_turn(found, loop);
  return is_sure ? std::optional(found) : std::nullopt;
}

bool Waits::is_unchanging(const Operand& operand, std::uint32_t loop) {
  if (operand.kind == Operand::Kind::kAddress) {
    return std::ranges::all_of(operand.parts,
                               [&](const Operand& part) { return is_unchanging(part, loop); });
  }
  const auto number = registers_.of(operand);
  if (number) return only_write(*number, loop) == kNone;
  return course(operand, loop).is_known;
}

Waits::Course Waits::course(const Operand& operand, std::uint32_t loop) {
  switch (operand.kind) {
    case Operand::Kind::kInteger:
    case Operand::Kind::kFloat:
      return {.is_known = true};
    case Operand::Kind::kSpecial:
      return {.is_known = is_fixed(operand.text)};
    case Operand::Kind::kSymbol:
      if (const auto number = registers_.of(operand)) return course_of(*number, loop);
      return {.is_known = operand.reference == Reference::kGlobal ||
                          operand.reference == Reference::kParameter};
    default:
      return {};
  }
}

Waits::Course Waits::course_of(std::uint32_t number, std::uint32_t loop) {
  const auto before = std::ranges::find(under_way_, number);
  if (before != under_way_.end()) {
    return {.is_known = true, .comes_from = static_cast<std::size_t>(before - under_way_.begin())};
  }
  const auto write = under_way_.size() < kMostDepth ? only_write(number, loop) : std::nullopt;
  if (!write) return {};
  if (*write == kNone) return {.is_known = true};
  const Instruction& instruction = function_.instructions[*write];
  if (instruction.opcode == "ld") {
    const bool is_known = (may_load_ || loads_own(instruction)) && !may_race(instruction) &&
                          is_unchanging(instruction.operands.back(), loop);
    return {.is_known = is_known};
  }
  if (!only_computes(instruction)) return {};
  const std::size_t here = under_way_.size();
  under_way_.push_back(number);
  Course all{.is_known = true};
  for (std::size_t i = 1; i < instruction.operands.size() && all.is_known; ++i) {
    const Course each = course(instruction.operands[i], loop);
    all.is_known = each.is_known;
    all.moves |= each.moves || (each.comes_from < kMostDepth && changes(instruction));
    all.comes_from = std::min(all.comes_from, each.comes_from);
  }
  under_way_.pop_back();
  if (all.comes_from >= here) all.comes_from = kMostDepth;
  return all;
}

/// Whether it does not change as long as no other thread changes memory beside a plain load. A
/// counter comes to what such a load gives, whatever that is.
bool Waits::is_limit(const Operand& operand, std::uint32_t loop) {
  may_load_ = true;
  const bool is_known = course(operand, loop).is_known;
  may_load_ = false;
  return is_known;
}

bool Waits::compares_counter(const Instruction& comparison, std::uint32_t loop) {
  const Operand& one = comparison.operands[1];
  const Operand& other = comparison.operands[2];
  const auto is_counter = [&](const Operand& operand) {
    const Course found = course(operand, loop);
    return found.is_known && found.moves;
  };
  return (is_counter(one) && is_limit(other, loop)) || (is_counter(other) && is_limit(one, loop));
}

/// Whether a counter that comes to its limit gives the predicate this value.
bool Waits::comes_to(const Operand& predicate, bool value, std::uint32_t loop, std::size_t depth) {
  const auto number = registers_.of(predicate);
  const auto write =
      number && depth < kMostDepth ? only_write(*number, loop) : std::optional<std::uint32_t>();
  if (!write || *write == kNone) return false;
  const Instruction& instruction = function_.instructions[*write];
  const auto& operands = instruction.operands;
  const auto other_comes_to = [&](const Operand& other, bool its_value) {
    return comes_to(other, its_value != other.negated, loop, depth + 1);
  };
  if (instruction.opcode == "setp") {
    if (operands.size() == 3) return compares_counter(instruction, loop);
    if (operands.size() != 4) return false;
    // Of the comparison and the other predicate, either one decides, or both do.
    const bool either = instruction.has(value ? "or" : "and");
    if (either) return compares_counter(instruction, loop) || other_comes_to(operands[3], value);
    return compares_counter(instruction, loop) && course(operands[3], loop).is_known;
  }
  if (instruction.type() != ptx::Type::kPred || operands.size() < 2) return false;
  if (instruction.opcode == "mov") return other_comes_to(operands[1], value);
  if (instruction.opcode == "not") return other_comes_to(operands[1], !value);
  if (operands.size() != 3 || instruction.opcode != (value ? "or" : "and")) return false;
  return other_comes_to(operands[1], value) || other_comes_to(operands[2], value);
}

}  // namespace slate::injector
