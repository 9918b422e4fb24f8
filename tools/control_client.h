// One question to a running slated over its control connection.
#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "base/result.h"
#include "ipc/messages.h"

namespace slate::tools {

/// slated's answer, as text. `runtime_dir` may be empty. kInitialization when no daemon is there;
/// slated's own code and words when it refuses. `timeout`: between two pieces of the answer.
/// Requires: `text` and the request fit ipc::kMaxControlBytes; kInvalidValue otherwise.
Result<std::string> ask_daemon(const std::string& runtime_dir, ipc::ControlRequest request,
                               std::string_view text = {},
                               std::chrono::milliseconds timeout = std::chrono::seconds(15));

/// Prints an answer as it is, or on stderr why there is none. Returns the exit status of slatectl.
int print_answer(const Result<std::string>& answer);

/// The daemon's status as JSON text.
Result<std::string> ask_status(const std::string& runtime_dir);

}  // namespace slate::tools
