#include "injector/forms/shared_copies.h"

#include <fmt/format.h>

#include <algorithm>

#include "injector/analysis/control_flow.h"
#include "injector/analysis/facts.h"
#include "injector/forms/ptx_template.h"

namespace slate::injector {
namespace {

using ptx::Instruction;
using ptx::Operand;

/// Every thread comes to a barrier in every block, and to no other. Where there are more, warps
/// wait for one another in any case, and the second copy costs more than it saves (on an H200 scan
/// has 0.95 of its native speed with it, 0.99 without).
bool meets_once(const ptx::Function& function) {
  const auto is_barrier = [](const Instruction& i) { return is_block_barrier(i); };
  const auto barrier = std::ranges::find_if(function.instructions, is_barrier);
  if (barrier == function.instructions.end()) return false;
  if (std::any_of(barrier + 1, function.instructions.end(), is_barrier)) return false;
  if (barrier->guard || barrier->has("arrive") || !barrier_kind(*barrier).whole_block) return false;
  const ControlFlow flow(function);
  const std::uint32_t block =
      flow.block_of(static_cast<std::uint32_t>(barrier - function.instructions.begin()));
  if (flow.reachable_from(flow.blocks()[block].successors)[block]) return false;
  std::uint32_t always = 0;
  while (always != block && always != ControlFlow::kNone) always = flow.blocks()[always].meeting;
  return always == block;
}

bool is_shared(const ptx::Function& function, const Operand& operand) {
  return operand.reference == ptx::Reference::kLocal &&
         function.variables[operand.index].space == ptx::Space::kShared;
}

/// How the address of a shared variable may be used: read by `mov`, or in brackets.
bool uses_are_plain(const ptx::Function& function) {
  return std::ranges::all_of(function.instructions, [&](const Instruction& instruction) {
    bool plain = true;
    for (std::size_t i = 0; i < instruction.operands.size(); ++i) {
      const Operand& operand = instruction.operands[i];
      const bool in_brackets = operand.kind == Operand::Kind::kAddress && operand.parts.size() == 1;
      const bool is_moved = operand.kind == Operand::Kind::kSymbol && i == 1 &&
                            instruction.opcode == "mov" && operand.integer == 0;
      if (is_shared(function, operand)) plain &= is_moved;
      for_each_operand(operand.parts, [&](const Operand& part) {
        if (is_shared(function, part)) plain &= in_brackets;
      });
    }
    return plain;
  });
}

/// The kernel names shared memory that is not its own: the module's, or that of the launch.
bool uses_foreign(const ptx::Module& module, const ptx::Function& function) {
  bool foreign = false;
  for (const Instruction& instruction : function.instructions) {
    for_each_operand(instruction.operands, [&](const Operand& operand) {
      foreign |= operand.reference == ptx::Reference::kGlobal &&
                 module.variables[operand.index].space == ptx::Space::kShared;
    });
  }
  return foreign;
}

std::uint64_t aligned(std::uint64_t offset, std::uint64_t alignment) {
  return (offset + alignment - 1) / alignment * alignment;
}

}  // namespace

std::optional<SharedCopies> SharedCopies::plan(const ptx::Module& module,
                                               const EntryAnalysis& entry) {
  const ptx::Function& function = module.functions[entry.function];
  if (!entry.separates_blocks || entry.drains || entry.calls) return std::nullopt;
  if (!meets_once(function) || !uses_are_plain(function)) return std::nullopt;
  if (uses_foreign(module, function)) return std::nullopt;
  SharedCopies copies;
  for (std::uint32_t i = 0; i < function.variables.size(); ++i) {
    const ptx::Variable& variable = function.variables[i];
    if (variable.space != ptx::Space::kShared) continue;
    if (variable.bytes == 0 || variable.is_extern) return std::nullopt;
    const std::uint32_t align = std::max(variable.align, 4u);
    copies.bytes_ = aligned(copies.bytes_, align);
    copies.places_.emplace_back(i, copies.bytes_);
    copies.bytes_ += variable.bytes;
    copies.align_ = std::max(copies.align_, align);
    if (copies.bytes_ > kMostBytes) return std::nullopt;
  }
  copies.bytes_ = aligned(copies.bytes_, copies.align_);
  if (copies.bytes_ == 0) return std::nullopt;
  return copies;
}

std::uint64_t SharedCopies::offset_of(const Operand& operand) const {
  return std::ranges::find(places_, operand.index, &std::pair<std::uint32_t, std::uint64_t>::first)
      ->second;
}

std::string SharedCopies::declaration() const {
  return fmt::format("\t.shared .align {} .b8 __slate_copies[{}];\n", align_, 2 * bytes_);
}

std::string SharedCopies::begin() const {
  return "\tmov.u32 ~copy, __slate_copies;\n";
}

std::string SharedCopies::change() const {
  return fmt::format(
      "\tmov.u32 ~e, __slate_copies;\n\tsub.u32 ~copy, ~e, ~copy;\n\tadd.u32 ~e, ~e, {};\n"
      "\tadd.u32 ~copy, ~copy, ~e;\n",
      bytes_);
}

void SharedCopies::redirect(const ptx::Function& function, FunctionCopy& copy) const {
  for (const auto& [index, offset] : places_) (void)copy.take(function.variables[index]);
  for (const Instruction& instruction : function.instructions) {
    for (const Operand& operand : instruction.operands) {
      if (is_shared(function, operand)) {
        const bool wide = ptx::type_bytes(instruction.type()) == 8;
        copy.insert(instruction.span.begin,
                    expand(fmt::format("add.u32 ~u, ~copy, {};\n\t{}", offset_of(operand),
                                       wide ? "cvt.u64.u32 ~w, ~u;\n\t" : "")));
        copy.replace(operand.span, expand(wide ? "~w" : "~u"));
      }
      for (const Operand& part : operand.parts) {
        if (!is_shared(function, part)) continue;
        const auto sum = static_cast<std::int64_t>(offset_of(part)) + operand.integer;
        copy.replace(operand.span, expand(fmt::format("[~copy+{}]", sum)));
      }
    }
  }
}

}  // namespace slate::injector
