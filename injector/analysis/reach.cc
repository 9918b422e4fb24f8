#include "injector/analysis/reach.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <initializer_list>
#include <utility>

#include "injector/analysis/address_flow.h"
#include "injector/analysis/memory_accesses.h"
#include "injector/analysis/register_accesses.h"

namespace slate::injector {
namespace {

using ptx::Instruction;
using ptx::Operand;
using Kind = ReachedMemory::Kind;

struct EffectWords {
  std::string_view name;
  std::string_view sentence;
};
constexpr std::array<EffectWords, static_cast<std::size_t>(Effect::kCount)> kEffects = {{
    {"prints", "prints"},
    {"allocates", "allocates or frees memory"},
    {"launches", "launches kernels"},
    {"calls_unknown", "calls code that is not in the module"},
    {"calls_pointer", "calls through a pointer"},
    {"starts_dependents", "lets the launch behind it start before it ends"},
    {"unknown_instruction", "has an instruction whose effect is not known"},
    {"undefined", "may read a register that nothing has written"},
    {"chance", "chance may decide what is written where"},
    {"reads_time", "reads the time"},
    {"reads_place", "reads where on the device it runs"},
    {"waits_for_grid", "has what grid-wide barriers need"},
}};

bool begins_with_one_of(std::string_view word, std::initializer_list<std::string_view> starts) {
  return std::ranges::any_of(starts, [&](auto start) { return word.starts_with(start); });
}

/// What a function outside of the module does, by its name.
std::optional<Effect> effect_of_call(std::string_view name) {
  // The launch fails, so that nobody runs it again.
  if (name == "__assertfail") return std::nullopt;
  if (name == "vprintf") return Effect::kPrints;
  if (name == "malloc" || name == "free") return Effect::kAllocates;
  if (begins_with_one_of(name, {"cuda", "__cudaCDP"})) return Effect::kLaunches;
  return Effect::kCallsUnknown;
}

bool same_memory(const ReachedMemory& a, const ReachedMemory& b) {
  return a.kind == b.kind && a.variable == b.variable && a.words == b.words &&
         a.is_constant == b.is_constant;
}

class Finder {
 public:
  Finder(const ptx::Module& module, std::uint32_t kernel, const std::vector<FunctionFacts>& facts,
         Effort& effort)
      : module_(module), effort_(effort), flow_(module, kernel, facts, effort) {}

  Reach find() {
    for (const auto& function : flow_.functions()) {
      for (const Instruction& instruction : function->function().instructions) {
        if (!effort_.take(1 + reach_.memory.size())) return {};
        line_ = std::max(instruction.line, 1u);
        look_at(*function, instruction);
      }
    }
    if (effort_.is_spent()) return {};
    std::ranges::sort(reach_.pointers);
    const auto rest = std::ranges::unique(reach_.pointers);
    reach_.pointers.erase(rest.begin(), rest.end());
    reach_.complete = true;
    return std::move(reach_);
  }

 private:
  void look_at(const FunctionFlow& flow, const Instruction& instruction) {
    if (!is_understood(instruction)) reach_.add(Effect::kUnknownInstruction, line_);
    if (instruction.opcode == "griddepcontrol" && instruction.has("launch_dependents")) {
      reach_.add(Effect::kStartsDependents, line_);
    }
    for_each_operand(instruction.operands, [&](const Operand& operand) {
      if (operand.kind == Operand::Kind::kSpecial) look_at_special(operand.text);
    });
    if (instruction.opcode == "call") look_at_call(instruction);
    if (instruction.opcode == "cvta" && instruction.operands.size() == 2) {
      note_pointers(flow.value_of(instruction.operands[1]).origin);
    }
    look_for_chance(flow, instruction);
    for (const MemoryAccess& access : memory_accesses(instruction)) add(flow, access);
  }

  void look_at_special(std::string_view name) {
    if (begins_with_one_of(name, {"%clock", "%globaltimer"})) {
      reach_.add(Effect::kReadsTime, line_);
    } else if (begins_with_one_of(name, {"%smid", "%nsmid", "%warpid", "%nwarpid", "%gridid"})) {
      reach_.add(Effect::kReadsPlace, line_);
    } else if (name.starts_with("%envreg")) {
      reach_.add(Effect::kWaitsForGrid, line_);
    }
  }

