#include "injector/forms/late_exits.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "injector/analysis/facts.h"
#include "injector/analysis/mentions.h"
#include "injector/analysis/parked_walk.h"
#include "injector/analysis/scopes.h"
#include "injector/analysis/uniformity.h"
#include "injector/forms/exit_code.h"
#include "injector/forms/passage.h"
#include "injector/forms/ptx_template.h"
#include "injector/ptx/printer.h"

namespace slate::injector {
namespace {

using ptx::Instruction;
using ptx::Operand;

class LateExitWriter {
 public:
  LateExitWriter(const ptx::Module& module, const ptx::Function& function, const ParkedWalk& walk,
                 Effort& effort)
      : module_(module),
        function_(function),
        flow_(function, &effort),
        walk_(walk),
        jumps_(walk.jumps),
        mentions_(function),
        code_(module, function, flow_, mentions_) {}

  /// The edits of the function; nothing where a label would be in an inner scope, or where exits
  /// have too much code.
  std::optional<std::vector<ptx::Edit>> write() {
    begin();
    find_passages();
    for (const ParkedWalk::Exit& exit : walk_.exits) {
      exit_branches_.insert(last_of(exit.way.block));
      write_exit(exit);
    }
    for (const std::uint32_t barrier : walk_.barriers) write_barrier(barrier);
    for (const auto& [at, stop] : jumps_) insert(at, jump_to(stop) + "\n\t");
    write_passages();
    edits_.push_back(
        ptx::insert_at(function_.body.end - 1, tail_ + expand("$parked_end:\n\tret;\n")));
    // Before all else that is put where they stand.
    std::vector<ptx::Edit> edits;
    for (const std::uint32_t stop : stops_) {
      edits.push_back(ptx::insert_at(outside(stop), label(stop) + ":\n\t"));
    }
    edits.insert(edits.end(), edits_.begin(), edits_.end());
    if (failed_ || !flow_.charge(0)) return std::nullopt;
    return edits;
  }

 private:
  std::uint32_t begin_of(std::uint32_t i) const { return function_.instructions[i].span.begin; }
  void insert(std::uint32_t before, std::string text) {
    edits_.push_back(ptx::insert_at(begin_of(before), std::move(text)));
  }
  std::string_view text_of(ptx::Span span) const {
    return std::string_view(module_.text).substr(span.begin, span.end - span.begin);
  }
  /// A stop's label; it will be written.
  std::string label(std::uint32_t stop) {
    if (stop == ParkedWalk::kEnd) return expand("$parked_end");
    stops_.insert(stop);
    return filled("$parked_{}", stop);
  }
  std::string jump_to(std::uint32_t stop) { return filled("@!~alive bra {};", label(stop)); }

  /// Where code goes that is to stand before the instruction and be seen from everywhere.
  std::uint32_t outside(std::uint32_t i) {
    const ptx::InnerScope* scope = scope_of(function_, i);
    if (scope == nullptr) return begin_of(i);
    failed_ |= scope->first != i;
    return scope->span.begin;
  }

  void begin() {
    std::uint32_t at = outside(0);
    for (const ptx::Label& label : function_.labels) {
      if (label.target == 0) at = std::min(at, label.span.begin);
    }
    edits_.push_back(ptx::insert_at(
        at,
        expand("\t.reg .pred ~alive, ~some, ~own, ~parked, ~inside;\n\tmov.pred ~alive, 1;\n\t")));
  }

  // --- Passages

  /// Where a parked thread may go along it does not jump.
  void find_passages() {
    std::vector<ControlFlow::Edge> left_here;
    for (const ParkedWalk::Exit& exit : walk_.exits) {
      auto code = code_.guarded(exit.way.to, "~own", last_of(exit.way.block));
      if (!code) continue;
      // In a scope its registers might be others of the same names.
      if (!code->empty() && scope_of(function_, last_of(exit.way.block)) != nullptr) continue;
      left_here.push_back(exit.way);
      guarded_[exit.way.block] = std::move(*code);
    }
    const ControlFlow parked = flow_.without(left_here);
    const PassageFinder finder(function_, parked, mentions_);
    std::erase_if(jumps_,
                  [&](const auto& jump) { return passes(finder, jump.first, jump.second); });
    for (const ParkedWalk::Exit& exit : walk_.exits) {
      const auto& next = parked.blocks()[exit.way.block].successors;
      if (next.size() != 1) continue;
      const std::uint32_t first = parked.blocks()[next.front()].first;
      if (passes(finder, first, exit.stop)) passing_.insert(exit.way.block);
    }
  }

