// CommandReach: the memory that a command of the journal reads and writes. For a launch that is
// what its kernel reaches by its PTX, with the launch's own parameters. Session thread.
#pragma once

#include <map>
#include <string>

#include "daemon/book.h"
#include "daemon/engine/again.h"
#include "daemon/engine/commands/code_commands.h"
#include "daemon/engine/commands/host_memory_commands.h"
#include "daemon/engine/commands/memory_commands.h"
#include "daemon/engine/commands/virtual_commands.h"
#include "injector/analysis/restart.h"

namespace slate::daemon {

class CommandReach {
 public:
  /// All outlive it.
  CommandReach(MemoryCommands& memory, const HostMemoryCommands& host, VirtualCommands& mapped,
               CodeCommands& code)
      : memory_(memory), host_(host), mapped_(mapped), code_(code) {}

  ReachedRanges of(const Book::Open& open);
  /// Without an answer to whether the command may be carried out again.
  ReachedRanges memory_of(const ipc::Command& command);
  /// A module is gone, and its functions' numbers may come again for others.
  void forget() { known_.clear(); }

 private:
  injector::MemoryMap memory_map(const FunctionRecord& kernel) const;
  ReachedRanges of_launch(const ipc::Command& command);
  std::string why_not_again(const ipc::Command& launch);
  ReachedRanges of_copy(const ipc::Copy& copy) const;
  std::optional<device::AddressRange> range_of(const Place& place, const Box& box) const;
  std::optional<device::AddressRange> allocation_at(device::Address address) const;
  std::optional<device::AddressRange> place_at(device::Address address) const;
  bool steps_elsewhere(std::span<const std::byte> parameters) const;
  Result<const injector::Reach*> reach_of(std::uint64_t function, const FunctionRecord& kernel);

  MemoryCommands& memory_;
  const HostMemoryCommands& host_;
  VirtualCommands& mapped_;
  CodeCommands& code_;
  std::map<std::uint64_t, injector::Reach> known_;  // by function
};

}  // namespace slate::daemon
