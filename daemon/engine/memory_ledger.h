// MemoryLedger: who has how much of one kind of memory, by user: the device's, pinned host memory,
// or the engine's memory for code. It decides on every request, and the accounts add up to all that
// sessions have. Thread-safe.
//
// A lone user may have all but a reserve, so that somebody who comes later finds some. The reserve
// lasts for any number of latecomers: what a user takes of it leaves at least as much as he then
// has. Root may have all.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <memory>

#include "base/mutex.h"
#include "base/result.h"

namespace slate::daemon {

class MemoryLedger {
 public:
  /// `total`: bytes to share out; `reserve`: bytes of them for those who come later.
  MemoryLedger(std::uint64_t total, std::uint64_t reserve)
      : total_(total), reserve_(reserve < total ? reserve : total) {}
  MemoryLedger(const MemoryLedger&) = delete;
  MemoryLedger& operator=(const MemoryLedger&) = delete;

  /// One session's memory. It ends with nothing taken.
  class Account {
   public:
    /// The ledger outlives it.
    Account(MemoryLedger& ledger, uid_t user, std::uint64_t most_of_user = ~std::uint64_t{0});
    ~Account();
    Account(const Account&) = delete;
    Account& operator=(const Account&) = delete;

    /// kOutOfMemory when the user may not have so many bytes more.
    Result<void> take(std::uint64_t bytes) { return ledger_.take(user_, bytes); }
    /// For what is there already and only changes hands.
    void take_anyway(std::uint64_t bytes) { ledger_.take_anyway(user_, bytes); }
    void give(std::uint64_t bytes) { ledger_.give(user_, bytes); }
    /// Bytes that the user may have more at present.
    std::uint64_t left() const { return ledger_.left(user_); }

   private:
    MemoryLedger& ledger_;
    const uid_t user_;
  };

  /// Bytes by user, of users with accounts.
  std::map<uid_t, std::uint64_t> used() const;

 private:
  struct User {
    std::uint64_t used = 0;
    std::uint64_t most = 0;  // of all his accounts together
    std::uint32_t accounts = 0;
  };

  Result<void> take(uid_t user, std::uint64_t bytes);
  void take_anyway(uid_t user, std::uint64_t bytes);
  void give(uid_t user, std::uint64_t bytes);
  std::uint64_t left(uid_t user) const;
  std::uint64_t left_of(uid_t user) const SLATE_REQUIRES(mutex_);

  const std::uint64_t total_, reserve_;
  mutable Mutex mutex_;
  std::map<uid_t, User> users_ SLATE_GUARDED_BY(mutex_);
  std::uint64_t used_ SLATE_GUARDED_BY(mutex_) = 0;  // bytes of all users
};

}  // namespace slate::daemon
