// Staging: a session's staging slots as the engine sees them: which are registered with the device,
// which are in use, and how many the session may use. Not the copies (commands/copy_commands.h),
// and not the client's half (ipc/channel.h).
//
// Slots are registered at their first use, so that a session without copies pays nothing. All of
// them are given back once the session has copied nothing for a while.
#pragma once

#include <sys/types.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>

#include "base/mutex.h"
#include "device/device.h"
#include "ipc/channel.h"

namespace slate::daemon {

/// Shares `slots` in equal parts among the users with sessions that copy at present, and each part
/// among the user's sessions. Each session has a few in any case. Thread-safe.
class StagingBudget {
 public:
  static constexpr std::uint32_t kSlots = 512;  // slots of 1 MiB
  /// Sessions of one user that copy at present.
  using Active = std::atomic<std::uint32_t>;

  explicit StagingBudget(std::uint32_t slots = kSlots) : slots_(slots) {}
  /// Another session of the user copies. Returns what leave() and share() want.
  std::shared_ptr<Active> join(uid_t uid);
  void leave(const std::shared_ptr<Active>& user);
  /// Slots that each session of a user may use now.
  std::uint32_t share(const Active& user) const;

 private:
  const std::uint32_t slots_;
  Active users_{0};  // users with sessions that copy
  Mutex mutex_;
  std::map<uid_t, std::weak_ptr<Active>> known_ SLATE_GUARDED_BY(mutex_);
};

class Staging {
 public:
  /// All outlive it.
  Staging(device::Device& device, ipc::EngineChannel& channel, StagingBudget& budget, uid_t uid = 0)
      : device_(device), channel_(channel), budget_(budget), uid_(uid) {}
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;
  /// Requires: release() was called.
  ~Staging();

  // Session thread.
  /// The slot's memory, for one copy. finish() or cancel() must follow. Requires: slot <
  /// ipc::kStagingSlots.
  std::byte* begin(std::uint32_t slot);
  /// Whether the memory is in use: from the first begin() until it is given back.
  bool active() const { return user_ != nullptr; }
  /// Gives all memory back; false if a copy is under way on either side.
  bool reclaim();
  /// Requires: no copy is under way, and the client is gone.
  void release();

  /// Ends a copy that was not made; the client is not told. Any thread.
  void cancel(std::uint32_t slot);
  /// Ends a copy that is over, and tells the client. Any thread.
  void finish(std::uint32_t slot, std::uint64_t sequence);
  /// Tells the client that there is no copy, and why; kNone: nothing to copy. Any thread.
  void give_back(std::uint32_t slot, std::uint64_t sequence, ErrorCode reason);

 private:
  struct Slot {
    bool registered = false;
    std::atomic<std::uint32_t> copies{0};  // copies that have begun and not finished
  };

  void apply_share();
  void unregister(std::uint32_t first);

  device::Device& device_;
  ipc::EngineChannel& channel_;
  StagingBudget& budget_;
  std::array<Slot, ipc::kStagingSlots> slots_;
  std::atomic<std::uint32_t> copies_{0};
  const uid_t uid_;
  std::shared_ptr<StagingBudget::Active> user_;  // null: the memory is not in use
  std::uint32_t granted_ = ipc::kLeastStagingSlots;
};

}  // namespace slate::daemon
