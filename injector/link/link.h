// Linking on PTX: one module out of those that were compiled separately (nvcc -rdc=true), as the
// device linker makes one cubin out of their machine code. Text in, text out, so that what comes
// out can still be rewritten, and runs on sim. Definitions meet the declarations that other modules
// have of them, of several weak ones the first stays, and names that are a module's own are renamed
// where two modules have the same. Debug information is dropped. Pure function, any thread.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/result.h"

namespace slate::ptx {

/// kNotSupported when a name stays without definition that no device supplies by itself, or a
/// module has something that cannot be linked so (`.alias`); kInvalidPtx when a module does not
/// parse or two define the same name. Requires: at least one module.
Result<std::string> link(std::span<const std::string_view> modules);

}  // namespace slate::ptx
