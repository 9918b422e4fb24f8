// Commands on memory of the device, and of the host where the device reaches it. A freed allocation
// is gone for the client at once, but goes back to the arena only when all work submitted before
// the free has finished.
#include <algorithm>

#include "daemon/engine/session.h"

namespace slate::daemon {

using ipc::CommandType;

Result<void> Session::on(const Call<CommandType::kMemoryAllocate>& call) {
  const auto address = when_there_is_room([&] { return memory_->allocate(call.body.bytes); });
  if (!address) return checked(std::unexpected(address.error()));
  call.reply.set(ipc::AddressReply{*address});
  return {};
}

Result<void> Session::on(const Call<CommandType::kMemoryFree>& call) {
  if (const auto retired = memory_->retire(call.body.address); !retired) return retired;
  exports_->withdraw(spec_.id, call.body.address);
  return checked(retirement_.after_present_work(
      [this, address = call.body.address] { memory_->finish_free(address); }));
}

Result<void> Session::on(const Call<CommandType::kHostAllocate>& call) {
  const auto made = host_blocks_.allocate(call.body.id, call.body.bytes, call.body.least);
  if (!made) return checked(std::unexpected(made.error()));
  call.reply.set(*made);
  return {};
}

Result<void> Session::on(const Call<CommandType::kHostMapped>& call) {
  host_blocks_.mapped(call.body.id);
  return {};
}

Result<void> Session::on(const Call<CommandType::kHostFree>& call) {
  const auto range = host_blocks_.retire(call.body.id);
  if (!range) return std::unexpected(range.error());
  return checked(
      retirement_.after_present_work([this, range = *range] { host_blocks_.finish_free(range); }));
}

Result<void> Session::on(const Call<CommandType::kMemoryInfo>& call) {
  const auto free = device_.free_memory();
  if (!free) return checked(std::unexpected(free.error()));
  const std::uint64_t own = memory_->limit() - std::min(memory_->limit(), memory_->charged());
  call.reply.set(ipc::MemoryInfoReply{std::min(own, *free), memory_->limit()});
  return {};
}

}  // namespace slate::daemon
