// slate-inject: reads the PTX of files, adds the forms or reports on them, and writes the result.
// Needs no daemon and no GPU; .cu sources need NVRTC.
#pragma once

#include <iosfwd>

#include "tools/inject_options.h"

namespace slate::tools {

/// Exit status: 0; 1 after sentences on `err`, with all that could be done done; kUsage if only the
/// file's contents show that the options do not fit. What was asked for goes to `out` unless the
/// request names an output.
int run_inject(const InjectRequest& request, std::ostream& out, std::ostream& err);

}  // namespace slate::tools
