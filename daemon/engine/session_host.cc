// Host functions: the client runs them where a stream has come to its gate. The stream is held
// meanwhile, and the device knows nothing of it.
#include "daemon/engine/session.h"

namespace slate::daemon {

using ipc::CommandType;

Result<void> Session::on(const Call<CommandType::kHostGate>& call) {
  constexpr std::size_t kMostGates = 16384;
  if (gates_.size() >= kMostGates) {
    return slate::fail(ErrorCode::kLimit, "too many host functions are waiting");
  }
  const Hold gate{call.body.stream, streams_.position()};
  if (!gates_.try_emplace(call.body.ticket, gate).second) {
    return slate::fail(ErrorCode::kProtocol, "a gate that is closed already");
  }
  held_.hold(gate.stream, gate.position);
  call.reply.unfinished = true;
  return {};
}

Result<void> Session::on(const Call<CommandType::kHostDone>& call) {
  const auto found = gates_.find(call.body.id);
  if (found == gates_.end()) {
    return slate::fail(ErrorCode::kInvalidHandle, "a gate that is not closed");
  }
  const Hold gate = found->second;
  gates_.erase(found);
  held_.release(gate.stream, gate.position);
  // The client may wait for the function as for any other work of the stream.
  if (const auto stream = streams_.find(gate.stream)) {
    streams_.begin_command(gate.position);
    streams_.end_command(**stream);
  }
  released_ = true;
  return {};
}

}  // namespace slate::daemon
