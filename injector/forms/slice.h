// The slice form: the kernel's own body over a part of its grid. Each hardware block is one block
// of the program's grid, counted from LaunchParameters::first. Nothing else changes, so any kernel
// that does not depend on its grid being launched whole can take it. Compare the micro-kernels of
// GPUScheduler (Garg, Kothapalli, Purini; HiPC 2017). Examples: tests/golden/slice/. A pure
// function. Thread: any.
#pragma once

#include <string>
#include <vector>

#include "injector/analysis/analysis.h"
#include "injector/ptx/module.h"

namespace slate::injector {

/// Returns the text of the entry `name`. Requires: entry.slice.legal(). `copied`:
/// functions_to_copy(). Errors: kInternal.
Result<std::string> slice_form(const ptx::Module& module, const EntryAnalysis& entry,
                               const std::vector<bool>& copied, std::string_view name);

}  // namespace slate::injector
