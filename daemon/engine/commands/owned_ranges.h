// OwnedRanges: whether memory that a client names is its session's: allocations, variables of
// modules, host memory that the device reaches, other sessions' memory that it has open, and what
// it has mapped itself. Session thread.
#pragma once

#include <cstdint>

#include "daemon/engine/commands/code_commands.h"
#include "daemon/engine/commands/host_memory_commands.h"
#include "daemon/engine/commands/memory_commands.h"
#include "daemon/engine/commands/sharing_commands.h"
#include "daemon/engine/commands/virtual_commands.h"

namespace slate::daemon {

class OwnedRanges {
 public:
  /// All outlive it.
  OwnedRanges(const MemoryCommands& memory, const CodeCommands& code,
              const HostMemoryCommands& host, const SharingCommands& sharing,
              const VirtualCommands& mapped)
      : memory_(memory), code_(code), host_(host), sharing_(sharing), mapped_(mapped) {}

  bool owns(device::Address address, std::uint64_t bytes) const {
    return memory_.owns(address, bytes) || code_.owns(address, bytes) ||
           host_.blocks().owns(address, bytes) || sharing_.owns(address, bytes) ||
           mapped_.owns(address, bytes);
  }
  /// kInvalidValue unless owns().
  Result<void> check(device::Address address, std::uint64_t bytes) const;

 private:
  const MemoryCommands& memory_;
  const CodeCommands& code_;
  const HostMemoryCommands& host_;
  const SharingCommands& sharing_;
  const VirtualCommands& mapped_;
};

}  // namespace slate::daemon
