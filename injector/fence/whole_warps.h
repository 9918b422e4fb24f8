// Whole warps: instructions that read registers of all lanes of a warp. A lane that has ended or is
// not there still has registers, with what an earlier kernel has left in them. So behind the fence
// such an instruction needs a warp with all its lanes. Pure functions. Thread: any.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "injector/fence/barriers.h"
#include "injector/fence/plan.h"
#include "injector/ptx/module.h"

namespace slate::injector {

/// A look at the warp in front of a matrix instruction.
struct WarpLook {
  std::uint32_t at = 0;  // instruction
  /// Whether only the block's size can leave the warp without some lanes, not where lanes went.
  bool is_by_block = false;
};

/// In text order. `plan`, `meetings`: of the function.
std::vector<WarpLook> find_warp_looks(const ptx::Function& function, const Plan& plan,
                                      Meetings& meetings);

/// Declares ~fwhole, for the beginning of the body.
std::string whole_warps_register();
/// Sets ~fwhole, for entry_of(): whether the block consists of whole warps.
std::string find_whole_warps();

}  // namespace slate::injector
