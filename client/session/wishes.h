// What a program's environment asks of the scheduler: SLATE_WEIGHT and SLATE_PRIORITY.
#pragma once

#include "ipc/rendezvous.h"

namespace slate::client {

/// From the values of the two variables (null: not set). What is no weight (0.01 to 100) or
/// priority
/// (-10 to 10) is said once on stderr and counts as not set. How much is granted the daemon
/// decides.
ipc::Wishes parse_wishes(const char* weight, const char* priority);

/// The same from the environment. Reads it only: any thread, as long as none changes it.
ipc::Wishes environment_wishes();

}  // namespace slate::client
