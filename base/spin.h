// Waiting awake for what takes less time than falling asleep does.
#pragma once

#include <mutex>

namespace slate {

/// False where a thread that spins may keep the one that it waits for from running: on machines of
/// two cores or fewer.
bool may_spin();

/// A thread's leave to wait awake. A process gives a quarter as many at a time as there are cores,
/// none where may_spin() is false: more would keep those from running that they wait for.
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

/// Locks a mutex that is held for microseconds only: waits awake about that long, if there is
/// leave, then asleep.
std::unique_lock<std::mutex> lock_soon(std::mutex& mutex);

}  // namespace slate
