#include "client/session/program_events.h"

#include "client/session/captures.h"
#include "client/session/program_streams.h"

namespace slate::client {
namespace {

using ipc::TargetKind;

/// The id of an event that can be one end of a measurement.
Allowed<std::uint64_t> measured(Session& session, std::uint64_t handle) {
  auto id = event_of(session, handle);
  if (!id) return id;
  if (auto ok = session.captures().check_event(*id, Captures::Asks::kWhen); !ok) {
    return std::unexpected(ok.error());
  }
  const auto entry = session.events().table().find(*id);
  if (!entry || (entry->flags & ipc::kEventNoTiming) != 0 || (entry->flags & kEventRecorded) == 0) {
    return refuse(Refusal::kInvalidHandle);
  }
  return id;
}

/// The id of an event whose progress the program may ask for now.
Allowed<std::uint64_t> asked(Session& session, std::uint64_t handle) {
  auto id = event_of(session, handle);
  if (!id) return id;
  if (auto ok = session.captures().check_event(*id, Captures::Asks::kHowFar); !ok) {
    return std::unexpected(ok.error());
  }
  if (auto ok = session.captures().check_allows(); !ok) return std::unexpected(ok.error());
  return id;
}

}  // namespace

Allowed<std::uint64_t> create_program_event(Session& session, unsigned flags) {
  constexpr unsigned kKnown = kEventBlockingSync | kEventDisableTiming | kEventInterprocess;
  const bool timed = (flags & kEventDisableTiming) == 0;
  const bool shared = (flags & kEventInterprocess) != 0;
  if ((flags & ~kKnown) != 0 || (shared && timed)) return refuse(Refusal::kInvalidValue);
  return session.events().create((timed ? 0 : ipc::kEventNoTiming) | (shared ? kEventShared : 0));
}

Allowed<void> destroy_program_event(Session& session, std::uint64_t event) {
  session.captures().event_ends(event);
  return session.events().destroy(event);
}

Allowed<void> record_event(Session& session, std::uint64_t event, std::uint64_t stream,
                           bool external) {
  const auto id = event_of(session, event);
  if (!id) return std::unexpected(id.error());
  if (external) {
    const auto taken = session.captures().add(stream, RecordNode{*id});
    return taken ? *taken : refuse(Refusal::kIllegalState);
  }
  if (auto taken = session.captures().record(stream, *id)) return *taken;
  return session.events().record(*id, stream);
}

Allowed<void> wait_for_event(Session& session, std::uint64_t stream, std::uint64_t event,
                             bool external) {
  const auto id = event_of(session, event);
  if (!id) return std::unexpected(id.error());
  if (external) {
    const auto taken = session.captures().add(stream, WaitNode{*id});
    return taken ? *taken : refuse(Refusal::kIllegalState);
  }
  if (auto taken = session.captures().wait(stream, *id)) return *taken;
  return session.events().wait(stream, *id);
}

Allowed<void> query_event(Session& session, std::uint64_t event) {
  const auto id = asked(session, event);
  if (!id) return std::unexpected(id.error());
  const auto finished = session.waiting().finished(TargetKind::kEvent, *id);
  if (!finished) return std::unexpected<Refused>(finished.error());
  if (!*finished) return refuse(Refusal::kNotReady);
  return session.earlier_error();
}

Allowed<void> synchronize_event(Session& session, std::uint64_t event) {
  const auto id = asked(session, event);
  if (!id) return std::unexpected(id.error());
  auto outcome = session.waiting().synchronize(TargetKind::kEvent, *id);
  session.printing().write();
  return outcome;
}

Allowed<float> elapsed_between(Session& session, std::uint64_t start, std::uint64_t stop) {
  const auto first = measured(session, start);
  if (!first) return std::unexpected(first.error());
  const auto last = measured(session, stop);
  if (!last) return std::unexpected(last.error());
  for (const std::uint64_t id : {*first, *last}) {
    auto finished = session.waiting().finished(TargetKind::kEvent, id);
    if (!finished) return std::unexpected<Refused>(std::move(finished.error()));
    if (!*finished) return refuse(Refusal::kNotReady);
  }
  auto elapsed = session.events().elapsed_ms(*first, *last);
  if (!elapsed) return std::unexpected<Refused>(std::move(elapsed.error()));
  return *elapsed;
}

Allowed<ipc::ShareHandle> export_program_event(Session& session, std::uint64_t event) {
  const auto id = event_of(session, event);
  if (!id) return std::unexpected(id.error());
  const auto entry = session.events().table().find(*id);
  if (!entry || (entry->flags & kEventShared) == 0) return refuse(Refusal::kInvalidHandle);
  return session.events().export_event(*id);
}

}  // namespace slate::client
