#include "client/session/progress.h"

#include <algorithm>

namespace slate::client {
namespace {

// A mark is a position in units of kCommandAlign, then the entry, so that marks order as positions.
constexpr int kEntryBits = 12;
constexpr std::uint64_t kNoEntry = (1u << kEntryBits) - 1;
static_assert(ipc::kProgressSlots <= kNoEntry);

void raise(std::atomic<std::uint64_t>& value, std::uint64_t to) {
  std::uint64_t seen = value.load(std::memory_order_relaxed);
  while (seen < to && !value.compare_exchange_weak(seen, to, std::memory_order_release)) {
  }
}

std::uint64_t position_of(std::uint64_t mark) {
  return (mark >> kEntryBits) * ipc::kCommandAlign;
}

}  // namespace

ProgressTable::ProgressTable(const ipc::ClientChannel& channel) : channel_(channel) {
  given_back_.reserve(ipc::kProgressSlots);
}

std::uint32_t ProgressTable::take(bool blocking) {
  MutexLock lock(mutex_);
  // An entry whose old work goes on would tell the new stream's progress too early.
  const auto idle = std::ranges::find_if(given_back_, [this](auto entry) { return done(entry); });
  std::uint32_t entry = used_.load(std::memory_order_relaxed);
  if (idle != given_back_.end()) {
    entry = *idle;
    given_back_.erase(idle);
  } else if (entry == ipc::kProgressSlots) {
    overflowed_.store(true, std::memory_order_relaxed);
    return ipc::kNoProgress;
  } else {
    used_.store(entry + 1, std::memory_order_release);
  }
  entries_[entry].blocking.store(blocking, std::memory_order_relaxed);
  return entry;
}

void ProgressTable::give_back(std::uint32_t entry) {
  if (entry >= ipc::kProgressSlots) return;
  MutexLock lock(mutex_);
  given_back_.push_back(entry);
}

ipc::PlaceNote ProgressTable::note_of(std::uint32_t entry) {
  return {&newest_, entry < ipc::kProgressSlots ? &entries_[entry].last : nullptr};
}

void ProgressTable::confirm(std::uint32_t entry, std::uint64_t position) {
  if (entry < ipc::kProgressSlots) raise(entries_[entry].confirmed, position);
}

void ProgressTable::confirm_mark(std::uint64_t mark) {
  confirm(static_cast<std::uint32_t>(mark & kNoEntry), position_of(mark));
}

std::uint64_t ProgressTable::sent(std::uint32_t entry) const {
  return entry < ipc::kProgressSlots ? entries_[entry].last.load(std::memory_order_acquire) : 0;
}

void ProgressTable::sent(bool only_blocking, Snapshot& snapshot) const {
  const std::uint32_t used = used_.load(std::memory_order_acquire);
  for (std::uint32_t i = 0; i < ipc::kProgressSlots; ++i) {
    const bool meant =
        i < used && (!only_blocking || entries_[i].blocking.load(std::memory_order_relaxed));
    snapshot[i] = meant ? sent(i) : 0;
  }
}

void ProgressTable::confirm(const Snapshot& snapshot) {
  for (std::uint32_t i = 0; i < ipc::kProgressSlots; ++i) {
    if (snapshot[i] != 0) confirm(i, snapshot[i]);
  }
}

std::optional<bool> ProgressTable::finished(std::uint32_t entry) const {
  if (entry >= ipc::kProgressSlots) return std::nullopt;
  return done(entry);
}

/// Whether `done`, which is asked about each entry, is true of all.
template <typename Done>
std::optional<bool> ProgressTable::all_entries(const Done& done) const {
  const std::uint32_t used = used_.load(std::memory_order_acquire);
  for (std::uint32_t i = 0; i < used; ++i) {
    if (!done(i)) return false;
  }
  if (overflowed_.load(std::memory_order_relaxed)) return std::nullopt;
  return true;
}

std::optional<bool> ProgressTable::finished_all(bool only_blocking) const {
  return all_entries([&](std::uint32_t entry) {
    return (only_blocking && !entries_[entry].blocking.load(std::memory_order_relaxed)) ||
           done(entry);
  });
}

std::optional<bool> ProgressTable::finished_all_but(std::uint64_t left_out,
                                                    std::uint64_t newest) const {
  return all_entries([&](std::uint32_t entry) {
    return entry == kDefaultStream ? newest == left_out || completed(entry, newest) : done(entry);
  });
}

std::optional<bool> ProgressTable::finished_up_to(std::uint64_t position) const {
  return all_entries(
      [&](std::uint32_t entry) { return completed(entry, position) || done(entry); });
}

std::uint64_t ProgressTable::mark_of(std::uint32_t entry, std::uint64_t position) {
  const std::uint64_t low = entry < ipc::kProgressSlots ? entry : kNoEntry;
  return (position / ipc::kCommandAlign) << kEntryBits | low;
}

void ProgressTable::wait_ended(std::uint64_t position) {
  raise(waited_, position);
}

bool ProgressTable::may_lag(std::uint64_t mark) {
  const std::uint64_t waited = waited_.load(std::memory_order_acquire);
  if (position_of(mark) > waited) return false;
  Asked& asked = asked_[((mark >> kEntryBits) ^ mark) % asked_.size()];
  const bool known = asked.mark.load() == mark && asked.waited.load() == waited;
  asked.mark.store(mark);
  asked.waited.store(waited);
  return !known;
}

std::optional<bool> ProgressTable::reached(std::uint64_t mark) const {
  const auto entry = static_cast<std::uint32_t>(mark & kNoEntry);
  if (entry >= ipc::kProgressSlots) return std::nullopt;
  return completed(entry, position_of(mark));
}

}  // namespace slate::client
