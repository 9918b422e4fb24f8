// CommandServer: has each command of a session carried out, keeps those that must wait, answers the
// client, and notes in the book how far each has come. Session thread, but for is_busy().
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>

#include "daemon/book.h"
#include "daemon/engine/commands/faults.h"
#include "daemon/engine/commands/session_parts.h"
#include "daemon/engine/departure.h"
#include "daemon/engine/executor.h"
#include "daemon/engine/held_commands.h"
#include "daemon/engine/residency/memory_gate.h"
#include "ipc/channel.h"

namespace slate::daemon {

class CommandServer {
 public:
  /// All of it outlives the server.
  struct Context {
    std::uint64_t session;  // its number
    ipc::EngineChannel& channel;
    Executor& executor;
    Faults& faults;
    SessionParts& parts;
    const Departure& departure;
    MemoryGate& gate;
    Book* book;  // null: no other engine can go on with the session
    /// Tells the client, and the log, why it is served no longer.
    std::function<void(const Error& reason)> end;
  };

  explicit CommandServer(Context context);

  // Each of these returns false when the session ends, by a command that broke the protocol or by
  // too many that are kept.
  /// Carries out the command that was taken from the ring last.
  bool serve(ipc::Command& command);
  /// Carries out a command that another engine had taken and may not have finished.
  bool serve_again(const Book::Open& open);
  /// Carries out what was kept and need not wait any more.
  bool release_held();
  /// Carries out the command that was put back. Requires: has_put_back().
  bool serve_put_back();

  /// Whether a command waits for the supervisor's word (Departure::leaves_first()).
  bool has_put_back() const { return put_back_.has_value(); }
  /// `position`: the end of the last command that another engine may have begun.
  void set_again_until(std::uint64_t position) { again_until_ = position; }
  /// Whether a command is being carried out. Any thread.
  bool is_busy() const { return busy_.load(); }

 private:
  bool keep(ipc::Command& command);
  void write_waiting(const ipc::Command& command, std::uint64_t position);
  bool carry_out(const ipc::Command& command, std::uint64_t position,
                 const HeldCommands::Kept* kept = nullptr);
  void answer(const ipc::Command& command, const Result<void>& done, const Reply& reply);
  void answer_failed(const ipc::Command& command);
  bool end(const Error& reason);

  const Context of_;
  std::uint64_t again_until_ = 0;
  std::optional<HeldCommands::Kept> put_back_;
  std::atomic<bool> busy_{false};  // changed with each command, so as cheaply as possible
};

}  // namespace slate::daemon
