// slated's command line: an option for each key of the configuration, laid over the file.
#pragma once

#include <expected>

#include "daemon/config.h"

namespace slate::daemon {

/// Parses `argv`. The error is an exit status: the process should end at once (--help, --version,
/// --print-config, a mistake). What there is to say was printed.
std::expected<Config, int> parse_options(int argc, const char* const* argv);

}  // namespace slate::daemon
