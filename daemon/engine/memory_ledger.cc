#include "daemon/engine/memory_ledger.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"
#include "base/sizes.h"

namespace slate::daemon {

MemoryLedger::Account::Account(MemoryLedger& ledger, uid_t user, std::uint64_t most_of_user)
    : ledger_(ledger), user_(user) {
  const MutexLock lock(ledger.mutex_);
  User& his = ledger.users_[user];
  ++his.accounts;
  his.most = most_of_user;  // the newest word of the configuration
}

MemoryLedger::Account::~Account() {
  const MutexLock lock(ledger_.mutex_);
  const auto his = ledger_.users_.find(user_);
  if (--his->second.accounts > 0) return;
  SLATE_CHECK(his->second.used == 0);
  ledger_.users_.erase(his);
}

/// A request leaves free the reserve, or as much as the user then has.
std::uint64_t MemoryLedger::left_of(uid_t user) const {
  const User& his = users_.at(user);
  const std::uint64_t free = difference(total_, used_);
  const std::uint64_t before_reserve = difference(free, reserve_);
  const std::uint64_t half_of_reserve = difference(free, his.used) / 2;
  const std::uint64_t part = user == 0 ? free : std::max(before_reserve, half_of_reserve);
  return std::min(difference(his.most, his.used), part);
}

Result<void> MemoryLedger::take(uid_t user, std::uint64_t bytes) {
  const MutexLock lock(mutex_);
  User& his = users_.at(user);
  const std::uint64_t left = left_of(user);
  if (bytes > left) {
    return fail(ErrorCode::kOutOfMemory,
                fmt::format("{} bytes more: uid {} has {}, and may have {} more beside {} others",
                            bytes, user, his.used, left, users_.size() - 1));
  }
  his.used += bytes;
  used_ += bytes;
  return {};
}

void MemoryLedger::take_anyway(uid_t user, std::uint64_t bytes) {
  const MutexLock lock(mutex_);
  users_.at(user).used += bytes;
  used_ += bytes;
}

void MemoryLedger::give(uid_t user, std::uint64_t bytes) {
  const MutexLock lock(mutex_);
  User& his = users_.at(user);
  SLATE_CHECK(his.used >= bytes && used_ >= bytes);
  his.used -= bytes;
  used_ -= bytes;
}

std::uint64_t MemoryLedger::left(uid_t user) const {
  const MutexLock lock(mutex_);
  return left_of(user);
}

std::map<uid_t, std::uint64_t> MemoryLedger::used() const {
  const MutexLock lock(mutex_);
  std::map<uid_t, std::uint64_t> used;
  for (const auto& [uid, user] : users_) used.emplace(uid, user.used);
  return used;
}

}  // namespace slate::daemon