  bool passes(const PassageFinder& finder, std::uint32_t from, std::uint32_t stop) {
    if (stop == ParkedWalk::kEnd) return false;  // what is left concerns nobody
    if (!flow_.charge(flow_.blocks().size())) return false;
    auto passage = finder.find(from, stop);
    if (!passage) return false;
    passage_.effects.merge(passage->effects);
    passage_.skips.merge(passage->skips);
    passage_.predicated.merge(passage->predicated);
    return true;
  }

  void write_passages() {
    for (const std::uint32_t effect : passage_.effects) write_guard(effect, "and", "~alive");
    for (const auto& [branch, taken] : passage_.skips) {
      failed_ |= exit_branches_.contains(branch);
      if (taken) insert(branch, expand("not.pred ~parked, ~alive;\n\t"));
      write_guard(branch, taken ? "or" : "and", taken ? "~parked" : "~alive");
    }
    for (const auto& [branch, predicated] : passage_.predicated) {
      write_predicate(branch, "~alive");
      for (const std::uint32_t inner : predicated.branches) write_predicate(inner, "~inside");
      for (const std::uint32_t load : predicated.fresh) write_before(load);
      for (const std::uint32_t guarded : predicated.guarded) write_guard(guarded, "and", "~inside");
    }
  }

  /// `what`: and, or. `predicate`: one of ours.
  void write_guard(std::uint32_t index, std::string_view what, std::string_view predicate) {
    const Instruction& instruction = function_.instructions[index];
    const auto& guard = instruction.guard;
    std::string text = fmt::format("@{} ", expand(predicate));
    if (guard) {
      text = filled("{}.pred ~own, {};\n\t{}.pred ~own, ~own, {};\n\t@~own ",
                    guard->negated ? "not" : "mov", guard->text, what, expand(predicate));
    }
    edits_.push_back(
        ptx::replace({instruction.span.begin, instruction.opcode_span.begin}, std::move(text)));
  }

  void write_before(std::uint32_t load) {
    const Operand& result = function_.instructions[load].operands.front();
    const auto bits = 8 * ptx::type_bytes(function_.variables[result.index].type);
    insert(load, fmt::format("mov.b{} {}, 0;\n\t", bits, result.text));
  }

  /// In the place of a branch: ~inside says who would not have taken it, of those of `before`.
  void write_predicate(std::uint32_t branch, std::string_view before) {
    const Instruction& instruction = function_.instructions[branch];
    // One that is a way out is written as such.
    failed_ |= exit_branches_.contains(branch);
    edits_.push_back(
        ptx::replace(instruction.span, filled("{}.pred ~own, {};\n\tand.pred ~inside, ~own, {};",
                                              instruction.guard->negated ? "mov" : "not",
                                              instruction.guard->text, expand(before))));
  }

  // --- Exits

  void write_exit(const ParkedWalk::Exit& exit) {
    const Instruction& branch = branch_of(exit);
    const bool falls_out = branch.opcode == "bra" && exit.way.to != ControlFlow::kNone &&
                           exit.way.to != code_.target_of(branch);
    const bool negated = branch.guard->negated != falls_out;
    const auto guarded = guarded_.find(exit.way.block);
    std::string text = guarded != guarded_.end() ? leave_here(exit, guarded->second, negated)
                                                 : leave_there(exit, negated);
    if (falls_out) text += fmt::format("\n\tbra {};", text_of(branch.operands[0].span));
    edits_.push_back(ptx::replace(branch.span, std::move(text)));
  }

  const Instruction& branch_of(const ParkedWalk::Exit& exit) const {
    return function_.instructions[last_of(exit.way.block)];
  }
  std::uint32_t last_of(std::uint32_t block) const { return flow_.blocks()[block].end - 1; }

  /// Code so short that it needs no branch: those who leave do it, and all go on together. Those
  /// parked before may come along up to here, too: one jump for both.
  std::string leave_here(const ParkedWalk::Exit& exit, const std::string& code, bool negated) {
    std::string text = tell_apart(exit, negated) + code;
    if (passing_.contains(exit.way.block)) return text;
    take_along(exit);
    return text + jump_to(exit.stop);
  }

