#include "injector/analysis/facts.h"

#include <algorithm>
#include <map>
#include <utility>

#include "injector/analysis/components.h"
#include "injector/analysis/control_flow.h"
#include "injector/ptx/words.h"

namespace slate::injector {
namespace {

using ptx::begins_with_one_of;
using ptx::Instruction;
using ptx::is_one_of;
using ptx::Operand;
using ptx::Reference;

/// Numbers without repetition, one list after another.
class DistinctNumbers {
 public:
  explicit DistinctNumbers(std::size_t below) : listed_(below, 0) {}
  void begin_list() { ++list_; }
  void add(std::vector<std::uint32_t>& list, std::uint32_t number) {
    if (std::exchange(listed_[number], list_) != list_) list.push_back(number);
  }

 private:
  std::vector<std::uint32_t> listed_;  // by number: the last list that has it
  std::uint32_t list_ = 1;
};

/// A pointer without a space may point to global memory.
bool may_be_global(const Instruction& instruction) {
  return std::ranges::none_of(instruction.modifiers, [](std::string_view word) {
    return begins_with_one_of(word, {"shared", "local", "param", "const"});
  });
}

bool communicates(const Instruction& instruction) {
  const std::string_view opcode = instruction.opcode;
  if (opcode == "nanosleep") return true;
  if (opcode == "membar") return !instruction.has("cta");
  if (opcode == "fence") {
    return instruction.has("gpu") || instruction.has("sys") || instruction.has("cluster");
  }
  return (opcode == "atom" || may_race(instruction)) && may_be_global(instruction);
}

/// With locks, flags and barriers of a part, threads can take turns between two barriers of all.
bool hands_over(const Instruction& instruction) {
  if (is_block_barrier(instruction)) return !barrier_kind(instruction).whole_block;
  return is_one_of(instruction.opcode, {"atom", "mbarrier"}) || may_race(instruction);
}

class Collector {
 public:
  Collector(const ptx::Module& module, Effort& effort)
      : module_(module),
        effort_(effort),
        all_(module.functions.size()),
        callees_(module.functions.size()),
        shared_(module.variables.size()),
        taken_functions_(module.functions.size()) {}

  std::vector<FunctionFacts> collect() {
    for (std::uint32_t i = 0; i < all_.size(); ++i) look_at(all_[i], module_.functions[i]);
    find_taken_addresses();
    for (FunctionFacts& facts : all_) {
      facts.with_callees = facts.own;
      if (facts.own.has(Trait::kIndirectCall)) add_taken(facts);
    }
    if (effort_.is_spent()) return std::move(all_);
    std::vector<std::vector<std::uint32_t>> calls;
    for (const FunctionFacts& facts : all_) calls.push_back(facts.callees);
    for (const std::vector<std::uint32_t>& circle : strong_components(calls)) spread(circle);
    return std::move(all_);
  }

 private:
  void look_at(FunctionFacts& facts, const ptx::Function& function) {
    callees_.begin_list();
    shared_.begin_list();
    for (const ptx::Variable& variable : function.variables) {
      if (variable.space == ptx::Space::kShared) {
        facts.own.add(Trait::kShared, variable.line);
        facts.shared_bytes += variable.bytes;
      }
      if (variable.space == ptx::Space::kGlobal && !variable.is_extern) {
        facts.own.add(Trait::kOwnGlobal, variable.line);
      }
    }
    for (const Instruction& instruction : function.instructions) look_at(facts, instruction);
    if (const Instruction* stray = stray_branch(function)) {
      facts.own.add(Trait::kStrayBranch, std::max(stray->line, 1u));
    }
  }

