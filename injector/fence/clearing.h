// Clearing: zeros in place of what an earlier kernel, perhaps of another user, has left in
// registers, shared and local memory. A GPU clears none of these between kernels of one context.
// Whatever a function may read before it has written it is written first. Text only; pure
// functions. Thread: any.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "injector/fence/plan.h"
#include "injector/fence/shared_clearing.h"
#include "injector/ptx/module.h"
#include "injector/ptx/printer.h"

namespace slate::injector {

struct Clearing {
  std::string why_not;  // why the function cannot be cleared for; empty: it can
  /// For entry_of(): registers, local variables, and parameters that it returns.
  std::string beginning;
  /// The same of what is declared behind a form's own beginning, and parameters of calls that may
  /// be written in part only.
  std::vector<ptx::Edit> edits;

  bool empty() const { return beginning.empty() && edits.empty(); }
};

/// What a function with a body needs. Registers of the text: those of kCheckRegisters.
Clearing clearing_for(const ptx::Function& function, const Plan& plan);

/// The place in the text where a function begins: no jump leads in front of it. Requires: it has
/// instructions.
std::uint32_t entry_of(const ptx::Function& function);

/// Whether the function may read shared memory.
bool may_read_shared(const Plan& plan);
/// Clears the block's shared memory, with all threads of the block, which wait for one another.
/// Requires: nothing of the block's is in it yet, and total_shared_text() stands in front.
/// `reserved`: as FenceOptions::reserved_shared. `may_be_none`: whether the block may have none.
std::string clear_shared_text(std::uint32_t reserved, bool may_be_none);
/// Clears what has to be cleared of it. Requires: as above, and that the block is the clearing's.
std::string clear_shared_text(const SharedClearing& clearing, std::uint32_t reserved);

}  // namespace slate::injector
