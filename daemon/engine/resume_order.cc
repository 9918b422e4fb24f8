#include "daemon/engine/resume_order.h"

namespace slate::daemon {

void ResumeOrder::expect(std::uint64_t session) {
  const MutexLock lock(mutex_);
  expected_.insert(session);
}

void ResumeOrder::begin(std::uint64_t session) {
  MutexLock lock(mutex_);
  changed_.wait(lock, [this]() SLATE_REQUIRES(mutex_) { return present_ == 0; });
  present_ = session;
}

void ResumeOrder::end(std::uint64_t session) {
  {
    const MutexLock lock(mutex_);
    expected_.erase(session);
    if (present_ == session) present_ = 0;
  }
  changed_.notify_all();
}

void ResumeOrder::wait_for_all() const {
  MutexLock lock(mutex_);
  changed_.wait(lock, [this]() SLATE_REQUIRES(mutex_) { return expected_.empty(); });
}

std::uint64_t ResumeOrder::culprit(std::span<const std::uint64_t> with_kernels) const {
  if (with_kernels.size() == 1) return with_kernels.front();
  const MutexLock lock(mutex_);
  return with_kernels.empty() ? present_ : 0;
}

}  // namespace slate::daemon
