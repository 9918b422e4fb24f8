// Waiting: how far the work of a session has come, as the status page tells it, and else the
// daemon; and waiting for it. Thread-safe.
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
  /// Also finds the errors of earlier commands that have no reply.
  Result<void> synchronize(ipc::TargetKind kind, std::uint64_t id);
  /// Until work that was given to the stream now could begin: that waits for more than
  /// synchronize() where the stream and the default one wait for each other. For work that the host
  /// does.
  Result<void> wait_for_turn(std::uint64_t stream);
  /// Whether the event's last record is passed. Leaves errors of earlier commands for others to
  /// find: only a lasting one is told.
  Result<bool> reached(std::uint64_t event);
  /// Waits as synchronize() does, but finds no errors of earlier commands.
  Result<void> ask_to_synchronize(ipc::TargetKind kind, std::uint64_t id);
  /// Waits for what `work` puts on a stream of its own, a (std::uint64_t stream) -> Result<void>:
  /// no work of the program is waited for, and all of it comes later.
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
  Result<bool> ask_finished(ipc::TargetKind kind, std::uint64_t id);  // the daemon
  std::uint64_t mark_of(ipc::TargetKind kind, std::uint64_t id) const;
  Result<void> wait_until_finished(ipc::TargetKind kind, std::uint64_t id);

  Session& session_;  // for the errors of earlier commands
  Wire& wire_;
  Streams& streams_;
  Events& events_;
  ManagedGuard& guard_;
};

}  // namespace slate::client
