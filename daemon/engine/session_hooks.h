// What a session tells: its engine of its life (SessionHooks), `slatectl status` of itself
// (SessionStatus). Plain data.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace slate::daemon {

enum class SessionPhase { kStarting, kServing, kFailed, kDraining };
std::string_view phase_name(SessionPhase phase);

/// Where a session's memory is. All is on the device where there is no swap.
struct MemoryPlaces {
  std::uint64_t on_device = 0, on_host = 0;  // bytes
  bool waits = false;                        // whether a command waits for memory on the device
  bool leaves = false, comes = false;        // whether memory is on its way
  std::vector<std::uint64_t> waits_for{};    // sessions, as Residency::Motion has them
};

/// For `slatectl status`.
struct SessionStatus {
  std::uint64_t id;
  SessionPhase phase;
  std::uint64_t memory_used, memory_limit, pinned_used, code_memory;
  MemoryPlaces places;
  std::uint64_t launches, launches_running;
  std::uint64_t copies, bytes_to_device, bytes_to_host;
  std::uint64_t streams, modules;
};

/// The events that a session reports to its engine. Called from any thread.
struct SessionHooks {
  /// The device is lost: does not return in the daemon.
  std::function<void(const Error& fault)> device_lost;
  /// The client is gone, and its work did not end within the grace time.
  std::function<void(std::uint64_t session)> stuck;
  /// The client called a function that slate does not have. May be empty.
  std::function<void(std::string_view function)> unsupported = {};
  /// The session has left the engine, which only gives back what it has of it. Not called for one
  /// that leaves with its memory: that has left when it is gone. May be empty.
  std::function<void(const SessionStatus& last)> left = {};
  /// The session cannot leave the engine. May be empty.
  std::function<void(std::uint64_t session, const std::string& why)> stays = {};
  /// The session loads code that cannot be fenced. `waits`: it takes no more commands until it
  /// hears Departure::want() or stay(). Empty: nobody decides, so that it stays.
  std::function<void(std::uint64_t session, bool waits)> unfenced = {};
};

}  // namespace slate::daemon