  /// ~own: who leaves now; ~alive: who stays. In one instruction where the condition is a
  /// comparison, made just before.
  std::string tell_apart(const ParkedWalk::Exit& exit, bool negated) const {
    const Instruction& branch = branch_of(exit);
    const Instruction* comparison = comparison_before(exit.way.block);
    if (comparison != nullptr) {
      return filled("setp.{}.and.{} {}, {}, {}, ~alive;\n\t", comparison->modifiers[0],
                    comparison->modifiers[1], expand(negated ? "~alive|~own" : "~own|~alive"),
                    text_of(comparison->operands[1].span), text_of(comparison->operands[2].span));
    }
    return filled(
        "{1}.pred ~own, {0};\n\t{2}.pred ~parked, {0};\n\tand.pred ~own, ~own, ~alive;\n\t"
        "and.pred ~alive, ~alive, ~parked;\n\t",
        branch.guard->text, negated ? "not" : "mov", negated ? "mov" : "not");
  }

  /// The plain comparison that made the condition of the branch at the end of a block, if it would
  /// say the same there.
  const Instruction* comparison_before(std::uint32_t number) const {
    const ControlFlow::Block& block = flow_.blocks()[number];
    const Operand& condition = *function_.instructions[block.end - 1].guard;
    std::set<std::uint32_t> changed;  // registers
    const auto is_changed = [&](const Operand& operand) {
      return operand.reference == ptx::Reference::kLocal && changed.contains(operand.index);
    };
    for (std::uint32_t i = block.end - 1; i-- != block.first;) {
      const Instruction& instruction = function_.instructions[i];
      for_each_result(instruction, [&](const Operand& result) {
        if (result.reference == ptx::Reference::kLocal) changed.insert(result.index);
      });
      if (!is_changed(condition)) continue;
      const auto& operands = instruction.operands;
      const bool is_plain = instruction.opcode == "setp" && !instruction.guard &&
                            instruction.modifiers.size() == 2 && operands.size() == 3 &&
                            operands[0].kind == Operand::Kind::kSymbol;
      const auto may_differ = [&](const Operand& operand) {  // clocks do
        return operand.kind == Operand::Kind::kSpecial || is_changed(operand);
      };
      // Its operands are named again where the branch is, so their names must mean the same there.
      const bool is_seen =
          scope_of(function_, i) == nullptr && scope_of(function_, block.end - 1) == nullptr;
      const bool is_same =
          is_plain && is_seen && !may_differ(operands[1]) && !may_differ(operands[2]);
      return is_same ? &instruction : nullptr;
    }
    return nullptr;
  }

  /// A jump of those parked that leads past the exit, from before it, over nothing but computation
  /// (what their registers hold does not matter), becomes that of the exit.
  void take_along(const ParkedWalk::Exit& exit) {
    const ControlFlow::Block& block = flow_.blocks()[exit.way.block];
    for (std::uint32_t i = block.end - 1;; --i) {
      const auto jump = jumps_.find(i);
      if (jump != jumps_.end()) {
        if (jump->second == exit.stop) jumps_.erase(jump);
        return;
      }
      if (i == block.first || !only_computes(function_.instructions[i - 1])) return;
    }
  }

  /// One copy for every exit: shared between one in a loop and one before it, it would be a second
  /// way into the loop.
  std::string leave_there(const ParkedWalk::Exit& exit, bool negated) {
    const std::string start = fmt::format("$leave_{}", exit.way.block);
    const auto copy = code_.copy(exit.way.to, start);
    failed_ |= !copy;
    if (failed_) return {};
    tail_ += *copy;
    tail_ += filled("{}_out:\n\tmov.pred ~alive, 0;\n\tbra {};\n", expand(start), label(exit.stop));
    return fmt::format("@{}{} bra {};", negated ? "!" : "", branch_of(exit).guard->text,
                       expand(start));
  }

  // --- Barriers

