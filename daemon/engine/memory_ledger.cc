#include "daemon/engine/memory_ledger.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"

namespace slate::daemon {
namespace {

std::uint64_t difference(std::uint64_t more, std::uint64_t less) {
  return more - std::min(more, less);
}

}  // namespace

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

/// A lone user's even part leaves room for one more.
std::uint64_t MemoryLedger::left_of(const User& user) const {
  const std::uint64_t even = total_ / std::max<std::uint64_t>(users_.size(), 2);
  const std::uint64_t beyond = difference(difference(total_, reserve_), used_);
  return std::min(difference(user.most, user.used), std::max(difference(even, user.used), beyond));
}

Result<void> MemoryLedger::take(uid_t user, std::uint64_t bytes) {
  const MutexLock lock(mutex_);
  User& his = users_.at(user);
  if (bytes > left_of(his)) {
    return fail(ErrorCode::kOutOfMemory,
                fmt::format("{} bytes more: uid {} has {}, and may have {} more beside {} others",
                            bytes, user, his.used, left_of(his), users_.size() - 1));
  }
  his.used += bytes;
  used_ += bytes;
  return {};
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
  return left_of(users_.at(user));
}

std::map<uid_t, std::uint64_t> MemoryLedger::used() const {
  const MutexLock lock(mutex_);
  std::map<uid_t, std::uint64_t> used;
  for (const auto& [uid, user] : users_) used.emplace(uid, user.used);
  return used;
}

}  // namespace slate::daemon
