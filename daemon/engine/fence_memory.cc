#include "daemon/engine/fence_memory.h"

#include <algorithm>

#include "base/check.h"
#include "base/sizes.h"
#include "ipc/shared_memory.h"

namespace slate::daemon {

FenceMemory::~FenceMemory() {
  const MutexLock lock(mutex_);
  for (const Piece& piece : pieces_) {
    // What cannot be unmapped any more is lost with the device.
    (void)device_.unmap(piece.tables);
    device_.unreserve(piece.tables);
    device_.unmap_host(piece.records);
  }
}

bool FenceMemory::add_users(const std::set<uid_t>& users, bool others_come) {
  const MutexLock lock(mutex_);
  users_.insert(users.begin(), users.end());
  if (choice_ != FenceChoice::kAuto || (users_.size() < 2 && !others_come)) return false;
  return !on_.exchange(true);
}

Result<device::Address> FenceMemory::map_records(std::uint64_t bytes) {
  const auto memory = ipc::make_shared_memory("slate-fence", bytes);
  if (!memory) return std::unexpected(memory.error());
  return device_.map_host(memory->get(), bytes, 0);
}

Result<void> FenceMemory::add_piece() {
  const std::uint64_t bytes = device_.granularity();
  const std::uint64_t slots = bytes / kTableBytes;
  SLATE_CHECK(slots > 0);
  const auto base = device_.reserve(bytes);
  if (!base) return std::unexpected(base.error());
  Piece piece{.tables = {*base, bytes}, .records = {}};
  if (auto mapped = device_.map(piece.tables); !mapped) {
    device_.unreserve(piece.tables);
    return mapped;
  }
  const std::uint64_t record_bytes =
      round_up(slots * sizeof(injector::FenceRecord), ipc::kMemoryGrain);
  const auto records = map_records(record_bytes);
  if (!records) {
    (void)device_.unmap(piece.tables);
    device_.unreserve(piece.tables);
    return std::unexpected(records.error());
  }
  piece.records = {*records, record_bytes};
  pieces_.push_back(piece);
  for (std::uint64_t i = slots; i-- > 0;) {
    const device::AddressRange record{*records + i * sizeof(injector::FenceRecord),
                                      sizeof(injector::FenceRecord)};
    free_.push_back({.table = {*base + i * kTableBytes, sizeof(injector::FenceTable)},
                     .record = record,
                     .seen = reinterpret_cast<injector::FenceRecord*>(record.base)});
  }
  return {};
}

Result<FenceMemory::Slot> FenceMemory::take(Listener& listener) {
  Slot slot;
  {
    const MutexLock lock(mutex_);
    if (free_.empty()) {
      if (const auto added = add_piece(); !added) return std::unexpected(added.error());
    }
    slot = free_.back();
    free_.pop_back();
  }
  *slot.seen = {};
  // Only the counts, and that nothing was ended: without counts no entry is read.
  const std::byte counts[offsetof(injector::FenceTable, ranges)] = {};
  const Write write_counts{slot.table.base, counts};
  if (const auto done = write({&write_counts, 1}); !done) {
    const MutexLock lock(mutex_);
    free_.push_back(slot);
    return std::unexpected(done.error());
  }
  const MutexLock lock(listeners_mutex_);
  listeners_.insert(&listener);
  return slot;
}

void FenceMemory::give_back(const Slot& slot, Listener& listener) {
  {
    const MutexLock lock(listeners_mutex_);
    listeners_.erase(&listener);
  }
  const MutexLock lock(mutex_);
  free_.push_back(slot);
}

void FenceMemory::forget(device::AddressRange range) {
  const MutexLock lock(listeners_mutex_);
  for (Listener* const listener : listeners_) listener->forget(range);
}

Result<void> FenceMemory::write(std::span<const Write> writes) {
  if (writes.empty()) return {};
  const MutexLock lock(write_mutex_);
  for (const Write& each : writes) {
    if (each.bytes.empty()) continue;
    const auto begun = copies_.begin(Place::on_device(each.to), Place::on_host(each.bytes.data()),
                                     each.bytes.size());
    if (!begun) return begun;
  }
  return copies_.finish();
}

}  // namespace slate::daemon
