// slate-inject: reads the PTX of files, adds the forms or reports on them, and writes the result.
// Needs no daemon and no GPU; .cu sources need NVRTC.
#pragma once

#include <iosfwd>
#include <string>
#include <string_view>

#include "base/result.h"
#include "tools/inject_options.h"

namespace slate::tools {

/// Exit status: 0; 1 after sentences on `err`, with all that could be done done; kUsage if only the
/// file's contents show that the options do not fit. What was asked for goes to `out` unless the
/// request names an output.
int run_inject(const InjectRequest& request, std::ostream& out, std::ostream& err);

/// Beside and renamed, so that there is never half a file. What is no regular file, such as
/// /dev/stdout, is written to directly.
Result<void> write_whole(const std::string& path, std::string_view text);

}  // namespace slate::tools
