// Commands on device memory. A freed allocation is gone for the client at once, but goes back to
// the arena only when all work submitted before the free has finished.
#include <algorithm>

#include "daemon/engine/session.h"

namespace slate::daemon {

Result<void> Session::memory_allocate(const ipc::Command& command, Reply& reply) {
  const auto request = command.as<ipc::MemoryAllocate>();
  if (!request) return std::unexpected(request.error());
  auto address = memory_->allocate(request->bytes);
  // Frees that wait for running work may make room.
  while (!address && address.error().code == ErrorCode::kOutOfMemory && !failed_.load() &&
         !stopping_.load() && !client_is_gone() &&
         memory_->wait_for_free(std::chrono::milliseconds(100))) {
    address = memory_->allocate(request->bytes);
  }
  if (!address) return checked(std::unexpected(address.error()));
  reply.set(ipc::AddressReply{*address});
  return {};
}

Result<void> Session::memory_free(const ipc::Command& command, Reply&) {
  const auto request = command.as<ipc::MemoryFree>();
  if (!request) return std::unexpected(request.error());
  if (const auto retired = memory_->retire(request->address); !retired) return retired;
  return checked(retirement_.after_present_work(
      [this, address = request->address] { memory_->finish_free(address); }));
}

Result<void> Session::memory_info(const ipc::Command&, Reply& reply) {
  const auto free = device_.free_memory();
  if (!free) return checked(std::unexpected(free.error()));
  const std::uint64_t own = memory_->limit() - std::min(memory_->limit(), memory_->charged());
  reply.set(ipc::MemoryInfoReply{std::min(own, *free), memory_->limit()});
  return {};
}

}  // namespace slate::daemon
