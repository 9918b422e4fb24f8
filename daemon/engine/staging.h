// Staging: a session's slots of shared memory that copies pass through, as the engine sees them:
// which are registered with the device, which are in use, and how many the session may use. Not the
// copies themselves (commands/copy_commands.h), and not the client's half (ipc/channel.h).
//
// Slots are registered when first used, so a session that copies nothing pays nothing, and all of
// it is given back once the session has copied nothing for a while.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "device/device.h"
#include "ipc/channel.h"

namespace slate::daemon {

/// Shares `slots` among the sessions that copy at present, in equal parts, but gives each a few.
/// Thread-safe.
class StagingBudget {
 public:
  static constexpr std::uint32_t kSlots = 512;  // of 1 MiB

  explicit StagingBudget(std::uint32_t slots = kSlots) : slots_(slots) {}
  /// What shared memory of `bytes` in all allows, since a program that touches more of it than
  /// there is gets a signal.
  static std::uint32_t slots_for(std::uint64_t bytes);
  /// The size of this machine's shared memory.
  static std::uint64_t shared_memory_bytes();
  void join() { active_.fetch_add(1); }
  void leave() { active_.fetch_sub(1); }
  /// What each of those that joined may use now.
  std::uint32_t share() const;

 private:
  const std::uint32_t slots_;
  std::atomic<std::uint32_t> active_{0};
};

class Staging {
 public:
  /// All outlive it.
  Staging(device::Device& device, ipc::EngineChannel& channel, StagingBudget& budget)
      : device_(device), channel_(channel), budget_(budget) {}
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;
  /// Requires: release() was called.
  ~Staging();

  // Session thread.
  /// The slot's memory, for one copy; finish() or cancel() follows, but not after kOutOfMemory:
  /// there is no room for its pages. Requires: slot < ipc::kStagingSlots.
  Result<std::byte*> begin(std::uint32_t slot);
  /// True from the first use on, until the memory is given back.
  bool active() const { return active_; }
  /// Gives all memory back, unless a copy is under way on either side; then false.
  bool reclaim();
  /// Requires: no copy is under way, and the client is gone.
  void release();

  /// Any thread. The copy did not come about; the client is not told.
  void cancel(std::uint32_t slot);
  /// Any thread. The copy is over, and the client is told.
  void finish(std::uint32_t slot, std::uint64_t sequence);
  /// Any thread. Tells the client that there is no copy: the reason, or kNone for nothing to copy.
  void give_back(std::uint32_t slot, std::uint64_t sequence, ErrorCode reason);

 private:
  struct Slot {
    bool registered = false;
    std::atomic<std::uint32_t> copies{0};  // begun and not finished
  };

  void apply_share();
  void unregister(std::uint32_t first);

  device::Device& device_;
  ipc::EngineChannel& channel_;
  StagingBudget& budget_;
  std::array<Slot, ipc::kStagingSlots> slots_;
  std::atomic<std::uint32_t> copies_{0};
  bool active_ = false;
  std::uint32_t granted_ = ipc::kLeastStagingSlots;
};

}  // namespace slate::daemon
