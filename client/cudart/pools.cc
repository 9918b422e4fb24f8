#include "client/cudart/pools.h"

#include <algorithm>

namespace slate::cudart {

Pools& Pools::get() {
  static Pools* const instance = new Pools;
  return *instance;
}

Pools::State& Pools::state_of(std::uint64_t session) {
  if (state_.session != session) {
    state_ = {};
    state_.session = session;
    state_.first = state_.current = ++last_;
    state_.pools[last_];
  }
  return state_;
}

std::uint64_t Pools::default_pool(std::uint64_t session) {
  const std::lock_guard lock(mutex_);
  return state_of(session).first;
}

std::uint64_t Pools::current_pool(std::uint64_t session) {
  const std::lock_guard lock(mutex_);
  return state_of(session).current;
}

bool Pools::set_current(std::uint64_t session, std::uint64_t pool) {
  const std::lock_guard lock(mutex_);
  State& state = state_of(session);
  if (!state.pools.contains(pool)) return false;
  state.current = pool;
  return true;
}

std::uint64_t Pools::create(std::uint64_t session, std::uint64_t most) {
  const std::lock_guard lock(mutex_);
  State& state = state_of(session);
  state.pools[++last_].most = most;
  return last_;
}

bool Pools::destroy(std::uint64_t session, std::uint64_t pool) {
  const std::lock_guard lock(mutex_);
  State& state = state_of(session);
  if (pool == state.first || state.pools.erase(pool) == 0) return false;
  if (state.current == pool) state.current = state.first;
  return true;
}

Pools::Take Pools::take(std::uint64_t session, std::uint64_t pool, std::uint64_t bytes) {
  Take taken = Take::kNoPool;
  with(session, pool, [&](Pool& its) {
    const bool full = its.most != 0 && (bytes > its.most || its.used > its.most - bytes);
    if (!full) its.used += bytes;
    taken = full ? Take::kFull : Take::kTaken;
  });
  return taken;
}

void Pools::give_back(std::uint64_t session, std::uint64_t pool, std::uint64_t bytes) {
  with(session, pool, [&](Pool& its) { its.used -= bytes; });
}

void Pools::allocated(std::uint64_t session, std::uint64_t pool, std::uint64_t address,
                      std::uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  State& state = state_of(session);
  const auto at = state.pools.find(pool);
  if (at == state.pools.end()) return;
  at->second.used_high = std::max(at->second.used_high, at->second.used);
  at->second.reserved_high = std::max(at->second.reserved_high, at->second.used);
  state.owned[address] = {pool, bytes};
}

void Pools::freed(std::uint64_t session, std::uint64_t address) {
  const std::lock_guard lock(mutex_);
  if (state_.session != session) return;
  const auto owned = state_.owned.find(address);
  if (owned == state_.owned.end()) return;
  const auto pool = state_.pools.find(owned->second.pool);
  if (pool != state_.pools.end()) pool->second.used -= owned->second.bytes;
  state_.owned.erase(owned);
}

}  // namespace slate::cudart
