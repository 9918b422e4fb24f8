// Commands on memory of the device, and of the host where the device reaches it. A freed allocation
// is gone for the client at once, but goes back to the arena only when all work submitted before
// the free has finished.
#include <algorithm>

#include "daemon/engine/session.h"

namespace slate::daemon {

Result<void> Session::memory_allocate(const ipc::Command& command, Reply& reply) {
  const auto request = command.as<ipc::MemoryAllocate>();
  if (!request) return std::unexpected(request.error());
  const auto address = when_there_is_room([&] { return memory_->allocate(request->bytes); });
  if (!address) return checked(std::unexpected(address.error()));
  reply.set(ipc::AddressReply{*address});
  return {};
}

Result<void> Session::memory_free(const ipc::Command& command, Reply&) {
  const auto request = command.as<ipc::MemoryFree>();
  if (!request) return std::unexpected(request.error());
  if (const auto retired = memory_->retire(request->address); !retired) return retired;
  exports_->withdraw(spec_.id, request->address);
  return checked(retirement_.after_present_work(
      [this, address = request->address] { memory_->finish_free(address); }));
}

Result<void> Session::host_allocate(const ipc::Command& command, Reply& reply) {
  const auto request = command.as<ipc::HostAllocate>();
  if (!request) return std::unexpected(request.error());
  const auto made = host_blocks_.allocate(request->id, request->bytes, request->least);
  if (!made) return checked(std::unexpected(made.error()));
  reply.set(*made);
  return {};
}

Result<void> Session::host_mapped(const ipc::Command& command, Reply&) {
  const auto request = command.as<ipc::IdCommand>();
  if (!request) return std::unexpected(request.error());
  host_blocks_.mapped(request->id);
  return {};
}

Result<void> Session::host_free(const ipc::Command& command, Reply&) {
  const auto request = command.as<ipc::IdCommand>();
  if (!request) return std::unexpected(request.error());
  const auto range = host_blocks_.retire(request->id);
  if (!range) return std::unexpected(range.error());
  return checked(
      retirement_.after_present_work([this, range = *range] { host_blocks_.finish_free(range); }));
}

Result<void> Session::memory_info(const ipc::Command&, Reply& reply) {
  const auto free = device_.free_memory();
  if (!free) return checked(std::unexpected(free.error()));
  const std::uint64_t own = memory_->limit() - std::min(memory_->limit(), memory_->charged());
  reply.set(ipc::MemoryInfoReply{std::min(own, *free), memory_->limit()});
  return {};
}

}  // namespace slate::daemon
