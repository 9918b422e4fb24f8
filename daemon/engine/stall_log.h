// StallLog: which threads are in a call of the device that waits for kernels (Device::StallHooks),
// and since when. Thread-safe.
#pragma once

#include <map>
#include <thread>

#include "base/mutex.h"
#include "scheduler/profile.h"

namespace slate::daemon {

class StallLog {
 public:
  using Stalls = std::map<std::thread::id, scheduler::Time>;

  /// The calling thread begins such a call. It has no other one.
  void begin() {
    const auto now = scheduler::Time::clock::now();
    const MutexLock lock(mutex_);
    stalls_.emplace(std::this_thread::get_id(), now);
  }
  void end() {
    const MutexLock lock(mutex_);
    stalls_.erase(std::this_thread::get_id());
  }
  Stalls all() const {
    const MutexLock lock(mutex_);
    return stalls_;
  }

 private:
  mutable Mutex mutex_;
  Stalls stalls_ SLATE_GUARDED_BY(mutex_);
};

}  // namespace slate::daemon
