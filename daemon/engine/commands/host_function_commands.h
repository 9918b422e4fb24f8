// HostFunctionCommands: the gates at which streams wait for functions of the client, and the
// commands on them. The client runs a function when its stream has come to the gate. The stream is
// held meanwhile, without the device. Session thread.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <utility>

#include "daemon/engine/commands/call.h"
#include "daemon/engine/commands/part_context.h"

namespace slate::daemon {

class HostFunctionCommands {
 public:
  static constexpr std::size_t kMostGates = 16384;

  explicit HostFunctionCommands(const PartContext& context) : context_(context) {}

  Result<void> on(const Call<ipc::CommandType::kHostGate>& call);
  Result<void> on(const Call<ipc::CommandType::kHostDone>& call);

  /// Whether no gate is closed.
  bool none() const { return gates_.empty(); }
  /// Whether a gate was opened since the last call: kept commands may go on.
  bool take_opened() { return std::exchange(opened_, false); }

 private:
  struct Gate {
    std::uint64_t stream;
    std::uint64_t position;  // position of the command that closed it
  };

  const PartContext& context_;
  std::unordered_map<std::uint64_t, Gate> gates_;  // closed gates, by ticket
  bool opened_ = false;
};

}  // namespace slate::daemon
