// slatectl status: prints what slated says of itself, as JSON or as a table for people.
#pragma once

#include <string>

#include "base/result.h"

namespace slate::tools {

/// The table for the JSON text that slated sent. kProtocol when that is not what docs/status.md
/// says.
Result<std::string> status_table(const std::string& json_text);

/// Exit status: 0, or 1 with a sentence on stderr.
int status_command(const std::string& runtime_dir, bool as_json);

}  // namespace slate::tools
