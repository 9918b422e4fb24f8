// Options: slated's command line, laid over the configuration file.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "daemon/config.h"

namespace slate::daemon {

struct Options {
  Config config;
  bool is_engine = false;  // hidden: started by the supervisor
  int control_fd = -1;     // engine: its end of the link
  int parent_pid = 0;      // engine: the supervisor
};

/// Parses `argv`. When the process should end at once (--help, --version, a mistake), prints what
/// there is to say and returns the exit status as the error.
std::expected<Options, int> parse_options(int argc, const char* const* argv);

/// The arguments after the program's name that make an engine of `config`, for parse_options() in
/// the child.
std::vector<std::string> engine_arguments(const Config& config, int control_fd, int parent_pid);

}  // namespace slate::daemon
