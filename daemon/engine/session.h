// Session: one client as the engine serves it: its life, its errors and its loop. run() is the body
// of the session's thread. It takes commands from the channel and has them served
// (command_server.h) by the session's parts (commands/session_parts.h). It never waits for the
// device's work. Leaving the engine is departure.h, going on after another engine resumption.h.
//
// A client's mistakes end here:
// - A bad argument is that command's error.
// - A broken protocol ends the session.
// - A fault in a kernel makes its error stick to this session only.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/engine/client_watch.h"
#include "daemon/engine/command_server.h"
#include "daemon/engine/commands/faults.h"
#include "daemon/engine/commands/session_parts.h"
#include "daemon/engine/completer.h"
#include "daemon/engine/departure.h"
#include "daemon/engine/earlier_launches.h"
#include "daemon/engine/executor.h"
#include "daemon/engine/residency/memory_gate.h"
#include "daemon/engine/resumption.h"
#include "daemon/engine/session_hooks.h"
#include "daemon/engine/session_spec.h"
#include "device/device.h"
#include "ipc/channel.h"

namespace slate::daemon {

/// More than 15 members, because it makes the session's parts and gives each what it needs of the
/// others.
class Session final : public Launcher {
 public:
  /// The most ends of work that are watched at a time. Beyond it the session takes no more commands
  /// until half of them have come. While host functions run, it keeps commands that are more work
  /// instead.
  static constexpr std::uint64_t kMostWatches = 16384;
  /// How long staging memory is kept after the last copy.
  static constexpr std::chrono::milliseconds kStagingIdle{2000};

  /// All that it refers to outlives it. `kill_grace`: how long its work may go on after the client
  /// left.
  Session(device::Device& device, Compiler& compiler, Executor& executor, Completer& completer,
          SessionSpec spec, SessionHooks hooks, std::chrono::milliseconds kill_grace);
  /// Requires: run() has returned, or was never called.
  ~Session();

  /// Serves until the client is gone, breaks the protocol or stop() is called. Then frees
  /// everything. Called once, on the session's own thread.
  void run();

  // Any thread.
  /// Ends the session; the client sees `reason`.
  void stop(std::string_view reason);
  /// Makes `fault` stick, unless one sticks already: the session's work is dropped, and every later
  /// command gets the fault.
  void fail(Error fault) { faults_.fail(std::move(fault)); }
  SessionStatus status() const;
  /// Names of the kernels that may be running, as "kernel (program, pid 12)".
  std::vector<std::string> running_kernels() const;
  /// Whether a kernel without a fence may be running.
  bool runs_unfenced() const { return parts_.streams().runs_unfenced(); }
  std::uint64_t bare_turn() const override { return parts_.launches().bare_turn(); }
  void mark_unfenced() override { parts_.streams().mark_unfenced(); }
  bool runs_marked() const override { return parts_.streams().runs_marked(); }
  bool is_stopping() const { return stopping_.load(); }
  std::chrono::milliseconds most_blocking() const { return spec_.most_blocking; }
  std::uint64_t id() const { return spec_.id; }
  std::uint32_t uid() const { return spec_.uid; }
  /// Fails the session if a kernel of it has violated the fence.
  void look_at_fence() { parts_.look_at_fence(); }
  bool faulted() const { return faults_.failed(); }
  /// Whether and how the session leaves for another engine.
  Departure& departure() { return departure_; }
  /// Whether its thread carries a command out.
  bool is_busy() const { return commands_.is_busy(); }
  /// Whether a command of it was taken: from then on it cannot move to another engine.
  bool begun() const { return begun_.load(); }

 private:
  Result<void> set_up();
  void serve();
  bool serve_commands();
  bool is_crowded() const;
  ipc::EngineChannel::Seen look(bool waits);
  ipc::EngineChannel::Seen look_awake();
  bool end(const Error& error);
  void on_failure(const Error& fault);
  void tear_down();
  bool finish_work();
  bool lost_client();
  void wait_for_work();

  device::Device& device_;
  Executor& executor_;
  Completer& completer_;
  SessionSpec spec_;  // without ends and segment, which are moved to channel_
  const SessionHooks hooks_;
  const std::chrono::milliseconds kill_grace_;
  Book* const book_;  // null: no other engine can go on with the session
  ipc::EngineChannel channel_;
  Completer::Group group_;

  std::atomic<bool> begun_{false};
  std::atomic<bool> stopping_{false};
  std::atomic<SessionPhase> phase_{SessionPhase::kStarting};
  ClientWatch watch_;
  Faults faults_;
  SessionParts parts_;
  Departure departure_;
  MemoryGate gate_;
  CommandServer commands_;
  Resumption resumption_;
};

}  // namespace slate::daemon