  /// Whether anybody is left is asked only where it must be, as it takes the longer barrier:
  /// without it a loop might not end.
  void write_barrier(std::uint32_t index) {
    const Instruction& barrier = function_.instructions[index];
    const bool reduces = barrier.has("red");
    if (reduces) write_reduction(barrier);
    if (!std::ranges::binary_search(walk_.looping_barriers, index)) return;
    const bool aligned = barrier.opcode == "bar" || barrier.has("aligned");
    const std::string ask =
        filled("{}.red.or.pred ~some, {}, ~alive;\n\t@!~some bra.uni $parked_end;",
               aligned ? "bar" : "barrier", text_of(barrier.operands[reduces ? 1 : 0].span));
    // The result of one that reduces is the kernel's own: another barrier asks.
    edits_.push_back(reduces ? ptx::insert_at(barrier.span.end, "\n\t" + ask)
                             : ptx::replace(barrier.span, ask));
  }

  /// The parked do not count: they contribute what changes nothing.
  void write_reduction(const Instruction& barrier) {
    const Operand& input = barrier.operands.back();
    const bool is_and = barrier.has("and");
    const std::string_view value =
        input.kind == Operand::Kind::kSymbol ? input.text : text_of(input.span);
    std::string text = filled("{}.pred ~own, {};\n\t", input.negated ? "not" : "mov", value);
    text += expand(is_and ? "not.pred ~parked, ~alive;\n\tor.pred ~own, ~own, ~parked;\n\t"
                          : "and.pred ~own, ~own, ~alive;\n\t");
    edits_.push_back(ptx::insert_at(barrier.span.begin, std::move(text)));
    edits_.push_back(ptx::replace(input.span, expand("~own")));
  }

  const ptx::Module& module_;
  const ptx::Function& function_;
  const ControlFlow flow_;
  const ParkedWalk& walk_;
  std::map<std::uint32_t, std::uint32_t> jumps_;
  const Mentions mentions_;
  ExitCode code_;
  std::vector<ptx::Edit> edits_;
  std::set<std::uint32_t> stops_;
  std::set<std::uint32_t> exit_branches_;
  std::map<std::uint32_t, std::string> guarded_;  // by block of an exit: its code, if that is short
  std::set<std::uint32_t> passing_;  // blocks of exits behind which the parked go along
  Passage passage_;                  // all of them
  std::string tail_;
  bool failed_ = false;
};

/// The kernels' functions by index, and how to change them.
std::set<std::uint32_t> plan_changes(const ptx::Module& module, ModuleAnalysis& analysis,
                                     std::vector<ptx::Edit>& edits) {
  std::set<std::uint32_t> changed;
  for (const EntryAnalysis& entry : analysis.entries) {
    if (entry.barriers == 0 || (entry.worker.legal() && !entry.drains)) continue;
    if (!entry.slice.legal()) continue;  // what refuses that refuses the worker in any shape
    const ptx::Function& function = module.functions[entry.function];
    const auto walk = plan_parked_walk(
        function, analysis.functions[entry.function].with_callees.has(Trait::kHandsOver),
        analysis.effort);
    if (!walk) continue;
    auto wanted = LateExitWriter(module, function, *walk, analysis.effort).write();
    if (!wanted) continue;
    edits.insert(edits.end(), std::make_move_iterator(wanted->begin()),
                 std::make_move_iterator(wanted->end()));
    changed.insert(entry.function);
  }
  return changed;
}

}  // namespace

Result<std::unique_ptr<const ptx::Module>> make_exits_late(const ptx::Module& module,
                                                           ModuleAnalysis& analysis) {
  std::vector<ptx::Edit> edits;
  const std::set<std::uint32_t> changed = plan_changes(module, analysis, edits);
  if (changed.empty()) return nullptr;
  auto text = ptx::apply_edits(module, std::move(edits));
  if (!text) return std::unexpected(text.error());
  auto late = ptx::parse(std::move(*text));
  if (!late) return late;
  const ModuleAnalysis judged = analyse(**late, OwnNames::kExpected);
  bool any = false;
  for (std::size_t i = 0; i < analysis.entries.size(); ++i) {
    EntryAnalysis& entry = analysis.entries[i];
    const EntryAnalysis& changed_entry = judged.entries[i];
    if (!changed.contains(entry.function)) continue;
    if (!changed_entry.worker.legal() || changed_entry.drains) continue;
    any = entry.late_exits = true;
    entry.worker = {};
    entry.drains = false;
    entry.needs_whole_rows = changed_entry.needs_whole_rows;
    entry.needs_whole_warps = changed_entry.needs_whole_warps;
  }
  if (!any) return nullptr;
  return late;
}

}  // namespace slate::injector
