// AllocationTable: address ranges with a tag each. Mirrors what a session owns on the device, so
// that arguments are checked and a copy by address is decided without a round trip; also holds the
// host's pinned ranges. Thread-safe. The daemon checks everything again: this table is for good
// error codes, not for safety.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <shared_mutex>

namespace slate::client {

struct Range {
  std::uint64_t address = 0;
  std::uint64_t bytes = 0;
  std::uint32_t tag = 0;    // what the owner of the table means by it
  std::uint32_t flags = 0;  // likewise
};

class AllocationTable {
 public:
  /// Replaces whatever it overlaps: the newest word of the daemon counts. Requires: bytes > 0.
  void insert(const Range& range);
  /// Removes the range that begins at `address` and has this tag; false when there is none.
  bool erase(std::uint64_t address, std::uint32_t tag);
  /// Removes all ranges that have this tag.
  void erase_all(std::uint32_t tag);
  /// The range that `address` lies in.
  std::optional<Range> find(std::uint64_t address) const;
  /// True when all of [address, address + bytes) lies in one range. Requires: bytes > 0.
  bool covers(std::uint64_t address, std::uint64_t bytes) const;
  /// True when [address, address + bytes) touches any range.
  bool touches(std::uint64_t address, std::uint64_t bytes) const;
  std::size_t size() const;
  /// fork(): lock before, unlock after on both sides, so that the child finds no half-made change.
  void lock_for_fork() { mutex_.lock(); }
  void unlock_after_fork(bool in_child);

 private:
  mutable std::shared_mutex mutex_;
  std::map<std::uint64_t, Range> ranges_;  // by address, disjoint
};

/// Bytes from the first to the last byte of `height` rows of `width`; nothing when that overflows.
std::optional<std::uint64_t> extent_of(std::uint64_t pitch, std::uint64_t width,
                                       std::uint64_t height);

}  // namespace slate::client
