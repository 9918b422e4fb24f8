#include "injector/analysis/analysis.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "injector/analysis/contraction.h"
#include "injector/analysis/control_flow.h"
#include "injector/analysis/parameter_layout.h"
#include "injector/analysis/uniformity.h"

namespace slate::injector {
namespace {

using ptx::Instruction;
using ptx::Operand;

constexpr std::uint32_t kOldestSm = 70;  // threads of a warp make progress one by one from there

std::uint64_t aligned(std::uint64_t offset, std::uint64_t alignment) {
  return (offset + alignment - 1) / alignment * alignment;
}

/// The lanes that a warp-wide instruction names: its last operand, or none (the whole warp).
const Operand* lanes_of(const Instruction& instruction) {
  if (instruction.operands.empty() || instruction.opcode.ends_with("mma") ||
      instruction.opcode.ends_with("matrix")) {
    return nullptr;
  }
  return &instruction.operands.back();
}

/// find_undefined_read() of functions, once for each.
class UndefinedReads {
 public:
  /// `wanted`: whether it matters.
  UndefinedReads(const ptx::Module& module, bool wanted, Effort& effort)
      : module_(module), effort_(effort), known_(module.functions.size(), !wanted) {
    reads_.resize(known_.size());
  }

  const std::optional<UndefinedRead>& of(std::uint32_t index) {
    if (!known_[index]) {
      const ptx::Function& function = module_.functions[index];
      reads_[index] = find_undefined_read(function, ControlFlow(function), effort_);
      known_[index] = true;
    }
    return reads_[index];
  }

 private:
  const ptx::Module& module_;
  Effort& effort_;
  std::vector<bool> known_;                          // by function
  std::vector<std::optional<UndefinedRead>> reads_;  // the same
};

class EntryJudge {
 public:
  EntryJudge(const ptx::Module& module, const std::vector<FunctionFacts>& facts,
             const std::vector<LooseMeeting>& meetings, UndefinedReads& undefined,
             std::uint32_t index, Effort& effort)
      : module_(module),
        all_facts_(facts),
        meetings_(meetings),
        undefined_(undefined),
        function_(module.functions[index]),
        facts_(facts[index]),
        effort_(effort) {
    result_.function = index;
    result_.name = function_.name;
    find_reachable();
  }

  EntryAnalysis judge(const std::string& module_reason) {
    if (effort_.is_spent()) return give_up();
    measure();
    judge_undefined();
    refuse_all(module_reason);
    const std::uint32_t stray = facts_.with_callees.line(Trait::kStrayBranch);
    if (stray != 0) refuse_all(at(stray, "branches to what is no label of its function"));
    judge_features();
    judge_room();
    judge_control_flow();
    judge_sums();
    if (effort_.is_spent()) return give_up();
    return std::move(result_);
  }

 private:
  void refuse_worker(std::string reason) {
    if (result_.worker.legal()) result_.worker.why_not = std::move(reason);
  }
  void refuse_both(std::string reason) {
    if (result_.slice.legal()) result_.slice.why_not = reason;
    refuse_worker(std::move(reason));
  }
  void refuse_profile(std::string reason) {
    if (result_.profile.legal()) result_.profile.why_not = std::move(reason);
  }
  void refuse_all(const std::string& reason) {
    refuse_both(reason);
    refuse_profile(reason);
  }

  /// What was found is incomplete, so that other reasons count for nothing.
  EntryAnalysis give_up() {
    const std::string reason = "its module takes too long to analyse for its length";
    result_.worker.why_not = result_.slice.why_not = result_.profile.why_not = reason;
    return std::move(result_);
  }

  static std::string at(std::uint32_t line, std::string_view what) {
    return fmt::format("line {}: {}", line, what);
  }

  void measure() {
    const Facts& all = facts_.with_callees;
    for (const std::uint32_t callee : facts_.callees) {
      result_.functions_read_block_index |= all_facts_[callee].with_callees.has(Trait::kBlockIndex);
    }
    result_.separates_blocks = all.has(Trait::kBarrier) || all.has(Trait::kShared);
    result_.independent_blocks = !all.has(Trait::kCommunicates);
    result_.calls = all.has(Trait::kCall);
    result_.copies_asynchronously = all.has(Trait::kAsyncCopy);
    result_.parameter_bytes = ParameterLayout(function_).bytes();
    result_.static_shared_bytes = facts_.shared_bytes;
    for (const std::uint32_t callee : reachable_) {
      result_.static_shared_bytes += all_facts_[callee].shared_bytes;
    }
    for (const std::uint32_t shared : facts_.shared_variables) {
      result_.static_shared_bytes += module_.variables[shared].bytes;
    }
  }

