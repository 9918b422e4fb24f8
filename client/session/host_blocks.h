// HostBlocks: the host memory of this program that the daemon's device reaches directly, by
// address. Mapping it, and putting it in the place of memory that is there already; not the
// dealings with the daemon (session.h). Thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <shared_mutex>

#include "base/result.h"
#include "base/unique_fd.h"

namespace slate::client {

struct HostBlock {
  std::uint64_t id = 0;
  std::uint64_t address = 0;  // in this process
  std::uint64_t bytes = 0;
  std::uint64_t device_address = 0;  // for kernels
  bool replaces = false;             // memory that the program already had
  bool managed = false;              // both addresses are one
};

class HostBlocks {
 public:
  static constexpr std::uint64_t kPage = 4096;

  void insert(const HostBlock& block);
  /// The block that `address` lies in.
  std::optional<HostBlock> find(std::uint64_t address) const;
  /// The block with some of [address, address + bytes).
  std::optional<HostBlock> touching(std::uint64_t address, std::uint64_t bytes) const;
  /// Takes the block that begins there out of the table.
  std::optional<HostBlock> take(std::uint64_t address);
  /// Of a session that is over and has no threads inside: what nobody can name any more.
  void unmap_managed();
  /// Of a session that is over: gives the memory that the program had before its own contents
  /// again, and forgets those blocks.
  void make_private();
  /// Around fork(): nobody changes the table meanwhile.
  void lock_for_fork() { mutex_.lock(); }
  void unlock_in_parent() { mutex_.unlock(); }
  /// In the child, where the table stays locked: gives the memory that the program had before its
  /// own contents again, which the child would share with its parent otherwise.
  void make_private_in_child();

 private:
  mutable std::shared_mutex mutex_;
  std::map<std::uint64_t, HostBlock> blocks_;  // by address, disjoint
};

/// Maps shared memory at `wished`, or elsewhere if that is taken. A forked child does not get it.
Result<std::uint64_t> map_shared(const UniqueFd& fd, std::uint64_t bytes, std::uint64_t wished);
/// The same at `address` or not at all: false when something is there.
Result<bool> map_shared_at(const UniqueFd& fd, std::uint64_t bytes, std::uint64_t address);
/// Where the last of what this process has in [address, address + bytes) ends.
std::uint64_t end_of_taken(std::uint64_t address, std::uint64_t bytes);
/// True when the process has all of [address, address + bytes), whatever it is.
bool is_mapped(std::uint64_t address, std::uint64_t bytes);
/// True when the whole pages at `address` are plain private memory, whose place a mapping can take
/// without anybody noticing: neither a file's, nor a stack's, nor shared.
bool is_replaceable(std::uint64_t address, std::uint64_t bytes);
/// Puts `fd` in the place of these pages, with their contents. Nobody may write to them meanwhile.
Result<void> replace_with_shared(const UniqueFd& fd, std::uint64_t address, std::uint64_t bytes);
/// The other way round.
Result<void> replace_with_private(std::uint64_t address, std::uint64_t bytes);
void unmap_shared(std::uint64_t address, std::uint64_t bytes);

}  // namespace slate::client
