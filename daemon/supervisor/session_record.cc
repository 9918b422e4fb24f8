#include "daemon/supervisor/session_record.h"

#include <fcntl.h>

#include <utility>

namespace slate::daemon {
namespace {

using nlohmann::json;

json to_json(const SessionSettings& settings) {
  return {{"weight", settings.weight}, {"priority", settings.priority}};
}

SessionSettings settings_from(const json& state) {
  return {state.at("weight").get<double>(), state.at("priority").get<std::int32_t>()};
}

json to_json(const UserSettings& user) {
  return {
      {"weight", user.weight}, {"memory", user.memory.value}, {"percent", user.memory.is_percent}};
}

UserSettings user_from(const json& state) {
  UserSettings user;
  user.weight = state.at("weight").get<double>();
  user.memory = {state.at("percent").get<bool>(), state.at("memory").get<std::uint64_t>()};
  return user;
}

/// Both programs read the same clock.
std::int64_t to_json(Clock::time_point time) {
  return std::chrono::nanoseconds(time.time_since_epoch()).count();
}

Clock::time_point time_from(const json& state) {
  return Clock::time_point(std::chrono::nanoseconds(state.get<std::int64_t>()));
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
  record.segment_fd = Handover::take(state.at("segment"));
  auto segment = ipc::Segment::from_fd(copy_of(record.segment_fd.get()));
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

UniqueFd copy_of(int fd) {
  return UniqueFd(::fcntl(fd, F_DUPFD_CLOEXEC, 0));
}

json to_json(const SessionRecord& record, Handover& handover) {
  json state = {{"id", record.id},
                {"pid", record.pid},
                {"uid", record.uid},
                {"user", to_json(record.user)},
                {"memory_limit", record.memory_limit},
                {"program", record.program},
                {"max_blocking_ms", record.max_blocking_ms},
                {"now", to_json(record.standing.now)},
                {"most", to_json(record.standing.most)},
                {"standing_told", record.standing_told},
                {"end_untold", record.end_untold},
                {"domain", to_json(record.domain)},
                {"engine", record.engine},
                {"leave_untold", record.leave_untold},
                {"stay_untold", record.stay_untold},
                {"suspended", record.is_suspended},
                {"unfenced", record.is_unfenced},
                {"served", record.was_served},
                {"state", static_cast<int>(record.state)},
                {"since", to_json(record.since)},
                {"deadline", to_json(record.deadline)},
                {"losses", record.losses},
                {"suspect", record.is_suspect},
                {"taken_at_loss", record.taken_at_loss},
                {"socket", handover.pass(record.ends.socket.get())}};
  if (record.state == SessionRecord::State::kWaiting) return state;
  state["from_client"] = handover.pass(record.ends.from_client.get());
  state["to_client"] = handover.pass(record.ends.to_client.get());
  state["segment"] = handover.pass(record.segment_fd.get());
  state["book"] = handover.pass(record.book->fd());
  state["held"] = to_json(record.held, handover);
  return state;
}

Result<SessionRecord> session_from(const json& state) {
  SessionRecord record;
  record.id = state.at("id").get<std::uint64_t>();
  record.pid = state.at("pid").get<std::uint32_t>();
  record.uid = state.at("uid").get<std::uint32_t>();
  record.user = user_from(state.at("user"));
  record.memory_limit = state.at("memory_limit").get<std::uint64_t>();
  record.program = state.at("program").get<std::string>();
  record.max_blocking_ms = state.at("max_blocking_ms").get<double>();
  record.standing = {settings_from(state.at("now")), settings_from(state.at("most"))};
  record.standing_told = state.at("standing_told").get<bool>();
  record.end_untold = state.at("end_untold").get<std::string>();
  record.domain = domain_from(state.at("domain"));
  record.engine = state.at("engine").get<std::uint64_t>();
  record.leave_untold = state.at("leave_untold").get<bool>();
  record.stay_untold = state.at("stay_untold").get<bool>();
  record.is_suspended = state.at("suspended").get<bool>();
  record.is_unfenced = state.at("unfenced").get<bool>();
  record.was_served = state.at("served").get<bool>();
  record.state = static_cast<SessionRecord::State>(state.at("state").get<int>());
  record.since = time_from(state.at("since"));
  record.deadline = time_from(state.at("deadline"));
  record.losses = state.at("losses").get<std::uint32_t>();
  record.is_suspect = state.at("suspect").get<bool>();
  record.taken_at_loss = state.at("taken_at_loss").get<std::uint64_t>();
  record.ends.socket = Handover::take(state.at("socket"));
  if (record.state == SessionRecord::State::kWaiting) return record;
  if (const auto taken = take_ends(record, state); !taken) return std::unexpected(taken.error());
  return record;
}

}  // namespace slate::daemon
