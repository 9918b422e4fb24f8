// Commands on streams and events, and waiting for them. An event's record keeps the device event of
// its last recording; while somebody waits for that one, a new recording takes another. Clients see
// most of what they wait for in their status page (StreamTable::publish) and do not ask.
#include <fmt/format.h>

#include "daemon/engine/session.h"

namespace slate::daemon {

using ipc::CommandType;

Result<void> Session::on(const Call<CommandType::kStreamCreate>& call) {
  return streams_.create(call.body.id, (call.body.flags & ipc::kStreamNonBlocking) == 0,
                         call.body.priority, call.body.progress);
}

Result<void> Session::on(const Call<CommandType::kStreamDestroy>& call) {
  // An open batch of launches would refer to it.
  executor_.flush(*client_);
  return streams_.destroy(call.body.id);
}

Result<void> Session::on(const Call<CommandType::kEventCreate>& call) {
  if (call.body.id == 0 || events_.contains(call.body.id)) {
    return slate::fail(ErrorCode::kProtocol,
                       fmt::format("event id {} is not a new one", call.body.id));
  }
  if (events_.size() >= kMostEvents) return slate::fail(ErrorCode::kLimit, "too many events");
  events_.emplace(call.body.id, EventRecord{(call.body.flags & ipc::kEventNoTiming) == 0, nullptr});
  return {};
}

Result<Session::EventRecord*> Session::find_event(std::uint64_t id) {
  const auto found = events_.find(id);
  if (found == events_.end()) return slate::fail(ErrorCode::kInvalidHandle, "no such event");
  EventRecord& record = found->second;
  // Another session may have recorded it since.
  if (record.shared) record.event = record.shared->latest();
  return &record;
}

Result<void> Session::on(const Call<CommandType::kEventDestroy>& call) {
  const auto event = events_.extract(call.body.id);
  if (event.empty()) return slate::fail(ErrorCode::kInvalidHandle, "no such event");
  if (const auto& shared = event.mapped().shared) exports_->withdraw(spec_.id, *shared);
  return {};
}

/// Gives the record an event that nobody waits for.
Result<void> Session::renew(EventRecord& record) {
  constexpr std::size_t kMostReplaced = 1024;
  auto& replaced = replaced_events_[record.timing ? 1 : 0];
  if (record.event && replaced.size() < kMostReplaced) replaced.push_back(std::move(record.event));
  // Recorded in this order, reached in about the same.
  if (!replaced.empty() && replaced.front().use_count() == 1) {
    record.event = std::move(replaced.front());
    replaced.pop_front();
    return {};
  }
  auto fresh = SharedEvent::make(device_, record.timing);
  if (!fresh) return checked(std::unexpected(fresh.error()));
  record.event = std::move(*fresh);
  return {};
}

Result<void> Session::on(const Call<CommandType::kEventRecord>& call) {
  const auto record = find_event(call.body.event);
  if (!record) return std::unexpected(record.error());
  if (!(*record)->event || (*record)->event.use_count() > 1 || (*record)->shared) {
    if (const auto renewed = renew(**record); !renewed) return renewed;
  }
  const auto target = streams_.begin_work(*call.stream);
  if (!target) return checked(std::unexpected(target.error()));
  if (const auto done = device_.record((*record)->event->get(), *target); !done)
    return checked(done);
  if ((*record)->shared) (*record)->shared->set((*record)->event);
  streams_.work_submitted(*call.stream);
  // Watched here: its end must be seen even if more work follows at once.
  streams_.watch_event(*call.stream, (*record)->event);
  return {};
}

Result<void> Session::on(const Call<CommandType::kStreamWaitEvent>& call) {
  std::shared_ptr<SharedEvent> event;
  if (waited_for_) {
    event = *waited_for_;
  } else {
    const auto record = find_event(call.body.event);
    if (!record) return std::unexpected(record.error());
    event = (*record)->event;
  }
  if (!event) return {};
  const auto target = streams_.begin_work(*call.stream);
  if (!target) return checked(std::unexpected(target.error()));
  if (const auto done = device_.wait(*target, event->get()); !done) return checked(done);
  streams_.work_submitted(*call.stream);
  return {};
}

Result<void> Session::on(const Call<CommandType::kEventElapsed>& call) {
  const auto start = find_event(call.body.start);
  if (!start) return std::unexpected(start.error());
  const auto stop = find_event(call.body.stop);
  if (!stop) return std::unexpected(stop.error());
  if (!(*start)->event || !(*stop)->event || !(*start)->timing || !(*stop)->timing) {
    return slate::fail(ErrorCode::kInvalidHandle,
                       "an event that was not recorded, or has no timing");
  }
  const auto milliseconds = device_.elapsed_ms((*start)->event->get(), (*stop)->event->get());
  if (!milliseconds) return checked(std::unexpected(milliseconds.error()));
  call.reply.set(ipc::ElapsedReply{*milliseconds, 0});
  return {};
}

Result<bool> Session::is_finished(const ipc::Target& target) {
  if (target.kind == ipc::TargetKind::kEvent) {
    const auto record = find_event(target.id);
    if (!record) return std::unexpected(record.error());
    if (!(*record)->event) return true;
    auto reached = device_.query((*record)->event->get());
    // The fault may be another session's, which is none of this one's; its own it hears of anyway.
    if (!reached && (*record)->shared && !device_.lost()) return true;
    return reached;
  }
  const auto streams = streams_of(target);
  if (!streams) return std::unexpected(streams.error());
  for (LogicalStream* stream : *streams) {
    const auto finished = streams_.query(*stream);
    if (!finished || !*finished) return finished;
  }
  return true;
}

/// The streams with unfinished work that the target means.
Result<std::vector<LogicalStream*>> Session::streams_of(const ipc::Target& target) {
  if (target.kind == ipc::TargetKind::kSession) return streams_.unfinished(nullptr);
  if (target.kind != ipc::TargetKind::kStream) {
    return slate::fail(ErrorCode::kProtocol, "unknown kind of target");
  }
  const auto stream = streams_.find(target.id);
  if (!stream) return std::unexpected(stream.error());
  return streams_.unfinished(*stream);
}

Result<void> Session::on(const Call<CommandType::kQuery>& call) {
  const auto finished = is_finished(call.body);
  if (!finished) return checked(std::unexpected(finished.error()));
  call.reply.set(ipc::QueryReply{*finished ? 1u : 0u, 0});
  return {};
}

/// A callback that answers the command of `header` when it was called `count` times, with the first
/// fault if there was one.
Completer::Callback Session::answer_when(const ipc::CommandHeader& header, std::size_t count) {
  struct Answer {
    std::size_t left;
    Result<void> outcome;
  };
  auto answer = std::make_shared<Answer>(Answer{count, {}});
  // Callbacks of one group run one at a time: no lock.
  return [this, answer, header](const Result<void>& outcome) {
    if (!outcome && answer->outcome) answer->outcome = outcome;
    if (--answer->left > 0) return;
    if (!answer->outcome) on_device_error(answer->outcome.error());
    if (failed_.load()) {
      channel_.reply_error(header.reply_slot, header.reply_sequence, sticky_error());
    } else if (answer->outcome) {
      channel_.reply(header.reply_slot, header.reply_sequence, {});
    } else {
      channel_.reply_error(header.reply_slot, header.reply_sequence, answer->outcome.error());
    }
  };
}

Result<void> Session::synchronize_event(const ipc::CommandHeader& header, std::uint64_t id,
                                        Reply& reply) {
  const auto record = find_event(id);
  if (!record) return std::unexpected(record.error());
  if (!(*record)->event) return {};
  reply.deferred = true;
  auto answer = answer_when(header, 1);
  if ((*record)->shared) {
    answer = [this, told = std::move(answer)](const Result<void>& outcome) {
      told(device_.lost() ? outcome : Result<void>());
    };
  }
  completer_.watch(group_, (*record)->event, std::move(answer));
  return {};
}

Result<void> Session::on(const Call<CommandType::kSynchronize>& call) {
  if (call.header.reply_slot == ipc::kNoReply) {
    return slate::fail(ErrorCode::kProtocol, "a wait that nobody waits for");
  }
  const auto finished = is_finished(call.body);
  if (!finished) return checked(std::unexpected(finished.error()));
  if (*finished) return {};
  if (call.body.kind == ipc::TargetKind::kEvent)
    return synchronize_event(call.header, call.body.id, call.reply);
  const auto streams = streams_of(call.body);
  if (!streams) return std::unexpected(streams.error());
  if (streams->empty()) return {};
  const auto callback = answer_when(call.header, streams->size());
  for (std::size_t i = 0; i < streams->size(); ++i) {
    const auto placed =
        completer_.watch(group_, (*streams)[i]->device, Completer::Callback(callback));
    if (!placed) return checked(placed);
  }
  call.reply.deferred = true;
  return {};
}

}  // namespace slate::daemon
