// Commands that share memory and events with other sessions of the same user.
#include "daemon/engine/session.h"

namespace slate::daemon {

Result<void> Session::memory_export(const ipc::Command& command, Reply& reply) {
  const auto request = command.as<ipc::MemoryFree>();
  if (!request) return std::unexpected(request.error());
  const auto handle = exports_->offer(spec_.id, spec_.uid, memory_, request->address);
  if (!handle) return std::unexpected(handle.error());
  reply.set(ipc::ShareReply{*handle});
  return {};
}

Result<void> Session::memory_import(const ipc::Command& command, Reply& reply) {
  const auto request = command.as<ipc::HandleCommand>();
  if (!request) return std::unexpected(request.error());
  const auto opened = imports_.open(request->handle, spec_.uid);
  if (!opened) return std::unexpected(opened.error());
  reply.set(*opened);
  return {};
}

Result<void> Session::memory_import_close(const ipc::Command& command, Reply& reply) {
  const auto request = command.as<ipc::MemoryFree>();
  if (!request) return std::unexpected(request.error());
  const auto closed = imports_.close(request->address);
  if (!closed) return std::unexpected(closed.error());
  reply.set(*closed);
  if (closed->count > 0) return {};
  return checked(
      retirement_.after_present_work([this, at = request->address] { imports_.finish_close(at); }));
}

Result<void> Session::event_export(const ipc::Command& command, Reply& reply) {
  const auto request = command.as<ipc::IdCommand>();
  if (!request) return std::unexpected(request.error());
  const auto record = find_event(request->id);
  if (!record) return std::unexpected(record.error());
  if ((*record)->timing)
    return slate::fail(ErrorCode::kInvalidHandle, "an event with timing is not shared");
  if (!(*record)->shared) {
    (*record)->shared = std::make_shared<SharedRecord>();
    (*record)->shared->set((*record)->event);
  }
  const auto handle = exports_->offer(spec_.id, spec_.uid, (*record)->shared);
  if (!handle) return std::unexpected(handle.error());
  reply.set(ipc::ShareReply{*handle});
  return {};
}

Result<void> Session::event_import(const ipc::Command& command, Reply&) {
  const auto request = command.as<ipc::HandleCommand>();
  if (!request) return std::unexpected(request.error());
  if (request->id == 0 || events_.contains(request->id))
    return slate::fail(ErrorCode::kProtocol, "an event id that is not a new one");
  if (events_.size() >= kMostEvents) return slate::fail(ErrorCode::kLimit, "too many events");
  auto shared = exports_->open_event(request->handle, spec_.uid);
  if (!shared) return std::unexpected(shared.error());
  events_.emplace(request->id, EventRecord{false, (*shared)->latest(), std::move(*shared)});
  return {};
}

}  // namespace slate::daemon
