#include "injector/analysis/facts.h"

#include <algorithm>
#include <initializer_list>

namespace slate::injector {
namespace {

using ptx::Instruction;
using ptx::Operand;
using ptx::Reference;

bool is_one_of(std::string_view word, std::initializer_list<std::string_view> words) {
  return std::ranges::find(words, word) != words.end();
}

bool begins_with_one_of(std::string_view word, std::initializer_list<std::string_view> starts) {
  return std::ranges::any_of(starts, [&](auto start) { return word.starts_with(start); });
}

template <typename T>
void add_distinct(std::vector<T>& all, T value) {
  if (std::ranges::find(all, value) == all.end()) all.push_back(value);
}

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
  explicit Collector(const ptx::Module& module) : module_(module), all_(module.functions.size()) {}

  std::vector<FunctionFacts> collect() {
    for (std::uint32_t i = 0; i < all_.size(); ++i) {
      for (const ptx::Variable& variable : module_.functions[i].variables) {
        if (variable.space == ptx::Space::kShared) all_[i].own.add(Trait::kShared, variable.line);
        if (variable.space == ptx::Space::kGlobal && !variable.is_extern) {
          all_[i].own.add(Trait::kOwnGlobal, variable.line);
        }
      }
      for (const Instruction& instruction : module_.functions[i].instructions) {
        look_at(all_[i], instruction);
      }
    }
    find_taken_addresses();
    for (FunctionFacts& facts : all_) {
      facts.with_callees = facts.own;
      if (!facts.own.has(Trait::kIndirectCall)) continue;
      for (const std::uint32_t taken : taken_) add_distinct(facts.callees, taken);
    }
    spread();
    return std::move(all_);
  }

 private:
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
      add_distinct(facts.shared_variables, operand.index);
    } else if (operand.reference == Reference::kFunction && instruction.opcode != "call") {
      add_distinct(taken_, operand.index);
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
    if (target->reference == Reference::kFunction) add_distinct(facts.callees, target->index);
    if (target->text.starts_with("cuda") || target->text.starts_with("__cudaCDP")) {
      facts.own.add(Trait::kDeviceRuntime, line);
    }
  }

  void find_taken_addresses() {
    for (const ptx::Variable& variable : module_.variables) {
      for (const ptx::Variable::Fixup& fixup : variable.fixups) {
        const ptx::Function* function = module_.find_function(fixup.symbol);
        if (function == nullptr || !function->has_body) continue;
        add_distinct(taken_, static_cast<std::uint32_t>(function - module_.functions.data()));
      }
    }
  }

  /// To everybody who may call. Calls may go round in circles, hence until nothing changes.
  void spread() {
    for (bool changed = true; changed;) {
      changed = false;
      for (FunctionFacts& facts : all_) {
        for (const std::uint32_t callee : facts.callees) {
          const Facts before = facts.with_callees;
          facts.with_callees.add(all_[callee].with_callees);
          for (std::size_t t = 0; t < static_cast<std::size_t>(Trait::kCount); ++t) {
            const auto trait = static_cast<Trait>(t);
            changed |= before.has(trait) != facts.with_callees.has(trait);
          }
          const std::size_t known = facts.shared_variables.size();
          for (const std::uint32_t shared : all_[callee].shared_variables) {
            add_distinct(facts.shared_variables, shared);
          }
          changed |= facts.shared_variables.size() != known;
        }
      }
    }
  }

  const ptx::Module& module_;
  std::vector<FunctionFacts> all_;
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

std::vector<FunctionFacts> collect_facts(const ptx::Module& module) {
  return Collector(module).collect();
}

}  // namespace slate::injector