  void look_at_call(const Instruction& call) {
    const CallParts parts = parts_of_call(call);
    if (parts.target == nullptr) return;
    const bool is_name = parts.target->reference == ptx::Reference::kFunction ||
                         parts.target->reference == ptx::Reference::kNone;
    if (!is_name) {
      reach_.add(Effect::kCallsPointer, line_);
      return;
    }
    const bool is_here = parts.target->reference == ptx::Reference::kFunction &&
                         module_.functions[parts.target->index].has_body;
    if (is_here) return;
    if (const auto effect = effect_of_call(parts.target->text)) reach_.add(*effect, line_);
  }

  /// What is written at a place that differs from run to run, or only in some runs, stays from a
  /// run that was broken off.
  void look_for_chance(const FunctionFlow& flow, const Instruction& instruction) {
    bool by_chance = flow.guarded_by_chance(instruction) && !passes_on(instruction) &&
                     instruction.opcode != "ld";
    if (instruction.opcode == "brx" && !instruction.operands.empty()) {
      by_chance |= flow.value_of(instruction.operands[0]).by_chance;
    }
    for (const MemoryAccess& access : memory_accesses(instruction)) {
      by_chance |=
          access.writes && access.place != nullptr && flow.value_of(*access.place).by_chance;
    }
    if (by_chance) reach_.add(Effect::kChance, line_);
  }

  void add(const FunctionFlow& flow, const MemoryAccess& access) {
    const auto note_all = [&](const std::vector<ReachedMemory>& all) {
      for (const ReachedMemory& one : all) note(one, access);
    };
    if (access.place == nullptr) return note(ReachedMemory{}, access);
    if (access.by == MemoryAccess::By::kTexture) {
      return note_all(images_at(flow, *access.place));
    }
    if (access.by == MemoryAccess::By::kTensorMap) return note(ReachedMemory{}, access);
    note_all(memory_at(flow.value_of(*access.place).origin, access));
  }

  ParameterWord word_of(const Root& root) const {
    const std::uint32_t parameter = flow_.layout().parameter_at(root.number);
    const auto start = static_cast<std::uint32_t>(flow_.layout().offset(parameter));
    return {.offset = root.number,
            .extent = root.extent,
            .parameter = parameter,
            .within = root.number - start};
  }

  void note_pointers(OriginTable::Id origin) {
    for (const RootSum& sum : flow_.origins().alternatives(origin)) {
      if (sum.size() == 1) note_pointer(sum.front());
    }
  }

  void note_pointer(const Root& root) {
    if (root.kind != RootKind::kParameter || root.part != RootPart::kWhole) return;
    const std::uint32_t end = root.number + std::max(root.extent, 8u);
    for (std::uint32_t at = root.number; at + 8 <= end; at += 8) reach_.pointers.push_back(at);
  }

  /// What an address leads to. Nothing if only to memory that ends with the block.
  std::vector<ReachedMemory> memory_at(OriginTable::Id origin, const MemoryAccess& access) {
    std::vector<ReachedMemory> all;
    bool leads_somewhere = false;
    for (const RootSum& sum : flow_.origins().alternatives(origin)) {
      if (sum.size() == 1 && sum.front().kind == RootKind::kNull) continue;
      leads_somewhere = true;
      ReachedMemory one = memory_by(sum);
      if (access.writes && leads_to_parameters(sum)) one = {};
      const bool ends = one.kind == Kind::kOwn && one.words.empty();
      if (!ends) all.push_back(std::move(one));
    }
    if (!leads_somewhere) all.emplace_back();
    return all;
  }

  static bool leads_to_parameters(const RootSum& sum) {
    return sum.size() == 1 && sum.front().kind == RootKind::kParameterSpace;
  }

  ReachedMemory memory_by(const RootSum& sum) {
    if (sum.empty()) return {};  // a number
    ReachedMemory found;
    found.kind = Kind::kParameters;
    std::size_t others = 0;
    for (const Root& root : sum) {
      if (root.part != RootPart::kWhole) return {};
      if (root.kind == RootKind::kParameter) {
        found.words.push_back(word_of(root));
        continue;
      }
      if (root.kind == RootKind::kUnknown || ++others > 1) return {};
      found.kind = root.kind == RootKind::kVariable ? Kind::kVariable : Kind::kOwn;
      if (root.kind != RootKind::kVariable) continue;
      const ptx::Variable& variable = module_.variables[root.number];
      found.variable = variable.name;
      found.is_constant = variable.space == ptx::Space::kConst;
    }
    if (sum.size() == 1) note_pointer(sum.front());
    return found;
  }

