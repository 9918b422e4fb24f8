#include "client/driver/life.h"

#include <pthread.h>

#include <cstdlib>
#include <mutex>

namespace slate::driver {

constinit std::atomic<int> Life::stage_{Life::kNew};

void Life::begin() {
  static std::once_flag once;
  std::call_once(once, [] {
    ::pthread_atfork(nullptr, nullptr, &Life::after_fork_in_child);
    // Of several handlers the last one comes first: what programs and cudart registered before
    // their first call of CUDA finds the driver gone, as natively.
    std::atexit(&Life::end);
    stage_.store(kReady, std::memory_order_release);
  });
}

void Life::after_fork_in_child() {
  if (stage_.load(std::memory_order_acquire) == kReady)
    stage_.store(kForked, std::memory_order_release);
}

void Life::end() {
  stage_.store(kEnded, std::memory_order_release);
}

}  // namespace slate::driver
