// Exports: the allocations and events that sessions offer to other sessions of the same user
// (cudaIpcGetMemHandle and the like). Their names are random bytes: a session of the user that
// knows the name may open it. One for all sessions of an engine. Thread-safe.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "base/mutex.h"
#include "daemon/engine/completer.h"
#include "daemon/engine/memory_manager.h"
#include "ipc/commands.h"

namespace slate::daemon {

/// An event that several sessions record and wait for.
class SharedRecord {
 public:
  /// The event of the latest record; null before the first.
  std::shared_ptr<SharedEvent> latest() const {
    const MutexLock lock(mutex_);
    return event_;
  }
  void set(std::shared_ptr<SharedEvent> event) {
    const MutexLock lock(mutex_);
    event_ = std::move(event);
  }

 private:
  mutable Mutex mutex_;
  std::shared_ptr<SharedEvent> event_ SLATE_GUARDED_BY(mutex_);
};

class Exports {
 public:
  static constexpr std::size_t kMostOfSession = 4096;

  struct Memory {
    device::AddressRange range;
    std::shared_ptr<MemoryManager> owner;
  };

  /// The handle of the allocation at this address; the same one each time. kInvalidValue when it is
  /// none of `manager`'s; kLimit.
  Result<ipc::ShareHandle> offer(std::uint64_t session, uid_t uid,
                                 const std::shared_ptr<MemoryManager>& manager,
                                 device::Address address);
  Result<ipc::ShareHandle> offer(std::uint64_t session, uid_t uid,
                                 std::shared_ptr<SharedRecord> event);
  /// Keeps the memory. The caller lets go of it by MemoryManager::let_go().
  /// Errors:
  /// - kInvalidValue: the handle is none of this user's memory,
  /// - kInvalidHandle: it is none of this user's events.
  Result<Memory> open_memory(const ipc::ShareHandle& handle, uid_t uid);
  Result<std::shared_ptr<SharedRecord>> open_event(const ipc::ShareHandle& handle, uid_t uid);
  /// The session has freed this allocation, or destroyed this event: no session can open it again.
  void withdraw(std::uint64_t session, device::Address address);
  void withdraw(std::uint64_t session, const SharedRecord& event);
  /// Withdraws all that the session offered.
  void withdraw_all(std::uint64_t session);

 private:
  struct Offer {
    std::uint64_t session;
    uid_t uid;
    Memory memory;                        // the memory; its owner is null for events
    std::shared_ptr<SharedRecord> event;  // the event; null for memory
  };

  Result<ipc::ShareHandle> add(Offer offer) SLATE_REQUIRES(mutex_);
  const Offer* find(const ipc::ShareHandle& handle, uid_t uid) const SLATE_REQUIRES(mutex_);

  mutable Mutex mutex_;
  std::map<std::string, Offer, std::less<>> offers_ SLATE_GUARDED_BY(mutex_);  // by handle
};

}  // namespace slate::daemon
