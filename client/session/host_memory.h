// HostMemory: the program's memory that the device reaches, as copies from and to it are one
// transfer each then and return at once. Any failure leaves plain memory as good as before, if
// slower. What Session says to the daemon about it; thread-safe.
#pragma once

#include <cstdint>

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
  /// The same in pieces, as HostPool gives them.
  Result<std::uint64_t> allocate_piece(std::uint64_t bytes) { return pool_.allocate(bytes); }
  /// False when no piece of this session begins at `address`.
  bool free_piece(std::uint64_t address) { return pool_.free(address); }

  /// Memory with one address here and on the device; `tag`: kTagManaged, or kTagManagedVariable for
  /// what is not freed by the program; `flags`: the caller's. Host memory, so charged to nobody's
  /// device memory.
  Result<std::uint64_t> allocate_managed(std::uint64_t bytes, std::uint32_t tag,
                                         std::uint32_t flags);
  /// Waits for all work. kInvalidValue when none with this tag begins at `address`.
  Result<void> free_managed(std::uint64_t address, std::uint32_t tag = kTagManaged);

  /// Makes the whole pages of memory that the program has such a block, unless they are one. What
  /// other threads write to it meanwhile may be lost. kNotSupported when there is too little of it,
  /// or it is of a kind that cannot be replaced.
  Result<void> register_pages(std::uint64_t address, std::uint64_t bytes);
  /// Waits for all work, then makes [address, address + bytes) plain memory again; what is written
  /// to it meanwhile may be lost.
  Result<void> unregister_pages(std::uint64_t address, std::uint64_t bytes);

  /// Of a session that is over and has no threads inside: what nobody can name any more.
  void unmap_unnamed();

 private:
  Result<HostBlock> request(std::uint64_t bytes, UniqueFd& fd, std::uint64_t least = 0);
  Result<void> mapped(const HostBlock& block);
  Result<void> give_back(std::uint64_t id);
  Result<std::uint64_t> allocate_slab(std::uint64_t bytes);
  Result<std::uint64_t> get_managed_block(std::uint64_t bytes);
  Result<void> give_back_managed_block(std::uint64_t address);

  Session& session_;
  HostBlocks blocks_;
  HostPool pool_;
  ManagedMemory managed_;
  ManagedGuard guard_;
  ManagedAdvice advice_;
};

}  // namespace slate::client
