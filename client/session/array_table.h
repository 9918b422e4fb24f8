// ArrayTable: the arrays of a session on the client's side, by the ids that it makes. A level of a
// mipmapped array has an id of its own. The id is made when it is first asked for, and goes with
// the array. Thread-safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <optional>
#include <unordered_map>

#include "base/array.h"
#include "base/mutex.h"
#include "client/session/handle_table.h"

namespace slate::client {

class ArrayTable {
 public:
  struct Entry {
    ArraySpec spec;           // spec of the whole array
    std::uint64_t array = 0;  // the daemon's id
    std::uint32_t level = 0;
    bool is_level = false;  // whether it is a level of a mipmapped array

    /// The extent of this array or level.
    ArrayExtent extent() const { return level_extent(spec, level); }
    ArrayExtent box() const { return level_box(spec, level); }
  };

  /// `counter` makes ids unique among all tables that share it and must outlive the table.
  explicit ArrayTable(std::atomic<std::uint64_t>& counter) : counter_(counter) {}

  /// A new id, of no array yet.
  std::uint64_t next_id() { return (counter_.fetch_add(1) + 1) << HandleTable::kSlotBits; }
  void add(std::uint64_t id, const ArraySpec& spec);
  std::optional<Entry> find(std::uint64_t id) const;
  /// The entry of an array that is not mipmapped, or of a level.
  std::optional<Entry> find_flat(std::uint64_t id) const;
  /// The entry of a whole mipmapped array.
  std::optional<Entry> find_mipmapped(std::uint64_t id) const;
  /// Whether add() made an array with this id, mipmapped or not.
  bool has(std::uint64_t id, bool mipmapped) const;
  /// The id of a level; 0 when `id` is no mipmapped array, or has no such level.
  std::uint64_t level(std::uint64_t id, std::uint32_t level);
  /// False when add() made no array with this id.
  bool remove(std::uint64_t id);

 private:
  std::atomic<std::uint64_t>& counter_;
  mutable Mutex mutex_;
  std::unordered_map<std::uint64_t, Entry> entries_ SLATE_GUARDED_BY(mutex_);
  std::map<std::pair<std::uint64_t, std::uint32_t>, std::uint64_t> levels_ SLATE_GUARDED_BY(mutex_);
};

}  // namespace slate::client
