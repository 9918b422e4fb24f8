#include "daemon/supervisor/session_news.h"

#include <algorithm>

#include "base/log.h"

namespace slate::daemon {
namespace {

/// False: the link has no room for now. What was handed over stays so.
bool hand_over_memory(SessionRecord& record, const EngineProcess& engine) {
  for (auto& [key, held] : record.held) {
    if (held.engine == engine.serial) continue;
    const int fds[] = {held.memory.get()};
    const LinkHeader header{.type = LinkType::kHold,
                            .session = record.id,
                            .number = key.second,
                            .flags = static_cast<std::uint32_t>(key.first)};
    if (!engine.link().try_send(header, {}, fds)) return false;
    held.engine = engine.serial;
  }
  return true;
}

}  // namespace

bool tell_of(SessionRecord& record, const EngineProcess& engine, bool others_come) {
  if (!hand_over_memory(record, engine)) return false;
  const int fds[] = {record.ends.from_client.get(), record.ends.to_client.get(),
                     record.ends.socket.get(), record.segment.fd(), record.book->fd()};
  const LinkHeader header{.type = LinkType::kAddSession,
                          .code = record.suspected_of,
                          .session = record.id,
                          .limit = record.memory_limit,
                          .user_limit = record.user_memory,
                          .pid = record.pid,
                          .uid = record.uid,
                          .flags = others_come ? kOthersCome : 0,
                          .priority = record.standing.now.priority,
                          .weight = record.standing.now.weight,
                          .user_weight = record.user.weight,
                          .max_blocking_ms = record.max_blocking_ms};
  if (const auto sent = engine.link().try_send(header, record.program, fds); !sent) {
    // A busy engine: soon. Or a dying one: the next one gets it.
    log_debug("session {} not handed over: {}", record.id, sent.error().message);
    return false;
  }
  record.state = SessionRecord::State::kServing;
  record.engine = engine.serial;
  record.standing_told = true;
  return true;
}

bool has_news(const SessionRecord& record) {
  return !record.standing_told || record.leave_untold || record.stay_untold ||
         !record.end_untold.empty();
}

void tell_news(SessionRecord& record, const EngineProcess& engine) {
  const auto tell = [&](LinkHeader header, std::string_view text = {}) {
    header.session = record.id;
    return engine.link().try_send(header, text).has_value();
  };
  const SessionSettings& now = record.standing.now;
  if (!record.standing_told) {
    record.standing_told =
        tell({.type = LinkType::kSetSession, .priority = now.priority, .weight = now.weight});
  }
  if (record.leave_untold) {
    const std::uint32_t how =
        record.is_suspended ? kToHost : (record.leaves_when_idle ? kWhenIdle : 0);
    record.leave_untold = !tell({.type = LinkType::kLeave, .flags = how});
  }
  if (record.stay_untold) record.stay_untold = !tell({.type = LinkType::kSessionStays});
  if (record.end_untold.empty()) return;
  if (tell({.type = LinkType::kEndSession}, record.end_untold)) record.end_untold.clear();
}

void tell_gone(const SessionRecord& record, const EngineProcess& engine) {
  const auto is_there = [&](const auto& each) { return each.second.engine == engine.serial; };
  if (std::ranges::any_of(record.held, is_there))
    (void)engine.link().try_send({.type = LinkType::kEndSession, .session = record.id});
}

}  // namespace slate::daemon
