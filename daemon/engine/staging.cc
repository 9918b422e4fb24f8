#include "daemon/engine/staging.h"

#include <sys/mman.h>

#include <algorithm>

#include "base/check.h"
#include "base/log.h"

namespace slate::daemon {

std::shared_ptr<StagingBudget::Active> StagingBudget::join(uid_t uid) {
  const MutexLock lock(mutex_);
  std::erase_if(known_, [](const auto& each) { return each.second.expired(); });
  std::weak_ptr<Active>& known = known_[uid];
  std::shared_ptr<Active> user = known.lock();
  if (user == nullptr) known = user = std::make_shared<Active>(0);
  if (user->fetch_add(1) == 0) users_.fetch_add(1);
  return user;
}

void StagingBudget::leave(const std::shared_ptr<Active>& user) {
  const MutexLock lock(mutex_);
  if (user->fetch_sub(1) == 1) users_.fetch_sub(1);
}

std::uint32_t StagingBudget::share(const Active& user) const {
  const std::uint32_t users = std::max(users_.load(), 1u), sessions = std::max(user.load(), 1u);
  return std::clamp(slots_ / users / sessions, ipc::kLeastStagingSlots, ipc::kStagingSlots);
}

Staging::~Staging() {
  SLATE_CHECK(!active());
}

std::byte* Staging::begin(std::uint32_t slot) {
  if (!active()) user_ = budget_.join(uid_);
  apply_share();
  Slot& used = slots_[slot];
  const auto memory = channel_.staging(slot);
  if (!used.registered) {
    // Copies from memory that could not be registered are slower, not wrong.
    const auto done = device_.register_host(memory.data(), memory.size());
    used.registered = done.has_value();
    if (!done) log_debug("a staging slot is not registered: {}", done.error().message);
  }
  used.copies.fetch_add(1);
  copies_.fetch_add(1);
  return memory.data();
}

/// The share changes when others begin or end copying.
void Staging::apply_share() {
  const std::uint32_t share = budget_.share(*user_);
  if (share == granted_) return;
  granted_ = share;
  channel_.grant_staging(share);
  unregister(share);
}

/// Those from `first` on that no copy uses.
void Staging::unregister(std::uint32_t first) {
  for (std::uint32_t i = first; i < ipc::kStagingSlots; ++i) {
    if (!slots_[i].registered || slots_[i].copies.load() != 0) continue;
    device_.unregister_host(channel_.staging(i).data());
    slots_[i].registered = false;
  }
}

void Staging::cancel(std::uint32_t slot) {
  slots_[slot].copies.fetch_sub(1);
  copies_.fetch_sub(1);
}

void Staging::finish(std::uint32_t slot, std::uint64_t sequence) {
  cancel(slot);
  channel_.finish_staging(slot, sequence);
}

void Staging::give_back(std::uint32_t slot, std::uint64_t sequence, ErrorCode reason) {
  channel_.finish_staging(slot, sequence, reason);
}

bool Staging::reclaim() {
  if (!active()) return true;
  if (copies_.load() != 0) return false;
  return channel_.reclaim_staging([this] {
    unregister(0);
    const auto memory = channel_.all_staging();
    // The pages go, the mappings stay: the next access to them gets fresh pages.
    if (::madvise(memory.data(), memory.size(), MADV_REMOVE) != 0)
      log_debug("staging memory stays: madvise refused");
    budget_.leave(user_);
    user_.reset();
    granted_ = ipc::kLeastStagingSlots;
    channel_.grant_staging(granted_);
  });
}

void Staging::release() {
  if (!active()) return;
  for (Slot& slot : slots_) slot.copies.store(0);
  unregister(0);
  budget_.leave(user_);
  user_.reset();
}

}  // namespace slate::daemon
