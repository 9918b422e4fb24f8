// HostBlocks: the host memory of this program that the daemon's device reaches, by address. It maps
// blocks, and puts them in the place of memory that is there. HostMemory talks to the daemon.
// Thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <optional>

#include "base/mutex.h"
#include "base/result.h"
#include "base/unique_fd.h"

namespace slate::client {

struct HostBlock {
  std::uint64_t id = 0;
  std::uint64_t address = 0;  // address in this process
  std::uint64_t bytes = 0;
  std::uint64_t device_address = 0;  // address in kernels
  bool replaces = false;             // whether it replaces memory of the program
  bool managed = false;              // whether both addresses are the same
};

class HostBlocks {
 public:
  static constexpr std::uint64_t kPage = 4096;

  void insert(const HostBlock& block);
  /// The block with `address`.
  std::optional<HostBlock> find(std::uint64_t address) const;
  /// A block with some of [address, address + bytes).
  std::optional<HostBlock> touching(std::uint64_t address, std::uint64_t bytes) const;
  /// Removes the block that begins there from the table.
  std::optional<HostBlock> take(std::uint64_t address);
  /// Unmaps managed memory. Requires: the session is over, and no thread is inside it.
  void unmap_managed();
  /// Gives the program's replaced memory its own contents again, and drops those blocks. Requires:
  /// the session is over.
  void make_private();
  /// fork(): no thread changes the table meanwhile.
  void lock_for_fork() SLATE_ACQUIRE(mutex_) { mutex_.lock(); }
  void unlock_in_parent() SLATE_RELEASE(mutex_) { mutex_.unlock(); }
  /// In the child, where the table stays locked: gives the program's replaced memory its own
  /// contents again. Without this the child would share it with its parent.
  void make_private_in_child() SLATE_REQUIRES(mutex_);

 private:
  mutable SharedMutex mutex_;
  std::map<std::uint64_t, HostBlock> blocks_ SLATE_GUARDED_BY(mutex_);  // by address, disjoint
};

/// Maps shared memory at `wished`, or elsewhere if that is taken. A forked child does not get it.
Result<std::uint64_t> map_shared(const UniqueFd& fd, std::uint64_t bytes, std::uint64_t wished);
/// As map_shared(), but at `address` only: false when something is there.
Result<bool> map_shared_at(const UniqueFd& fd, std::uint64_t bytes, std::uint64_t address);
/// The end of the last mapping of this process in [address, address + bytes).
std::uint64_t end_of_taken(std::uint64_t address, std::uint64_t bytes);
/// Whether the process has all of [address, address + bytes) mapped.
bool is_mapped(std::uint64_t address, std::uint64_t bytes);
/// Whether the whole pages at `address` are plain private memory, neither a file's, nor a stack's,
/// nor shared. Only such memory can be replaced by a mapping unnoticed.
bool is_replaceable(std::uint64_t address, std::uint64_t bytes);
/// Replaces these pages by `fd`, with their contents. Requires: no thread writes to them meanwhile.
Result<void> replace_with_shared(const UniqueFd& fd, std::uint64_t address, std::uint64_t bytes);
/// Replaces them by private memory, with their contents. Requires the same.
Result<void> replace_with_private(std::uint64_t address, std::uint64_t bytes);
void unmap_shared(std::uint64_t address, std::uint64_t bytes);

}  // namespace slate::client
