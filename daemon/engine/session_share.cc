// Commands that share memory and events with other sessions of the same user.
#include "daemon/engine/session.h"

namespace slate::daemon {

using ipc::CommandType;

Result<void> Session::on(const Call<CommandType::kMemoryExport>& call) {
  const auto handle = exports_->offer(spec_.id, spec_.uid, memory_, call.body.address);
  if (!handle) return std::unexpected(handle.error());
  call.reply.set(ipc::ShareReply{*handle});
  return {};
}

Result<void> Session::on(const Call<CommandType::kMemoryImport>& call) {
  const auto opened = imports_.open(call.body.handle, spec_.uid);
  if (!opened) return std::unexpected(opened.error());
  call.reply.set(*opened);
  return {};
}

Result<void> Session::on(const Call<CommandType::kMemoryImportClose>& call) {
  const auto closed = imports_.close(call.body.address);
  if (!closed) return std::unexpected(closed.error());
  call.reply.set(*closed);
  if (closed->count > 0) return {};
  return checked(retirement_.after_present_work(
      [this, at = call.body.address] { imports_.finish_close(at); }));
}

Result<void> Session::on(const Call<CommandType::kEventExport>& call) {
  const auto record = find_event(call.body.id);
  if (!record) return std::unexpected(record.error());
  if ((*record)->timing)
    return slate::fail(ErrorCode::kInvalidHandle, "an event with timing is not shared");
  if (!(*record)->shared) {
    (*record)->shared = std::make_shared<SharedRecord>();
    (*record)->shared->set((*record)->event);
  }
  const auto handle = exports_->offer(spec_.id, spec_.uid, (*record)->shared);
  if (!handle) return std::unexpected(handle.error());
  call.reply.set(ipc::ShareReply{*handle});
  return {};
}

Result<void> Session::on(const Call<CommandType::kEventImport>& call) {
  if (call.body.id == 0 || events_.contains(call.body.id))
    return slate::fail(ErrorCode::kProtocol, "an event id that is not a new one");
  if (events_.size() >= kMostEvents) return slate::fail(ErrorCode::kLimit, "too many events");
  auto shared = exports_->open_event(call.body.handle, spec_.uid);
  if (!shared) return std::unexpected(shared.error());
  events_.emplace(call.body.id, EventRecord{false, (*shared)->latest(), std::move(*shared)});
  return {};
}

}  // namespace slate::daemon
