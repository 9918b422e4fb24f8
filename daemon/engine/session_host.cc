// Commands that make a stream wait for the client, which runs a host function meanwhile.
#include "daemon/engine/session.h"

namespace slate::daemon {

Result<void> Session::host_gate(const ipc::Command& command, Reply&) {
  const auto request = command.as<ipc::HostGate>();
  if (!request) return std::unexpected(request.error());
  const auto stream = streams_.find(request->stream);
  if (!stream) return std::unexpected(stream.error());
  const auto target = streams_.begin_work(**stream);
  if (!target) return checked(std::unexpected(target.error()));
  const auto gate = gates_.close(*target, request->ticket);
  if (!gate) return checked(std::unexpected(gate.error()));
  streams_.work_submitted(**stream);
  return checked(
      streams_.watch(**stream, [this, gate = *gate](const Result<void>&) { gates_.passed(gate); }));
}

Result<void> Session::host_done(const ipc::Command& command, Reply&) {
  const auto request = command.as<ipc::IdCommand>();
  if (!request) return std::unexpected(request.error());
  return checked(gates_.open(request->id));
}

}  // namespace slate::daemon
