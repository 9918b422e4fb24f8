#include "daemon/supervisor/registry.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/log.h"
#include "base/user_log.h"
#include "daemon/supervisor/reception.h"

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

Registry::Registry(std::string runtime_dir, const UserRules& rules, ProgramStore& programs)
    : runtime_dir_(std::move(runtime_dir)), rules_(rules), programs_(programs) {}

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

void Registry::greet(const ipc::Hello& hello, ipc::Visitor visitor, EngineProcess* engine,
                     const std::string& refusal) {
  SessionRecord record;
  record.id = next_id_++;
  record.pid = static_cast<std::uint32_t>(visitor.pid);
  const Identity who{visitor.uid, std::move(visitor.groups)};
  record.uid = who.uid;
  record.user = rules_.of(who);
  record.program = display_name(hello.program, sizeof(hello.program));
  record.max_blocking_ms = rules_.max_blocking_of(who, record.program);
  record.since = Clock::now();
  record.deadline = record.since + kEngineTimeout;
  record.ends.socket = std::move(visitor.socket);
  if (!refusal.empty()) return refuse(record, {ErrorCode::kInitialization, refusal});
  if (const auto reason = too_many(who)) return refuse(record, *reason);
  record.standing = at_start(rules_, record.program, record.uid, wishes_of(hello),
                             programs_.find(record.program, record.uid));
  const auto id = record.id;
  SessionRecord& kept = sessions_.emplace(id, std::move(record)).first->second;
  if (engine == nullptr) return;
  welcome(kept, *engine);
  // At once: a program that ends soon has sent its commands.
  if (kept.state == State::kReady) hand_over(kept, *engine);
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
  record.memory_limit = rules_.config().memory_limit.bytes_of(engine.device.total_memory);
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

/// False: the link has no room for now. What was handed over stays so.
bool Registry::hand_over_memory(SessionRecord& record, const EngineProcess& engine) {
  for (auto& [key, held] : record.held) {
    if (held.handed_over) continue;
    const int fds[] = {held.memory.get()};
    const LinkHeader header{.type = LinkType::kHold,
                            .session = record.id,
                            .number = key.second,
                            .flags = static_cast<std::uint32_t>(key.first)};
    if (!engine.link().try_send(header, {}, fds)) return false;
    held.handed_over = true;
  }
  return true;
}

void Registry::hand_over(SessionRecord& record, const EngineProcess& engine) {
  if (!hand_over_memory(record, engine)) return;
  const int fds[] = {record.ends.from_client.get(), record.ends.to_client.get(),
                     record.ends.socket.get(), record.segment.fd(), record.book->fd()};
  const LinkHeader header{.type = LinkType::kAddSession,
                          .session = record.id,
                          .limit = record.memory_limit,
                          .user_limit = record.user.memory.bytes_of(engine.device.total_memory),
                          .pid = record.pid,
                          .uid = record.uid,
                          .flags = record.is_suspect ? kSuspect : 0,
                          .priority = record.standing.now.priority,
                          .weight = record.standing.now.weight,
                          .user_weight = record.user.weight,
                          .max_blocking_ms = record.max_blocking_ms};
  const bool begins = record.book->is_blank();  // the engine writes there as soon as it has it
  if (const auto sent = engine.link().try_send(header, record.program, fds); !sent) {
    // A busy engine: soon. Or a dying one: the next one gets it.
    log_debug("session {} not handed over: {}", record.id, sent.error().message);
    return;
  }
  record.state = State::kServing;
  record.standing_told = true;
  ++served_;
  audit(record, begins ? "began" : "goes on in the next engine");
}

void Registry::hold(std::uint64_t id, Book::Key key, UniqueFd memory) {
  const auto found = sessions_.find(id);
  if (found == sessions_.end()) return;
  found->second.held.insert_or_assign(key, SessionRecord::Held{std::move(memory), true});
}

void Registry::let_go(std::uint64_t id, Book::Key key) {
  const auto found = sessions_.find(id);
  if (found != sessions_.end()) found->second.held.erase(key);
}

void Registry::engine_ready(EngineProcess& engine) {
  for (auto& [id, record] : sessions_) {
    if (record.state == State::kWaiting) welcome(record, engine);
    if (record.state == State::kReady) hand_over(record, engine);
  }
}

void Registry::add_to(PollSet& polls, const EngineProcess* engine) const {
  for (const auto& [id, record] : sessions_) {
    const bool has_news = !record.standing_told || !record.end_untold.empty();
    if (engine != nullptr && (record.state == State::kReady || has_news))
      polls.add(engine->link().fd(), POLLOUT);
    if (record.state == State::kServing) continue;
    polls.add_deadline(record.deadline);
    // Of events nobody asked for, only that the client is gone comes.
    polls.add(record.ends.socket.get(), 0);
  }
}

void Registry::service(EngineProcess* engine) {
  for (auto session = sessions_.begin(); session != sessions_.end();) {
    if (service_one(session->second, engine)) {
      ++session;
      continue;
    }
    if (engine != nullptr) tell_gone(session->second, *engine);
    session = sessions_.erase(session);
  }
}

/// The engine has memory of a session that does not come to it any more.
void Registry::tell_gone(const SessionRecord& record, const EngineProcess& engine) {
  const auto is_there = [](const auto& each) { return each.second.handed_over; };
  if (std::ranges::any_of(record.held, is_there))
    (void)engine.link().try_send({.type = LinkType::kEndSession, .session = record.id});
}

/// False when the session is over.
bool Registry::service_one(SessionRecord& record, EngineProcess* engine) {
  if (record.state == State::kServing) {
    if (!record.standing_told && engine != nullptr) tell_standing(record, *engine);
    if (!record.end_untold.empty() && engine != nullptr) tell_end(record, *engine);
    return true;
  }
  if ((poll_now(record.ends.socket.get(), 0) & (POLLHUP | POLLERR)) != 0) return false;
  if (record.state == State::kReady && engine != nullptr) hand_over(record, *engine);
  if (record.state == State::kServing || Clock::now() < record.deadline) return true;
  if (record.state == State::kWaiting) {
    refuse(record, {ErrorCode::kInitialization, "slate's engine is not up"});
  } else {
    ipc::mark_session(record.segment.status(), record.ends.to_client.get(),
                      ipc::SessionState::kFailed,
                      {ErrorCode::kUnavailable, "slate's engine is not up"});
  }
  return false;
}

void Registry::set(std::uint64_t id, const Standing& standing, EngineProcess* engine) {
  SessionRecord& record = sessions_.at(id);
  record.standing = standing;
  if (record.state != State::kServing) return;  // it is told with the session
  record.standing_told = false;
  if (engine != nullptr) tell_standing(record, *engine);
}

void Registry::tell_standing(SessionRecord& record, const EngineProcess& engine) {
  const SessionSettings& now = record.standing.now;
  record.standing_told = engine.link()
                             .try_send({.type = LinkType::kSetSession,
                                        .session = record.id,
                                        .priority = now.priority,
                                        .weight = now.weight})
                             .has_value();
}

/// The client hears it from here, so that no engine keeps the words back. The next engine does not
/// get a session that was marked.
void Registry::end(std::uint64_t id, const std::string& reason, EngineProcess* engine) {
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
  if (engine != nullptr) tell_end(record, *engine);
}

void Registry::tell_end(SessionRecord& record, const EngineProcess& engine) {
  const auto told = engine.link().try_send({.type = LinkType::kEndSession, .session = record.id},
                                           record.end_untold);
  if (told) record.end_untold.clear();
}

void Registry::session_ended(std::uint64_t id, const std::string& refusal) {
  const auto found = sessions_.find(id);
  if (found == sessions_.end()) return;
  const SessionRecord& record = found->second;
  audit(record, refusal.empty() ? "ended" : "was refused by the engine");
  if (!refusal.empty()) {
    ipc::mark_session(record.segment.status(), record.ends.to_client.get(),
                      ipc::SessionState::kEnded, {ErrorCode::kUnavailable, refusal});
  }
  sessions_.erase(found);
}

void Registry::engine_died(const Error& cause, std::uint64_t culprit) {
  for (auto session = sessions_.begin(); session != sessions_.end();) {
    SessionRecord& record = session->second;
    if (record.state != State::kServing) {
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
    record.state = State::kReady;
    record.deadline = Clock::now() + kEngineTimeout;
    record.is_suspect = begun && culprit == 0 && is_sticky(cause.code);
    if (begun) {
      const bool made_progress = record.book->taken() != record.taken_at_loss;
      if (culprit == 0) record.losses = made_progress ? 1 : record.losses + 1;
      record.taken_at_loss = record.book->taken();
    } else {
      record.held.clear();
    }
    for (auto& [key, held] : record.held) held.handed_over = false;
    --served_;
    ++session;
  }
}

std::optional<std::uint32_t> Registry::only_user() const {
  std::optional<std::uint32_t> user;
  for (const auto& [id, record] : sessions_) {
    if (record.state != State::kServing) continue;
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
    if (record.state == State::kWaiting) {
      refuse(record, reason);
    } else if (record.segment) {
      ipc::mark_session(record.segment.status(), record.ends.to_client.get(),
                        ipc::SessionState::kEnded, reason);
    }
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
