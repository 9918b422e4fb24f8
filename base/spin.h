// Waiting awake for events that come sooner than a thread falls asleep and wakes up. What is waited
// for is the caller's. Thread: any.
#pragma once

#include "base/mutex.h"

namespace slate {

/// Whether a thread may spin. False on machines of two cores or fewer, where it may keep the thread
/// that it waits for from running.
bool may_spin();

/// A thread's permission to wait awake. A process gives a quarter as many at a time as there are
/// cores, and none where may_spin() is false. More of them would keep the threads from running that
/// they wait for.
class SpinLeave {
 public:
  SpinLeave();
  ~SpinLeave();
  SpinLeave(const SpinLeave&) = delete;
  SpinLeave& operator=(const SpinLeave&) = delete;

  explicit operator bool() const { return given_; }

 private:
  const bool given_;
};

/// Locks a mutex that is held for microseconds only: waits awake about that long, if permitted,
/// then asleep.
MutexLock lock_soon(Mutex& mutex) SLATE_ACQUIRE(mutex);

}  // namespace slate
