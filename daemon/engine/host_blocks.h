// HostBlocks: one session's host memory that program, engine and device share, by the client's ids.
// Like device memory it is retired first, and freed when no work uses it any more. The caller waits
// for that work.
//
// Thread: the session's, but for finish_free().
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <unordered_map>
#include <vector>

#include "base/mutex.h"
#include "daemon/book.h"
#include "daemon/engine/memory_ledger.h"
#include "device/device.h"
#include "ipc/commands.h"

namespace slate::daemon {

class HostBlocks {
 public:
  using Ranges = std::shared_ptr<const std::vector<device::AddressRange>>;
  static constexpr std::size_t kMostBlocks = 4096;
  /// Blocks that the client has not mapped yet: their descriptors are on their way.
  static constexpr std::size_t kMostUnmapped = 16;

  /// Sends a block's memory to the client. Errors: no room for another descriptor.
  using Send = std::function<Result<void>(std::uint64_t id, int memory)>;

  /// What a session's book hears of a block. `memory`: of a new one; -1: it is known. Any thread.
  struct Notes {
    std::function<void(std::uint64_t id, const BookHost& block, int memory)> there;
    std::function<void(std::uint64_t id)> gone;
  };

  /// `limit`: the most bytes at a time. `account`: the session's, of the memory of all; outlives
  /// it. Null: none. `notes`: both of its functions, or none.
  HostBlocks(device::Device& device, std::uint64_t limit, MemoryLedger::Account* account, Send send,
             Notes notes = {}, device::Address window = 0)
      : device_(device),
        limit_(limit),
        account_(account),
        send_(std::move(send)),
        notes_(std::move(notes)),
        window_(window),
        next_(window) {}
  /// Requires: release() was called.
  ~HostBlocks();
  HostBlocks(const HostBlocks&) = delete;
  HostBlocks& operator=(const HostBlocks&) = delete;

  /// Half of the machine's memory: a session's part.
  static std::uint64_t default_limit();
  /// Three quarters of it: all sessions' part.
  static std::uint64_t default_budget();

  /// Makes a block, sends its memory to the client, and returns its address on the device. `least`:
  /// see Device::map_host(). Errors: kProtocol for an id that is 0 or taken, or an invalid size;
  /// kLimit; kOutOfMemory.
  Result<device::Address> allocate(std::uint64_t id, std::uint64_t bytes, std::uint64_t least);
  /// Makes a block of another engine again, of the same memory and at the same address. The caller
  /// retires it if it was. Errors: kUnavailable when the address is taken.
  Result<void> make_again(std::uint64_t id, const BookHost& block, int memory);
  /// The client has taken the block's descriptor. Unknown ids are ignored.
  void mapped(std::uint64_t id);
  /// The bytes of block `id` from `offset` on, in this process; kInvalidValue when it has no such
  /// bytes.
  Result<std::byte*> find(std::uint64_t id, std::uint64_t offset, std::uint64_t bytes) const;
  /// Whether the bytes lie in one block, by the address of kernels and of this process.
  bool owns(device::Address address, std::uint64_t bytes) const;
  /// The block with this byte; nullopt when there is none.
  std::optional<device::AddressRange> block_of(device::Address address) const;
  /// What the session's kernels may access, by rising address; null for nothing.
  const Ranges& ranges() const { return ranges_; }
  /// Bytes of all blocks, retired ones too. Any thread.
  std::uint64_t bytes() const { return bytes_.load(); }

  /// First half of a free: no later work can use the block. kInvalidValue when there is none.
  Result<device::AddressRange> retire(std::uint64_t id);
  /// Second half of a free. Any thread. Requires: retired, and no unfinished work uses the memory.
  void finish_free(device::AddressRange range);
  /// Frees everything, retired or not. Requires: no unfinished work uses it.
  void release();

 private:
  struct Block {
    device::AddressRange range;
    bool on_its_way = true;  // until the client has mapped it
  };

  void add(std::uint64_t id, device::AddressRange range, bool on_its_way);
  device::Address wish_for(std::uint64_t bytes, device::Address least);
  void note(std::uint64_t id, const Block& block, bool retired, int memory = -1);
  Result<device::Address> make(std::uint64_t id, std::uint64_t bytes, std::uint64_t least);
  void note_ranges();

  device::Device& device_;
  const std::uint64_t limit_;
  MemoryLedger::Account* const account_;
  const Send send_;
  const Notes notes_;
  const device::Address window_;  // 0: none
  device::Address next_;          // wish for the next block
  std::unordered_map<std::uint64_t, Block> blocks_;
  std::map<device::Address, std::uint64_t> sizes_;  // sizes of blocks_, by address
  std::size_t unmapped_ = 0;
  Ranges ranges_;
  std::atomic<std::uint64_t> bytes_{0};  // bytes of all blocks, retired ones too
  Mutex mutex_;
  struct Retired {
    device::AddressRange range;
    std::uint64_t id = 0;
  };
  std::map<device::Address, Retired> retired_ SLATE_GUARDED_BY(mutex_);
};

}  // namespace slate::daemon
