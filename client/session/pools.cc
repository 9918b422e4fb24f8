#include "client/session/pools.h"

#include <algorithm>

namespace slate::client {

Pools::Pools(std::uint64_t serial)
    : first_((serial << 32) + 1), last_(first_), current_(first_), pools_{{first_, Pool{}}} {}

std::uint64_t Pools::current_pool() {
  const MutexLock lock(mutex_);
  return current_;
}

bool Pools::set_current(std::uint64_t pool) {
  const MutexLock lock(mutex_);
  if (!pools_.contains(pool)) return false;
  current_ = pool;
  return true;
}

std::uint64_t Pools::create(std::uint64_t most) {
  const MutexLock lock(mutex_);
  pools_[++last_].most = most;
  return last_;
}

bool Pools::destroy(std::uint64_t pool) {
  const MutexLock lock(mutex_);
  if (pool == first_ || pools_.erase(pool) == 0) return false;
  if (current_ == pool) current_ = first_;
  return true;
}

Pools::Take Pools::take(std::uint64_t pool, std::uint64_t bytes) {
  Take taken = Take::kNoPool;
  with(pool, [&](Pool& its) {
    const bool full = its.most != 0 && (bytes > its.most || its.used > its.most - bytes);
    if (!full) its.used += bytes;
    taken = full ? Take::kFull : Take::kTaken;
  });
  return taken;
}

void Pools::give_back(std::uint64_t pool, std::uint64_t bytes) {
  with(pool, [&](Pool& its) { its.used -= bytes; });
}

void Pools::allocated(std::uint64_t pool, std::uint64_t address, std::uint64_t bytes) {
  const MutexLock lock(mutex_);
  const auto at = pools_.find(pool);
  if (at == pools_.end()) return;
  at->second.used_high = std::max(at->second.used_high, at->second.used);
  at->second.reserved_high = std::max(at->second.reserved_high, at->second.used);
  owned_[address] = {pool, bytes};
}

void Pools::freed(std::uint64_t address) {
  const MutexLock lock(mutex_);
  const auto owned = owned_.find(address);
  if (owned == owned_.end()) return;
  const auto pool = pools_.find(owned->second.pool);
  if (pool != pools_.end()) pool->second.used -= owned->second.bytes;
  owned_.erase(owned);
}

}  // namespace slate::client
