// HandleTable: the live streams, or events, of a session. It makes the ids. An id is never 0 and
// never used twice, so that a stale one is recognised. A look-up takes no lock, as launches need
// it.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "base/mutex.h"

namespace slate::client {

class HandleTable {
 public:
  struct Entry {
    std::uint32_t flags = 0;
    std::int32_t priority = 0;
    std::uint32_t progress = 0;  // a stream's entry in the ProgressTable
    std::uint64_t mark = 0;      // an event's last record, see note()
  };

  /// `counter` makes ids unique among all tables that share it. It must outlive the table.
  explicit HandleTable(std::atomic<std::uint64_t>& counter) : counter_(counter) {}
  HandleTable(const HandleTable&) = delete;
  HandleTable& operator=(const HandleTable&) = delete;
  ~HandleTable();

  /// A new id; 0 when kMost are alive.
  std::uint64_t add(Entry entry);
  std::optional<Entry> find(std::uint64_t id) const;
  bool contains(std::uint64_t id) const { return find(id).has_value(); }
  /// Adds `flags` to the entry's flags.
  void mark(std::uint64_t id, std::uint32_t flags);
  /// Raises the entry's mark to `mark`, if it is lower.
  void note(std::uint64_t id, std::uint64_t mark);
  /// False when there is no such id.
  bool remove(std::uint64_t id);

  static constexpr std::uint32_t kSlotBits = 16;
  static constexpr std::uint32_t kMost = 1u << kSlotBits;

 private:
  struct Slot {
    std::atomic<std::uint64_t> id{0};  // 0: free
    std::atomic<std::uint32_t> flags{0};
    std::atomic<std::int32_t> priority{0};
    std::atomic<std::uint32_t> progress{0};
    std::atomic<std::uint64_t> mark{0};
  };
  static constexpr std::uint32_t kChunkSlots = 1024;
  using Chunk = std::array<Slot, kChunkSlots>;

  Slot* slot_of(std::uint64_t id) const;

  std::atomic<std::uint64_t>& counter_;
  std::array<std::atomic<Chunk*>, kMost / kChunkSlots> chunks_{};
  Mutex mutex_;  // guards changes of chunks_, too
  std::vector<std::uint32_t> free_ SLATE_GUARDED_BY(mutex_);
  std::uint32_t used_ SLATE_GUARDED_BY(mutex_) = 0;  // slots used at some time
};

}  // namespace slate::client