  std::vector<ReachedMemory> images_at(const FunctionFlow& flow, const Operand& place) const {
    std::vector<ReachedMemory> all;
    const OriginTable::Id handle =
        place.parts.empty() ? OriginTable::kUnknown : flow.value_of(place.parts.front()).origin;
    for (const RootSum& sum : flow_.origins().alternatives(handle)) {
      ReachedMemory one;
      if (sum.size() == 1 && sum.front().part == RootPart::kWhole &&
          sum.front().kind == RootKind::kParameter) {
        one.kind = Kind::kTexture;
        one.words.push_back(word_of(sum.front()));
      }
      all.push_back(std::move(one));
    }
    if (all.empty()) all.emplace_back();
    return all;
  }

  void note(ReachedMemory memory, const MemoryAccess& access) {
    memory.is_constant |= access.is_constant && !access.writes;
    auto found = std::ranges::find_if(
        reach_.memory, [&](const ReachedMemory& known) { return same_memory(known, memory); });
    if (found == reach_.memory.end()) {
      found = reach_.memory.insert(found, std::move(memory));
    }
    const auto mark = [&](bool holds, std::uint32_t& line) {
      if (holds && line == 0) line = line_;
    };
    mark(access.reads, found->read);
    mark(access.writes, found->written);
    mark(access.atomic, found->atomic);
    mark(access.ordered, found->ordered);
    mark(!access.reads && !access.writes, found->hinted);
  }

  const ptx::Module& module_;
  Effort& effort_;
  AddressFlow flow_;
  Reach reach_;
  std::uint32_t line_ = 0;  // of the instruction that is looked at
};

}  // namespace

std::string_view sentence_of(Effect effect) {
  return kEffects[static_cast<std::size_t>(effect)].sentence;
}

std::string_view name_of(Effect effect) {
  return kEffects[static_cast<std::size_t>(effect)].name;
}

std::string ReachedMemory::description() const {
  const auto word = [](const ParameterWord& w) {
    if (w.extent != 0) return fmt::format("a pointer somewhere in parameter {}", w.parameter);
    return w.within == 0 ? fmt::format("parameter {}", w.parameter)
                         : fmt::format("parameter {} + {}", w.parameter, w.within);
  };
  switch (kind) {
    case Kind::kVariable:
      return fmt::format("variable {}", variable);
    case Kind::kTexture:
      if (words.empty()) break;
      return fmt::format("the texture or surface of {}", word(words.front()));
    case Kind::kParameters: {
      if (words.empty()) break;
      if (words.size() == 1) return word(words.front());
      return fmt::format("a sum of {} and {}", word(words[0]),
                         words.size() == 2 ? word(words[1]) : "others");
    }
    case Kind::kOwn:
      return "memory of the block by a sum with a parameter";
    default:
      break;
  }
  return "memory by a pointer that is not known";
}

void Reach::add(Effect effect, std::uint32_t line) {
  effects.resize(static_cast<std::size_t>(Effect::kCount));
  std::uint32_t& present = effects[static_cast<std::size_t>(effect)];
  if (present == 0) present = line;
}

bool Reach::is_closed() const {
  return complete && line(Effect::kCallsUnknown) == 0 && line(Effect::kCallsPointer) == 0 &&
         line(Effect::kLaunches) == 0 && line(Effect::kUnknownInstruction) == 0;
}

bool Reach::may_write_constants() const {
  return !is_closed() || std::ranges::any_of(memory, [](const ReachedMemory& one) {
    const bool is_written = one.written != 0 || one.atomic != 0;
    return is_written &&
           (one.kind == Kind::kUnknown || (one.kind == Kind::kVariable && one.is_constant));
  });
}

bool Reach::from_arguments() const {
  return is_closed() && std::ranges::none_of(memory, [](const ReachedMemory& one) {
           return one.kind == Kind::kUnknown && !one.is_constant;
         });
}

Reach find_reach(const ptx::Module& module, std::uint32_t kernel,
                 const std::vector<FunctionFacts>& facts, Effort& effort) {
  return Finder(module, kernel, facts, effort).find();
}

}  // namespace slate::injector
