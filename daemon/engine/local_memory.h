// LocalMemory: the memory that threads have for themselves: stacks, and arrays that do not fit into
// registers. The driver keeps it for all threads that a device can hold, as large as the largest
// kernel needs, and gives nothing back by itself: a kernel with 256 KiB a thread takes 66 GiB of an
// H100. So a session asks here before its first launch of such a kernel. The one that needs most is
// charged for all. When it ends, the next one is, and what nobody needs goes back.
//
// A change of the size waits for all kernels, and keeps all launches waiting meanwhile. So changes
// take at most a twentieth of the time, and none is made beside others that nobody waits for.
// Thread-safe.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <vector>

#include "base/mutex.h"
#include "base/result.h"
#include "daemon/engine/memory_manager.h"
#include "device/device.h"

namespace slate::daemon {

class LocalMemory {
 public:
  /// Bytes that each thread has in any case, for which nobody is charged.
  static constexpr std::uint64_t kBase = device::kBaseLocalBytes;

  /// The device outlives it.
  explicit LocalMemory(device::Device& device);
  /// Requires: no share is left.
  ~LocalMemory();

  /// One session's use. It belongs to the session's thread.
  class Share {
   public:
    explicit Share(LocalMemory& pool) : pool_(pool) {}
    /// Requires: release() was called, or nothing was needed.
    ~Share();
    Share(const Share&) = delete;
    Share& operator=(const Share&) = delete;

    /// Whether launches with so many bytes a thread may begin.
    bool has(std::uint64_t bytes) const { return bytes <= granted_; }
    /// Makes has() true. `memory` is charged, until release(). kOutOfMemory beyond its limit, or
    /// when the device is full.
    Result<void> need(std::uint64_t bytes, MemoryManager& memory);
    /// The session needs nothing any more. `alone`: whether there is no other session, so that
    /// memory can go back at once.
    void release(bool alone);

   private:
    friend class LocalMemory;
    LocalMemory& pool_;
    MemoryManager* memory_ = nullptr;  // null: nothing was needed
    std::uint64_t granted_ = kBase;    // bytes a thread; changed under the pool's mutex
  };

  /// Gives back what nobody needs any more. True if there was something.
  bool trim();
  /// Bytes of the device that trim() would give back.
  std::uint64_t excess() const { return excess_.load(); }

 private:
  Result<void> grow(Share& share, std::uint64_t bytes) SLATE_REQUIRES(mutex_);
  Share* largest() const SLATE_REQUIRES(mutex_);
  std::uint64_t needed() const SLATE_REQUIRES(mutex_);
  bool shrink() SLATE_REQUIRES(mutex_);
  Result<void> set(std::uint64_t bytes) SLATE_REQUIRES(mutex_);
  void note_excess() SLATE_REQUIRES(mutex_);
  /// Bytes of the device beyond kBase for each thread.
  std::uint64_t cost(std::uint64_t bytes) const { return (bytes - kBase) * threads_; }

  device::Device& device_;
  const std::uint64_t threads_;  // threads that the device can hold
  Mutex mutex_;
  std::vector<Share*> shares_ SLATE_GUARDED_BY(mutex_);     // those that need more than kBase
  Share* payer_ SLATE_GUARDED_BY(mutex_) = nullptr;         // share that is charged; null: none
  std::uint64_t paid_ SLATE_GUARDED_BY(mutex_) = 0;         // bytes that it is charged
  std::uint64_t present_ SLATE_GUARDED_BY(mutex_) = kBase;  // bytes of a thread on the device
  // Earliest time of the next change.
  std::chrono::steady_clock::time_point next_change_ SLATE_GUARDED_BY(mutex_);
  std::atomic<std::uint64_t> excess_{0};
};

}  // namespace slate::daemon
