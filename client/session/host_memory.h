// HostMemory: the program's memory that the device reaches. A copy from or to it is one transfer,
// and returns at once. After a failure plain memory still works, only slower. Holds the session's
// dealings with the daemon about it; thread-safe.
#pragma once

#include <cstdint>

#include "base/mutex.h"
#include "base/result.h"
#include "base/unique_fd.h"
#include "client/session/device_memory.h"
#include "client/session/host_blocks.h"
#include "client/session/host_pool.h"
#include "client/session/managed_advice.h"
#include "client/session/managed_guard.h"
#include "client/session/managed_memory.h"

namespace slate::client {

class Session;

class HostMemory {
 public:
  explicit HostMemory(Session& session);

  HostBlocks& blocks() { return blocks_; }
  ManagedGuard& guard() { return guard_; }
  ManagedAdvice& advice() { return advice_; }

  Result<HostBlock> allocate(std::uint64_t bytes);
  Result<void> free(std::uint64_t address);
  /// As allocate(), in pieces of HostPool.
  Result<std::uint64_t> allocate_piece(std::uint64_t bytes) { return pool_.allocate(bytes); }
  /// Frees a piece; false when no piece of this session begins at `address`.
  bool free_piece(std::uint64_t address) { return pool_.free(address); }

  /// Memory with one address here and on the device. It is host memory, so no device memory is
  /// charged.
  /// `tag`: kTagManaged, or kTagManagedVariable for memory that the program does not free. `flags`:
  /// the caller's.
  Result<std::uint64_t> allocate_managed(std::uint64_t bytes, std::uint32_t tag,
                                         std::uint32_t flags);
  /// Waits for all work. kInvalidValue when no block with this tag begins at `address`.
  Result<void> free_managed(std::uint64_t address, std::uint32_t tag = kTagManaged);

  /// Makes the program's whole pages such a block, unless they are one. Other threads' writes to
  /// them may be lost meanwhile. kNotSupported when the range is too small, or of a kind that
  /// cannot be replaced.
  Result<void> register_pages(std::uint64_t address, std::uint64_t bytes);
  /// Waits for all work, then makes [address, address + bytes) plain memory again. Other threads'
  /// writes to it may be lost meanwhile.
  Result<void> unregister_pages(std::uint64_t address, std::uint64_t bytes);

  /// Unmaps memory that no one can name any more. Requires: the session is over, and no thread is
  /// inside it.
  void unmap_unnamed();

 private:
  Result<HostBlock> request(std::uint64_t bytes, UniqueFd& fd, std::uint64_t least = 0);
  Result<void> mapped(const HostBlock& block);
  Result<void> give_back(std::uint64_t id);
  Result<std::uint64_t> allocate_slab(std::uint64_t bytes);
  Result<std::uint64_t> get_managed_block(std::uint64_t bytes);
  Result<void> give_back_managed_block(std::uint64_t address);

  Session& session_;
  Mutex requests_mutex_;  // held from asking for a block until its memory has come
  HostBlocks blocks_;
  HostPool pool_;
  ManagedMemory managed_;
  ManagedGuard guard_;
  ManagedAdvice advice_;
};

}  // namespace slate::client
