#include "client/session/pools.h"

#include <algorithm>
#include <optional>

namespace slate::client {
namespace {

// CU_MEMPOOL_ATTR_*
constexpr int kReuseFirst = 1;  // and 2, 3
constexpr int kReuseLast = 3;
constexpr int kReleaseThreshold = 4;
constexpr int kReservedCurrent = 5;
constexpr int kReservedHigh = 6;
constexpr int kUsedCurrent = 7;
constexpr int kUsedHigh = 8;

}  // namespace

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

std::uint64_t Pools::pool_of(std::uint64_t address) {
  const MutexLock lock(mutex_);
  const auto owned = owned_.find(address);
  return owned == owned_.end() ? 0 : owned->second.pool;
}

void Pools::freed(std::uint64_t address) {
  const MutexLock lock(mutex_);
  const auto owned = owned_.find(address);
  if (owned == owned_.end()) return;
  const auto pool = pools_.find(owned->second.pool);
  if (pool != pools_.end()) pool->second.used -= owned->second.bytes;
  owned_.erase(owned);
}

Allowed<void> tell_attribute(const Pools::Pool& pool, int attribute, void* value) {
  if (value == nullptr) return refuse(Refusal::kInvalidValue);
  if (attribute >= kReuseFirst && attribute <= kReuseLast) {
    *static_cast<int*>(value) = pool.reuse[attribute - kReuseFirst];
    return {};
  }
  const auto number = [&]() -> std::optional<std::uint64_t> {
    switch (attribute) {
      case kReleaseThreshold:
        return pool.release_threshold;
      case kReservedCurrent:
      case kUsedCurrent:
        return pool.used;
      case kReservedHigh:
        return pool.reserved_high;
      case kUsedHigh:
        return pool.used_high;
      default:
        return std::nullopt;
    }
  }();
  if (!number) return refuse(Refusal::kInvalidValue);
  *static_cast<std::uint64_t*>(value) = *number;
  return {};
}

Allowed<void> set_attribute(Pools::Pool& pool, int attribute, const void* value) {
  if (value == nullptr) return refuse(Refusal::kInvalidValue);
  if (attribute >= kReuseFirst && attribute <= kReuseLast) {
    pool.reuse[attribute - kReuseFirst] = *static_cast<const int*>(value) != 0 ? 1 : 0;
    return {};
  }
  if (attribute == kReleaseThreshold) {
    pool.release_threshold = *static_cast<const std::uint64_t*>(value);
    return {};
  }
  // High-water marks can only be taken back to the present.
  const bool is_high = attribute == kReservedHigh || attribute == kUsedHigh;
  if (!is_high || *static_cast<const std::uint64_t*>(value) != 0) {
    return refuse(Refusal::kInvalidValue);
  }
  (attribute == kUsedHigh ? pool.used_high : pool.reserved_high) = pool.used;
  return {};
}

}  // namespace slate::client