  void judge_undefined() {
    result_.undefined = undefined_.of(result_.function);
    for (std::size_t i = 0; i < reachable_.size() && !result_.undefined; ++i) {
      result_.undefined = undefined_.of(reachable_[i]);
    }
    if (!result_.undefined) return;
    refuse_all(at(result_.undefined->line,
                  fmt::format("may read {} before anything is written to it, so that the result "
                              "may depend on the machine code",
                              result_.undefined->register_name)));
  }

  void judge_features() {
    struct Rule {
      Trait trait;
      bool worker_only;
      std::string_view sentence;
    };
    static constexpr Rule kRules[] = {
        {Trait::kCluster, false, "uses thread block clusters, which need their own launch"},
        {Trait::kCooperative, false,
         "synchronises the whole grid (cooperative launch), so all its blocks must be there at "
         "once"},
        {Trait::kDeviceRuntime, false,
         "calls the device-side runtime, which ties child kernels to this very grid"},
        {Trait::kOddBlockIndex, false, "reads the block index as a vector or in 16 bits"},
        {Trait::kArrive, true, "arrives at a barrier without waiting, which may outlast the block"},
        {Trait::kAsyncBarrier, true,
         "uses mbarrier objects or bulk copies, whose state would outlast the block"},
        {Trait::kRegisterMove, true, "moves registers between warps (setmaxnreg)"},
        {Trait::kAlloca, true, "takes stack memory (alloca) that only the end of the thread frees"},
        {Trait::kSharedSize, true, "asks for the size of its shared memory"},
    };
    for (const Rule& rule : kRules) {
      const std::uint32_t line = facts_.with_callees.line(rule.trait);
      if (line == 0) continue;
      rule.worker_only ? refuse_worker(at(line, rule.sentence))
                       : refuse_both(at(line, rule.sentence));
    }
    for (const auto& directive : function_.directives) {
      if (directive.name == "explicitcluster" || directive.name == "reqnctapercluster" ||
          directive.name == "maxclusterrank") {
        refuse_both(at(function_.line, "is declared with thread block clusters"));
      }
    }
    for (const std::uint32_t callee : facts_.callees) {
      const Facts& called = all_facts_[callee].with_callees;
      if (called.has(Trait::kExit)) {
        refuse_worker(at(called.line(Trait::kExit), "ends the thread from within a function"));
      }
    }
    const std::uint32_t own_global = facts_.with_callees.line(Trait::kOwnGlobal);
    if (own_global != 0) {
      refuse_all(at(own_global,
                    "declares a global variable in a body, of which a form would have another"));
    }
    // Which function a pointer leads to is not known, so its copy cannot be put in its place.
    const std::uint32_t indirect = facts_.with_callees.line(Trait::kIndirectCall);
    if (indirect != 0 && result_.functions_read_block_index) {
      refuse_both(
          at(indirect, "calls through a pointer, and a function it may reach reads %ctaid"));
    }
    judge_counting(indirect);
  }

  void judge_counting(std::uint32_t indirect) {
    const Facts& all = facts_.with_callees;
    if (all.has(Trait::kRegisterMove)) {
      refuse_profile(at(all.line(Trait::kRegisterMove),
                        "moves registers between warps (setmaxnreg), which counting needs too"));
    }
    if (all.has(Trait::kSharedSize) && result_.calls) {
      refuse_profile(at(all.line(Trait::kSharedSize), "asks for the size of its shared memory"));
    }
    if (indirect != 0) {
      result_.uncounted = at(indirect, "what is called through a pointer is not counted");
    }
  }

  void judge_room() {
    if (result_.static_shared_bytes + kAddedSharedBytes > kMostStaticSharedBytes) {
      refuse_worker(
          fmt::format("its {} bytes of static shared memory leave no room for the {} of a worker",
                      result_.static_shared_bytes, kAddedSharedBytes));
    }
    if (result_.functions_read_block_index &&
        aligned(result_.static_shared_bytes, 8) + kIndexSharedBytes > kMostStaticSharedBytes) {
      refuse_both(fmt::format("its {} bytes of static shared memory leave no room for the index",
                              result_.static_shared_bytes));
    }
    if (const auto reason = parameters_crowd(kAddedParameterBytes)) refuse_both(*reason);
    if (const auto reason = parameters_crowd(kProfileParameterBytes)) refuse_profile(*reason);
    if (result_.calls &&
        result_.static_shared_bytes + kProfileSharedBytes > kMostStaticSharedBytes) {
      refuse_profile(fmt::format("its {} bytes of static shared memory leave no room for {} more",
                                 result_.static_shared_bytes, kProfileSharedBytes));
    }
  }

