// HostBlocks: one session's host memory that program, engine and device share, by the client's ids.
// Like device memory it is retired first and given back when no work uses it any more; who waits
// for that is not here.
//
// Session thread, but for finish_free().
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <unordered_map>
#include <vector>

#include "device/device.h"
#include "ipc/commands.h"
#include "ipc/host_memory.h"
#include "ipc/mapping_guard.h"

namespace slate::daemon {

/// The host memory in /dev/shm of an engine's sessions, of which there is little: without a limit
/// one session could leave the others no room to copy, or to begin, nor guards. Thread-safe.
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
  using Part = std::unique_ptr<NamedBudget, GiveBack>;  // given back with its end

  explicit NamedBudget(std::uint64_t bytes = ~0ull) : bytes_(bytes) {}
  /// What a shared memory of `bytes` in all can spare beside staging slots and segments.
  static std::uint64_t bytes_for(std::uint64_t bytes);
  /// For one block. kOutOfMemory when there is not so much left, kLimit beyond kMostBlocks.
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
  /// That the client was told of and has not mapped yet: each holds a descriptor.
  static constexpr std::size_t kMostUnmapped = 16;

  /// `limit`: the most bytes at a time. `named`: for all sessions; outlives it.
  HostBlocks(device::Device& device, uid_t owner, std::uint64_t limit, NamedBudget& named)
      : device_(device), owner_(owner), limit_(limit), named_(named) {}
  /// Requires: release() was called.
  ~HostBlocks();
  HostBlocks(const HostBlocks&) = delete;
  HostBlocks& operator=(const HostBlocks&) = delete;

  /// Half of the machine's memory.
  static std::uint64_t default_limit();

  /// kProtocol for an id that is 0 or taken or a size that is none; kLimit, kOutOfMemory.
  /// `least`: see Device::map_host().
  Result<ipc::HostReply> allocate(std::uint64_t id, std::uint64_t bytes, std::uint64_t least);
  /// The client needs the descriptor no longer. An id that is none is ignored.
  void mapped(std::uint64_t id);
  /// The bytes of block `id` from `offset` on, in this process; kInvalidValue when they are not.
  Result<std::byte*> find(std::uint64_t id, std::uint64_t offset, std::uint64_t bytes) const;
  /// True if the bytes lie in one block, by the address that kernels and this process have for it.
  bool owns(device::Address address, std::uint64_t bytes) const;
  /// What the session's kernels may touch, by rising address; null for nothing.
  const Ranges& ranges() const { return ranges_; }

  /// First half of a free: no later work can use it. kInvalidValue when there is no such block.
  Result<device::AddressRange> retire(std::uint64_t id);
  /// Any thread. Second half. Requires: retired, and no unfinished work uses it.
  void finish_free(device::AddressRange range);
  /// Gives everything back, retired or not. Requires: no unfinished work uses any of it.
  void release();

 private:
  /// What memory with a name has besides, which the client can cut off.
  struct Named {
    NamedBudget::Part part;
    ipc::MappingGuard guard;
  };
  struct Block {
    device::AddressRange range;
    std::optional<ipc::HostMemory> memory;  // until the client has mapped it
    Named named;                            // empty: it has none
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
  std::map<device::Address, std::uint64_t> sizes_;  // of blocks_, by address
  std::size_t unmapped_ = 0;
  Ranges ranges_;
  std::atomic<std::uint64_t> bytes_{0};  // retired ones included
  std::mutex mutex_;                     // guards retired_
  std::vector<Retired> retired_;
};

}  // namespace slate::daemon
