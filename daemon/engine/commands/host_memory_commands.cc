#include "daemon/engine/commands/host_memory_commands.h"

namespace slate::daemon {

using ipc::CommandType;

Result<void> HostMemoryCommands::on(const Call<CommandType::kHostAllocate>& call) {
  const auto made = blocks_.allocate(call.body.id, call.body.bytes, call.body.least);
  if (!made) return context_.checked(std::unexpected(made.error()));
  call.reply.set(ipc::AddressReply{*made});
  return {};
}

Result<void> HostMemoryCommands::on(const Call<CommandType::kHostMapped>& call) {
  blocks_.mapped(call.body.id);
  return {};
}

Result<void> HostMemoryCommands::on(const Call<CommandType::kHostFree>& call) {
  const auto range = blocks_.retire(call.body.id);
  if (!range) return std::unexpected(range.error());
  return context_.checked(context_.retirement.after_present_work(
      [this, range = *range] { blocks_.finish_free(range); }));
}

}  // namespace slate::daemon
