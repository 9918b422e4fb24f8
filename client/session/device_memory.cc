#include "client/session/device_memory.h"

#include "client/session/session.h"

namespace slate::client {

using ipc::CommandType;

namespace {

std::string text_of(const ipc::ShareHandle& handle) {
  return {reinterpret_cast<const char*>(handle.bytes), sizeof(handle.bytes)};
}

}  // namespace

DeviceMemory::DeviceMemory(Session& session) : session_(session), pools_(session.serial()) {}

Result<std::uint64_t> DeviceMemory::allocate(std::uint64_t bytes) {
  auto reply = session_.wire().call<ipc::AddressReply>(CommandType::kMemoryAllocate,
                                                       ipc::MemoryAllocate{bytes});
  if (!reply) return std::unexpected(reply.error());
  table_.insert({reply->address, bytes, kTagMemory});
  return reply->address;
}

Result<void> DeviceMemory::free(std::uint64_t address) {
  if (const auto range = table_.find(address); range && range->tag == kTagManaged)
    return session_.host_memory().free_managed(address);
  // Out of the table first: once the daemon has the command it may give the address to another
  // thread.
  if (!table_.erase(address, kTagMemory)) {
    return fail(ErrorCode::kInvalidValue, "no allocation begins at the address to be freed");
  }
  return session_.wire().post(CommandType::kMemoryFree, ipc::MemoryFree{address});
}

Result<ipc::MemoryInfoReply> DeviceMemory::info() {
  return session_.wire().call<ipc::MemoryInfoReply>(CommandType::kMemoryInfo, Nothing{});
}

Result<ipc::ShareHandle> DeviceMemory::export_memory(std::uint64_t address) {
  is_shared_.store(true);
  if (auto ok = session_.copies().settle_taken(); !ok) return std::unexpected(ok.error());
  auto reply =
      session_.wire().call<ipc::ShareReply>(CommandType::kMemoryExport, ipc::MemoryFree{address});
  if (!reply) return std::unexpected(reply.error());
  const MutexLock lock(imports_mutex_);
  exported_.insert(text_of(reply->handle));
  return reply->handle;
}

bool DeviceMemory::has_exported(const ipc::ShareHandle& handle) const {
  const MutexLock lock(imports_mutex_);
  return exported_.contains(text_of(handle));
}

Result<ipc::ImportReply> DeviceMemory::import_memory(const ipc::ShareHandle& handle) {
  is_shared_.store(true);
  const MutexLock lock(imports_mutex_);
  auto reply = session_.wire().call<ipc::ImportReply>(CommandType::kMemoryImport,
                                                      ipc::HandleCommand{handle, 0});
  if (reply && reply->count == 1) table_.insert({reply->address, reply->bytes, kTagImported});
  return reply;
}

Result<void> DeviceMemory::close_import(std::uint64_t address) {
  const MutexLock lock(imports_mutex_);
  const auto range = table_.find(address);
  if (!range || range->tag != kTagImported || range->address != address)
    return fail(ErrorCode::kInvalidValue, "no memory of another program is open at this address");
  auto reply = session_.wire().call<ipc::ImportReply>(CommandType::kMemoryImportClose,
                                                      ipc::MemoryFree{address});
  if (!reply) return std::unexpected(reply.error());
  if (reply->count == 0) table_.erase(address, kTagImported);
  return {};
}

}  // namespace slate::client
