// FunctionFlow: for every register of one function, what it may hold: from which pointers the value
// is computed, and whether chance has a part in it. Flow insensitive: a register has one answer for
// all of its writes, which is close to exact for code of compilers. It errs only towards more
// pointers. AddressFlow joins the functions of a kernel. Thread: one at a time.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "injector/analysis/flow_value.h"
#include "injector/analysis/parameter_layout.h"
#include "injector/analysis/registers.h"
#include "injector/analysis/roots.h"
#include "injector/ptx/module.h"

namespace slate::injector {

/// What the functions of one kernel share.
struct KernelMemory {
  MemoryCell local;
  MemoryCell shared;
  bool changed = false;  // set by every store that is news
};

/// Whether a number in the text may be an address that its author has written there.
bool may_be_address(const ptx::Operand& operand);

class FunctionFlow {
 public:
  /// Everything must outlive it. `layout`: of the kernel's parameters; null for other functions.
  FunctionFlow(const ptx::Module& module, const ptx::Function& function,
               const ParameterLayout* layout, OriginTable& origins, KernelMemory& memory);

  const ptx::Function& function() const { return function_; }
  ParameterSlots& slots() { return slots_; }
  const ParameterSlots& slots() const { return slots_; }

  /// Goes through the text once. Returns whether that was news: then it must be called again.
  bool sweep();
  /// What an operand holds; of one in brackets, the address.
  FlowValue value_of(const ptx::Operand& operand) const;
  /// Adds to what a register may hold. Returns whether that is news; false for other operands.
  bool assign(const ptx::Operand& result, const FlowValue& value);
  /// Whether a value by chance decides if the instruction is carried out.
  bool guarded_by_chance(const ptx::Instruction& instruction) const;

 private:
  bool visit(const ptx::Instruction& instruction);
  bool assign_other(const ptx::Operand& result, const FlowValue& value);
  bool assign_results(const ptx::Instruction& instruction, const FlowValue& value);
  FlowValue symbol_value(const ptx::Operand& operand) const;
  /// Whether chance is in what the instruction reads.
  bool reads_chance(const ptx::Instruction& instruction) const;

  bool visit_move(const ptx::Instruction& move, bool by_chance);
  bool visit_load(const ptx::Instruction& load, bool by_chance);
  bool visit_store(const ptx::Instruction& store, bool by_chance);
  void visit_atomic(const ptx::Instruction& atomic, bool by_chance);
  FlowValue loaded(const ptx::Instruction& load, const ptx::Operand& place, std::int64_t offset,
                   std::uint32_t bytes);
  FlowValue loaded_at(OriginTable::Id address, std::uint32_t bytes);
  FlowValue parameter_at(const Root& root, std::uint32_t bytes);
  void store_at(const ptx::Instruction& instruction, const ptx::Operand& place,
                const FlowValue& value, std::uint32_t bytes);

  const ptx::Module& module_;
  const ptx::Function& function_;
  const ParameterLayout* layout_;
  OriginTable& origins_;
  KernelMemory& memory_;
  Registers registers_;
  std::vector<FlowValue> values_;  // by register
  ParameterSlots slots_;
};

}  // namespace slate::injector
