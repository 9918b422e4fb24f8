// The status text that `slatectl status --json` prints: the supervisor's registry and the engine's
// report in one. docs/status.md describes it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/device_info.h"
#include "daemon/supervisor/blame.h"
#include "daemon/supervisor/registry.h"

namespace slate::daemon {

struct StatusFacts {
  std::string version;
  Clock::time_point started;
  const DeviceInfo* device = nullptr;  // null until an engine is ready
  std::int32_t engine_pid = 0;         // 0: none
  std::uint64_t restarts = 0;
  std::string last_fault;
  std::uint64_t past_launches = 0;  // launches of sessions that have ended
  std::uint64_t past_faults = 0;
  std::vector<Blame::Barred> barred = {};  // users whose programs are refused
  /// The user whose sessions are shown; nothing: all are.
  std::optional<std::uint32_t> only_of = std::nullopt;
};

std::string status_text(const StatusFacts& facts, const Registry& registry,
                        const std::string& engine_report);

}  // namespace slate::daemon
