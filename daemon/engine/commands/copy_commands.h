// CopyCommands: the commands that copy and fill, and what they need of host memory. The client's
// data travels in its command, or through the staging slots of the segment. A slot is given back
// when its copy has finished, and also when the copy was refused, so that the client never waits in
// vain. Session thread, but for the counts.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>

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
  /// Any thread. Copies so far, and their bytes from and to the client.
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

  Result<void> on(const Call<ipc::CommandType::kCopyToDevice>& call);
  Result<void> on(const Call<ipc::CommandType::kCopyToHost>& call);
  Result<void> on(const Call<ipc::CommandType::kCopyInline>& call);
  Result<void> on(const Call<ipc::CommandType::kCopyPinned>& call);
  Result<void> on(const Call<ipc::CommandType::kCopyOnDevice>& call);
  Result<void> on(const Call<ipc::CommandType::kCopyBox>& call);
  Result<void> on(const Call<ipc::CommandType::kStagedBox>& call);
  Result<void> on(const Call<ipc::CommandType::kFill>& call);

  const Counts& counts() const { return counts_; }
  /// Requires: no copy is under way.
  void release() { small_copies_.reset(); }

 private:
  /// A copy through a staging slot of the segment.
  struct SlotUse {
    std::uint32_t slot, offset;
    std::uint64_t sequence;
    LogicalStream& stream;
    bool to_device;
    std::uint64_t bytes;  // packed; 0: nothing to do
  };
  /// Submits the device's copy between the slot's memory and its own.
  using SlotCopy = std::function<Result<void>(std::byte* host, device::Stream stream)>;

  Result<void> staged_copy(const ipc::StagedCopy& copy, LogicalStream& target, bool to_device);
  Result<void> use_slot(const SlotUse& use, const SlotCopy& copy);
  /// An error only if nothing was submitted: the slot may be told finished then.
  Result<void> submit_slot(const SlotUse& use, const SlotCopy& copy);
  Result<device::Place> place_of(const ipc::BoxPlace& place, device::Box box) const;
  Result<device::Place> place_in_array(const ipc::BoxPlace& place, device::Box box) const;
  Result<void> check_range(std::uint64_t address, std::uint64_t pitch, std::uint64_t width,
                           std::uint64_t height) const;
  void count_copy(bool to_device, std::uint64_t bytes);

  const PartContext& context_;
  const HostMemoryCommands& host_;
  const ArrayCommands& arrays_;
  const OwnedRanges& ranges_;
  Staging& staging_;
  std::optional<SmallCopies> small_copies_;
  Counts counts_;
};

}  // namespace slate::daemon
