// Staging: a session's staging slots as the engine sees them: which are registered with the device,
// which are in use, and how many the session may use. Not the copies (commands/copy_commands.h),
// and not the client's half (ipc/channel.h).
//
// Slots are registered at their first use, so that a session without copies pays nothing. All of
// them are given back once the session has copied nothing for a while.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "device/device.h"
#include "ipc/channel.h"

namespace slate::daemon {

/// Shares `slots` in equal parts among the sessions that copy at present, but gives each a few.
/// Thread-safe.
class StagingBudget {
 public:
  static constexpr std::uint32_t kSlots = 512;  // slots of 1 MiB

  explicit StagingBudget(std::uint32_t slots = kSlots) : slots_(slots) {}
  void join() { active_.fetch_add(1); }
  void leave() { active_.fetch_sub(1); }
  /// Slots that each session that joined may use now.
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
  /// The slot's memory, for one copy. finish() or cancel() must follow. Requires: slot <
  /// ipc::kStagingSlots.
  std::byte* begin(std::uint32_t slot);
  /// Whether the memory is in use: from the first begin() until it is given back.
  bool active() const { return active_; }
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
  bool active_ = false;
  std::uint32_t granted_ = ipc::kLeastStagingSlots;
};

}  // namespace slate::daemon
