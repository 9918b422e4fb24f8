#include "client/session/waiting.h"

#include "client/session/session.h"

namespace slate::client {

using ipc::CommandType;

Result<std::uint64_t> Waiting::begin_own_stream() {
  return streams_.create(ipc::kStreamNonBlocking, 0);
}

Result<void> Waiting::end_own_stream(std::uint64_t stream, Result<void> done) {
  if (done) done = ask_to_synchronize(ipc::TargetKind::kStream, stream);
  (void)streams_.destroy(stream);
  return done;
}

/// What the status page tells; none: only the daemon knows.
std::optional<bool> Waiting::known_finished(ipc::TargetKind kind, std::uint64_t id) const {
  switch (kind) {
    case ipc::TargetKind::kSession:
      return streams_.progress().finished_all(false);
    case ipc::TargetKind::kStream:
      if (id == ipc::kDefaultStream) return streams_.progress().finished_all(true);
      return streams_.progress().finished(streams_.progress_of(id));
    case ipc::TargetKind::kEvent: {
      const auto entry = events_.table().find(id);
      // Other programs record those too.
      if (!entry || (entry->flags & kEventShared) != 0) return std::nullopt;
      return entry->mark == 0 ? true : streams_.progress().reached(entry->mark);
    }
  }
  return std::nullopt;
}

/// Of the last record of an event, or of what was sent to one stream; 0: none.
std::uint64_t Waiting::mark_of(ipc::TargetKind kind, std::uint64_t id) const {
  if (kind == ipc::TargetKind::kEvent) {
    const auto entry = events_.table().find(id);
    return entry ? entry->mark : 0;
  }
  if (kind != ipc::TargetKind::kStream || id == ipc::kDefaultStream) return 0;
  const std::uint32_t progress = streams_.progress_of(id);
  return ProgressTable::mark_of(progress, streams_.progress().sent(progress));
}

Result<bool> Waiting::finished(ipc::TargetKind kind, std::uint64_t id) {
  const std::uint64_t mark = mark_of(kind, id);
  if (const auto known = known_finished(kind, id)) {
    if (*known) guard_.open_if_done();
    if (*known || mark == 0 || !streams_.progress().may_lag(mark)) return *known;
  }
  const auto over = ask_finished(kind, id);
  if (over && *over && mark != 0) streams_.progress().confirm_mark(mark);
  guard_.open_if_done();
  return over;
}

Result<bool> Waiting::ask_finished(ipc::TargetKind kind, std::uint64_t id) {
  const auto reply = wire_.call<ipc::QueryReply>(CommandType::kQuery, ipc::Target{kind, 0, id});
  if (!reply) return std::unexpected(reply.error());
  return reply->finished != 0;
}

/// The daemon may know it before it tells it in the status page; later queries must not say less.
Result<void> Waiting::ask_to_synchronize(ipc::TargetKind kind, std::uint64_t id) {
  const bool one_stream = kind == ipc::TargetKind::kStream && id != ipc::kDefaultStream;
  const std::uint32_t entry = one_stream ? streams_.progress_of(id) : ipc::kNoProgress;
  const std::uint64_t sent = streams_.progress().sent(entry);
  std::uint64_t mark = 0;
  ProgressTable::Snapshot all;
  if (kind == ipc::TargetKind::kEvent) {
    if (const auto event = events_.table().find(id)) mark = event->mark;
  } else if (!one_stream) {
    streams_.progress().sent(kind == ipc::TargetKind::kStream, all);
  }
  Result<bool> over = true;
  const auto is_over = [&] {
    over = finished(kind, id);
    return over.value_or(true);
  };
  const auto answered = wire_.channel().call_unless(
      CommandType::kSynchronize, ipc::bytes_of(ipc::Target{kind, 0, id}), is_over);
  if (!answered) return std::unexpected(answered.error());
  if (!over) return std::unexpected(over.error());
  if (kind == ipc::TargetKind::kEvent) {
    if (mark != 0) streams_.progress().confirm_mark(mark);
  } else if (one_stream) {
    streams_.progress().confirm(entry, sent);
  } else {
    streams_.progress().confirm(all);
  }
  return {};
}

Result<void> Waiting::synchronize(ipc::TargetKind kind, std::uint64_t id) {
  const std::uint64_t sent = streams_.progress().newest();
  auto done = wait_until_finished(kind, id);
  if (done) streams_.progress().wait_ended(sent);
  guard_.open_if_done();
  return done;
}

Result<void> Waiting::wait_to_free() {
  constexpr auto kAll = ipc::TargetKind::kSession;
  if (known_finished(kAll, 0).value_or(false)) return {};
  return ask_to_synchronize(kAll, 0);
}

Result<void> Waiting::wait_for_turn(std::uint64_t stream) {
  const auto entry = streams_.table().find(stream);
  const bool ordered = entry && (entry->flags & ipc::kStreamNonBlocking) == 0;
  if (!ordered || streams_.progress().finished_all(true).value_or(false))
    return synchronize(ipc::TargetKind::kStream, stream);
  const auto event = events_.create(ipc::kEventNoTiming);
  if (!event) return std::unexpected(event.error());
  auto done = events_.record(*event, stream);
  if (done) done = synchronize(ipc::TargetKind::kEvent, *event);
  const auto destroyed = events_.destroy(*event);
  return done ? destroyed : done;
}

Result<void> Waiting::wait_until_finished(ipc::TargetKind kind, std::uint64_t id) {
  if (const auto known = known_finished(kind, id)) {
    // Work that is about to end is waited for without telling the daemon.
    const bool ended = *known || wire_.channel().spin_until(
                                     [&] { return known_finished(kind, id).value_or(false); });
    if (ended) {
      // When nothing was heard from the daemon just now: is it still there?
      if (auto ok = *known ? wire_.channel().check_now() : wire_.channel().check(); !ok) return ok;
      return session_.earlier_error();
    }
  }
  auto done = ask_to_synchronize(kind, id);
  if (!done) return done;
  return session_.check();  // what the commands before it came to is known by now
}

Result<bool> Waiting::reached(std::uint64_t event) {
  if (auto ok = wire_.channel().check(); !ok) return std::unexpected(ok.error());
  if (const auto known = known_finished(ipc::TargetKind::kEvent, event)) return *known;
  return ask_finished(ipc::TargetKind::kEvent, event);
}

}  // namespace slate::client
