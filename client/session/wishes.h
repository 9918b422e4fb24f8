// A program's wishes to the daemon: SLATE_WEIGHT, SLATE_PRIORITY and SLATE_MEMORY.
#pragma once

#include "ipc/meeting.h"

namespace slate::client {

/// Reads the values of the variables (null: not set). A value that is no weight (0.01 to 100), no
/// priority (-10 to 10) or no size (bytes, or a number and K, M, G or T; not 0) is reported once on
/// stderr, and counts as not set. The daemon decides how much is granted.
ipc::Wishes parse_wishes(const char* weight, const char* priority, const char* memory);

/// As parse_wishes(), from the environment. Any thread. Requires: no thread changes the environment
/// meanwhile.
ipc::Wishes environment_wishes();

}  // namespace slate::client
