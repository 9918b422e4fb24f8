// CopyCommands: the commands that copy and fill, and their host memory. The client's data is in its
// command, in a staging slot, or in host memory that the device reaches. Session thread, but for
// the counts.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>

#include "base/copy.h"
#include "daemon/engine/commands/array_commands.h"
#include "daemon/engine/commands/call.h"
#include "daemon/engine/commands/host_memory_commands.h"
#include "daemon/engine/commands/owned_ranges.h"
#include "daemon/engine/commands/part_context.h"
#include "daemon/engine/small_copies.h"
#include "daemon/engine/staging.h"

namespace slate::daemon {

class CopyCommands {
 public:
  /// Copies so far, and their bytes from and to the client. Any thread.
  struct Counts {
    std::atomic<std::uint64_t> copies{0}, bytes_to_device{0}, bytes_to_host{0};
  };

  /// All outlive it.
  CopyCommands(const PartContext& context, const HostMemoryCommands& host,
               const ArrayCommands& arrays, const OwnedRanges& ranges, Staging& staging)
      : context_(context),
        host_(host),
        arrays_(arrays),
        ranges_(ranges),
        staging_(staging),
        small_copies_(std::in_place, context.device) {}

  /// After an error nothing uses the command's slot, and the client may be told.
  Result<void> on(const Call<ipc::CommandType::kCopy>& call);
  Result<void> on(const Call<ipc::CommandType::kCopyInline>& call);
  Result<void> on(const Call<ipc::CommandType::kFill>& call);

  const Counts& counts() const { return counts_; }
  /// Requires: no copy is under way.
  void release() { small_copies_.reset(); }

 private:
  enum class Direction { kOnDevice, kToDevice, kToHost };

  Result<void> copy_through_slot(const Call<ipc::CommandType::kCopy>& call, const Place& slot,
                                 const Place& other);
  Result<Place> resolve(const Place& place, const Box& box) const;
  Result<Place> resolve_array(const Place& place, const Box& box) const;
  Result<void> copy(LogicalStream& stream, const Place& to, const Place& from, const Box& box,
                    Direction direction);

  const PartContext& context_;
  const HostMemoryCommands& host_;
  const ArrayCommands& arrays_;
  const OwnedRanges& ranges_;
  Staging& staging_;
  std::optional<SmallCopies> small_copies_;
  Counts counts_;
};

}  // namespace slate::daemon
