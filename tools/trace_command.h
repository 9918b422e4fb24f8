// slatectl trace: writes what the scheduler did as a file for Perfetto (docs/trace.md).
#pragma once

#include <string>

namespace slate::tools {

/// Writes the trace of the last `seconds` (0: all that is kept) to `file`, whole or not at all; "-"
/// is the standard output. Exit status: 0, or 1 with a sentence on stderr.
int trace_command(const std::string& runtime_dir, const std::string& file, double seconds);

}  // namespace slate::tools
