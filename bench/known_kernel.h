// KnownKernel: the tasks that the scheduler would choose for a kernel of which it knows nothing but
// the time that it takes natively.
#pragma once

#include <cstdint>

#include "daemon/dispatch/grid_tasks.h"
#include "scheduler/forms.h"

namespace slate::bench {

class KnownKernel {
 public:
  KnownKernel() = default;
  /// `blocks`: of its grid; `wave`: of them, that natively fit on the device; `workers`: likewise.
  KnownKernel(double native_ms, std::uint64_t blocks, std::uint64_t wave, std::uint32_t workers)
      : launch_{.blocks = blocks, .wave = wave}, workers_(workers) {
    profile_.alone[static_cast<std::size_t>(scheduler::Form::kNative)].add(native_ms);
  }

  /// The size that it would choose if that one were the best, or 0: if it knows none. Of its
  /// answers 0 is the usual one.
  std::uint32_t chosen(std::uint32_t best) const {
    scheduler::KernelProfile profile = profile_;
    profile.task_size = best;
    return scheduler::choose_task(profile, launch_, {}, false);
  }
  std::uint32_t usual_size() const {
    const std::uint32_t size = chosen(0);
    return size != 0 ? size : daemon::default_task_sizes(launch_.blocks, workers_).size;
  }
  /// Whether the next task would be fetched during one of `size` blocks.
  bool prefetches(std::uint32_t size) const {
    return scheduler::may_prefetch(profile_, launch_, size == usual_size() ? chosen(0) : size);
  }

 private:
  scheduler::KernelProfile profile_;
  scheduler::WaitingLaunch launch_;
  std::uint32_t workers_ = 1;
};

}  // namespace slate::bench