  /// Why there is no room for so many bytes of parameters more, if there is none.
  std::optional<std::string> parameters_crowd(std::uint64_t added) const {
    const bool is_old = std::pair(module_.version_major, module_.version_minor) < std::pair(8u, 1u);
    const std::uint64_t most = is_old ? kMostOldParameterBytes : kMostParameterBytes;
    if (aligned(result_.parameter_bytes, 8) + added <= most) return std::nullopt;
    return fmt::format("its {} bytes of parameters leave no room for slate's {}: {} are the most{}",
                       result_.parameter_bytes, added, most, is_old ? " before PTX 8.1" : "");
  }

  /// Functions may become a part of the kernel, so that a product of one meets a sum of another.
  void judge_sums() {
    LooseMeeting all = meetings_[result_.function];
    for (const std::uint32_t callee : reachable_) {
      const LooseMeeting& called = meetings_[callee];
      if (all.line == 0) all.line = called.line;
      if (all.first_sum == 0) all.first_sum = called.first_sum;
      all.sums |= called.sums;
      all.products |= called.products;
    }
    if (all.line == 0 && result_.calls && (all.sums & all.products) != 0) all.line = all.first_sum;
    if (all.line == 0) return;
    result_.may_fuse =
        at(all.line, "an assembler may make one instruction of this addition and a multiplication");
  }

  // --- Who leaves while who goes on
  // ----------------------------------------------------------------

  void judge_control_flow() {
    const ControlFlow flow(function_, &effort_);
    const Uniformity uniformity(function_, flow, {.takes_turns = takes_turns()});
    for (std::uint32_t i = 0; i < function_.instructions.size(); ++i) {
      const Instruction& instruction = function_.instructions[i];
      Scope apart = uniformity.apart_in(flow.block_of(i));
      if (instruction.guard) apart = join(apart, uniformity.of(*instruction.guard));
      if (is_block_barrier(instruction)) judge_barrier(instruction, apart, uniformity);
      if (is_warp_wide(instruction)) judge_warp_wide(instruction, apart, uniformity);
      if (instruction.opcode == "call") judge_call(instruction, apart);
    }
    judge_partings(function_, flow, uniformity);
    for (const std::uint32_t callee : reachable_) {
      if (effort_.is_spent()) return;
      judge_callee(callee);
    }
    if (result_.drains) judge_drain();
  }

  void judge_barrier(const Instruction& instruction, Scope apart, const Uniformity& uniformity) {
    ++result_.barriers;
    judge_partial(instruction, uniformity);
    if (apart == Scope::kBlock) return;
    const BarrierKind kind = barrier_kind(instruction);
    // Threads that do not come here may be waiting for the next block at barrier 0.
    if (kind.whole_block && kind.zero) {
      result_.drains = true;
    } else if (kind.whole_block || kind.zero || apart == Scope::kThread) {
      // Natively a partial barrier counts whole warps, whoever of them has left.
      refuse_worker(
          at(instruction.line, "some threads may have left before this named or partial barrier"));
    } else {
      note_condition(apart);
    }
  }

  /// Those who are through with the block wait at barrier 0 for all threads, so no other barrier
  /// may be that one.
  void judge_partial(const Instruction& barrier, const Uniformity& uniformity) {
    const BarrierKind kind = barrier_kind(barrier);
    if (kind.whole_block || barrier.operands.empty()) return;
    const auto number = uniformity.constant(barrier.operands[kind.reduces ? 1 : 0]);
    if (number && *number != 0) return;
    refuse_worker(at(barrier.line,
                     "this barrier of a part of the block may be barrier 0, which workers use"));
  }

  void judge_warp_wide(const Instruction& instruction, Scope apart, const Uniformity& uniformity) {
    ++result_.warp_wide;
    note_condition(apart);
    // Who is there need not be who takes part, even where the mask is of those who are there.
    if (instruction.guard && uniformity.of(*instruction.guard) == Scope::kThread) {
      refuse_missing_lanes(instruction);
    }
  }

  /// Of warp-wide code that so much may part.
  void note_condition(Scope apart) {
    if (apart == Scope::kWarpRows) result_.needs_whole_rows = true;
    if (apart == Scope::kWholeWarps) result_.needs_whole_warps = true;
  }

