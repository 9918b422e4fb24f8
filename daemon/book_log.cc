#include "daemon/book_log.h"

#include <algorithm>
#include <cstring>

namespace slate::daemon {

BookLog::BookLog(Memory& memory, int fd, std::uint64_t begin)
    : memory_(memory),
      pages_{{fd, begin + offsetof(Memory, records)}, {fd, begin + offsetof(Memory, records[1])}} {}

bool BookLog::is_blank() const {
  const std::uint64_t half = memory_.half.load(std::memory_order_acquire) & 1;
  return memory_.bytes[half].load(std::memory_order_acquire) == 0;
}

void BookLog::clear() {
  const MutexLock lock(mutex_);
  entries_.clear();
  for (auto& bytes : memory_.bytes) bytes.store(0);
}

Result<void> BookLog::read() {
  const MutexLock lock(mutex_);
  const std::uint64_t half = memory_.half.load(std::memory_order_acquire) & 1;
  const std::uint64_t end = std::min(memory_.bytes[half].load(std::memory_order_acquire), kBytes);
  for (std::uint64_t at = 0; at + sizeof(Record) <= end;) {
    Record record;
    std::memcpy(&record, memory_.records[half] + at, sizeof(record));
    if (record.bytes < sizeof(record) || record.bytes > end - at ||
        record.payload_bytes > record.bytes - sizeof(record))
      return fail(ErrorCode::kProtocol, "its book is damaged");
    const Key key{record.kind, record.key};
    const std::byte* const payload = memory_.records[half] + at + sizeof(record);
    if (record.dropped != 0) {
      entries_.erase(key);
    } else {
      enter(key, record.position, {payload, record.payload_bytes});
    }
    at += record.bytes;
  }
  return {};
}

/// The position stays that of the command that made it.
const BookLog::Entry& BookLog::enter(const Key& key, std::uint64_t position,
                                     std::span<const std::byte> payload) {
  Entry& entry = entries_[key];
  if (entry.order == 0) {
    entry.order = next_order_++;
    entry.position = position;
  }
  entry.payload.assign(payload.begin(), payload.end());
  return entry;
}

Result<void> BookLog::put(const Key& key, std::uint64_t position,
                          std::span<const std::byte> payload) {
  const MutexLock lock(mutex_);
  return append(key, &enter(key, position, payload));
}

Result<void> BookLog::drop(const Key& key) {
  const MutexLock lock(mutex_);
  if (entries_.erase(key) == 0) return {};
  return append(key, nullptr);
}

bool BookLog::has(const Key& key) const {
  const MutexLock lock(mutex_);
  return entries_.contains(key);
}

std::vector<std::pair<BookLog::Key, BookLog::Entry>> BookLog::entries() const {
  const MutexLock lock(mutex_);
  std::vector<std::pair<Key, Entry>> all(entries_.begin(), entries_.end());
  std::ranges::sort(all, {}, [](const auto& entry) { return entry.second.order; });
  return all;
}

std::uint64_t BookLog::bytes_of_record(const Entry* entry) {
  return (sizeof(Record) + (entry != nullptr ? entry->payload.size() : 0) + 15) / 16 * 16;
}

/// Null: the entry is gone.
Result<void> BookLog::append(const Key& key, const Entry* entry) {
  const std::uint64_t half = memory_.half.load(std::memory_order_relaxed);
  const std::uint64_t at = memory_.bytes[half].load(std::memory_order_relaxed);
  // The entries have the new one already.
  if (at + bytes_of_record(entry) > kBytes) return rewrite();
  const auto end = lay_down(half, at, key, entry);
  if (!end) return std::unexpected(end.error());
  memory_.bytes[half].store(*end, std::memory_order_release);
  return {};
}

/// Copies the living entries to the other half, in their order.
Result<void> BookLog::rewrite() {
  const std::uint64_t half = 1 - memory_.half.load(std::memory_order_relaxed);
  std::vector<const std::pair<const Key, Entry>*> all;
  for (const auto& entry : entries_) all.push_back(&entry);
  std::ranges::sort(all, {}, [](const auto* entry) { return entry->second.order; });
  std::uint64_t at = 0;
  for (const auto* entry : all) {
    // Half full already: soon there would be nothing but rewriting.
    if (at + bytes_of_record(&entry->second) > kBytes / 2)
      return fail(ErrorCode::kLimit, "it has more objects than its book has room for");
    const auto end = lay_down(half, at, entry->first, &entry->second);
    if (!end) return std::unexpected(end.error());
    at = *end;
  }
  memory_.bytes[half].store(at, std::memory_order_relaxed);
  memory_.half.store(half, std::memory_order_release);
  return {};
}

/// Writes a record, of an entry that is gone where `entry` is null. Returns its end.
Result<std::uint64_t> BookLog::lay_down(std::uint64_t half, std::uint64_t at, const Key& key,
                                        const Entry* entry) {
  const std::uint64_t end = at + bytes_of_record(entry);
  if (const auto taken = pages_[half].take(end); !taken) return std::unexpected(taken.error());
  const std::span<const std::byte> payload =
      entry != nullptr ? std::span(entry->payload) : std::span<const std::byte>();
  const Record record{.bytes = static_cast<std::uint32_t>(end - at),
                      .payload_bytes = static_cast<std::uint32_t>(payload.size()),
                      .kind = key.first,
                      .dropped = entry == nullptr ? 1u : 0u,
                      .key = key.second,
                      .position = entry != nullptr ? entry->position : 0};
  std::byte* const to = memory_.records[half] + at;
  std::memcpy(to, &record, sizeof(record));
  std::ranges::copy(payload, to + sizeof(record));
  return end;
}

}  // namespace slate::daemon
