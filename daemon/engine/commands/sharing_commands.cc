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
  return context_.checked(context_.retirement.after_present_work(
      [this, at = call.body.address] { imports_.finish_close(at); }));
}

}  // namespace slate::daemon
