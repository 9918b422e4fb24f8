// What sessions of one user share: Session's dealings with the daemon about it.
#include "client/session/session.h"
#include "client/session/session_calls.h"

namespace slate::client {

using ipc::CommandType;

namespace {

std::string text_of(const ipc::ShareHandle& handle) {
  return {reinterpret_cast<const char*>(handle.bytes), sizeof(handle.bytes)};
}

}  // namespace

Result<ipc::ShareHandle> Session::export_memory(std::uint64_t address) {
  shares_memory_.store(true);
  if (auto ok = settle_taken(); !ok) return std::unexpected(ok.error());
  auto reply = call<ipc::ShareReply>(CommandType::kMemoryExport, ipc::MemoryFree{address});
  if (!reply) return std::unexpected(reply.error());
  const std::lock_guard lock(imports_mutex_);
  exported_.insert(text_of(reply->handle));
  return reply->handle;
}

bool Session::has_exported(const ipc::ShareHandle& handle) const {
  const std::lock_guard lock(imports_mutex_);
  return exported_.contains(text_of(handle));
}

Result<ipc::ImportReply> Session::import_memory(const ipc::ShareHandle& handle) {
  shares_memory_.store(true);
  const std::lock_guard lock(imports_mutex_);
  auto reply = call<ipc::ImportReply>(CommandType::kMemoryImport, ipc::HandleCommand{handle, 0});
  if (reply && reply->count == 1) memory_.insert({reply->address, reply->bytes, kTagImported});
  return reply;
}

Result<void> Session::close_import(std::uint64_t address) {
  const std::lock_guard lock(imports_mutex_);
  const auto range = memory_.find(address);
  if (!range || range->tag != kTagImported || range->address != address)
    return fail(ErrorCode::kInvalidValue, "no memory of another program is open at this address");
  auto reply = call<ipc::ImportReply>(CommandType::kMemoryImportClose, ipc::MemoryFree{address});
  if (!reply) return std::unexpected(reply.error());
  if (reply->count == 0) memory_.erase(address, kTagImported);
  return {};
}

Result<ipc::ShareHandle> Session::export_event(std::uint64_t event) {
  auto reply = call<ipc::ShareReply>(CommandType::kEventExport, ipc::IdCommand{event});
  if (!reply) return std::unexpected(reply.error());
  return reply->handle;
}

Result<std::uint64_t> Session::import_event(const ipc::ShareHandle& handle) {
  const std::uint64_t id = events_.add({ipc::kEventNoTiming | kEventShared, 0, 0, 0});
  if (id == 0) return fail(ErrorCode::kLimit, "too many events");
  auto done = call<Nothing>(CommandType::kEventImport, ipc::HandleCommand{handle, id});
  if (done) return id;
  events_.remove(id);
  return std::unexpected(done.error());
}

}  // namespace slate::client
