#include "daemon/supervisor/registry.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "base/log.h"

namespace slate::daemon {
namespace {

using namespace std::chrono_literals;
using State = SessionRecord::State;

constexpr auto kEngineTimeout = 30s;  // a driver may take its time to make a context
constexpr auto kHandshakeTimeout = 5s;

/// True for a session that came when its engine was dying: no command of it was taken, so it loses
/// nothing by starting over with the next engine. (A client that lies here replays its own ring.)
bool untouched(const SessionRecord& record) {
  const ipc::StatusPage& status = record.segment.status();
  return status.marked.load() == 0 && status.ring_head.load() == 0;
}

AskedSettings wishes_of(const ipc::Hello& hello) {
  AskedSettings wishes;
  if ((hello.wishes & ipc::kHasWeight) != 0) wishes.weight = hello.weight;
  if ((hello.wishes & ipc::kHasPriority) != 0) wishes.priority = hello.priority;
  return wishes;
}

}  // namespace

std::string display_name(const char* text, std::size_t size) {
  std::string name(text, strnlen(text, size));
  for (char& c : name) {
    if (c < ' ' || c > '~') c = '?';
  }
  return name;
}

void send_refusal(int to_client, const Error& reason) {
  ipc::Welcome welcome;
  welcome.status = static_cast<std::uint32_t>(reason.code);
  reason.message.copy(welcome.message, sizeof(welcome.message) - 1);
  if (const auto sent = ipc::send_welcome(to_client, welcome); !sent) {
    log_debug("refusal not delivered: {}", sent.error().message);
  }
}

Registry::Registry(std::string runtime_dir, const Config& config, ProgramStore& programs)
    : runtime_dir_(std::move(runtime_dir)), config_(config), programs_(programs) {}

Registry::~Registry() {
  while (!sessions_.empty()) drop(sessions_.begin());
}

bool Registry::meets_in(const std::string& directory) const {
  return std::ranges::any_of(sessions_, [&](const auto& each) {
    const SessionRecord& record = each.second;
    return record.directory == directory &&
           (record.state == State::kWaiting || record.state == State::kWelcomed);
  });
}

void Registry::greet(const ipc::Hello& hello, EngineProcess* engine, const std::string& refusal) {
  auto fifos = ipc::open_session_fifos(runtime_dir_, hello);
  if (!fifos) {
    log_debug("no way to answer a client: {}", fifos.error().message);
    return;
  }
  SessionRecord record;
  record.id = next_id_++;
  record.pid = hello.pid;
  record.uid = fifos->owner;
  record.program = display_name(hello.program, sizeof(hello.program));
  record.directory = display_name(hello.directory, sizeof(hello.directory));
  record.since = Clock::now();
  record.deadline = record.since + kEngineTimeout;
  record.fifos = std::move(*fifos);
  std::string reason = refusal;
  ErrorCode code = ErrorCode::kInitialization;
  if (hello.protocol != ipc::kProtocolVersion) {
    reason = fmt::format("slated speaks protocol {}, this program's libslate ({}) {}",
                         ipc::kProtocolVersion, display_name(hello.build, sizeof(hello.build)),
                         hello.protocol);
  } else if (reason.empty() && sessions_.size() >= config_.max_sessions) {
    code = ErrorCode::kLimit;
    reason = fmt::format("slated serves its limit of {} sessions", config_.max_sessions);
  }
  if (!reason.empty()) {
    refuse(record, {code, reason});
    clean(record);
    return;
  }
  record.standing = at_start(config_, record.program, record.uid, wishes_of(hello),
                             programs_.find(record.program, record.uid));
  const auto id = record.id;
  SessionRecord& kept = sessions_.emplace(id, std::move(record)).first->second;
  if (engine != nullptr) welcome(kept, *engine);
}

void Registry::refuse(const SessionRecord& record, const Error& reason) {
  log_warning("session {} (pid {}, {}) refused: {}", record.id, record.pid, record.program,
              reason.message);
  send_refusal(record.fifos.to_client.get(), reason);
}

/// Makes the segment and tells its name. On failure the deadline is now, and the next look drops
/// it.
void Registry::welcome(SessionRecord& record, const EngineProcess& engine) {
  record.deadline = Clock::now() + kHandshakeTimeout;
  record.state = State::kWelcomed;
  const std::string name =
      fmt::format("{}{}-{}", ipc::segment_prefix(runtime_dir_), getpid(), record.id);
  const std::uint64_t limit = config_.memory_limit.bytes_of(engine.device.total_memory);
  auto segment = ipc::Segment::create(name, record.uid, engine.device, limit);
  if (!segment) {
    refuse(record, segment.error());
    record.deadline = Clock::now();
    return;
  }
  record.segment = std::move(*segment);
  record.segment_name = name;
  ipc::Welcome welcome;
  welcome.session = record.id;
  welcome.segment_bytes = sizeof(ipc::SegmentLayout);
  name.copy(welcome.segment, sizeof(welcome.segment) - 1);
  if (const auto sent = ipc::send_welcome(record.fifos.to_client.get(), welcome); !sent) {
    log_debug("session {}: {}", record.id, sent.error().message);
    record.deadline = Clock::now();
  }
}

void Registry::hand_over(SessionRecord& record, const EngineProcess& engine) {
  const int fds[] = {record.fifos.from_client.get(), record.fifos.to_client.get(),
                     record.segment.fd()};
  const LinkHeader header{.type = LinkType::kAddSession,
                          .session = record.id,
                          .limit = config_.memory_limit.bytes_of(engine.device.total_memory),
                          .pid = record.pid,
                          .uid = record.uid,
                          .priority = record.standing.now.priority,
                          .weight = record.standing.now.weight};
  if (const auto sent = engine.link().try_send(header, record.program, fds); !sent) {
    // A busy engine: soon. Or a dying one: the next one gets it.
    log_debug("session {} not handed over: {}", record.id, sent.error().message);
    return;
  }
  record.state = State::kServing;
  record.standing_told = true;
  ++served_;
  log_debug("session {}: pid {}, {}", record.id, record.pid, record.program);
}

void Registry::engine_ready(EngineProcess& engine) {
  for (auto& [id, record] : sessions_) {
    if (record.state == State::kWaiting) welcome(record, engine);
    if (record.state == State::kReady) hand_over(record, engine);
  }
}

void Registry::add_to(PollSet& polls, const EngineProcess* engine) const {
  for (const auto& [id, record] : sessions_) {
    if (engine != nullptr && (record.state == State::kReady || !record.standing_told))
      polls.add(engine->link().fd(), POLLOUT);
    if (record.state == State::kServing) continue;
    polls.add_deadline(record.deadline);
    if (record.state == State::kWelcomed) polls.add(record.fifos.from_client.get(), POLLIN);
    // Of events nobody asked for, only the error that the reader is gone comes.
    polls.add(record.fifos.to_client.get(), 0);
  }
}

void Registry::service(EngineProcess* engine) {
  for (auto session = sessions_.begin(); session != sessions_.end();) {
    session = service_one(session->second, engine) ? std::next(session) : drop(session);
  }
}

/// False when the session is over.
bool Registry::service_one(SessionRecord& record, EngineProcess* engine) {
  if (record.state == State::kServing) {
    if (!record.standing_told && engine != nullptr) tell_standing(record, *engine);
    return true;
  }
  if ((poll_now(record.fifos.to_client.get(), 0) & POLLERR) != 0) return false;
  if (record.state == State::kWelcomed && !read_ready(record)) return false;
  if (record.state == State::kReady && engine != nullptr) hand_over(record, *engine);
  if (record.state == State::kServing || Clock::now() < record.deadline) return true;
  if (record.state == State::kWaiting) {
    refuse(record, {ErrorCode::kInitialization, "slate's engine is not up"});
  } else if (record.state == State::kReady) {
    ipc::mark_session(record.segment.status(), record.fifos.to_client.get(),
                      ipc::SessionState::kFailed,
                      {ErrorCode::kUnavailable, "slate's engine is not up"});
  } else {
    log_debug("session {} (pid {}) never said that it is ready", record.id, record.pid);
  }
  return false;
}

bool Registry::read_ready(SessionRecord& record) {
  const short events = poll_now(record.fifos.from_client.get(), POLLIN);
  if (events == 0) return true;
  char byte = 0;
  // One byte: those after it are wake-ups for the engine.
  const ssize_t got = ::read(record.fifos.from_client.get(), &byte, 1);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return true;
  if (got != 1 || byte != ipc::kReadyByte) return false;
  ipc::Segment::remove(record.segment_name);
  record.segment_name.clear();
  ipc::remove_session_directory(runtime_dir_, record.directory);
  record.state = State::kReady;
  record.deadline = Clock::now() + kEngineTimeout;
  return true;
}

void Registry::clean(SessionRecord& record) {
  if (!record.segment_name.empty()) ipc::Segment::remove(record.segment_name);
  record.segment_name.clear();
  if (record.state != State::kServing)
    ipc::remove_session_directory(runtime_dir_, record.directory);
}

Registry::Iterator Registry::drop(Iterator session) {
  clean(session->second);
  return sessions_.erase(session);
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

void Registry::session_ended(std::uint64_t id, const std::string& refusal) {
  const auto found = sessions_.find(id);
  if (found == sessions_.end()) return;
  const SessionRecord& record = found->second;
  if (!refusal.empty()) {
    ipc::mark_session(record.segment.status(), record.fifos.to_client.get(),
                      ipc::SessionState::kEnded, {ErrorCode::kUnavailable, refusal});
  }
  drop(found);
}

void Registry::engine_died(const Error& cause) {
  for (auto session = sessions_.begin(); session != sessions_.end();) {
    SessionRecord& record = session->second;
    if (record.state == State::kServing && !untouched(record)) {
      ipc::mark_session(record.segment.status(), record.fifos.to_client.get(),
                        ipc::SessionState::kFailed, cause);
      session = drop(session);
      continue;
    }
    if (record.state == State::kServing) {
      log_debug("session {} goes to the next engine", record.id);
      record.state = State::kReady;
      record.deadline = Clock::now() + kEngineTimeout;
      --served_;
    }
    ++session;
  }
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
      ipc::mark_session(record.segment.status(), record.fifos.to_client.get(),
                        ipc::SessionState::kEnded, reason);
    }
    session = drop(session);
  }
}

void Registry::end_all(const std::string& reason) {
  const Error error{ErrorCode::kUnavailable, reason};
  refuse_waiting(error);
  for (auto& [id, record] : sessions_) {
    ipc::mark_session(record.segment.status(), record.fifos.to_client.get(),
                      ipc::SessionState::kEnded, error);
  }
  while (!sessions_.empty()) drop(sessions_.begin());
}

}  // namespace slate::daemon