  void look_at(FunctionFacts& facts, const Instruction& instruction) {
    const std::string_view opcode = instruction.opcode;
    const auto mark = [&](bool holds, Trait trait) {
      if (holds) facts.own.add(trait, std::max(instruction.line, 1u));
    };
    mark(is_block_barrier(instruction), Trait::kBarrier);
    mark(is_warp_wide(instruction), Trait::kWarpWide);
    mark(opcode == "exit", Trait::kExit);
    mark(is_one_of(opcode, {"bar", "barrier"}) && instruction.has("arrive"), Trait::kArrive);
    mark(opcode == "setmaxnreg", Trait::kRegisterMove);
    mark(is_one_of(opcode, {"alloca", "stacksave"}), Trait::kAlloca);
    mark(communicates(instruction), Trait::kCommunicates);
    mark(hands_over(instruction), Trait::kHandsOver);
    const bool is_bulk = std::ranges::any_of(instruction.modifiers,
                                             [](auto word) { return word.starts_with("bulk"); });
    mark(opcode == "mbarrier" || opcode == "tcgen05" || (opcode == "cp" && is_bulk),
         Trait::kAsyncBarrier);
    mark(opcode == "cp" && instruction.has("async") && !is_bulk, Trait::kAsyncCopy);
    mark((opcode == "barrier" && instruction.has("cluster")) ||
             is_one_of(opcode, {"mapa", "getctarank", "clusterlaunchcontrol", "multimem"}) ||
             instruction.has("shared::cluster"),
         Trait::kCluster);
    mark(opcode == "call", Trait::kCall);
    if (opcode == "call") look_at_call(facts, instruction);
    for_each_operand(instruction.operands,
                     [&](const Operand& operand) { look_at_operand(facts, instruction, operand); });
  }

  void look_at_operand(FunctionFacts& facts, const Instruction& instruction,
                       const Operand& operand) {
    const std::uint32_t line = std::max(instruction.line, 1u);
    if (operand.kind == Operand::Kind::kSpecial) {
      const std::string_view name = operand.text;
      if (is_block_index(operand)) {
        // Its copies hold 32 bits.
        const bool narrow = instruction.opcode == "mov" && ptx::type_bytes(instruction.type()) == 2;
        facts.own.add(narrow ? Trait::kOddBlockIndex : Trait::kBlockIndex, line);
      } else if (begins_with_one_of(name, {"%ctaid", "%nctaid"})) {
        facts.own.add(Trait::kOddBlockIndex, line);
      } else if (begins_with_one_of(name, {"%cluster", "%ncluster", "%is_explicit"})) {
        facts.own.add(Trait::kCluster, line);
      } else if (name.starts_with("%envreg")) {
        facts.own.add(Trait::kCooperative, line);
      } else if (is_one_of(name, {"%total_smem_size", "%aggr_smem_size"})) {
        facts.own.add(Trait::kSharedSize, line);
      }
    } else if (operand.reference == Reference::kGlobal) {
      if (module_.variables[operand.index].space != ptx::Space::kShared) return;
      facts.own.add(Trait::kShared, line);
      shared_.add(facts.shared_variables, operand.index);
    } else if (operand.reference == Reference::kFunction && instruction.opcode != "call") {
      taken_functions_.add(taken_, operand.index);
    }
  }

  void look_at_call(FunctionFacts& facts, const Instruction& call) {
    const std::uint32_t line = std::max(call.line, 1u);
    const auto target = std::ranges::find_if(call.operands, [](const Operand& operand) {
      return operand.kind == Operand::Kind::kSymbol;
    });
    if (target == call.operands.end()) return;
    const bool is_name =
        target->reference == Reference::kFunction || target->reference == Reference::kNone;
    if (!is_name) {
      facts.own.add(Trait::kIndirectCall, line);
      return;
    }
    if (target->reference == Reference::kFunction) callees_.add(facts.callees, target->index);
    if (target->text.starts_with("cuda") || target->text.starts_with("__cudaCDP")) {
      facts.own.add(Trait::kDeviceRuntime, line);
    }
  }

  void find_taken_addresses() {
    std::map<std::string_view, std::uint32_t> with_bodies;
    for (std::uint32_t i = 0; i < module_.functions.size(); ++i) {
      const ptx::Function& function = module_.functions[i];
      if (function.has_body && !function.is_prototype) with_bodies.try_emplace(function.name, i);
    }
    std::map<std::string_view, std::string_view> aliases;
    for (const ptx::Alias& alias : module_.aliases) aliases.try_emplace(alias.name, alias.target);
    for (const ptx::Variable& variable : module_.variables) {
      for (const ptx::Variable::Fixup& fixup : variable.fixups) {
        const auto alias = aliases.find(fixup.symbol);
        const auto function =
            with_bodies.find(alias == aliases.end() ? fixup.symbol : alias->second);
        if (function != with_bodies.end()) taken_functions_.add(taken_, function->second);
      }
    }
  }

