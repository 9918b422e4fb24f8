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
#include "daemon/time_page.h"

namespace slate::daemon {

struct StatusFacts {
  std::string version;
  Clock::time_point started;
  const DeviceInfo* device = nullptr;  // null until an engine is ready
  std::int32_t engine_pid = 0;         // of the common engine; 0: none
  std::vector<pid_t> spares;           // pids of the spare engines that are ready
  std::uint64_t spare_bytes = 0;       // of the device's memory that they take; 0: unknown
  bool renews = false;                 // whether new engines are about to take the places of others
  bool is_renewed = true;              // whether the last renewal has come about
  std::uint64_t upgrades = 0;          // slateds that have taken over from one another
  std::uint64_t restarts = 0;
  std::string last_fault;
  std::uint64_t past_launches = 0;  // launches of sessions that have ended
  std::uint64_t past_faults = 0;
  std::vector<Blame::Barred> barred = {};  // users whose programs are refused
  struct Engine {
    Domain domain;
    std::int32_t pid = 0;
    std::optional<scheduler::ShownTime> time = std::nullopt;  // nothing: it has the device alone
  };
  std::vector<Engine> engines = {};  // those that take sessions
  /// The user whose sessions are shown; nothing: all are.
  std::optional<std::uint32_t> only_of = std::nullopt;
};

/// `reports`: the engines' own.
std::string status_text(const StatusFacts& facts, const Registry& registry,
                        const std::vector<std::string>& reports);

}  // namespace slate::daemon
