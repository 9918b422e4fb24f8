// Stream-ordered memory pools. A pool here is a name with settings and a count: memory comes from
// the session at once, for any stream, and goes back when all work that was submitted before the
// free is done, which is what stream order asks for and more. Nothing is kept for later reuse, so a
// pool reserves what is in use. Pools end with their session. Thread-safe.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <mutex>
#include <unordered_map>

namespace slate::client {

class Pools {
 public:
  /// `serial`: the session's, which its pools' numbers begin with.
  explicit Pools(std::uint64_t serial);

  struct Pool {
    std::array<int, 3> reuse{1, 1, 1};  // settings of reuse; told, and without effect
    std::uint64_t release_threshold = 0;
    std::uint64_t most = 0;  // bytes in use at once; 0: as many as there are
    std::uint64_t used = 0;
    std::uint64_t used_high = 0;
    std::uint64_t reserved_high = 0;
  };

  // Pools are numbers, never 0 and never used again, also by another session.
  std::uint64_t default_pool() const { return first_; }
  std::uint64_t current_pool();
  /// False when there is no such pool, as below.
  bool set_current(std::uint64_t pool);
  /// `most`: as in Pool.
  std::uint64_t create(std::uint64_t most);
  /// The default pool cannot be destroyed. Memory of the pool lives on.
  bool destroy(std::uint64_t pool);
  /// Calls `body(Pool&)`.
  template <typename Body>
  bool with(std::uint64_t pool, const Body& body) {
    const std::lock_guard lock(mutex_);
    const auto at = pools_.find(pool);
    if (at == pools_.end()) return false;
    body(at->second);
    return true;
  }

  /// Whether the pool has room for so many bytes more; if so they count as used.
  enum class Take { kTaken, kFull, kNoPool };
  Take take(std::uint64_t pool, std::uint64_t bytes);
  /// The allocation for them could not be made, or is there.
  void give_back(std::uint64_t pool, std::uint64_t bytes);
  void allocated(std::uint64_t pool, std::uint64_t address, std::uint64_t bytes);
  /// An allocation, which may be of no pool, was freed.
  void freed(std::uint64_t address);

 private:
  struct Owned {
    std::uint64_t pool;
    std::uint64_t bytes;
  };

  const std::uint64_t first_;
  std::mutex mutex_;  // guards all below
  std::uint64_t last_, current_;
  std::map<std::uint64_t, Pool> pools_;
  std::unordered_map<std::uint64_t, Owned> owned_;  // by address
};

}  // namespace slate::client
