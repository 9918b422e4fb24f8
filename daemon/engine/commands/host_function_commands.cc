#include "daemon/engine/commands/host_function_commands.h"

namespace slate::daemon {

using ipc::CommandType;

Result<void> HostFunctionCommands::on(const Call<CommandType::kHostGate>& call) {
  if (gates_.size() >= kMostGates)
    return fail(ErrorCode::kLimit, "too many host functions are waiting");
  const Gate gate{call.body.stream, context_.streams.position()};
  if (!gates_.try_emplace(call.body.ticket, gate).second)
    return fail(ErrorCode::kProtocol, "a gate that is closed already");
  context_.held.hold(gate.stream, gate.position);
  call.reply.unfinished = true;
  return {};
}

Result<void> HostFunctionCommands::on(const Call<CommandType::kHostDone>& call) {
  const auto found = gates_.find(call.body.id);
  if (found == gates_.end()) return fail(ErrorCode::kInvalidHandle, "a gate that is not closed");
  const Gate gate = found->second;
  gates_.erase(found);
  context_.held.release(gate.stream, gate.position);
  // Its stream may have passed it long before it says so.
  if (context_.book) context_.book->book().close(gate.position);
  // The client may wait for the function as for any other work of the stream.
  if (const auto stream = context_.streams.find(gate.stream)) {
    context_.streams.begin_command(gate.position);
    context_.streams.end_command(**stream);
  }
  opened_ = true;
  return {};
}

}  // namespace slate::daemon
