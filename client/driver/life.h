// Life: from cuInit() to the end of the program, and what a forked child may do. Any thread.
#pragma once

#include <atomic>

#ifndef __CUDA_API_VERSION_INTERNAL
#define __CUDA_API_VERSION_INTERNAL  // NOLINT: as front.h
#endif
#include <cuda.h>

namespace slate::driver {

class Life {
 public:
  /// CUDA_SUCCESS, or what every call answers now: CUDA_ERROR_NOT_INITIALIZED before cuInit() and
  /// in a child that was forked after it, CUDA_ERROR_DEINITIALIZED once the program ends.
  static CUresult usable() {
    const int stage = stage_.load(std::memory_order_acquire);
    if (stage == kReady) [[likely]]
      return CUDA_SUCCESS;
    return stage == kEnded ? CUDA_ERROR_DEINITIALIZED : CUDA_ERROR_NOT_INITIALIZED;
  }
  /// What cuInit() does once the session is there.
  static void begin();
  /// Whether this process was forked from one that had called cuInit().
  static bool is_forked() { return stage_.load(std::memory_order_acquire) == kForked; }

 private:
  enum Stage : int { kNew, kReady, kForked, kEnded };
  static void after_fork_in_child();
  static void end();

  static constinit std::atomic<int> stage_;
};

}  // namespace slate::driver