  void add_taken(FunctionFacts& facts) {
    callees_.begin_list();
    std::vector<std::uint32_t> callees;
    if (!effort_.take(facts.callees.size() + taken_.size())) return;
    for (const std::uint32_t callee : facts.callees) callees_.add(callees, callee);
    for (const std::uint32_t taken : taken_) callees_.add(callees, taken);
    facts.callees = std::move(callees);
  }

  /// To functions that may call one another, from these and from those that they call, whose facts
  /// are complete.
  void spread(const std::vector<std::uint32_t>& circle) {
    Facts together;
    std::vector<std::uint32_t> shared;
    shared_.begin_list();
    const auto add = [&](const FunctionFacts& facts) {
      together.add(facts.with_callees);
      effort_.take(1 + facts.shared_variables.size());
      for (const std::uint32_t variable : facts.shared_variables) shared_.add(shared, variable);
    };
    for (const std::uint32_t function : circle) add(all_[function]);
    for (const std::uint32_t function : circle) {
      for (const std::uint32_t callee : all_[function].callees) {
        if (effort_.is_spent()) return;
        add(all_[callee]);
      }
    }
    for (const std::uint32_t function : circle) {
      if (!effort_.take(shared.size())) return;
      all_[function].with_callees.add(together);
      all_[function].shared_variables = shared;
    }
  }

  const ptx::Module& module_;
  Effort& effort_;
  std::vector<FunctionFacts> all_;
  DistinctNumbers callees_;
  DistinctNumbers shared_;
  DistinctNumbers taken_functions_;
  std::vector<std::uint32_t> taken_;
};

}  // namespace

void Facts::add(Trait trait, std::uint32_t line) {
  std::uint32_t& present = lines_[static_cast<std::size_t>(trait)];
  if (present == 0) present = line;
}

void Facts::add(const Facts& other) {
  for (std::size_t i = 0; i < lines_.size(); ++i) {
    if (lines_[i] == 0) lines_[i] = other.lines_[i];
  }
}

bool is_block_barrier(const Instruction& instruction) {
  if (instruction.opcode != "bar" && instruction.opcode != "barrier") return false;
  return !instruction.has("warp") && !instruction.has("cluster");
}

BarrierKind barrier_kind(const Instruction& instruction) {
  BarrierKind kind;
  kind.reduces = instruction.has("red");
  // bar.red: result, barrier [, count], predicate.
  const std::size_t first = kind.reduces ? 1 : 0;
  const std::size_t after = kind.reduces ? 1 : 0;
  const auto& operands = instruction.operands;
  if (operands.size() <= first) return kind;
  kind.named_by_number = operands[first].kind == Operand::Kind::kInteger;
  kind.zero = kind.named_by_number && operands[first].integer == 0;
  kind.whole_block = operands.size() == first + 1 + after;
  return kind;
}

bool may_race(const Instruction& instruction) {
  return instruction.opcode == "ld" &&
         std::ranges::any_of(instruction.modifiers, [](std::string_view word) {
           return is_one_of(word, {"volatile", "acquire", "relaxed", "mmio", "cv"});
         });
}

bool is_warp_wide(const Instruction& instruction) {
  if (is_one_of(instruction.opcode, {"shfl", "vote", "match", "redux", "elect", "wmma", "mma",
                                     "wgmma", "ldmatrix", "stmatrix", "movmatrix"})) {
    return true;
  }
  return is_one_of(instruction.opcode, {"bar", "barrier"}) && instruction.has("warp");
}

bool is_block_index(const Operand& operand) {
  if (operand.kind != Operand::Kind::kSpecial) return false;
  return is_one_of(operand.text,
                   {"%ctaid.x", "%ctaid.y", "%ctaid.z", "%nctaid.x", "%nctaid.y", "%nctaid.z"});
}

std::vector<FunctionFacts> collect_facts(const ptx::Module& module, Effort& effort) {
  return Collector(module, effort).collect();
}

}  // namespace slate::injector
