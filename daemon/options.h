// slated's command line: an option for each key of the configuration, laid over the file.
#pragma once

#include <expected>

#include "daemon/config.h"

namespace slate::daemon {

/// Parses `argv`. When the process should end at once (--help, --version, --print-config, a
/// mistake), prints what there is to say and returns the exit status as the error.
std::expected<Config, int> parse_options(int argc, const char* const* argv);

}  // namespace slate::daemon
