#include "daemon/supervisor/session_record.h"

#include <utility>

namespace slate::daemon {
namespace {

using nlohmann::json;

// As the members of a session stand in what is handed over: numbers and texts as they are.
template <typename T>
json json_of(const T& value) {
  return value;
}
template <typename T>
void read(const json& from, T& value) {
  from.get_to(value);
}

json json_of(const SessionSettings& settings) {
  return {settings.weight, settings.priority};
}
void read(const json& from, SessionSettings& settings) {
  read(from.at(0), settings.weight);
  read(from.at(1), settings.priority);
}

/// Only what a session that is there goes by.
json json_of(const UserSettings& user) {
  return {user.weight, user.memory.is_percent, user.memory.value};
}
void read(const json& from, UserSettings& user) {
  read(from.at(0), user.weight);
  read(from.at(1), user.memory.is_percent);
  read(from.at(2), user.memory.value);
}

json json_of(const Domain& domain) {
  return to_json(domain);
}
void read(const json& from, Domain& domain) {
  domain = domain_from(from);
}

/// Both programs read the same clock.
json json_of(const Clock::time_point& time) {
  return std::chrono::nanoseconds(time.time_since_epoch()).count();
}
void read(const json& from, Clock::time_point& time) {
  time = Clock::time_point(std::chrono::nanoseconds(from.get<std::int64_t>()));
}

/// Calls `archive(name, member)` for all members but descriptors and what they stand for.
template <typename Record, typename Archive>
void fields(Record& record, const Archive& archive) {
  archive("id", record.id);
  archive("pid", record.pid);
  archive("uid", record.uid);
  archive("user", record.user);
  archive("wished_memory", record.wished_memory);
  archive("memory_limit", record.memory_limit);
  archive("user_memory", record.user_memory);
  archive("program", record.program);
  archive("max_blocking_ms", record.max_blocking_ms);
  archive("now", record.standing.now);
  archive("most", record.standing.most);
  archive("standing_told", record.standing_told);
  archive("end_untold", record.end_untold);
  archive("domain", record.domain);
  archive("engine", record.engine);
  archive("leave_untold", record.leave_untold);
  archive("leaves_when_idle", record.leaves_when_idle);
  archive("stay_untold", record.stay_untold);
  archive("suspended", record.is_suspended);
  archive("unfenced", record.is_unfenced);
  archive("served", record.was_served);
  archive("waits", record.waits);
  archive("state", record.state);
  archive("since", record.since);
  archive("deadline", record.deadline);
  archive("losses", record.losses);
  archive("suspected_of", record.suspected_of);
  archive("taken_at_loss", record.taken_at_loss);
}

json to_json(const std::map<Book::Key, SessionRecord::Held>& held, Handover& handover) {
  json all = json::array();
  for (const auto& [key, each] : held) {
    all.push_back({{"kind", static_cast<std::uint32_t>(key.first)},
                   {"number", key.second},
                   {"memory", handover.pass(each.memory.get())},
                   {"engine", each.engine}});
  }
  return all;
}

/// What a session has from kReady on.
Result<void> take_ends(SessionRecord& record, const json& state) {
  record.ends.from_client = Handover::take(state.at("from_client"));
  record.ends.to_client = Handover::take(state.at("to_client"));
  auto segment = ipc::Segment::from_fd(Handover::take(state.at("segment")), true);
  if (!segment) return std::unexpected(segment.error());
  auto book = Book::from_fd(Handover::take(state.at("book")));
  if (!book) return std::unexpected(book.error());
  record.segment = std::move(*segment);
  record.book = std::move(*book);
  for (const json& each : state.at("held")) {
    const Book::Key key{static_cast<BookKind>(each.at("kind").get<std::uint32_t>()),
                        each.at("number").get<std::uint64_t>()};
    record.held.emplace(key, SessionRecord::Held{Handover::take(each.at("memory")),
                                                 each.at("engine").get<std::uint64_t>()});
  }
  return {};
}

}  // namespace

json to_json(const SessionRecord& record, Handover& handover) {
  json state;
  fields(record, [&](const char* name, const auto& member) { state[name] = json_of(member); });
  state["socket"] = handover.pass(record.ends.socket.get());
  if (record.state == SessionRecord::State::kWaiting) return state;
  state["from_client"] = handover.pass(record.ends.from_client.get());
  state["to_client"] = handover.pass(record.ends.to_client.get());
  state["segment"] = handover.pass(record.segment.fd());
  state["book"] = handover.pass(record.book->fd());
  state["held"] = to_json(record.held, handover);
  return state;
}

Result<SessionRecord> session_from(const json& state) {
  SessionRecord record;
  fields(record, [&](const char* name, auto& member) { read(state.at(name), member); });
  record.ends.socket = Handover::take(state.at("socket"));
  if (record.state == SessionRecord::State::kWaiting) return record;
  if (const auto taken = take_ends(record, state); !taken) return std::unexpected(taken.error());
  return record;
}

}  // namespace slate::daemon
