// Linking on PTX: makes one module of modules that were compiled separately (nvcc -rdc=true), as
// the device linker makes one cubin of their machine code. Text in, text out, so that the result
// can still be rewritten, and runs on sim.
// - Definitions meet the declarations that other modules have of them.
// - Of several weak definitions the first stays.
// - Names of a module's own are renamed where two modules have the same.
// - Debug information is dropped.
// A pure function. Thread: any.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/result.h"

namespace slate::ptx {

/// Returns the linked module. Requires: at least one module. Errors:
/// - kNotSupported: a name stays without a definition and no device supplies it, or a module has
///   something that cannot be linked so (`.alias`);
/// - kInvalidPtx: a module does not parse, or two define the same name.
Result<std::string> link(std::span<const std::string_view> modules);

}  // namespace slate::ptx
