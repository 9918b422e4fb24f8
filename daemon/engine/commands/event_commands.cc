#include "daemon/engine/commands/event_commands.h"

#include <fmt/format.h>

namespace slate::daemon {

using ipc::CommandType;

Result<EventCommands::Record*> EventCommands::find(std::uint64_t id) {
  const auto found = records_.find(id);
  if (found == records_.end()) return fail(ErrorCode::kInvalidHandle, "no such event");
  Record& record = found->second;
  // Another session may have recorded it since.
  if (record.shared) record.event = record.shared->latest();
  return &record;
}

void EventCommands::release() {
  records_.clear();
  for (auto& replaced : replaced_) replaced.clear();
}

Result<void> EventCommands::add(std::uint64_t id, Record record) {
  if (id == 0 || records_.contains(id))
    return fail(ErrorCode::kProtocol, fmt::format("event id {} is not a new one", id));
  if (records_.size() >= kMostEvents) return fail(ErrorCode::kLimit, "too many events");
  records_.emplace(id, std::move(record));
  return {};
}

/// Gives the record an event on which nothing waits.
Result<void> EventCommands::renew(Record& record) {
  constexpr std::size_t kMostReplaced = 1024;
  auto& replaced = replaced_[record.timing ? 1 : 0];
  if (record.event && replaced.size() < kMostReplaced) replaced.push_back(std::move(record.event));
  // Recorded in this order, reached in about the same.
  if (!replaced.empty() && replaced.front().use_count() == 1) {
    record.event = std::move(replaced.front());
    replaced.pop_front();
    return {};
  }
  auto fresh = SharedEvent::make(context_.device, record.timing);
  if (!fresh) return context_.checked(std::unexpected(fresh.error()));
  record.event = std::move(*fresh);
  return {};
}

Result<void> EventCommands::on(const Call<CommandType::kEventCreate>& call) {
  return add(call.body.id, {(call.body.flags & ipc::kEventNoTiming) == 0, nullptr});
}

Result<void> EventCommands::on(const Call<CommandType::kEventDestroy>& call) {
  const auto record = records_.extract(call.body.id);
  if (record.empty()) return fail(ErrorCode::kInvalidHandle, "no such event");
  if (const auto& shared = record.mapped().shared)
    context_.exports->withdraw(context_.session, *shared);
  return {};
}

Result<void> EventCommands::on(const Call<CommandType::kEventRecord>& call) {
  const auto found = find(call.body.event);
  if (!found) return std::unexpected(found.error());
  Record& record = **found;
  if (!record.event || record.event.use_count() > 1 || record.shared) {
    if (const auto renewed = renew(record); !renewed) return renewed;
  }
  const auto target = context_.streams.begin_work(*call.stream);
  if (!target) return context_.checked(std::unexpected(target.error()));
  if (const auto done = context_.device.record(record.event->get(), *target); !done)
    return context_.checked(done);
  record.book_row = call.stream->book_row;
  record.position = context_.streams.position();
  if (record.shared) record.shared->set(record.event);
  context_.streams.work_submitted(*call.stream);
  // Watched here: its end must be seen even if more work follows at once.
  context_.streams.watches().watch_event(*call.stream, record.event);
  return {};
}

Result<void> EventCommands::on(const Call<CommandType::kStreamWaitEvent>& call) {
  std::shared_ptr<SharedEvent> event;
  if (call.kept != nullptr && call.kept->recording) {
    event = *call.kept->recording;
  } else {
    const auto record = find(call.body.event);
    if (!record) return std::unexpected(record.error());
    event = (*record)->event;
  }
  if (!event) return {};
  return context_.submit(*call.stream, [&](device::Stream stream) {
    return context_.device.wait(stream, event->get());
  });
}

Result<void> EventCommands::on(const Call<CommandType::kEventElapsed>& call) {
  const auto start = find(call.body.start);
  if (!start) return std::unexpected(start.error());
  const auto stop = find(call.body.stop);
  if (!stop) return std::unexpected(stop.error());
  if (!(*start)->event || !(*stop)->event || !(*start)->timing || !(*stop)->timing)
    return fail(ErrorCode::kInvalidHandle, "an event that was not recorded, or has no timing");
  const auto milliseconds =
      context_.device.elapsed_ms((*start)->event->get(), (*stop)->event->get());
  if (!milliseconds) return context_.checked(std::unexpected(milliseconds.error()));
  for (const Record* const record : {*start, *stop})
    context_.note_done(record->book_row, record->position);
  call.reply.set(ipc::ElapsedReply{*milliseconds, 0});
  return {};
}

Result<void> EventCommands::on(const Call<CommandType::kEventExport>& call) {
  const auto record = find(call.body.id);
  if (!record) return std::unexpected(record.error());
  if ((*record)->timing)
    return fail(ErrorCode::kInvalidHandle, "an event with timing is not shared");
  if (!(*record)->shared) {
    (*record)->shared = std::make_shared<SharedRecord>();
    (*record)->shared->set((*record)->event);
  }
  const auto handle = context_.exports->offer(context_.session, context_.uid, (*record)->shared);
  if (!handle) return std::unexpected(handle.error());
  call.reply.set(ipc::ShareReply{*handle});
  return {};
}

Result<void> EventCommands::on(const Call<CommandType::kEventImport>& call) {
  if (call.body.id == 0 || records_.contains(call.body.id))
    return fail(ErrorCode::kProtocol, "an event id that is not a new one");
  auto shared = context_.exports->open_event(call.body.handle, context_.uid);
  if (!shared) return std::unexpected(shared.error());
  return add(call.body.id, {false, (*shared)->latest(), std::move(*shared)});
}

}  // namespace slate::daemon
