#include "injector/analysis/address_flow.h"

#include <algorithm>

namespace slate::injector {
namespace {

using ptx::Instruction;
using ptx::Operand;
using ptx::Reference;

constexpr std::uint32_t kNowhere = ~std::uint32_t{0};
constexpr std::uint64_t kStepsPerVisit = 8;  // of an instruction: operands, sets, memory

/// Whether it stands for a variable of parameter space, which holds what is passed.
bool is_passed_variable(const ptx::Function& caller, const Operand& operand) {
  return operand.kind == Operand::Kind::kSymbol && operand.reference == Reference::kLocal &&
         caller.variables[operand.index].space == ptx::Space::kParam;
}

}  // namespace

CallParts parts_of_call(const Instruction& call) {
  CallParts parts;
  for (const Operand& operand : call.operands) {
    if (operand.kind == Operand::Kind::kList) {
      (parts.target == nullptr ? parts.results : parts.arguments) = &operand;
    } else if (operand.kind == Operand::Kind::kSymbol && parts.target == nullptr) {
      parts.target = &operand;
    }
  }
  return parts;
}

AddressFlow::AddressFlow(const ptx::Module& module, std::uint32_t kernel,
                         const std::vector<FunctionFacts>& facts, Effort& effort)
    : module_(module),
      effort_(effort),
      layout_(module.functions[kernel]),
      origins_(effort),
      flow_of_(module.functions.size(), kNowhere) {
  find_functions(kernel, facts);
  // What is passed through a pointer is not followed.
  if (facts[kernel].with_callees.has(Trait::kIndirectCall)) {
    for (std::uint32_t flow = 1; flow < flows_.size(); ++flow) {
      const auto count = static_cast<std::uint32_t>(flows_[flow]->function().parameters.size());
      for (std::uint32_t i = 0; i < count; ++i) {
        flows_[flow]->slots().lose({Reference::kParameter, i});
      }
    }
  }
  solve();
}

void AddressFlow::find_functions(std::uint32_t kernel, const std::vector<FunctionFacts>& facts) {
  effort_.take(flow_of_.size());
  std::vector<std::uint32_t> found{kernel};
  flow_of_[kernel] = 0;
  for (std::size_t i = 0; i < found.size(); ++i) {
    const ptx::Function& function = module_.functions[found[i]];
    flows_.push_back(std::make_unique<FunctionFlow>(module_, function, i == 0 ? &layout_ : nullptr,
                                                    origins_, memory_));
    auto& calls = calls_.emplace_back();
    for (const Instruction& instruction : function.instructions) {
      if (instruction.opcode == "call") calls.push_back(&instruction);
    }
    if (!effort_.take(1 + function.instructions.size() + facts[found[i]].callees.size())) break;
    for (const std::uint32_t callee : facts[found[i]].callees) {
      if (flow_of_[callee] != kNowhere || !module_.functions[callee].has_body) continue;
      flow_of_[callee] = static_cast<std::uint32_t>(found.size());
      found.push_back(callee);
    }
  }
  callers_.resize(found.size());
  is_waiting_.assign(found.size(), false);
  for (std::uint32_t i = 0; i < flows_.size(); ++i) {
    for (const std::uint32_t callee : facts[found[i]].callees) {
      if (flow_of_[callee] != kNowhere) callers_[flow_of_[callee]].push_back(i);
    }
  }
}

void AddressFlow::enqueue(std::uint32_t flow) {
  if (is_waiting_[flow]) return;
  is_waiting_[flow] = true;
  waiting_.push_back(flow);
}

/// Callers first. Each comes again when what it is given, or what memory holds, is news.
void AddressFlow::solve() {
  for (auto flow = static_cast<std::uint32_t>(flows_.size()); flow-- > 0;) enqueue(flow);
  while (!waiting_.empty() && !effort_.is_spent()) {
    const std::uint32_t flow = waiting_.back();
    waiting_.pop_back();
    is_waiting_[flow] = false;
    memory_.changed = false;
    bool any = false;
    for (bool is_news = true; is_news;) {
      const std::size_t visits = 1 + flows_[flow]->function().instructions.size();
      if (!effort_.take(kStepsPerVisit * visits)) return;
      is_news = flows_[flow]->sweep();
      is_news |= connect(flow);
      any |= is_news;
    }
    if (any) {
      for (const std::uint32_t caller : callers_[flow]) enqueue(caller);
    }
    if (memory_.changed) {
      for (std::uint32_t other = 0; other < flows_.size(); ++other) enqueue(other);
    }
  }
}

bool AddressFlow::connect(std::uint32_t caller) {
  bool is_news = false;
  for (const Instruction* call : calls_[caller]) is_news |= connect(caller, *call);
  return is_news;
}

bool AddressFlow::connect(std::uint32_t caller, const Instruction& call) {
  const CallParts parts = parts_of_call(call);
  if (parts.target == nullptr) return false;
  const bool is_known = parts.target->reference == Reference::kFunction &&
                        flow_of_[parts.target->index] != kNowhere &&
                        flow_of_[parts.target->index] < flows_.size();
  const FunctionFlow* callee = nullptr;
  bool is_news = false;
  if (is_known) {
    const std::uint32_t flow = flow_of_[parts.target->index];
    if (pass(caller, flow, parts)) enqueue(flow);
    callee = flows_[flow].get();
  }
  if (parts.results != nullptr) is_news |= take_results(caller, callee, *parts.results);
  return is_news;
}

bool AddressFlow::pass(std::uint32_t caller, std::uint32_t callee, const CallParts& call) {
  if (call.arguments == nullptr) return false;
  FunctionFlow& from = *flows_[caller];
  ParameterSlots& to = flows_[callee]->slots();
  bool is_news = false;
  for (std::uint32_t i = 0; i < call.arguments->parts.size(); ++i) {
    const Operand& argument = call.arguments->parts[i];
    const ParameterSlots::Owner owner{Reference::kParameter, i};
    if (is_passed_variable(from.function(), argument)) {
      is_news |= to.copy(origins_, owner, from.slots(), {Reference::kLocal, argument.index});
    } else {
      is_news |= to.store(origins_, owner, 0, 8, from.value_of(argument));
    }
  }
  effort_.take(1 + call.arguments->parts.size());
  return is_news;
}

/// `callee`: null for code that is not known.
bool AddressFlow::take_results(std::uint32_t caller, const FunctionFlow* callee,
                               const Operand& results) {
  FunctionFlow& to = *flows_[caller];
  bool is_news = false;
  for (std::uint32_t i = 0; i < results.parts.size(); ++i) {
    const Operand& result = results.parts[i];
    if (is_passed_variable(to.function(), result)) {
      const ParameterSlots::Owner owner{Reference::kLocal, result.index};
      is_news |= callee == nullptr
                     ? to.slots().lose(owner)
                     : to.slots().copy(origins_, owner, callee->slots(), {Reference::kReturn, i});
    } else if (callee == nullptr) {
      is_news |= to.assign(result, {OriginTable::kUnknown, true});
    } else if (i < callee->function().returns.size()) {
      Operand returned;
      returned.reference = Reference::kReturn;
      returned.index = i;
      is_news |= to.assign(result, callee->value_of(returned));
    }
  }
  return is_news;
}

}  // namespace slate::injector
