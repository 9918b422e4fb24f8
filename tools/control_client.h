// One question to a running slated over its control connection.
#pragma once

#include <string>

#include "base/result.h"

namespace slate::tools {

/// The daemon's status as JSON text. `runtime_dir` may be empty. kInitialization when no daemon is
/// there.
Result<std::string> ask_status(const std::string& runtime_dir);

}  // namespace slate::tools
