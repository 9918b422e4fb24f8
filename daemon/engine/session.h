// Session: one client as the engine serves it: its life, its errors and its loop. run() is the body
// of the session's thread. It pops commands from the channel and has the session's parts carry them
// out (commands/session_parts.h). It never waits for the device's work.
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

#include "daemon/engine/commands/faults.h"
#include "daemon/engine/commands/session_parts.h"
#include "daemon/engine/completer.h"
#include "daemon/engine/departure.h"
#include "daemon/engine/executor.h"
#include "daemon/engine/held_commands.h"
#include "daemon/engine/session_spec.h"
#include "device/device.h"
#include "ipc/channel.h"

namespace slate::daemon {

enum class SessionPhase { kStarting, kServing, kFailed, kDraining };
std::string_view phase_name(SessionPhase phase);

/// For `slatectl status`.
struct SessionStatus {
  std::uint64_t id;
  SessionPhase phase;
  std::uint64_t memory_used, memory_limit, pinned_used, code_memory;
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
  /// hears leave() or stay(). Empty: nobody decides, so that it stays.
  std::function<void(std::uint64_t session, bool waits)> unfenced = {};
};

/// More than 25 functions and 15 members, because the loop, the errors and the life of a session
/// decide about one another at each command.
class Session {
 public:
  /// The most ends of work that are watched at a time. Beyond it the session takes no more commands
  /// until half of them have come. While host functions run, it keeps commands that are more work
  /// instead.
  static constexpr std::uint64_t kMostWatches = 16384;
  /// How long a session is alone on the device while it is a suspect (ResumeOrder).
  static constexpr std::chrono::milliseconds kSuspectTime{1000};
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
  std::uint64_t id() const { return spec_.id; }
  std::uint32_t uid() const { return spec_.uid; }
  /// Fails the session if a kernel of it has violated the fence.
  void look_at_fence() { parts_.look_at_fence(); }
  bool faulted() const { return faults_.failed(); }
  /// Why the session cannot go on in another engine; nullopt: it can. Then freeze() it before this
  /// engine ends.
  std::optional<std::string> why_bound() const;
  /// The client hears nothing more from this engine, and its book gets nothing more.
  void freeze();
  /// Has the session leave for another engine, as soon as none of its work is under way. run() then
  /// returns, and has_left() is true. One that cannot leave calls SessionHooks::stays. `to_host`:
  /// its device memory goes to the host, where the supervisor holds it.
  void leave(bool to_host);
  /// Lets the session go on that waits (SessionHooks::unfenced).
  void stay();
  bool has_left() const { return departure_.state() == Departure::State::kLeft; }
  /// Whether SessionHooks::left was called, or was to be.
  bool has_told() const { return has_left() && !departure_.is_to_host(); }
  /// Whether its thread carries a command out.
  bool is_busy() const { return busy_.load(); }
  /// Whether a command of it was taken: from then on it cannot move to another engine.
  bool begun() const { return begun_.load(); }

 private:
  Result<void> set_up();
  bool resume();
  bool resume_past();
  void close_if_done(const Book::Open& open);
  bool do_again(const Book::Open& open);
  void serve();
  bool serve_commands();
  bool is_crowded() const;
  bool try_to_leave();
  bool stay_here(const std::string& why);
  bool finish_work();
  bool leaves_first();
  bool serve_put_back();
  ipc::EngineChannel::Seen look(bool waits);
  ipc::EngineChannel::Seen look_awake();
  bool end(const Error& error);
  bool serve_command(ipc::Command& command);
  bool keep(ipc::Command& command);
  void write_waiting(const ipc::Command& command, std::uint64_t position);
  bool release_held();
  bool carry_out(const ipc::Command& command, std::uint64_t position,
                 const HeldCommands::Kept* kept = nullptr);
  void answer(const ipc::Command& command, const Result<void>& done, const Reply& reply);
  void answer_failed(const ipc::Command& command);
  void on_failure(const Error& fault);
  void tear_down();
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
  std::atomic<bool> busy_{false};  // changed with each command, so as cheaply as possible
  std::atomic<bool> stopping_{false};
  std::atomic<bool> ending_{false};  // whether no more commands are carried out
  std::uint64_t again_until_ = 0;    // end of the last command that another engine may have begun
  std::int64_t looked_ns_ = 0;       // time of lost_client()'s last question
  Departure departure_;
  bool told_unfenced_ = false;                  // whether SessionHooks::unfenced was called
  std::optional<HeldCommands::Kept> put_back_;  // command that waits for the supervisor's word
  std::atomic<SessionPhase> phase_{SessionPhase::kStarting};
  Faults faults_;
  SessionParts parts_;
};

}  // namespace slate::daemon
