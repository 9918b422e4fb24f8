// WatchedEvents: events that the host sees reached without asking the driver, whose calls would
// hold up those that launch. Each is a word of host memory that a stream writes. Any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "device/cuda/context.h"
#include "device/device.h"

namespace slate::cuda {

class WatchedEvents {
 public:
  /// Requires: `context` outlives it.
  explicit WatchedEvents(Context& context) : context_(context) {}
  WatchedEvents(const WatchedEvents&) = delete;
  WatchedEvents& operator=(const WatchedEvents&) = delete;
  /// Requires: no stream is to write any more, or the context is lost.
  ~WatchedEvents();

  /// kNotSupported where the driver or the GPU has no such writes.
  Result<device::Event> create();
  /// Requires: not recorded, or reached, or the context is lost.
  void destroy(device::Event event);
  Result<void> record(device::Event event, CUstream stream);
  Result<bool> query(device::Event event);

  /// Whether the handle is one of ours; those of the driver are pointers, and even.
  static bool is_one(device::Event event) { return (static_cast<std::uint64_t>(event) & 1) != 0; }

 private:
  using Word = std::atomic<std::uint64_t>;
  static_assert(sizeof(Word) == sizeof(std::uint64_t) && Word::is_always_lock_free);
  struct Slot {
    Word* word;              // written by the GPU
    std::uint64_t recorded;  // what it will be
  };

  Result<void> grow();
  Slot& slot_of(device::Event event) {
    return *reinterpret_cast<Slot*>(static_cast<std::uint64_t>(event) & ~std::uint64_t{1});
  }
  Result<void> look_for_fault();

  Context& context_;
  CUstream idle_ = nullptr;  // no work: it tells of faults only
  std::atomic<std::int64_t> looked_ns_{0};
  std::mutex mutex_;  // guards what follows
  std::vector<void*> blocks_;
  std::vector<std::unique_ptr<Slot>> slots_;
  std::vector<Slot*> free_;
};

}  // namespace slate::cuda
