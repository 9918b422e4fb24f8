#include "injector/fence/whole_warps.h"

#include <algorithm>

#include "injector/analysis/control_flow.h"
#include "injector/forms/ptx_template.h"

namespace slate::injector {

std::vector<WarpLook> find_warp_looks(const ptx::Function& function, const Plan& plan,
                                      Meetings& meetings) {
  std::vector<WarpLook> looks;
  if (std::ranges::none_of(plan.effects, &InstructionEffect::reads_warp)) return looks;
  for (const ControlFlow::Block& block : meetings.flow().blocks()) {
    bool is_known = false;  // whether the warp has all its lanes
    for (std::uint32_t i = block.first; i < block.end; ++i) {
      is_known = is_known && !meetings.may_end(i);
      if (!plan.effects[i].reads_warp || is_known) continue;
      const bool is_by_block = meetings.is_complete(i);
      if (!is_by_block || !plan.has_whole_warps)
        looks.push_back({.at = i, .is_by_block = is_by_block});
      is_known = !function.instructions[i].guard;
    }
  }
  std::ranges::sort(looks, {}, &WarpLook::at);
  return looks;
}

std::string whole_warps_register() {
  return expand("\t.reg .pred ~fwhole;\n");
}

std::string find_whole_warps() {
  return expand(
      "\tmov.u32 ~fb, %ntid.x;\n\tmov.u32 ~fc, %ntid.y;\n\tmul.lo.u32 ~fb, ~fb, ~fc;\n"
      "\tmov.u32 ~fc, %ntid.z;\n\tmul.lo.u32 ~fb, ~fb, ~fc;\n\tand.b32 ~fb, ~fb, 31;\n"
      "\tsetp.eq.u32 ~fwhole, ~fb, 0;\n");
}

}  // namespace slate::injector
