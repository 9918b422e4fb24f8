#include "client/session/handle_table.h"

namespace slate::client {

HandleTable::~HandleTable() {
  for (auto& chunk : chunks_) delete chunk.load(std::memory_order_relaxed);
}

HandleTable::Slot* HandleTable::slot_of(std::uint64_t id) const {
  const auto index = static_cast<std::uint32_t>(id & (kMost - 1));
  Chunk* chunk = chunks_[index / kChunkSlots].load(std::memory_order_acquire);
  if (chunk == nullptr || id == 0) return nullptr;
  Slot& slot = (*chunk)[index % kChunkSlots];
  return slot.id.load(std::memory_order_acquire) == id ? &slot : nullptr;
}

std::uint64_t HandleTable::add(Entry entry) {
  MutexLock lock(mutex_);
  std::uint32_t index = used_;
  if (!free_.empty()) {
    index = free_.back();
    free_.pop_back();
  } else if (used_ == kMost) {
    return 0;
  } else {
    // Room to give the slot back is made now, so that remove() cannot fail.
    if (free_.capacity() <= used_) free_.reserve(used_ * 2 + 16);
    auto& chunk = chunks_[index / kChunkSlots];
    if (chunk.load(std::memory_order_relaxed) == nullptr) {
      chunk.store(new Chunk, std::memory_order_release);
    }
    ++used_;
  }
  Slot& slot = (*chunks_[index / kChunkSlots].load(std::memory_order_relaxed))[index % kChunkSlots];
  slot.flags.store(entry.flags, std::memory_order_relaxed);
  slot.priority.store(entry.priority, std::memory_order_relaxed);
  slot.progress.store(entry.progress, std::memory_order_relaxed);
  slot.mark.store(entry.mark, std::memory_order_relaxed);
  const std::uint64_t id = (counter_.fetch_add(1) + 1) << kSlotBits | index;
  slot.id.store(id, std::memory_order_release);
  return id;
}

std::optional<HandleTable::Entry> HandleTable::find(std::uint64_t id) const {
  const Slot* slot = slot_of(id);
  if (slot == nullptr) return std::nullopt;
  return Entry{
      slot->flags.load(std::memory_order_relaxed), slot->priority.load(std::memory_order_relaxed),
      slot->progress.load(std::memory_order_relaxed), slot->mark.load(std::memory_order_relaxed)};
}

void HandleTable::mark(std::uint64_t id, std::uint32_t flags) {
  Slot* slot = slot_of(id);
  if (slot != nullptr) slot->flags.fetch_or(flags, std::memory_order_relaxed);
}

void HandleTable::note(std::uint64_t id, std::uint64_t mark) {
  Slot* slot = slot_of(id);
  if (slot == nullptr) return;
  std::uint64_t seen = slot->mark.load(std::memory_order_relaxed);
  while (seen < mark && !slot->mark.compare_exchange_weak(seen, mark, std::memory_order_relaxed)) {
  }
}

bool HandleTable::remove(std::uint64_t id) {
  MutexLock lock(mutex_);
  Slot* slot = slot_of(id);
  if (slot == nullptr) return false;
  slot->id.store(0, std::memory_order_release);
  free_.push_back(static_cast<std::uint32_t>(id & (kMost - 1)));
  return true;
}

}  // namespace slate::client
