// Stream-ordered memory pools. A pool here is a name with settings and a count: memory comes from
// the session at once, for any stream, and goes back when all work that was submitted before the
// free is done, which is what stream order asks for and more. Nothing is kept for later reuse, so a
// pool reserves what is in use. Pools end with their session. Thread-safe.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>

#include "client/cudart/process.h"

namespace slate::cudart {

class Pools {
 public:
  /// Of the process; never destroyed, like Process.
  static Pools& get();

  struct Pool {
    std::array<int, 3> reuse{1, 1, 1};  // cudaMemPoolReuse*, in order; told, and without effect
    std::uint64_t release_threshold = 0;
    std::uint64_t most = 0;  // bytes in use at once; 0: as many as there are
    std::uint64_t used = 0;
    std::uint64_t used_high = 0;
    std::uint64_t reserved_high = 0;
  };
  static constexpr std::uint64_t kNone = 0;

  // Pools of a session are numbers, never 0 and never used again.
  std::uint64_t default_pool(std::uint64_t session);
  std::uint64_t current_pool(std::uint64_t session);
  /// False when there is no such pool, as below.
  bool set_current(std::uint64_t session, std::uint64_t pool);
  /// `most`: as in Pool.
  std::uint64_t create(std::uint64_t session, std::uint64_t most);
  /// The default pool cannot be destroyed. Memory of the pool lives on.
  bool destroy(std::uint64_t session, std::uint64_t pool);
  /// Calls `body(Pool&)`.
  template <typename Body>
  bool with(std::uint64_t session, std::uint64_t pool, const Body& body) {
    const std::lock_guard lock(mutex_);
    State& state = state_of(session);
    const auto at = state.pools.find(pool);
    if (at == state.pools.end()) return false;
    body(at->second);
    return true;
  }

  /// Whether the pool has room for so many bytes more; if so they count as used.
  enum class Take { kTaken, kFull, kNoPool };
  Take take(std::uint64_t session, std::uint64_t pool, std::uint64_t bytes);
  /// The allocation for them could not be made, or is there.
  void give_back(std::uint64_t session, std::uint64_t pool, std::uint64_t bytes);
  void allocated(std::uint64_t session, std::uint64_t pool, std::uint64_t address,
                 std::uint64_t bytes);
  /// An allocation, which may be of no pool, was freed.
  void freed(std::uint64_t session, std::uint64_t address);

 private:
  struct Owned {
    std::uint64_t pool;
    std::uint64_t bytes;
  };
  struct State {
    std::uint64_t session = 0;
    std::uint64_t first = kNone, current = kNone;
    std::map<std::uint64_t, Pool> pools;
    std::unordered_map<std::uint64_t, Owned> owned;  // by address
  };
  State& state_of(std::uint64_t session);

  std::mutex& mutex_ = Process::get().mutex_of(Process::Table::kPools);  // guards all below
  State state_;  // of the newest session: an older one's pools are gone
  std::uint64_t last_ = 0;
};

}  // namespace slate::cudart
