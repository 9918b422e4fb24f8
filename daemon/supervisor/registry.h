// Registry: every session from Hello to its end, as the supervisor sees it. It does the handshake
// and hands sessions to the engine. Of a served session it keeps what the next engine needs, if
// this one dies, and what it needs to tell the client. Supervisor thread only.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "daemon/book.h"
#include "daemon/config.h"
#include "daemon/supervisor/engine_process.h"
#include "daemon/supervisor/poll_set.h"
#include "daemon/supervisor/session_rules.h"
#include "ipc/channel.h"
#include "ipc/meeting.h"

namespace slate::daemon {

struct SessionRecord {
  enum class State {
    kWaiting,  // no engine yet
    kReady,    // the client has its ends; the session waits for an engine
    kServing,  // the engine has the session
  };
  std::uint64_t id = 0;
  std::uint32_t pid = 0;
  std::uint32_t uid = 0;
  UserSettings user;               // what the configuration gives its user
  std::uint64_t memory_limit = 0;  // device memory in bytes, as the client was told
  std::string program;
  double max_blocking_ms = 0;  // as UserRules::max_blocking_of()
  Standing standing;           // weight and priority
  bool standing_told = true;   // whether the session's engine knows its last change
  std::string end_untold;      // reason of an end that the session's engine has not heard of
  State state = State::kWaiting;
  Clock::time_point since;
  Clock::time_point deadline;  // deadline of the present state; kServing has none
  ipc::DaemonEnds ends;  // kept for the next engine, if this one dies; until kReady the socket only
  ipc::Segment segment;  // none until kReady
  /// What the next engine needs to go on with the session; null until kReady.
  std::unique_ptr<Book> book;
  /// Memory that has to outlive the engine, by the entry of the book that it belongs to.
  struct Held {
    UniqueFd memory;
    bool handed_over = false;  // whether the engine that is to serve the session has it
  };
  std::map<Book::Key, Held> held;
  // Engines that died of an unknown cause while they served it, one after the other without
  // progress in between.
  std::uint32_t losses = 0;
  bool is_suspect = false;          // whether it may have lost the last engine's device
  std::uint64_t taken_at_loss = 0;  // position of its commands when the last one died
};

class Registry {
 public:
  /// `rules` and `programs` must outlive it.
  Registry(std::string runtime_dir, const UserRules& rules, ProgramStore& programs);
  Registry(const Registry&) = delete;
  Registry& operator=(const Registry&) = delete;

  /// Takes a new client. If `refusal` is not empty, the client gets it instead.
  void greet(const ipc::Hello& hello, ipc::Visitor visitor, EngineProcess* engine,
             const std::string& refusal);
  /// An engine is ready: the sessions that wait for it go on.
  void engine_ready(EngineProcess& engine);
  /// Handles clients that left, and deadlines. `engine` may be null.
  void service(EngineProcess* engine);
  void add_to(PollSet& polls, const EngineProcess* engine) const;

  /// Changes weight and priority; tells the engine, now or soon, if it has the session. Requires:
  /// the session exists.
  void set(std::uint64_t id, const Standing& standing, EngineProcess* engine);
  /// Tells the client that its session has ended, and why. The engine is told now or soon, if it
  /// has the session. Requires: the session exists.
  void end(std::uint64_t id, const std::string& reason, EngineProcess* engine);
  /// If `refusal` is not empty, the engine could not begin the session, and the client gets it.
  void session_ended(std::uint64_t id, const std::string& refusal);
  /// The session's engine hands over memory, or takes it back.
  void hold(std::uint64_t id, Book::Key key, UniqueFd memory);
  void let_go(std::uint64_t id, Book::Key key);
  /// The sessions wait for the next engine, but for the `culprit` (0: unknown) and those that no
  /// other engine can go on with. These are told `cause`, and dropped.
  void engine_died(const Error& cause, std::uint64_t culprit);
  /// Refuses all sessions that are not served yet, and drops them.
  void refuse_waiting(const Error& reason);
  /// Tells all clients that are left, and drops their sessions.
  void end_all(const std::string& reason);

  /// The user of all sessions that an engine serves; none: there are several, or no session.
  std::optional<std::uint32_t> only_user() const;
  /// Whether there are sessions of other users, also of those that wait for an engine.
  bool has_others_than(std::uint32_t uid) const;
  const std::map<std::uint64_t, SessionRecord>& sessions() const { return sessions_; }
  std::uint64_t served() const { return served_; }

 private:
  using Iterator = std::map<std::uint64_t, SessionRecord>::iterator;

  std::optional<Error> too_many(const Identity& who) const;
  void welcome(SessionRecord& record, const EngineProcess& engine);
  void hand_over(SessionRecord& record, const EngineProcess& engine);
  static bool hand_over_memory(SessionRecord& record, const EngineProcess& engine);
  bool service_one(SessionRecord& record, EngineProcess* engine);
  static void tell_standing(SessionRecord& record, const EngineProcess& engine);
  static void tell_gone(const SessionRecord& record, const EngineProcess& engine);
  static void tell_end(SessionRecord& record, const EngineProcess& engine);
  void refuse(const SessionRecord& record, const Error& reason);
  void audit(const SessionRecord& record, std::string_view what) const;

  const std::string runtime_dir_;
  const UserRules& rules_;
  ProgramStore& programs_;
  std::map<std::uint64_t, SessionRecord> sessions_;
  std::uint64_t next_id_ = 1;
  std::uint64_t served_ = 0;
};

/// A client's text for display: cut at NUL, and without control characters.
std::string display_name(const char* text, std::size_t size);

}  // namespace slate::daemon
