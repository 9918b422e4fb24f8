// Waiting: how far a session's work has come, by the status page or else by the daemon, and waits
// for it. Thread-safe.
#pragma once

#include <cstdint>
#include <optional>

#include "base/result.h"
#include "client/session/events.h"
#include "client/session/managed_guard.h"
#include "client/session/streams.h"
#include "client/session/wire.h"

namespace slate::client {

class Session;

class Waiting {
 public:
  Waiting(Session& session, Wire& wire, Streams& streams, Events& events, ManagedGuard& guard)
      : session_(session), wire_(wire), streams_(streams), events_(events), guard_(guard) {}

  Result<bool> finished(ipc::TargetKind kind, std::uint64_t id);
  /// Waits for the work. Also finds the errors of earlier commands that have no reply.
  Result<void> synchronize(ipc::TargetKind kind, std::uint64_t id);
  /// Waits until work given to the stream now could begin. That is more than synchronize() waits
  /// for, where the stream and the default one wait for each other. For work that the host does.
  Result<void> wait_for_turn(std::uint64_t stream);
  /// Whether the event's last record is passed. Returns a lasting error only; errors of earlier
  /// commands stay for other calls.
  Result<bool> reached(std::uint64_t event);
  /// As synchronize(), but finds no errors of earlier commands.
  Result<void> ask_to_synchronize(ipc::TargetKind kind, std::uint64_t id);
  /// Waits for all work, as CUDA's calls that free memory do. Finds no errors of earlier commands.
  Result<void> wait_to_free();
  /// Waits for the work that `work` puts on a stream of its own. Waits for no work of the program;
  /// all of that comes later. `work`: a (std::uint64_t stream) -> Result<void>.
  template <typename Work>
  Result<void> on_own_stream(const Work& work) {
    const auto stream = begin_own_stream();
    if (!stream) return std::unexpected(stream.error());
    return end_own_stream(*stream, work(*stream));
  }

 private:
  Result<std::uint64_t> begin_own_stream();
  Result<void> end_own_stream(std::uint64_t stream, Result<void> done);
  std::optional<bool> known_finished(ipc::TargetKind kind, std::uint64_t id) const;
  Result<bool> ask_finished(ipc::TargetKind kind, std::uint64_t id);  // asks the daemon
  std::uint64_t mark_of(ipc::TargetKind kind, std::uint64_t id) const;
  Result<void> wait_until_finished(ipc::TargetKind kind, std::uint64_t id);

  Session& session_;  // for the errors of earlier commands
  Wire& wire_;
  Streams& streams_;
  Events& events_;
  ManagedGuard& guard_;
};

}  // namespace slate::client
