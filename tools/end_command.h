// slatectl end: ends a session, with the reason told to its program.
#pragma once

#include <string>

#include "base/result.h"

namespace slate::tools {

/// What slated's answer says to people.
Result<std::string> end_text(const std::string& json_text);

/// `target`: a session, process or program. Exit status: 0, or 1 with a sentence on stderr.
int end_command(const std::string& runtime_dir, const std::string& target);

}  // namespace slate::tools
