// Resumption: goes on with a session that another engine had, where that engine was in the middle
// of commands. Session thread.
#pragma once

#include <chrono>
#include <functional>

#include "daemon/engine/command_server.h"
#include "daemon/engine/commands/faults.h"
#include "daemon/engine/commands/session_parts.h"
#include "daemon/engine/completer.h"
#include "daemon/engine/executor.h"
#include "daemon/engine/session_spec.h"
#include "ipc/channel.h"

namespace slate::daemon {

class Resumption {
 public:
  /// How long a session is alone on the device while it is a suspect (ResumeOrder).
  static constexpr std::chrono::milliseconds kSuspectTime{1000};

  /// All of it outlives the resumption.
  struct Context {
    const SessionSpec& spec;
    Executor& executor;
    Completer::Group& group;
    ipc::EngineChannel& channel;
    Faults& faults;
    SessionParts& parts;
    CommandServer& commands;
    std::function<void(const Error& reason)> end;  // as CommandServer::Context::end
  };

  explicit Resumption(Context context) : of_(std::move(context)) {}

  /// Whether another engine had the session.
  bool has_past() const;
  /// Strikes out of the book what the client knows to be done. Requires: has_past(), and nothing of
  /// the session was made in this engine.
  void settle();
  /// Carries out again what another engine had taken and may not have finished. A suspect does so
  /// alone, and for some time; the others wait for that. False: the session ends.
  bool run();

 private:
  bool resume();
  void close_if_done(const Book::Open& open);
  Book& book() const;

  const Context of_;
};

}  // namespace slate::daemon
