// The sessions that slatectl names. Supervisor thread only.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "daemon/supervisor/registry.h"
#include "ipc/messages.h"

namespace slate::daemon {

/// The sessions that `target` means to user `asker`: by the session's number, else by process, else
/// by program. Only those that he may change: his own, or all if he is an administrator. A process
/// may have several sessions. kPermission where a number is another user's, kInvalidValue where
/// nothing is meant.
Result<std::vector<std::uint64_t>> find_sessions(const Registry& registry,
                                                 const std::string& target, std::uint32_t asker);

/// Serves `slatectl end`, `suspend` and `resume` for the sessions that `target` means to `asker`,
/// and logs who did it. Returns JSON {"sessions": [...]} (docs/slatectl.md). kUnavailable when a
/// session cannot be suspended; those before it are.
Result<std::string> change_sessions(Registry& registry, ipc::ControlVerb verb,
                                    const std::string& target, std::uint32_t asker);

}  // namespace slate::daemon
