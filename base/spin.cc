#include "base/spin.h"

#include <algorithm>
#include <atomic>
#include <thread>

namespace slate {
namespace {

constexpr int kTries = 200;  // of about 40 ns: what a wake-up through the kernel takes at best
constexpr unsigned kCoresForOne = 4;

std::atomic<unsigned> spinning{0};

unsigned cores() {
  static const unsigned count = std::thread::hardware_concurrency();  // heeds the affinity
  return count;
}

bool take_leave() {
  if (!may_spin()) return false;
  if (spinning.fetch_add(1, std::memory_order_relaxed) < std::max(1U, cores() / kCoresForOne))
    return true;
  spinning.fetch_sub(1, std::memory_order_relaxed);
  return false;
}

}  // namespace

bool may_spin() {
  return cores() > 2;
}

SpinLeave::SpinLeave() : given_(take_leave()) {}

SpinLeave::~SpinLeave() {
  if (given_) spinning.fetch_sub(1, std::memory_order_relaxed);
}

// The analysis does not follow a lock out of its function.
MutexLock lock_soon(Mutex& mutex) SLATE_NO_THREAD_SAFETY_ANALYSIS {
  if (mutex.try_lock()) return MutexLock(mutex, std::adopt_lock);
  if (const SpinLeave leave; leave) {
    for (int i = 0; i < kTries; ++i) {
      __builtin_ia32_pause();
      if (mutex.try_lock()) return MutexLock(mutex, std::adopt_lock);
    }
  }
  return MutexLock(mutex);
}

}  // namespace slate
