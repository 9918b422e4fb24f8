// HostBlocks: one session's host memory that program, engine and device share, by the client's ids.
// Like device memory it is retired first, and freed when no work uses it any more. The caller waits
// for that work.
//
// Thread: the session's, but for finish_free().
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <unordered_map>
#include <vector>

#include "base/mutex.h"
#include "device/device.h"
#include "ipc/commands.h"
#include "ipc/host_memory.h"
#include "ipc/mapping_guard.h"

namespace slate::daemon {

/// The host memory in /dev/shm of an engine's sessions. It is scarce: without a limit one session
/// could leave the others no room to copy or to begin, and no guards. Thread-safe.
class NamedBudget {
 public:
  static constexpr std::size_t kMostBlocks = ipc::MappingGuard::kMost / 2;
  struct GiveBack {
    std::uint64_t bytes = 0;
    void operator()(NamedBudget* budget) const {
      budget->used_.fetch_sub(bytes);
      budget->blocks_.fetch_sub(1);
    }
  };
  using Part = std::unique_ptr<NamedBudget, GiveBack>;  // given back at its end

  explicit NamedBudget(std::uint64_t bytes = ~0ull) : bytes_(bytes) {}
  /// What shared memory of `bytes` in all has left beside staging slots and segments.
  static std::uint64_t bytes_for(std::uint64_t bytes);
  /// Memory for one block. kOutOfMemory when there is not enough left, kLimit beyond kMostBlocks.
  Result<Part> take(std::uint64_t bytes);

 private:
  const std::uint64_t bytes_;
  std::atomic<std::uint64_t> used_{0};
  std::atomic<std::size_t> blocks_{0};
};

class HostBlocks {
 public:
  using Ranges = std::shared_ptr<const std::vector<device::AddressRange>>;
  static constexpr std::size_t kMostBlocks = 4096;
  /// Blocks that the client has not mapped yet; each holds a descriptor.
  static constexpr std::size_t kMostUnmapped = 16;

  /// `limit`: the most bytes at a time. `named`: the budget of all sessions; outlives it.
  HostBlocks(device::Device& device, uid_t owner, std::uint64_t limit, NamedBudget& named)
      : device_(device), owner_(owner), limit_(limit), named_(named) {}
  /// Requires: release() was called.
  ~HostBlocks();
  HostBlocks(const HostBlocks&) = delete;
  HostBlocks& operator=(const HostBlocks&) = delete;

  /// Half of the machine's memory.
  static std::uint64_t default_limit();

  /// Errors: kProtocol for an id that is 0 or taken, or an invalid size; kLimit; kOutOfMemory.
  /// `least`: see Device::map_host().
  Result<ipc::HostReply> allocate(std::uint64_t id, std::uint64_t bytes, std::uint64_t least);
  /// The client has mapped the block: closes its descriptor. Unknown ids are ignored.
  void mapped(std::uint64_t id);
  /// The bytes of block `id` from `offset` on, in this process; kInvalidValue when it has no such
  /// bytes.
  Result<std::byte*> find(std::uint64_t id, std::uint64_t offset, std::uint64_t bytes) const;
  /// Whether the bytes lie in one block, by the address of kernels and of this process.
  bool owns(device::Address address, std::uint64_t bytes) const;
  /// What the session's kernels may access, by rising address; null for nothing.
  const Ranges& ranges() const { return ranges_; }

  /// First half of a free: no later work can use the block. kInvalidValue when there is none.
  Result<device::AddressRange> retire(std::uint64_t id);
  /// Second half of a free. Any thread. Requires: retired, and no unfinished work uses the memory.
  void finish_free(device::AddressRange range);
  /// Frees everything, retired or not. Requires: no unfinished work uses it.
  void release();

 private:
  /// Memory with a name, which the client can truncate.
  struct Named {
    NamedBudget::Part part;
    ipc::MappingGuard guard;
  };
  struct Block {
    device::AddressRange range;
    std::optional<ipc::HostMemory> memory;  // there until the client has mapped it
    Named named;                            // empty: it has no name
  };
  struct Retired {
    device::AddressRange range;
    Named named;
  };

  void note_ranges();

  device::Device& device_;
  const uid_t owner_;
  const std::uint64_t limit_;
  NamedBudget& named_;
  std::unordered_map<std::uint64_t, Block> blocks_;
  std::map<device::Address, std::uint64_t> sizes_;  // sizes of blocks_, by address
  std::size_t unmapped_ = 0;
  Ranges ranges_;
  std::atomic<std::uint64_t> bytes_{0};  // bytes of all blocks, retired ones too
  Mutex mutex_;
  std::vector<Retired> retired_ SLATE_GUARDED_BY(mutex_);
};

}  // namespace slate::daemon
