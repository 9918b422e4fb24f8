// VirtualCommands: a session's reserved addresses, physical allocations and mappings, and the
// commands on them. Unmapped and released memory is gone for the client at once. It is given back
// when all work submitted before has finished. Session thread.
#pragma once

#include <optional>

#include "daemon/engine/commands/call.h"
#include "daemon/engine/commands/memory_commands.h"
#include "daemon/engine/commands/part_context.h"
#include "daemon/engine/virtual_ranges.h"

namespace slate::daemon {

class VirtualCommands {
 public:
  /// Both outlive it. `memory` is charged.
  VirtualCommands(const PartContext& context, MemoryCommands& memory)
      : context_(context), memory_(memory) {}

  Result<void> on(const Call<ipc::CommandType::kAddressReserve>& call);
  Result<void> on(const Call<ipc::CommandType::kAddressFree>& call);
  Result<void> on(const Call<ipc::CommandType::kPhysicalCreate>& call);
  Result<void> on(const Call<ipc::CommandType::kPhysicalRelease>& call);
  Result<void> on(const Call<ipc::CommandType::kPhysicalMap>& call);
  Result<void> on(const Call<ipc::CommandType::kPhysicalUnmap>& call);

  /// To be called first. Requires: the memory was started.
  void start() { ranges_.emplace(context_.device, memory_.manager()); }
  /// Requires: start() was called.
  VirtualRanges& ranges() { return *ranges_; }
  bool owns(device::Address address, std::uint64_t bytes) const {
    return ranges_->owns(address, bytes);
  }
  /// To be called before the memory is released. Requires: no unfinished work uses any of it.
  void release() {
    if (ranges_) ranges_->release();
  }

 private:
  const PartContext& context_;
  MemoryCommands& memory_;
  std::optional<VirtualRanges> ranges_;  // from start() on
};

}  // namespace slate::daemon
