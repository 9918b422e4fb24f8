#include "daemon/time_page.h"

#include <algorithm>
#include <chrono>
#include <span>
#include <utility>

#include "ipc/shared_memory.h"

namespace slate::daemon {

Result<std::unique_ptr<TimePage>> TimePage::make() {
  auto fd = ipc::make_shared_memory("slate-time", sizeof(Shared));
  if (!fd) return std::unexpected(fd.error());
  if (const auto taken = ipc::populate(fd->get(), 0, sizeof(Shared)); !taken)
    return std::unexpected(taken.error());
  return from_fd(std::move(*fd));
}

Result<std::unique_ptr<TimePage>> TimePage::from_fd(UniqueFd fd) {
  auto region = ipc::map_shared_memory(fd.get(), sizeof(Shared), "the page of device time");
  if (!region) return std::unexpected(region.error());
  return std::unique_ptr<TimePage>(new TimePage(std::move(fd), std::move(*region)));
}

/// Null: nobody's slot is this.
TimePage::Slot* TimePage::slot_of(std::uint64_t engine) const {
  const auto found = std::ranges::find_if(shared_->slots, [engine](const Slot& slot) {
    return slot.owner.load(std::memory_order_acquire) == engine;
  });
  return found == std::end(shared_->slots) ? nullptr : found;
}

bool TimePage::give(std::uint64_t engine) {
  if (slot_of(engine) != nullptr) return true;
  Slot* const slot = slot_of(0);
  if (slot == nullptr) return false;
  write(*slot, {});
  slot->owner.store(engine, std::memory_order_release);
  return true;
}

void TimePage::take_back(std::uint64_t engine) {
  if (Slot* const slot = slot_of(engine)) slot->owner.store(0, std::memory_order_release);
}

std::vector<std::uint64_t> TimePage::owners() const {
  std::vector<std::uint64_t> owners;
  for (const Slot& slot : shared_->slots) {
    if (const std::uint64_t owner = slot.owner.load(std::memory_order_relaxed); owner != 0)
      owners.push_back(owner);
  }
  return owners;
}

std::optional<scheduler::ShownTime> TimePage::shown_by(std::uint64_t engine) const {
  const Slot* const slot = slot_of(engine);
  if (slot == nullptr) return std::nullopt;
  return read(*slot);
}

void TimePage::show(std::uint64_t engine, const scheduler::ShownTime& shown) {
  if (Slot* const slot = slot_of(engine)) write(*slot, shown);
}

void TimePage::read_others(std::uint64_t engine, std::vector<scheduler::ShownTime>& others) const {
  others.clear();
  if (slot_of(engine) == nullptr) return;
  for (const Slot& slot : shared_->slots) {
    const std::uint64_t owner = slot.owner.load(std::memory_order_acquire);
    if (owner != 0 && owner != engine) others.push_back(read(slot));
  }
}

void TimePage::write(Slot& slot, const scheduler::ShownTime& shown) {
  const std::uint32_t flags = (shown.uses ? kUses : 0) | (shown.holds ? kHolds : 0);
  const auto at = std::chrono::nanoseconds(shown.at.time_since_epoch());
  slot.received_ms.store(shown.received_ms, std::memory_order_relaxed);
  slot.part.store(shown.part, std::memory_order_relaxed);
  slot.at_ns.store(at.count(), std::memory_order_relaxed);
  // Behind the rest, so that an engine that becomes busy shows where it begins.
  slot.flags.store(flags, std::memory_order_release);
}

scheduler::ShownTime TimePage::read(const Slot& slot) {
  const std::uint32_t flags = slot.flags.load(std::memory_order_acquire);
  return {
      .uses = (flags & kUses) != 0,
      .holds = (flags & kHolds) != 0,
      .received_ms = slot.received_ms.load(std::memory_order_relaxed),
      .part = slot.part.load(std::memory_order_relaxed),
      .at = scheduler::Time(std::chrono::nanoseconds(slot.at_ns.load(std::memory_order_relaxed)))};
}

}  // namespace slate::daemon
