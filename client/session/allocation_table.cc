#include "client/session/allocation_table.h"

#include <array>
#include <iterator>
#include <memory>

#include "base/mutex.h"

namespace slate::client {
namespace {

using Ranges = std::map<std::uint64_t, Range>;

/// The first range that ends after `address`.
template <typename Map>
auto first_reaching(Map& ranges, std::uint64_t address) {
  auto next = ranges.upper_bound(address);
  if (next == ranges.begin()) return next;
  auto before = std::prev(next);
  return address - before->second.address < before->second.bytes ? before : next;
}

/// True when `range` begins before the end of [address, address + bytes), whether or not that
/// wraps.
bool begins_before_end(const Range& range, std::uint64_t address, std::uint64_t bytes) {
  return range.address <= address || range.address - address < bytes;
}

std::uint64_t next_version() {
  static constinit std::atomic<std::uint64_t> last{0};
  return last.fetch_add(1) + 1;
}

/// The number of a new range.
std::uint64_t next_serial() {
  static constinit std::atomic<std::uint64_t> last{0};
  return last.fetch_add(1) + 1;
}

/// An answer of find(), right as long as the table has this version.
struct Known {
  std::uint64_t version = 0;
  Range range;
};
/// The thread's last answers. Most programs ask about few allocations again and again.
struct Answers {
  std::array<Known, 4> known;
  std::size_t next = 0;
};
constinit thread_local Answers answers;

}  // namespace

AllocationTable::AllocationTable() : version_(next_version()) {}

void AllocationTable::changed() {
  version_.store(next_version(), std::memory_order_release);
}

void AllocationTable::insert(const Range& range) {
  WriteLock lock(mutex_);
  auto at = first_reaching(ranges_, range.address);
  while (at != ranges_.end() && begins_before_end(at->second, range.address, range.bytes)) {
    at = ranges_.erase(at);
  }
  Range& inserted = ranges_.insert_or_assign(range.address, range).first->second;
  inserted.serial = next_serial();
  changed();
}

void AllocationTable::set_owner(std::uint64_t address, std::uint64_t owner) {
  WriteLock lock(mutex_);
  const auto at = ranges_.find(address);
  if (at == ranges_.end()) return;
  at->second.owner = owner;
  changed();
}

void AllocationTable::join(Range range) {
  WriteLock lock(mutex_);
  auto next = ranges_.lower_bound(range.address);
  if (next != ranges_.end() && next->second.tag == range.tag &&
      next->first == range.address + range.bytes) {
    range.bytes += next->second.bytes;
    next = ranges_.erase(next);
  }
  if (next != ranges_.begin()) {
    Range& before = std::prev(next)->second;
    if (before.tag == range.tag && before.address + before.bytes == range.address) {
      before.bytes += range.bytes;
      changed();
      return;
    }
  }
  range.serial = next_serial();
  ranges_.insert_or_assign(range.address, range);
  changed();
}

bool AllocationTable::cut(std::uint64_t address, std::uint64_t bytes, std::uint32_t tag) {
  WriteLock lock(mutex_);
  const auto at = first_reaching(ranges_, address);
  if (at == ranges_.end() || at->second.address > address || at->second.tag != tag) return false;
  const Range whole = at->second;
  const std::uint64_t before = address - whole.address;
  if (bytes > whole.bytes - before) return false;
  ranges_.erase(at);
  Range rest = whole;
  rest.bytes = before;
  if (before > 0) ranges_.emplace(rest.address, rest);
  rest.address = address + bytes;
  rest.bytes = whole.bytes - before - bytes;
  if (rest.bytes > 0) ranges_.emplace(rest.address, rest);
  changed();
  return true;
}

void AllocationTable::erase_all(std::uint32_t tag) {
  WriteLock lock(mutex_);
  std::erase_if(ranges_, [&](const auto& entry) { return entry.second.tag == tag; });
  changed();
}

void AllocationTable::unlock_after_fork(bool in_child) {
  if (in_child) {
    // A writer's lock knows its thread by a number that the child's thread does not have.
    std::construct_at(&mutex_);
  } else {
    mutex_.unlock();
  }
}

bool AllocationTable::erase(std::uint64_t address, std::uint32_t tag) {
  WriteLock lock(mutex_);
  const auto at = ranges_.find(address);
  if (at == ranges_.end() || at->second.tag != tag) return false;
  ranges_.erase(at);
  changed();
  return true;
}

std::optional<Range> AllocationTable::find(std::uint64_t address) const {
  const std::uint64_t version = version_.load(std::memory_order_acquire);
  for (const Known& each : answers.known) {
    if (each.version == version && address - each.range.address < each.range.bytes)
      return each.range;
  }
  ReadLock lock(mutex_);
  const auto at = first_reaching(ranges_, address);
  if (at == ranges_.end() || at->second.address > address) return std::nullopt;
  answers.known[answers.next++ % answers.known.size()] = {version_.load(std::memory_order_relaxed),
                                                          at->second};
  return at->second;
}

bool AllocationTable::covers(std::uint64_t address, std::uint64_t bytes) const {
  const auto range = find(address);
  return range && bytes <= range->bytes && address - range->address <= range->bytes - bytes;
}

bool AllocationTable::touches(std::uint64_t address, std::uint64_t bytes) const {
  ReadLock lock(mutex_);
  const auto at = first_reaching(ranges_, address);
  return at != ranges_.end() && begins_before_end(at->second, address, bytes);
}

std::size_t AllocationTable::size() const {
  ReadLock lock(mutex_);
  return ranges_.size();
}

std::optional<std::uint64_t> extent_of(std::uint64_t pitch, std::uint64_t width,
                                       std::uint64_t height) {
  if (width == 0 || height == 0) return 0;
  std::uint64_t extent = 0;
  if (__builtin_mul_overflow(pitch, height - 1, &extent)) return std::nullopt;
  if (__builtin_add_overflow(extent, width, &extent)) return std::nullopt;
  return extent;
}

}  // namespace slate::client
