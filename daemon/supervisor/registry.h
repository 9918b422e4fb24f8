// Registry: every session from Hello to its end, as the supervisor sees it. It does the handshake
// and hands sessions to the engine. Of a served session it keeps what the next engine needs, if
// this one dies, and what it needs to tell the client. Supervisor thread only.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "daemon/config.h"
#include "daemon/supervisor/engines.h"
#include "daemon/supervisor/poll_set.h"
#include "daemon/supervisor/session_record.h"
#include "ipc/meeting.h"

namespace slate::daemon {

/// More than 25 functions, as each event of a session's life is one, and all have the same table.
class Registry {
 public:
  /// All must outlive it. `engines` is not used before the first call.
  Registry(std::string runtime_dir, const UserRules& rules, ProgramStore& programs,
           Engines& engines);
  Registry(const Registry&) = delete;
  Registry& operator=(const Registry&) = delete;

  /// Takes a new client. If `refusal` is not empty, the client gets it instead.
  void greet(const ipc::Hello& hello, ipc::Visitor visitor, const std::string& refusal);
  /// Hands sessions over that wait for an engine. Handles clients that left, and deadlines.
  void service();
  void add_to(PollSet& polls) const;

  /// Changes weight and priority; tells the engine, now or soon, if it has the session. Requires:
  /// the session exists.
  void set(std::uint64_t id, const Standing& standing);
  /// Tells the client that its session has ended, and why. The engine is told now or soon, if it
  /// has the session. Requires: the session exists.
  void end(std::uint64_t id, const std::string& reason);
  /// If `refusal` is not empty, the engine could not begin the session, and the client gets it.
  /// `engine`: serial number of the one that says so, here and below.
  void session_ended(std::uint64_t id, std::uint64_t engine, const std::string& refusal);
  /// The session's engine hands over memory, or takes it back.
  void hold(std::uint64_t id, Book::Key key, UniqueFd memory);
  void let_go(std::uint64_t id, Book::Key key);
  /// The engine's sessions wait for the next one, but for its culprit and those that no other
  /// engine can go on with. These are told `cause`, and dropped.
  void engine_died(const EngineProcess& engine, const Error& cause);

  // --- Sessions that leave an engine which lives
  /// Has the session leave its engine for that of `domain`, now or soon. `when_idle`: at a moment
  /// at which none of its work is under way, if one comes.
  void move(std::uint64_t id, const Domain& domain, bool when_idle = false);
  /// Has all sessions of the domain leave an older engine than its present one. If some wait there
  /// for others' kernels, the others leave when they are idle.
  void leave_for(const Domain& domain, const EngineProcess& engine);
  /// Has the session leave its engine with its device memory, now or soon. No engine serves it
  /// until resume(). Errors: kUnavailable when it cannot leave. Requires: the session exists.
  Result<void> suspend(std::uint64_t id);
  void resume(std::uint64_t id);
  /// The session has left its engine; the next one goes on with it.
  void session_left(std::uint64_t id, std::uint64_t engine);
  /// The session cannot leave its engine.
  void session_stays(std::uint64_t id, const std::string& why);
  /// The session loads code that cannot be fenced. `waits`: it waits for an answer. Where other
  /// users' sessions share its engine it moves.
  void session_unfenced(std::uint64_t id, bool waits);
  /// It cannot begin yet, as others' kernels run that have no fence. It begins in a new engine of
  /// its domain, or else in its user's own.
  void session_waits(std::uint64_t id);

  // --- A slated that another one takes over
  nlohmann::json hand_over(Handover& handover) const;
  /// Sessions as hand_over() has left them. Errors: those of session_from(). Requires: no session.
  Result<void> take_over(const nlohmann::json& state);

  bool uses(std::uint64_t engine) const;
  bool has_sessions(const Domain& domain) const;
  /// Refuses all sessions that are not served yet, and drops them.
  void refuse_waiting(const Error& reason);
  /// Tells all clients that are left, and drops their sessions.
  void end_all(const std::string& reason);

  /// The user of all sessions that the engine serves; none: there are several, or no session.
  std::optional<std::uint32_t> only_user(std::uint64_t engine) const;
  /// Whether there are sessions of other users, also of those that wait for an engine.
  bool has_others_than(std::uint32_t uid) const;
  const std::map<std::uint64_t, SessionRecord>& sessions() const { return sessions_; }
  std::uint64_t served() const { return served_; }

 private:
  using Iterator = std::map<std::uint64_t, SessionRecord>::iterator;

  std::optional<Error> too_many(const Identity& who) const;
  Domain place(const Identity& who);
  const SessionRecord* of_others(
      const Domain& domain, std::uint32_t uid,
      const std::function<bool(const SessionRecord&)>& property = {}) const;
  bool give_common_to(std::uint32_t uid);
  void welcome(SessionRecord& record, const EngineProcess& engine);
  void go_on(SessionRecord& record);
  bool suspects_come_first(const SessionRecord& record) const;
  void wait_for_next(SessionRecord& record);
  bool service_one(SessionRecord& record);
  void tell(SessionRecord& record);
  void refuse(const SessionRecord& record, const Error& reason);
  void turn_away(const SessionRecord& record, const Error& reason);
  void audit(const SessionRecord& record, std::string_view what) const;

  const std::string runtime_dir_;
  const UserRules& rules_;
  ProgramStore& programs_;
  Engines& engines_;
  std::map<std::uint64_t, SessionRecord> sessions_;
  std::uint64_t next_id_ = 1;
  std::uint64_t served_ = 0;
};

/// A client's text for display: cut at NUL, and without control characters.
std::string display_name(const char* text, std::size_t size);

}  // namespace slate::daemon
