// A program's wishes to the scheduler: SLATE_WEIGHT and SLATE_PRIORITY.
#pragma once

#include "ipc/meeting.h"

namespace slate::client {

/// Reads the values of the two variables (null: not set). A value that is no weight (0.01 to 100)
/// or priority (-10 to 10) is reported once on stderr, and counts as not set. The daemon decides
/// how much is granted.
ipc::Wishes parse_wishes(const char* weight, const char* priority);

/// As parse_wishes(), from the environment. Any thread. Requires: no thread changes the environment
/// meanwhile.
ipc::Wishes environment_wishes();

}  // namespace slate::client
