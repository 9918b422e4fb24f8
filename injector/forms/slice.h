// The slice form: the kernel's own body over a part of its grid. Each hardware block is one block
// of the user's grid, counted from LaunchParameters::first; nothing else changes, so that any
// kernel which does not depend on its grid being launched whole can take it. Examples:
// tests/golden/slice/.
#pragma once

#include <string>
#include <vector>

#include "injector/analysis/analysis.h"
#include "injector/ptx/module.h"

namespace slate::injector {

/// The text of the entry `name`. Requires: entry.slice.legal(). `copied`: functions_to_copy().
Result<std::string> slice_form(const ptx::Module& module, const EntryAnalysis& entry,
                               const std::vector<bool>& copied, std::string_view name);

}  // namespace slate::injector
