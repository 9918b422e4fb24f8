#include "base/spin.h"

#include <thread>

namespace slate {
namespace {

constexpr int kTries = 200;  // of about 40 ns: what a wake-up through the kernel takes at best

}  // namespace

bool may_spin() {
  static const bool answer = std::thread::hardware_concurrency() > 2;  // heeds the affinity
  return answer;
}

std::unique_lock<std::mutex> lock_soon(std::mutex& mutex) {
  if (may_spin()) {
    for (int i = 0; i < kTries; ++i) {
      if (std::unique_lock lock(mutex, std::try_to_lock); lock) return lock;
      __builtin_ia32_pause();
    }
  }
  return std::unique_lock(mutex);
}

}  // namespace slate