  static bool names_present_lanes(const Instruction& instruction, std::uint32_t index,
                                  const Uniformity& uniformity) {
    const Operand* lanes = lanes_of(instruction);
    return lanes != nullptr && uniformity.is_lane_mask(*lanes, index);
  }

  void refuse_missing_lanes(const Instruction& instruction) {
    refuse_worker(at(
        instruction.line,
        fmt::format("some lanes may have left the kernel before this {}, which would wait for them",
                    instruction.opcode)));
  }

  /// Where lanes part, one side may leave the kernel while the other goes on to an instruction that
  /// names all lanes. It waits only for those that have not left, so they must not be parked
  /// instead. No harm is done if both sides have as many such instructions before they meet: in a
  /// program that is right the lanes then wait for one another there.
  void judge_partings(const ptx::Function& function, const ControlFlow& flow,
                      const Uniformity& uniformity) {
    std::vector<std::uint32_t> weights(flow.blocks().size(), 0);
    std::vector<const Instruction*> first_of(flow.blocks().size(), nullptr);
    for (std::uint32_t i = 0; i < function.instructions.size(); ++i) {
      const Instruction& instruction = function.instructions[i];
      if (!is_warp_wide(instruction) || names_present_lanes(instruction, i, uniformity)) continue;
      const std::uint32_t block = flow.block_of(i);
      if (weights[block]++ == 0) first_of[block] = &instruction;
    }
    if (std::ranges::all_of(weights, [](std::uint32_t weight) { return weight == 0; })) return;
    for (const std::uint32_t branch : uniformity.parting_branches()) {
      if (effort_.is_spent()) return;
      const auto influenced = flow.influence_of(branch);
      const auto waiting = std::ranges::find_if(
          influenced, [&](std::uint32_t block) { return weights[block] != 0; });
      if (waiting == influenced.end()) continue;
      if (!sides_agree(flow, branch, weights)) refuse_missing_lanes(*first_of[*waiting]);
    }
  }

  static bool sides_agree(const ControlFlow& flow, std::uint32_t branch,
                          const std::vector<std::uint32_t>& weights) {
    const ControlFlow::Block& block = flow.blocks()[branch];
    if (block.exits || block.successors.empty()) return false;  // one side leaves at once
    const std::uint32_t first = flow.only_weight(block.successors[0], block.meeting, weights);
    if (first == ControlFlow::kNone) return false;
    return first != 0 && std::ranges::all_of(block.successors, [&](std::uint32_t successor) {
             return flow.only_weight(successor, block.meeting, weights) == first;
           });
  }

  void judge_call(const Instruction& call, Scope apart) {
    if (apart == Scope::kBlock) return;
    for_each_operand(call.operands, [&](const Operand& operand) {
      if (operand.reference != ptx::Reference::kFunction) return;
      const Facts& called = all_facts_[operand.index].with_callees;
      judge_apart_call(call, called, apart);
    });
    if (facts_.own.has(Trait::kIndirectCall)) judge_apart_call(call, facts_.with_callees, apart);
  }

  void judge_apart_call(const Instruction& call, const Facts& called, Scope apart) {
    if (called.has(Trait::kBarrier)) {
      refuse_worker(
          at(call.line, "some threads may have left before this call of a function with barriers"));
    }
    if (called.has(Trait::kWarpWide) && apart == Scope::kThread) {
      refuse_worker(at(
          call.line,
          "some lanes may have left before this call of a function with warp-wide instructions"));
    }
    if (called.has(Trait::kWarpWide)) note_condition(apart);
  }

  bool takes_turns() const { return facts_.with_callees.has(Trait::kHandsOver); }

  void find_reachable() {
    effort_.take(all_facts_.size());
    std::vector<bool> found(all_facts_.size(), false);
    const auto add = [&](const std::vector<std::uint32_t>& callees) {
      effort_.take(1 + callees.size());
      for (const std::uint32_t callee : callees) {
        if (!found[callee]) reachable_.push_back(callee);
        found[callee] = true;
      }
    };
    add(facts_.callees);
    for (std::size_t i = 0; i < reachable_.size() && !effort_.is_spent(); ++i) {
      add(all_facts_[reachable_[i]].callees);
    }
  }

