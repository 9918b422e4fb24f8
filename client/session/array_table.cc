#include "client/session/array_table.h"

namespace slate::client {

void ArrayTable::add(std::uint64_t id, const ArraySpec& spec) {
  const MutexLock lock(mutex_);
  entries_.emplace(id, Entry{spec, id, 0, false});
}

std::optional<ArrayTable::Entry> ArrayTable::find(std::uint64_t id) const {
  const MutexLock lock(mutex_);
  const auto found = entries_.find(id);
  if (found == entries_.end()) return std::nullopt;
  return found->second;
}

std::optional<ArrayTable::Entry> ArrayTable::find_flat(std::uint64_t id) const {
  const auto entry = find(id);
  return entry && (entry->spec.levels == 0 || entry->is_level) ? entry : std::nullopt;
}

std::optional<ArrayTable::Entry> ArrayTable::find_mipmapped(std::uint64_t id) const {
  const auto entry = find(id);
  return entry && entry->spec.levels > 0 && !entry->is_level ? entry : std::nullopt;
}

bool ArrayTable::has(std::uint64_t id, bool mipmapped) const {
  const auto entry = find(id);
  return entry && !entry->is_level && (entry->spec.levels > 0) == mipmapped;
}

std::uint64_t ArrayTable::level(std::uint64_t id, std::uint32_t level) {
  const MutexLock lock(mutex_);
  const auto found = entries_.find(id);
  if (found == entries_.end() || found->second.is_level || level >= found->second.spec.levels) {
    return 0;
  }
  const auto [entry, is_new] = levels_.try_emplace({id, level}, 0);
  if (is_new) {
    entry->second = next_id();
    entries_.emplace(entry->second, Entry{found->second.spec, id, level, true});
  }
  return entry->second;
}

bool ArrayTable::remove(std::uint64_t id) {
  const MutexLock lock(mutex_);
  const auto found = entries_.find(id);
  if (found == entries_.end() || found->second.is_level) return false;
  const auto first = levels_.lower_bound({id, 0});
  auto last = first;
  for (; last != levels_.end() && last->first.first == id; ++last) entries_.erase(last->second);
  levels_.erase(first, last);
  entries_.erase(id);
  return true;
}

}  // namespace slate::client
