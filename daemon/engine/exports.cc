#include "daemon/engine/exports.h"

#include <fmt/format.h>
#include <sys/random.h>

#include <algorithm>
#include <cstring>

namespace slate::daemon {
namespace {

std::string key_of(const ipc::ShareHandle& handle) {
  return {reinterpret_cast<const char*>(handle.bytes), sizeof(handle.bytes)};
}

ipc::ShareHandle handle_of(const std::string& key) {
  ipc::ShareHandle handle{};
  std::memcpy(handle.bytes, key.data(), sizeof(handle.bytes));
  return handle;
}

}  // namespace

Result<ipc::ShareHandle> Exports::add(Offer offer) {
  const auto of_session = std::ranges::count_if(
      offers_, [&](const auto& each) { return each.second.session == offer.session; });
  if (static_cast<std::size_t>(of_session) >= kMostOfSession)
    return fail(ErrorCode::kLimit, "a session shares too many things");
  ipc::ShareHandle handle{};
  if (::getrandom(handle.bytes, sizeof(handle.bytes), 0) != ssize_t{sizeof(handle.bytes)})
    return fail_errno("a handle to share");
  offers_.emplace(key_of(handle), std::move(offer));
  return handle;
}

Result<ipc::ShareHandle> Exports::offer(std::uint64_t session, uid_t uid,
                                        const std::shared_ptr<MemoryManager>& manager,
                                        device::Address address) {
  const auto range = manager->allocation_of(address);
  if (!range) {
    return fail(ErrorCode::kInvalidValue, fmt::format("{:#x} is in no allocation", address));
  }
  // Whoever opens it uses it at any time.
  manager->lock_in_place(*range);
  const MutexLock lock(mutex_);
  for (const auto& [key, known] : offers_) {
    if (known.session == session && known.memory.owner == manager &&
        known.memory.range.base == range->base) {
      return handle_of(key);
    }
  }
  return add({session, uid, {*range, manager}, nullptr});
}

Result<ipc::ShareHandle> Exports::offer(std::uint64_t session, uid_t uid,
                                        std::shared_ptr<SharedRecord> event) {
  const MutexLock lock(mutex_);
  for (const auto& [key, known] : offers_) {
    if (known.session == session && known.event == event) return handle_of(key);
  }
  return add({session, uid, {}, std::move(event)});
}

/// Treats another user's offer as none.
const Exports::Offer* Exports::find(const ipc::ShareHandle& handle, uid_t uid) const {
  const auto found = offers_.find(key_of(handle));
  return found == offers_.end() || found->second.uid != uid ? nullptr : &found->second;
}

Result<Exports::Memory> Exports::open_memory(const ipc::ShareHandle& handle, uid_t uid) {
  const MutexLock lock(mutex_);
  const Offer* const offer = find(handle, uid);
  if (offer == nullptr || offer->memory.owner == nullptr)
    return fail(ErrorCode::kInvalidValue, "no memory of this user has this handle");
  if (const auto kept = offer->memory.owner->keep(offer->memory.range.base); !kept)
    return std::unexpected(kept.error());
  return offer->memory;
}

Result<std::shared_ptr<SharedRecord>> Exports::open_event(const ipc::ShareHandle& handle,
                                                          uid_t uid) {
  const MutexLock lock(mutex_);
  const Offer* const offer = find(handle, uid);
  if (offer == nullptr || offer->event == nullptr)
    return fail(ErrorCode::kInvalidHandle, "no event of this user has this handle");
  return offer->event;
}

void Exports::withdraw(std::uint64_t session, device::Address address) {
  const MutexLock lock(mutex_);
  std::erase_if(offers_, [&](const auto& each) {
    const Offer& offer = each.second;
    return offer.session == session && offer.memory.owner && offer.memory.range.base == address;
  });
}

void Exports::withdraw(std::uint64_t session, const SharedRecord& event) {
  const MutexLock lock(mutex_);
  std::erase_if(offers_, [&](const auto& each) {
    return each.second.session == session && each.second.event.get() == &event;
  });
}

void Exports::withdraw_all(std::uint64_t session) {
  const MutexLock lock(mutex_);
  std::erase_if(offers_, [&](const auto& each) { return each.second.session == session; });
}

}  // namespace slate::daemon
