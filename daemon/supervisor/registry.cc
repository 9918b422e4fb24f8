#include "daemon/supervisor/registry.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/log.h"
#include "base/user_log.h"
#include "daemon/supervisor/reception.h"
#include "daemon/supervisor/session_news.h"

namespace slate::daemon {
namespace {

using namespace std::chrono_literals;
using State = SessionRecord::State;

constexpr auto kEngineTimeout = 30s;  // a driver may take its time to make a context

/// A session that several engines have died of in a row is the likely cause.
constexpr std::uint32_t kMostLosses = 5;

/// Whether no command of the session was carried out, so that it loses nothing by starting over.
bool untouched(const SessionRecord& record) {
  const ipc::StatusPage& status = record.segment.status();
  return status.marked.load() == 0 && status.ring_head.load() == 0 && record.book->is_blank();
}

/// Why the session does not go on in the next engine; nullopt: it does.
std::optional<std::string> why_lost(const SessionRecord& record) {
  if (record.segment.status().marked.load() != 0) return "it had ended already";
  if (record.losses >= kMostLosses) return "engine after engine died that served it";
  return record.book->why_not();
}

AskedSettings wishes_of(const ipc::Hello& hello) {
  AskedSettings wishes;
  if ((hello.wishes & ipc::kHasWeight) != 0) wishes.weight = hello.weight;
  if ((hello.wishes & ipc::kHasPriority) != 0) wishes.priority = hello.priority;
  return wishes;
}

/// Whose session it is, for the log.
std::string who(const SessionRecord& record) {
  return fmt::format("uid {}, pid {}, {}", record.uid, record.pid, record.program);
}

}  // namespace

std::string display_name(const char* text, std::size_t size) {
  std::string name(text, strnlen(text, size));
  for (char& c : name) {
    if (c < ' ' || c > '~') c = '?';
  }
  return name;
}

Registry::Registry(std::string runtime_dir, const UserRules& rules, ProgramStore& programs,
                   Engines& engines)
    : runtime_dir_(std::move(runtime_dir)), rules_(rules), programs_(programs), engines_(engines) {}

/// Root is never kept out by others' sessions.
std::optional<Error> Registry::too_many(const Identity& who) const {
  const std::uint32_t limit = rules_.config().max_sessions;
  const std::uint32_t users_limit = rules_.max_sessions_of(who);
  const auto his = std::ranges::count_if(
      sessions_, [&](const auto& each) { return each.second.uid == who.uid; });
  if (sessions_.size() >= limit && who.uid != 0)
    return Error{ErrorCode::kLimit, fmt::format("slated serves its limit of {} sessions", limit)};
  if (std::cmp_less(his, users_limit)) return std::nullopt;
  return Error{ErrorCode::kLimit,
               fmt::format("slated serves its limit of {} sessions of one user", users_limit)};
}

/// The domain of a new session. Beside code without a fence nobody else begins: its user gets the
/// common engine, or else the newcomer gets one.
Domain Registry::place(const Identity& who) {
  const Domain home = rules_.home_of(who);
  const Domain own{Domain::Kind::kUser, who.uid};
  if (home != Domain{} || engines_.has(own)) return home != Domain{} ? home : own;
  const SessionRecord* const unfenced = of_others(home, who.uid, &SessionRecord::is_unfenced);
  if (unfenced == nullptr || give_common_to(unfenced->uid)) return home;
  return own;
}

/// A session of the domain that is another user's and has the property, if there is one. Null: any.
const SessionRecord* Registry::of_others(
    const Domain& domain, std::uint32_t uid,
    const std::function<bool(const SessionRecord&)>& property) const {
  const auto found = std::ranges::find_if(sessions_, [&](const auto& each) {
    return each.second.domain == domain && each.second.uid != uid &&
           (!property || property(each.second));
  });
  return found == sessions_.end() ? nullptr : &found->second;
}

/// The user's sessions get the common engine, and all others a new one. False: others have begun
/// there, or he has an engine.
bool Registry::give_common_to(std::uint32_t uid) {
  const Domain home, theirs{Domain::Kind::kUser, uid};
  if (of_others(home, uid) != nullptr || engines_.has(theirs)) return false;
  for (auto& [id, record] : sessions_) {
    if (record.domain == home && record.uid == uid) record.domain = theirs;
  }
  engines_.give_common_to(theirs);
  return true;
}

void Registry::greet(const ipc::Hello& hello, ipc::Visitor visitor, const std::string& refusal) {
  SessionRecord record;
  record.id = next_id_++;
  record.pid = static_cast<std::uint32_t>(visitor.pid);
  const Identity who{visitor.uid, std::move(visitor.groups)};
  record.uid = who.uid;
  record.user = rules_.of(who);
  record.program = display_name(hello.program, sizeof(hello.program));
  record.max_blocking_ms = rules_.max_blocking_of(who, record.program);
  if ((hello.wishes & ipc::kHasMemoryLimit) != 0) record.wished_memory = hello.memory;
  record.since = Clock::now();
  record.deadline = record.since + kEngineTimeout;
  record.ends.socket = std::move(visitor.socket);
  if (!refusal.empty()) return refuse(record, {ErrorCode::kInitialization, refusal});
  if (const auto reason = too_many(who)) return refuse(record, *reason);
  record.standing = at_start(rules_, record.program, record.uid, wishes_of(hello),
                             programs_.find(record.program, record.uid));
  record.domain = place(who);
  const auto id = record.id;
  // At once: a program that ends soon has sent its commands.
  go_on(sessions_.emplace(id, std::move(record)).first->second);
}

/// Brings a session that waits for an engine as far as it comes now.
void Registry::go_on(SessionRecord& record) {
  if (record.is_suspended) return;
  EngineProcess* const engine = engines_.of(record.domain);
  if (engine == nullptr) return;
  if (record.state == State::kWaiting) welcome(record, *engine);
  if (record.state != State::kReady) return;
  const bool begins = record.book->is_blank();  // the engine writes there as soon as it has it
  if (begins && suspects_come_first(record)) return;
  const auto comes = [](const SessionRecord& other) { return !other.is_suspended; };
  const bool others_come = of_others(record.domain, record.uid, comes) != nullptr;
  if (!tell_of(record, *engine, others_come)) return;
  engine->users.insert(record.uid);
  if (!std::exchange(record.was_served, true)) ++served_;
  audit(record, begins ? "began" : "goes on in the next engine");
}

/// Whether sessions that may have lost the last engine's device are still to come to this session's
/// engine: it lets them do their work again one at a time, beside nobody.
bool Registry::suspects_come_first(const SessionRecord& record) const {
  return std::ranges::any_of(sessions_, [&](const auto& each) {
    const SessionRecord& other = each.second;
    return other.suspected_of != ErrorCode::kNone && other.state == State::kReady &&
           !other.is_suspended && other.domain == record.domain;
  });
}

void Registry::tell(SessionRecord& record) {
  const EngineProcess* const engine = has_news(record) ? engines_.find(record.engine) : nullptr;
  if (engine != nullptr) tell_news(record, *engine);
}

void Registry::refuse(const SessionRecord& record, const Error& reason) {
  log_of_user(record.uid, LogLevel::kWarning, "session {} ({}) refused: {}", record.id, who(record),
              reason.message);
  send_refusal(record.ends.socket.get(), reason);
}

/// What administrators who keep accounts want to see of each session.
void Registry::audit(const SessionRecord& record, std::string_view what) const {
  const LogLevel level = rules_.config().audit ? LogLevel::kInfo : LogLevel::kDebug;
  log_of_user(record.uid, level, "session {} ({}) {}", record.id, who(record), what);
}

/// Gives the client its ends. On failure the deadline is now, and the next look drops it.
void Registry::welcome(SessionRecord& record, const EngineProcess& engine) {
  record.deadline = Clock::now() + kEngineTimeout;
  const Config& config = rules_.config();
  const std::uint64_t memory = config.memory_of_sessions(engine.device.total_memory);
  record.memory_limit = std::min(config.memory_limit.bytes_of(memory), record.wished_memory);
  record.user_memory = record.user.memory.bytes_of(memory);
  auto made = ipc::NewSession::make(runtime_dir_, engine.device, record.memory_limit);
  if (!made) {
    refuse(record, made.error());
    record.deadline = Clock::now();
    return;
  }
  auto book = Book::make();
  if (!book) {
    refuse(record, book.error());
    record.deadline = Clock::now();
    return;
  }
  record.book = std::move(*book);
  ipc::Welcome welcome;
  welcome.session = record.id;
  if (const auto sent = ipc::send_welcome(record.ends.socket.get(), welcome, &*made); !sent) {
    log_debug("session {}: {}", record.id, sent.error().message);
    record.deadline = Clock::now();
    return;
  }
  record.ends.from_client = std::move(made->daemon.from_client);
  record.ends.to_client = std::move(made->daemon.to_client);
  record.segment = std::move(made->segment);
  record.state = State::kReady;
}

void Registry::hold(std::uint64_t id, Book::Key key, UniqueFd memory) {
  const auto found = sessions_.find(id);
  if (found == sessions_.end()) return;
  SessionRecord& record = found->second;
  record.held.insert_or_assign(key, SessionRecord::Held{std::move(memory), record.engine});
}

void Registry::let_go(std::uint64_t id, Book::Key key) {
  const auto found = sessions_.find(id);
  if (found != sessions_.end()) found->second.held.erase(key);
}

void Registry::add_to(PollSet& polls) const {
  for (const auto& [id, record] : sessions_) {
    const EngineProcess* const engine = record.state == State::kReady ? engines_.of(record.domain)
                                        : has_news(record)            ? engines_.find(record.engine)
                                                                      : nullptr;
    if (engine != nullptr) polls.add(engine->link().fd(), POLLOUT);
    if (record.state == State::kServing) continue;
    if (!record.is_suspended) polls.add_deadline(record.deadline);
    // Of events nobody asked for, only that the client is gone comes.
    polls.add(record.ends.socket.get(), 0);
  }
}

void Registry::service() {
  for (auto session = sessions_.begin(); session != sessions_.end();) {
    if (service_one(session->second)) {
      ++session;
      continue;
    }
    if (const EngineProcess* const engine = engines_.of(session->second.domain))
      tell_gone(session->second, *engine);
    session = sessions_.erase(session);
  }
}

/// False when the session is over.
bool Registry::service_one(SessionRecord& record) {
  if (record.state == State::kServing) {
    tell(record);
    return true;
  }
  if ((poll_now(record.ends.socket.get(), 0) & (POLLHUP | POLLERR)) != 0) return false;
  go_on(record);
  if (record.state == State::kServing || record.is_suspended) return true;
  std::string why = engines_.trouble(record.domain);
  if (why.empty() && Clock::now() < record.deadline) return true;
  if (why.empty()) why = "slate's engine is not up";
  turn_away(record, {ErrorCode::kInitialization, why});
  return false;
}

/// Tells the client of a session that no engine serves.
void Registry::turn_away(const SessionRecord& record, const Error& reason) {
  if (record.state == State::kWaiting) return refuse(record, reason);
  if (!record.segment) return;
  ipc::mark_session(record.segment.status(), record.ends.to_client.get(), ipc::SessionState::kEnded,
                    reason);
}

void Registry::set(std::uint64_t id, const Standing& standing) {
  SessionRecord& record = sessions_.at(id);
  record.standing = standing;
  if (record.state != State::kServing) return;  // it is told with the session
  record.standing_told = false;
  tell(record);
}

/// The client hears it from here, so that no engine keeps the words back. The next engine does not
/// get a session that was marked.
void Registry::end(std::uint64_t id, const std::string& reason) {
  const auto found = sessions_.find(id);
  SessionRecord& record = found->second;
  const Error error{ErrorCode::kUnavailable, reason};
  if (record.state == State::kWaiting) {
    refuse(record, error);
    sessions_.erase(found);
    return;
  }
  ipc::mark_session(record.segment.status(), record.ends.to_client.get(), ipc::SessionState::kEnded,
                    error);
  if (record.state == State::kReady) {
    sessions_.erase(found);
    return;
  }
  record.end_untold = reason;
  tell(record);
}

void Registry::session_ended(std::uint64_t id, std::uint64_t engine, const std::string& refusal) {
  const auto found = sessions_.find(id);
  if (found == sessions_.end() || found->second.engine != engine) return;
  const SessionRecord& record = found->second;
  audit(record, refusal.empty() ? "ended" : "was refused by the engine");
  if (!refusal.empty()) {
    ipc::mark_session(record.segment.status(), record.ends.to_client.get(),
                      ipc::SessionState::kEnded, {ErrorCode::kUnavailable, refusal});
  }
  sessions_.erase(found);
}

void Registry::move(std::uint64_t id, const Domain& domain, bool when_idle) {
  const auto found = sessions_.find(id);
  if (found == sessions_.end()) return;
  SessionRecord& record = found->second;
  record.domain = domain;
  (void)engines_.of(domain);  // it starts meanwhile
  if (record.state != State::kServing) return;
  record.leave_untold = true;
  record.leaves_when_idle = when_idle;
  tell(record);
}

Result<void> Registry::suspend(std::uint64_t id) {
  SessionRecord& record = sessions_.at(id);
  if (record.is_suspended) return {};
  if (record.state == State::kServing) {
    if (const auto why = record.book->why_not())
      return fail(ErrorCode::kUnavailable, fmt::format("session {} cannot leave: {}", id, *why));
    record.leave_untold = true;
  }
  record.is_suspended = true;
  tell(record);
  return {};
}

void Registry::resume(std::uint64_t id) {
  SessionRecord& record = sessions_.at(id);
  if (!std::exchange(record.is_suspended, false)) return;
  record.deadline = Clock::now() + kEngineTimeout;
  go_on(record);
}

void Registry::leave_for(const Domain& domain, const EngineProcess& engine) {
  const auto leaves = [&](const SessionRecord& record) {
    return record.domain == domain && record.state == State::kServing &&
           record.engine != engine.serial;
  };
  const bool some_wait = std::ranges::any_of(
      sessions_, [&](const auto& each) { return leaves(each.second) && each.second.waits; });
  for (auto& [id, record] : sessions_) {
    if (leaves(record)) move(id, domain, some_wait && !record.waits);
  }
}

void Registry::session_left(std::uint64_t id, std::uint64_t engine) {
  const auto found = sessions_.find(id);
  if (found == sessions_.end() || found->second.engine != engine) return;
  SessionRecord& record = found->second;
  audit(record, "left its engine for that of domain " + domain_name(record.domain));
  record.suspected_of = ErrorCode::kNone;
  wait_for_next(record);
  go_on(record);
}

void Registry::session_stays(std::uint64_t id, const std::string& why) {
  const auto found = sessions_.find(id);
  if (found == sessions_.end()) return;
  SessionRecord& record = found->second;
  record.leave_untold = false;
  record.is_suspended = false;
  record.domain = engines_.domain_of(record.engine).value_or(record.domain);
  log_of_user(record.uid, LogLevel::kWarning, "session {} ({}) stays in its engine: {}", id,
              who(record), why);
}

void Registry::session_unfenced(std::uint64_t id, bool waits) {
  const auto found = sessions_.find(id);
  if (found == sessions_.end()) return;
  SessionRecord& record = found->second;
  record.is_unfenced = true;
  const EngineProcess* const engine = engines_.find(record.engine);
  const bool has_others = engine != nullptr && std::ranges::any_of(engine->users, [&](auto user) {
                            return user != record.uid;
                          });
  const Domain own{Domain::Kind::kUser, record.uid};
  if (has_others && record.domain == Domain{}) return move(id, own);
  record.stay_untold = waits;
  tell(record);
}

void Registry::session_waits(std::uint64_t id) {
  const auto found = sessions_.find(id);
  if (found == sessions_.end()) return;
  SessionRecord& record = found->second;
  record.waits = true;
  const EngineProcess* const present = engines_.of(record.domain);
  if (present == nullptr || present->serial != record.engine) return move(id, record.domain);
  // It leaves when the new one is ready.
  if (!engines_.refresh(record.domain)) move(id, {Domain::Kind::kUser, record.uid});
}

nlohmann::json Registry::hand_over(Handover& handover) const {
  nlohmann::json sessions = nlohmann::json::array();
  for (const auto& [id, record] : sessions_) sessions.push_back(to_json(record, handover));
  return {{"sessions", sessions}, {"next_id", next_id_}, {"served", served_}};
}

Result<void> Registry::take_over(const nlohmann::json& state) {
  next_id_ = state.at("next_id").get<std::uint64_t>();
  served_ = state.at("served").get<std::uint64_t>();
  for (const nlohmann::json& each : state.at("sessions")) {
    auto record = session_from(each);
    if (!record) return std::unexpected(record.error());
    const std::uint64_t id = record->id;
    sessions_.emplace(id, std::move(*record));
  }
  return {};
}

bool Registry::uses(std::uint64_t engine) const {
  return std::ranges::any_of(sessions_,
                             [&](const auto& each) { return each.second.engine == engine; });
}

bool Registry::has_sessions(const Domain& domain) const {
  return std::ranges::any_of(sessions_,
                             [&](const auto& each) { return each.second.domain == domain; });
}

/// The session waits for the engine of its domain.
void Registry::wait_for_next(SessionRecord& record) {
  record.state = State::kReady;
  record.engine = 0;
  record.leave_untold = record.leaves_when_idle = record.stay_untold = record.waits = false;
  record.deadline = Clock::now() + kEngineTimeout;
  for (auto& [key, held] : record.held) held.engine = 0;
}

void Registry::engine_died(const EngineProcess& engine, const Error& cause) {
  const std::uint64_t culprit = engine.culprit;
  for (auto session = sessions_.begin(); session != sessions_.end();) {
    SessionRecord& record = session->second;
    if (record.state != State::kServing || record.engine != engine.serial) {
      ++session;
      continue;
    }
    const bool begun = !untouched(record);
    const auto reason = !begun                 ? std::nullopt
                        : record.id == culprit ? std::optional<std::string>("it is the cause")
                                               : why_lost(record);
    if (reason) {
      audit(record, "was lost with the engine: " + *reason);
      ipc::mark_session(record.segment.status(), record.ends.to_client.get(),
                        ipc::SessionState::kFailed, cause);
      session = sessions_.erase(session);
      continue;
    }
    log_debug("session {} goes to the next engine", record.id);
    const bool is_suspect = begun && culprit == 0 && is_sticky(cause.code);
    record.suspected_of = is_suspect ? cause.code : ErrorCode::kNone;
    if (begun) {
      const bool made_progress = record.book->taken() != record.taken_at_loss;
      if (culprit == 0) record.losses = made_progress ? 1 : record.losses + 1;
      record.taken_at_loss = record.book->taken();
    } else {
      record.held.clear();
    }
    wait_for_next(record);
    ++session;
  }
}

std::optional<std::uint32_t> Registry::only_user(std::uint64_t engine) const {
  std::optional<std::uint32_t> user;
  for (const auto& [id, record] : sessions_) {
    if (record.state != State::kServing || record.engine != engine) continue;
    if (user && *user != record.uid) return std::nullopt;
    user = record.uid;
  }
  return user;
}

bool Registry::has_others_than(std::uint32_t uid) const {
  return std::ranges::any_of(sessions_, [uid](const auto& each) { return each.second.uid != uid; });
}

void Registry::refuse_waiting(const Error& reason) {
  for (auto session = sessions_.begin(); session != sessions_.end();) {
    SessionRecord& record = session->second;
    if (record.state == State::kServing) {
      ++session;
      continue;
    }
    turn_away(record, reason);
    session = sessions_.erase(session);
  }
}

void Registry::end_all(const std::string& reason) {
  const Error error{ErrorCode::kUnavailable, reason};
  refuse_waiting(error);
  for (auto& [id, record] : sessions_) {
    ipc::mark_session(record.segment.status(), record.ends.to_client.get(),
                      ipc::SessionState::kEnded, error);
  }
  sessions_.clear();
}

}  // namespace slate::daemon
