// Facts: what one function does that matters to the forms, with the line where it was first seen,
// and the same for all functions that it may call. It walks over instructions and judges nothing
// (analysis.h does). Pure functions. Thread: any.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "injector/analysis/effort.h"
#include "injector/ptx/module.h"

namespace slate::injector {

/// Something that a function does.
enum class Trait : std::uint8_t {
  kBlockIndex,     // reads %ctaid or %nctaid
  kOddBlockIndex,  // reads %ctaid without naming a component
  kBarrier,        // a barrier of the block, of any kind
  kShared,         // has or names shared variables
  kExit,           // `exit`, which ends the thread from within a call too
  kCall,
  kIndirectCall,
  kDeviceRuntime,  // launches kernels or calls the device-side runtime
  kCooperative,    // reads %envreg: grid-wide synchronisation
  kCluster,        // thread block clusters
  kArrive,         // bar.arrive
  kAsyncBarrier,   // mbarrier objects or bulk copies, whose state outlives the code that made it
  kAsyncCopy,      // cp.async
  kRegisterMove,   // setmaxnreg
  kAlloca,
  kOwnGlobal,     // declares a global variable in its body, of which a copy has another one
  kSharedSize,    // reads %total_smem_size or %aggr_smem_size
  kCommunicates,  // may wait for, or learn from, another block
  kWarpWide,      // instructions that name other lanes
  kStrayBranch,   // branches to a name that is no label of its function
  /// May learn what a thread of its own block did, other than by barriers of all threads.
  kHandsOver,
  kCount,
};

class Facts {
 public:
  /// Line of the first instruction with the trait; 0 if there is none.
  std::uint32_t line(Trait trait) const { return lines_[static_cast<std::size_t>(trait)]; }
  bool has(Trait trait) const { return line(trait) != 0; }
  /// Adds the trait; the first line stays.
  void add(Trait trait, std::uint32_t line);
  void add(const Facts& other);

 private:
  std::array<std::uint32_t, static_cast<std::size_t>(Trait::kCount)> lines_{};
};

struct FunctionFacts {
  Facts own;
  Facts with_callees;
  std::vector<std::uint32_t> callees;           // indices into Module::functions, distinct
  std::vector<std::uint32_t> shared_variables;  // indices into Module::variables, distinct
  std::uint64_t shared_bytes = 0;               // bytes of its own variables
};

/// The facts of every function, by index into Module::functions. A function whose address is taken
/// counts as called by every indirect call. Incomplete where `effort` is spent.
std::vector<FunctionFacts> collect_facts(const ptx::Module& module, Effort& effort);

/// Whether it is a barrier of the block, not of a warp or a cluster.
bool is_block_barrier(const ptx::Instruction& instruction);

/// The threads that a barrier of the block waits for.
struct BarrierKind {
  bool whole_block = false;  // whether it has no thread count
  bool zero = false;         // whether it names barrier 0
  bool named_by_number = false;
  bool reduces = false;
};
/// Requires: is_block_barrier(instruction).
BarrierKind barrier_kind(const ptx::Instruction& instruction);

/// Whether it is a load that may find what another thread writes meanwhile.
bool may_race(const ptx::Instruction& instruction);
/// Whether it waits for, or reads from, other lanes of the warp.
bool is_warp_wide(const ptx::Instruction& instruction);
/// Whether it is %ctaid or %nctaid with a component.
bool is_block_index(const ptx::Operand& operand);

/// Calls `use` with every operand, and with every part of operands with parts.
void for_each_operand(const std::vector<ptx::Operand>& operands, auto&& use) {
  for (const ptx::Operand& operand : operands) {
    use(operand);
    for_each_operand(operand.parts, use);
  }
}

}  // namespace slate::injector
