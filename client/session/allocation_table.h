// AllocationTable: address ranges with a tag each. It mirrors what a session owns on the device, so
// that arguments are checked, and a copy by address is decided, without a round trip. It also holds
// the host's pinned ranges. Thread-safe.
// The daemon checks everything again: this table serves good error codes, not safety.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <optional>

#include "base/mutex.h"

namespace slate::client {

struct Range {
  std::uint64_t address = 0;
  std::uint64_t bytes = 0;
  std::uint32_t tag = 0;     // meaning defined by the table's owner
  std::uint32_t flags = 0;   // meaning defined by the table's owner
  std::uint64_t owner = 0;   // a front's mark
  std::uint64_t serial = 0;  // number in the process, given by insert(); never 0 in a table
};

class AllocationTable {
 public:
  AllocationTable();

  /// Replaces all ranges that it overlaps: the daemon's newest answer counts. Requires: bytes > 0.
  void insert(const Range& range);
  /// Marks the range that begins here, if there is one.
  void set_owner(std::uint64_t address, std::uint64_t owner);
  /// Adds a range that becomes one with those of the same tag that it touches. Requires: bytes > 0,
  /// and no range has any of them.
  void join(Range range);
  /// Takes the bytes out of the range that has them, if it has this tag; false otherwise. What is
  /// before and behind them stays, as ranges of their own.
  bool cut(std::uint64_t address, std::uint64_t bytes, std::uint32_t tag);
  /// Removes the range with this begin and tag; false when there is none.
  bool erase(std::uint64_t address, std::uint32_t tag);
  /// Removes all ranges that have this tag.
  void erase_all(std::uint32_t tag);
  /// The range that `address` lies in. While the table does not change, a thread finds the ranges
  /// that it asked for last without a lock.
  std::optional<Range> find(std::uint64_t address) const;
  /// Whether all of [address, address + bytes) lies in one range. Requires: bytes > 0.
  bool covers(std::uint64_t address, std::uint64_t bytes) const;
  /// Whether [address, address + bytes) touches any range.
  bool touches(std::uint64_t address, std::uint64_t bytes) const;
  std::size_t size() const;
  /// fork(): lock before, unlock after on both sides, so that the child finds no half-made change.
  void lock_for_fork() SLATE_ACQUIRE(mutex_) { mutex_.lock(); }
  void unlock_after_fork(bool in_child) SLATE_RELEASE(mutex_) SLATE_NO_THREAD_SAFETY_ANALYSIS;

 private:
  /// To be called after each change.
  void changed() SLATE_REQUIRES(mutex_);

  mutable SharedMutex mutex_;
  /// Number of the newest change, of all tables'. Written under mutex_.
  std::atomic<std::uint64_t> version_;
  std::map<std::uint64_t, Range> ranges_ SLATE_GUARDED_BY(mutex_);  // by address, disjoint
};

/// Bytes from the first to the last byte of `height` rows of `width`; nothing when that overflows.
std::optional<std::uint64_t> extent_of(std::uint64_t pitch, std::uint64_t width,
                                       std::uint64_t height);

}  // namespace slate::client
