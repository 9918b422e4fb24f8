#include "injector/fence/barriers.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>

#include "injector/analysis/effort.h"
#include "injector/analysis/facts.h"
#include "injector/analysis/uniformity.h"

namespace slate::injector {
namespace {

using ptx::Instruction;

bool is_aligned(const Instruction& instruction) {
  return is_block_barrier(instruction) &&
         (instruction.opcode == "bar" || instruction.has("aligned"));
}

/// Whether lanes or threads may wait for one another there.
bool meets_others(const Instruction& instruction) {
  return instruction.opcode == "bar" || instruction.opcode == "barrier" ||
         instruction.opcode == "call" || instruction.has("sync") || is_warp_wide(instruction);
}

/// The ways on which some lanes of an entry leave others only to go to their end, where they meet
/// nobody.
std::vector<ControlFlow::Edge> ways_to_end(const ptx::Function& function, const ControlFlow& flow,
                                           const Uniformity& uniformity) {
  const auto& blocks = flow.blocks();
  std::vector<bool> meets(blocks.size(), false);
  for (std::uint32_t i = 0; i < function.instructions.size(); ++i) {
    if (meets_others(function.instructions[i])) meets[flow.block_of(i)] = true;
  }
  meets = flow.leading_to(std::move(meets));
  std::vector<ControlFlow::Edge> ways;
  for (std::uint32_t block = 0; block < blocks.size(); ++block) {
    const auto& guard = function.instructions[blocks[block].end - 1].guard;
    if (!guard || uniformity.of(*guard) == Scope::kBlock) continue;
    for (const std::uint32_t next : blocks[block].successors) {
      if (!meets[next]) ways.push_back({block, next});
    }
    if (blocks[block].exits) ways.push_back({block, ControlFlow::kNone});
  }
  return ways;
}

/// Without `.aligned`.
std::string loose_opcode(const ptx::Module& module, const Instruction& barrier) {
  const ptx::Span span = barrier.opcode_span;
  std::string opcode = module.text.substr(span.begin, span.end - span.begin);
  if (const auto at = opcode.find(".aligned"); at != std::string::npos) opcode.erase(at, 8);
  if (barrier.opcode == "bar") opcode.insert(3, "rier");
  return opcode;
}

}  // namespace

Meetings::Flows::Flows(const ptx::Function& function)
    : effort(Effort::for_text(function.span.end - function.span.begin)),
      flow(function, &effort),
      all(function, flow, {.parameters_vary = !function.is_entry, .takes_turns = true}),
      staying_flow(flow.without(ways_to_end(function, flow, all))),
      staying(function, staying_flow, {.takes_turns = true}) {}

const Meetings::Flows& Meetings::flows() {
  if (flows_ == nullptr) flows_ = std::make_unique<const Flows>(function_);
  return *flows_;
}

bool Meetings::are_all_together(std::uint32_t instruction) {
  return are_together(flows().all, instruction);
}

bool Meetings::are_others_together(std::uint32_t barrier) {
  const BarrierKind kind = barrier_kind(function_.instructions[barrier]);
  return kind.whole_block && kind.named_by_number && are_together(flows().staying, barrier);
}

bool Meetings::is_complete(std::uint32_t instruction) {
  if (!are_all_together(instruction)) return false;
  if (lacking_.empty()) find_lacking();
  return !lacking_[instruction];
}

void Meetings::find_lacking() {
  const ControlFlow& flow = flows().flow;
  const auto& blocks = flow.blocks();
  lacking_ = endings_;
  std::vector<std::uint32_t> behind;  // blocks that follow one with an ending
  for (const auto& block : blocks) {
    bool is_lacking = false;
    for (std::uint32_t i = block.first; i < block.end; ++i)
      lacking_[i] = is_lacking = is_lacking || endings_[i];
    if (is_lacking) std::ranges::copy(block.successors, std::back_inserter(behind));
  }
  const std::vector<bool> reached = flow.reachable_from(behind);
  for (std::uint32_t block = 0; block < blocks.size(); ++block) {
    if (!reached[block]) continue;
    for (std::uint32_t i = blocks[block].first; i < blocks[block].end; ++i) lacking_[i] = true;
  }
}

bool Meetings::are_together(const Uniformity& uniformity, std::uint32_t instruction) {
  if (!function_.is_entry || function_.instructions[instruction].guard ||
      flows().effort.is_spent()) {
    return false;
  }
  const Scope apart = uniformity.apart_in(flows().flow.block_of(instruction));
  return apart == Scope::kBlock || apart == Scope::kWarp;
}

std::vector<ptx::Edit> make_barriers_safe(const ptx::Module& module, const ptx::Function& function,
                                          Meetings& meetings) {
  std::vector<ptx::Edit> edits;
  for (std::uint32_t i = 0; i < function.instructions.size(); ++i) {
    const Instruction& instruction = function.instructions[i];
    const bool stays =
        !is_aligned(instruction) || meetings.are_all_together(i) || meetings.are_others_together(i);
    if (!stays)
      edits.push_back(ptx::replace(instruction.opcode_span, loose_opcode(module, instruction)));
  }
  return edits;
}

}  // namespace slate::injector