  /// A thread that does not come to a barrier inside a function returns from it, and may leave the
  /// kernel while the others wait there.
  void judge_callee(std::uint32_t index) {
    const ptx::Function& callee = module_.functions[index];
    const Facts& facts = all_facts_[index].own;
    if (!facts.has(Trait::kBarrier) && !facts.has(Trait::kWarpWide)) return;
    const ControlFlow flow(callee, &effort_);
    const Uniformity uniformity(callee, flow,
                                {.parameters_vary = true, .takes_turns = takes_turns()});
    for (std::uint32_t i = 0; i < callee.instructions.size(); ++i) {
      const Instruction& instruction = callee.instructions[i];
      Scope apart = uniformity.apart_in(flow.block_of(i));
      if (instruction.guard) apart = join(apart, uniformity.of(*instruction.guard));
      if (is_block_barrier(instruction)) judge_partial(instruction, uniformity);
      if (is_block_barrier(instruction) && apart != Scope::kBlock) {
        refuse_worker(
            at(instruction.line, "some threads may have left before this barrier in a function"));
      }
      if (is_warp_wide(instruction)) judge_warp_wide(instruction, apart, uniformity);
    }
    judge_partings(callee, flow, uniformity);
    if (facts.has(Trait::kBarrier)) callee_barrier_line_ = facts.line(Trait::kBarrier);
  }

  /// The drain replaces every barrier of the entry by two; it can do so only with plain ones.
  void judge_drain() {
    for (const Instruction& instruction : function_.instructions) {
      if (!is_block_barrier(instruction)) continue;
      const BarrierKind kind = barrier_kind(instruction);
      if (kind.reduces || !kind.zero || !kind.whole_block || instruction.guard) {
        refuse_worker(at(instruction.line,
                         "threads leave early, and this barrier reduces, is named, is partial or "
                         "is under a predicate"));
      }
    }
    if (callee_barrier_line_ != 0) {
      refuse_worker(
          at(callee_barrier_line_, "threads leave early, and this barrier is in a function"));
    }
  }

  const ptx::Module& module_;
  const std::vector<FunctionFacts>& all_facts_;
  const std::vector<LooseMeeting>& meetings_;
  UndefinedReads& undefined_;
  const ptx::Function& function_;
  const FunctionFacts& facts_;
  Effort& effort_;
  std::vector<std::uint32_t> reachable_;  // functions that it may call, also through others
  std::uint32_t callee_barrier_line_ = 0;
  EntryAnalysis result_;
};

/// A reason that holds for all kernels of the module, or nothing.
std::string judge_module(const ptx::Module& module, OwnNames names) {
  if (module.sm < kOldestSm) {
    return fmt::format(
        "written for {}; threads of a warp make no progress of their own before sm_70",
        module.target);
  }
  if (module.address_size != 64) return "has 32-bit addresses";
  if (names == OwnNames::kRefused && module.text.find(kReservedPrefix) != std::string::npos) {
    return fmt::format("has names that begin with {}", kReservedPrefix);
  }
  return {};
}

/// At an effort of its own: forms do not depend on it.
void find_reaches(const ptx::Module& module, ModuleAnalysis& analysis) {
  Effort effort = Effort::for_text(module.text.size());
  for (EntryAnalysis& entry : analysis.entries) {
    entry.reach = find_reach(module, entry.function, analysis.functions, effort);
    if (entry.undefined) entry.reach.add(Effect::kUndefined, entry.undefined->line);
  }
}

}  // namespace

ModuleAnalysis analyse(const ptx::Module& module, OwnNames names) {
  return analyse(module, names, Effort::for_text(module.text.size()));
}

ModuleAnalysis analyse(const ptx::Module& module, OwnNames names, Effort effort) {
  ModuleAnalysis analysis;
  analysis.functions = collect_facts(module, effort);
  // What we have made ourselves of a kernel writes no less than the kernel.
  UndefinedReads undefined(module, names == OwnNames::kRefused, effort);
  const std::string reason = judge_module(module, names);
  std::vector<LooseMeeting> meetings;
  meetings.reserve(module.functions.size());
  for (const ptx::Function& function : module.functions) meetings.push_back(find_meeting(function));
  for (std::uint32_t i = 0; i < module.functions.size(); ++i) {
    const ptx::Function& function = module.functions[i];
    if (!function.is_entry || !function.has_body) continue;
    analysis.entries.push_back(
        EntryJudge(module, analysis.functions, meetings, undefined, i, effort).judge(reason));
  }
  analysis.effort = effort;
  if (names == OwnNames::kRefused) find_reaches(module, analysis);
  return analysis;
}

}  // namespace slate::injector
