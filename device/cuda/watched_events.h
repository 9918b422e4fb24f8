// WatchedEvents: events that the host sees without a call of the driver, which would hold up
// threads that launch. Each is a word of host memory that a stream writes. Thread: any.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/mutex.h"
#include "device/cuda/context.h"
#include "device/device.h"

namespace slate::cuda {

class WatchedEvents {
 public:
  /// Requires: `context` outlives it.
  explicit WatchedEvents(Context& context) : context_(context) {}
  WatchedEvents(const WatchedEvents&) = delete;
  WatchedEvents& operator=(const WatchedEvents&) = delete;
  /// Requires: no stream is still to write, or the context is lost.
  ~WatchedEvents();

  /// Errors: kNotSupported where the driver or the GPU lacks such writes.
  Result<device::Event> create();
  /// Requires: the event was never recorded, or was reached, or the context is lost.
  void destroy(device::Event event);
  Result<void> record(device::Event event, CUstream stream);
  /// Whether the event was reached; true if it was never recorded. Errors: a fault of the device.
  Result<bool> query(device::Event event);

  /// Whether the handle is a watched event. The driver's handles are pointers, and even.
  static bool is_one(device::Event event) { return (static_cast<std::uint64_t>(event) & 1) != 0; }

 private:
  using Word = std::atomic<std::uint64_t>;
  static_assert(sizeof(Word) == sizeof(std::uint64_t) && Word::is_always_lock_free);
  struct Slot {
    Word* word;              // written by the GPU
    std::uint64_t recorded;  // value of `word` once the event is reached
  };

  /// Adds a block of words.
  Result<void> grow() SLATE_REQUIRES(mutex_);
  Slot& slot_of(device::Event event) {
    return *reinterpret_cast<Slot*>(static_cast<std::uint64_t>(event) & ~std::uint64_t{1});
  }
  /// Asks the driver for a fault, at most once every millisecond: a fault keeps words from being
  /// written.
  Result<void> look_for_fault();

  Context& context_;
  CUstream idle_ = nullptr;  // stream without work, which only tells of faults
  /// Time of the last look_for_fault(), by now_ns().
  std::atomic<std::int64_t> looked_ns_{0};
  Mutex mutex_;
  std::vector<void*> blocks_ SLATE_GUARDED_BY(mutex_);
  std::vector<std::unique_ptr<Slot>> slots_ SLATE_GUARDED_BY(mutex_);
  std::vector<Slot*> free_ SLATE_GUARDED_BY(mutex_);
};

}  // namespace slate::cuda
