#include "injector/forms/passage.h"

#include <algorithm>
#include <vector>

#include "injector/analysis/facts.h"
#include "injector/analysis/uniformity.h"

namespace slate::injector {
namespace {

using ptx::Instruction;

/// What a warp of which nobody is left may have to run in vain.
constexpr std::uint32_t kMostInstructions = 24;
/// The same for a warp of which all would branch.
constexpr std::uint32_t kMostPredicated = 12;

bool may_be_guarded(const Instruction& instruction) {
  const auto opcode = instruction.opcode;
  return opcode == "ld" || opcode == "st" || opcode == "atom" || opcode == "red";
}

/// One instruction of PTX, but many of the device.
bool is_lengthy(const Instruction& instruction) {
  const auto opcode = instruction.opcode;
  return opcode == "div" || opcode == "rem" || opcode == "sqrt" || opcode == "rsqrt" ||
         opcode == "rcp";
}

}  // namespace

class PassageFinder::Walk {
 public:
  Walk(const PassageFinder& finder, std::uint32_t stop)
      : finder_(finder),
        function_(finder.function_),
        flow_(finder.flow_),
        stop_(stop),
        seen_(flow_.blocks().size(), false) {}

  std::optional<Passage> from(std::uint32_t start) && {
    bool passes = run(flow_.block_of(start), start);
    while (passes && !waiting_.empty()) {
      const std::uint32_t block = waiting_.back();
      waiting_.pop_back();
      passes = run(block, flow_.blocks()[block].first);
    }
    if (!passes) return std::nullopt;
    return std::move(passage_);
  }

 private:
  /// What is left of a block.
  bool run(std::uint32_t number, std::uint32_t i) {
    const ControlFlow::Block& block = flow_.blocks()[number];
    for (; i < block.end; ++i) {
      if (i == stop_) return true;
      const Instruction& instruction = function_.instructions[i];
      if (++count_ > kMostInstructions) return false;
      if (instruction.opcode == "bra") {
        // Of what it says of the others a parked thread knows nothing.
        if (instruction.guard && instruction.has("uni")) return false;
        continue;
      }
      if (may_be_repeated(instruction)) continue;
      if (!may_be_guarded(instruction)) return false;
      passage_.effects.insert(i);
    }
    return go_on(number);
  }

  bool go_on(std::uint32_t number) {
    const ControlFlow::Block& block = flow_.blocks()[number];
    if (block.exits || block.successors.empty()) return false;
    const bool may_skip =
        block.successors.size() > 1 &&
        std::ranges::find(block.successors, block.meeting) != block.successors.end();
    if (!may_skip) {
      return std::ranges::all_of(block.successors,
                                 [&](std::uint32_t next) { return go_to(next, number); });
    }
    const std::uint32_t branch = block.end - 1;
    const bool taken =
        target_of(function_, function_.instructions[branch]) == flow_.blocks()[block.meeting].first;
    if (auto predicated = taken ? finder_.predicate(number) : std::nullopt) {
      passage_.predicated[branch] = std::move(*predicated);
    } else {
      passage_.skips[branch] = taken;
    }
    return go_to(block.meeting, number);
  }

  bool go_to(std::uint32_t next, std::uint32_t from) {
    if (flow_.blocks()[next].first == stop_ || seen_[next]) return true;
    if (next <= from) return false;  // what a parked thread knows might never end a loop
    seen_[next] = true;
    waiting_.push_back(next);
    return true;
  }

  const PassageFinder& finder_;
  const ptx::Function& function_;
  const ControlFlow& flow_;
  const std::uint32_t stop_;
  std::vector<bool> seen_;  // by block
  std::vector<std::uint32_t> waiting_;
  std::uint32_t count_ = 0;
  Passage passage_;
};

std::optional<Passage> PassageFinder::find(std::uint32_t from, std::uint32_t stop) const {
  return Walk(*this, stop).from(from);
}

// --- Branches made into predicates

/// What the branch at the end of a block leads past, if it lies between the two, nobody comes there
/// in another way, and all in it can be guarded.
std::optional<Predicated> PassageFinder::predicate(std::uint32_t number) const {
  const std::uint32_t meeting = flow_.blocks()[number].meeting;
  const std::uint32_t first = flow_.blocks()[number].end;
  const std::uint32_t end = flow_.blocks()[meeting].first;
  if (end <= first || end - first > kMostPredicated) return std::nullopt;
  if (!leads_only_to(number, meeting)) return std::nullopt;
  Predicated result;
  for (std::uint32_t i = first; i < end; ++i) {
    const Instruction& instruction = function_.instructions[i];
    if (instruction.opcode == "bra") {
      // It may be a way out of the kernel, too.
      if (!instruction.guard || instruction.has("uni") || target_of(function_, instruction) != end)
        return std::nullopt;
      result.branches.push_back(i);
      continue;
    }
    if (is_lengthy(instruction)) return std::nullopt;
    const bool is_seen = !mentions_.stay_within(instruction, first, end);
    if (may_be_guarded(instruction) || is_seen) {
      result.guarded.push_back(i);
      if (!is_seen && is_fresh(i)) result.fresh.push_back(i);
    } else if (!may_be_repeated(instruction)) {
      return std::nullopt;
    }
  }
  return result;
}

/// The blocks between these two lead to the next one or to the second, and are reached from those
/// between only.
bool PassageFinder::leads_only_to(std::uint32_t number, std::uint32_t meeting) const {
  if (!flow_.charge(flow_.blocks().size())) return false;
  for (std::uint32_t b = 0; b < flow_.blocks().size(); ++b) {
    const ControlFlow::Block& block = flow_.blocks()[b];
    const bool between = b >= number && b < meeting;
    if (between && block.exits) return false;
    for (const std::uint32_t next : block.successors) {
      const bool enters = next > number && next < meeting;
      if (between ? next != b + 1 && next != meeting : enters) return false;
    }
  }
  return true;
}

/// A load of one register that is not named before, nor in its address, and may be set to zero.
bool PassageFinder::is_fresh(std::uint32_t index) const {
  const Instruction& load = function_.instructions[index];
  if (load.opcode != "ld" || load.guard || load.operands.size() != 2) return false;
  const ptx::Operand& result = load.operands[0];
  if (result.kind != ptx::Operand::Kind::kSymbol || result.reference != ptx::Reference::kLocal)
    return false;
  const ptx::Variable& variable = function_.variables[result.index];
  const auto bytes = ptx::type_bytes(variable.type);
  const bool is_plain = variable.space == ptx::Space::kReg && variable.vector == 1 &&
                        (bytes == 2 || bytes == 4 || bytes == 8);
  if (!is_plain) return false;
  bool in_address = false;
  for_each_operand(load.operands[1].parts,
                   [&](const ptx::Operand& part) { in_address |= part.text == result.text; });
  return !in_address && mentions_.begin_at(result, index);
}

}  // namespace slate::injector
