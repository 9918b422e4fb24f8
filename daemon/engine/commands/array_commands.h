// ArrayCommands: a session's arrays, textures and surfaces, and the commands on them. Kernels take
// the device's numbers, so making one has a reply. A destroyed object is gone for the client at
// once, and stays until all earlier work has finished. Session thread.
#pragma once

#include <optional>

#include "daemon/engine/commands/call.h"
#include "daemon/engine/commands/memory_commands.h"
#include "daemon/engine/commands/owned_ranges.h"
#include "daemon/engine/commands/part_context.h"
#include "daemon/engine/object_table.h"

namespace slate::daemon {

class ArrayCommands {
 public:
  /// All outlive it.
  ArrayCommands(const PartContext& context, MemoryCommands& memory, const OwnedRanges& ranges)
      : context_(context), memory_(memory), ranges_(ranges) {}

  /// To be called first. Requires: the memory was started.
  void start();
  /// Requires: no unfinished work uses any object.
  void release();

  Result<void> on(const Call<ipc::CommandType::kArrayCreate>& call);
  Result<void> on(const Call<ipc::CommandType::kArrayDestroy>& call);
  Result<void> on(const Call<ipc::CommandType::kTextureCreate>& call);
  Result<void> on(const Call<ipc::CommandType::kTextureDestroy>& call);
  Result<void> on(const Call<ipc::CommandType::kSurfaceCreate>& call);
  Result<void> on(const Call<ipc::CommandType::kSurfaceDestroy>& call);

  /// kInvalidHandle when there is none.
  Result<std::shared_ptr<ObjectTable::Array>> find(std::uint64_t id) const {
    return objects_->find_array(id);
  }
  /// Number of arrays, textures and surfaces.
  std::size_t count() const { return objects_ ? objects_->count() : 0; }

 private:
  Result<void> finish_later(Result<ObjectTable::Ticket> ticket);
  Result<void> take_away(Result<ObjectTable::Ticket> ticket, std::uint64_t handle);
  bool may_go_beyond(device::Address address, std::uint64_t bytes) const;

  const PartContext& context_;
  MemoryCommands& memory_;
  const OwnedRanges& ranges_;
  std::optional<ObjectTable> objects_;  // nothing before start()
};

}  // namespace slate::daemon
