// Shuffles: a lane that reads a register of another one finds there what an earlier kernel has
// left, if that lane has ended or is not there. Behind the fence it gets 0 then. Pure functions on
// values. Thread: any.
#pragma once

#include <string>
#include <vector>

#include "injector/fence/barriers.h"
#include "injector/fence/plan.h"
#include "injector/ptx/module.h"
#include "injector/ptx/printer.h"

namespace slate::injector {

struct ShuffleEdits {
  std::string registers;           // declarations for the beginning of the body
  bool needs_whole_warps = false;  // whether find_whole_warps() has to stand in front
  std::vector<ptx::Edit> edits;
};

/// What is to change in a function. Where all lanes of whole warps come to a shuffle, it costs a
/// branch, or nothing if the launch shows that they are whole. `plan`, `meetings`: of the function.
ShuffleEdits make_shuffles_safe(const ptx::Module& module, const ptx::Function& function,
                                const Plan& plan, Meetings& meetings);

}  // namespace slate::injector
