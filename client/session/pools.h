// Pools: stream-ordered memory pools. A pool is a name with settings and a count. Memory comes from
// the session at once, for any stream, and goes back when all work before the free is done. That is
// more than stream order asks for. Nothing is kept for reuse, so that a pool reserves what is in
// use. Pools end with their session. Thread-safe.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <unordered_map>

#include "base/mutex.h"
#include "client/session/numbers.h"
#include "client/session/refused.h"

namespace slate::client {

class Pools {
 public:
  /// `serial`: the session's; the numbers of its pools begin with it.
  explicit Pools(std::uint64_t serial);

  struct Pool {
    std::array<int, 3> reuse{1, 1, 1};  // settings of reuse; kept, without effect
    std::uint64_t release_threshold = 0;
    std::uint64_t most = 0;  // the most bytes in use at once; 0: no limit
    std::uint64_t used = 0;
    std::uint64_t used_high = 0;
    std::uint64_t reserved_high = 0;
  };

  // Pools are numbers, never 0, and never used again, not even by another session.
  std::uint64_t default_pool() const { return first_; }
  std::uint64_t current_pool();
  /// False when there is no such pool, as below.
  bool set_current(std::uint64_t pool);
  /// `most`: as in Pool.
  std::uint64_t create(std::uint64_t most);
  /// Memory of the pool lives on. False also for the default pool, which cannot be destroyed.
  bool destroy(std::uint64_t pool);
  /// Calls `body(Pool&)`, if there is such a pool.
  template <typename Body>
  bool with(std::uint64_t pool, const Body& body) {
    const MutexLock lock(mutex_);
    const auto at = pools_.find(pool);
    if (at == pools_.end()) return false;
    body(at->second);
    return true;
  }

  /// Whether the pool has room for `bytes` more. If so they count as used.
  enum class Take { kTaken, kFull, kNoPool };
  Take take(std::uint64_t pool, std::uint64_t bytes);
  /// Uncounts the bytes of an allocation that was not made.
  void give_back(std::uint64_t pool, std::uint64_t bytes);
  void allocated(std::uint64_t pool, std::uint64_t address, std::uint64_t bytes);
  /// The pool that the allocation at this address came from; 0 for other memory.
  std::uint64_t pool_of(std::uint64_t address);
  /// An allocation, of a pool or not, was freed.
  void freed(std::uint64_t address);

 private:
  struct Owned {
    std::uint64_t pool;
    std::uint64_t bytes;
  };

  const std::uint64_t first_;
  Mutex mutex_;
  std::uint64_t last_ SLATE_GUARDED_BY(mutex_), current_ SLATE_GUARDED_BY(mutex_);
  std::map<std::uint64_t, Pool> pools_ SLATE_GUARDED_BY(mutex_);
  // Allocations by address.
  std::unordered_map<std::uint64_t, Owned> owned_ SLATE_GUARDED_BY(mutex_);
};

// A pool's attributes, numbered as in all of CUDA's APIs: an int each, or a 64-bit number.
// kInvalidValue for others, for a null place, and for what cannot be set.
Allowed<void> tell_attribute(const Pools::Pool& pool, int attribute, void* value);
Allowed<void> set_attribute(Pools::Pool& pool, int attribute, const void* value);

// CUDA's structs below have members of the same names in all of its APIs.
/// Whether a pool can have these properties. kInvalidValue for other memory than the device's own;
/// kNotSupported for memory that processes share.
template <typename Properties>
Allowed<void> check_pool(const Properties& properties) {
  constexpr int kPinned = 1;  // CU_MEM_ALLOCATION_TYPE_PINNED
  if (number_of(properties.allocType) != kPinned || !is_device(properties.location))
    return refuse(Refusal::kInvalidValue);
  if (number_of(properties.handleTypes) == 0) return {};
  return std::unexpected<Refused>(
      Error{ErrorCode::kNotSupported, "memory pools cannot be shared between processes yet"});
}
/// Whether these are the rights that a pool gives: its own device cannot be kept out.
template <typename Access>
Allowed<void> check_pool_access(const Access* wishes, std::size_t count) {
  constexpr int kReadWrite = 3;  // CU_MEM_ACCESS_FLAGS_PROT_READWRITE
  if (wishes == nullptr && count > 0) return refuse(Refusal::kInvalidValue);
  for (std::size_t i = 0; i < count; ++i) {
    if (!is_device(wishes[i].location)) return refuse(Refusal::kInvalidDevice);
    if (number_of(wishes[i].flags) != kReadWrite) return refuse(Refusal::kInvalidValue);
  }
  return {};
}

}  // namespace slate::client
