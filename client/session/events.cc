#include "client/session/events.h"

namespace slate::client {

using ipc::CommandType;

Result<std::uint64_t> Events::create(std::uint32_t flags) {
  const std::uint64_t id = table_.add({flags, 0, 0, 0});
  if (id == 0) return fail(ErrorCode::kLimit, "too many events");
  auto ok =
      wire_.post(CommandType::kEventCreate, ipc::EventCreate{id, flags & ipc::kEventNoTiming, 0});
  if (ok) return id;
  table_.remove(id);
  return std::unexpected(ok.error());
}

Result<void> Events::destroy(std::uint64_t event) {
  if (!table_.remove(event)) return fail(ErrorCode::kInvalidHandle, "no such event");
  return wire_.post(CommandType::kEventDestroy, ipc::IdCommand{event});
}

Result<void> Events::record(std::uint64_t event, std::uint64_t stream) {
  Sent sent;
  auto ok =
      streams_.post(CommandType::kEventRecord, ipc::EventStream{event, stream}, stream, {}, &sent);
  if (!ok) return ok;
  table_.note(event, ProgressTable::mark_of(streams_.progress_of(stream), sent.position));
  table_.mark(event, kEventRecorded);
  const auto entry = table_.find(event);
  if (!entry || (entry->flags & kEventShared) == 0) return ok;
  // What the program tells another one next may make that wait for this record.
  const auto recorded = wire_.call<ipc::QueryReply>(CommandType::kQuery,
                                                    ipc::Target{ipc::TargetKind::kEvent, 1, event});
  if (!recorded) return std::unexpected(recorded.error());
  return {};
}

Result<void> Events::wait(std::uint64_t stream, std::uint64_t event) {
  return streams_.post(CommandType::kStreamWaitEvent, ipc::EventStream{event, stream}, stream);
}

Result<float> Events::elapsed_ms(std::uint64_t start, std::uint64_t stop) {
  auto reply =
      wire_.call<ipc::ElapsedReply>(CommandType::kEventElapsed, ipc::EventPair{start, stop});
  if (!reply) return std::unexpected(reply.error());
  return reply->milliseconds;
}

Result<ipc::ShareHandle> Events::export_event(std::uint64_t event) {
  auto reply = wire_.call<ipc::ShareReply>(CommandType::kEventExport, ipc::IdCommand{event});
  if (!reply) return std::unexpected(reply.error());
  return reply->handle;
}

Result<std::uint64_t> Events::import_event(const ipc::ShareHandle& handle) {
  const std::uint64_t id = table_.add({ipc::kEventNoTiming | kEventShared, 0, 0, 0});
  if (id == 0) return fail(ErrorCode::kLimit, "too many events");
  auto done = wire_.call<Nothing>(CommandType::kEventImport, ipc::HandleCommand{handle, id});
  if (done) return id;
  table_.remove(id);
  return std::unexpected(done.error());
}

}  // namespace slate::client
