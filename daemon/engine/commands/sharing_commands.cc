#include "daemon/engine/commands/sharing_commands.h"

namespace slate::daemon {

using ipc::CommandType;

Result<void> SharingCommands::on(const Call<CommandType::kMemoryImport>& call) {
  const auto opened = imports_.open(call.body.handle, context_.uid);
  if (!opened) return std::unexpected(opened.error());
  call.reply.set(*opened);
  return {};
}

Result<void> SharingCommands::on(const Call<CommandType::kMemoryImportClose>& call) {
  const auto closed = imports_.close(call.body.address);
  if (!closed) return std::unexpected(closed.error());
  call.reply.set(*closed);
  if (closed->count > 0) return {};
  const device::AddressRange range{call.body.address, closed->bytes};
  return context_.take_away([this, range] { context_.fence.take_out(range); },
                            [this, at = range.base] { imports_.finish_close(at); });
}

}  // namespace slate::daemon
