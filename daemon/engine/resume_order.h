// ResumeOrder: one session at a time carries out again what an engine had begun when its device was
// lost, where it is not known whose kernel that was. If the device is lost again, it is that
// session's. Sessions that have nothing of that kind wait so long. Thread-safe.
#pragma once

#include <cstdint>
#include <set>
#include <span>

#include "base/mutex.h"

namespace slate::daemon {

class ResumeOrder {
 public:
  /// A session is about to come that may be the cause.
  void expect(std::uint64_t session);
  /// Waits until it is the session's turn.
  void begin(std::uint64_t session);
  /// Its work is done, or takes too long to wait for, or it has ended. May be called again.
  void end(std::uint64_t session);
  /// Waits until all that were expected have had their turns.
  void wait_for_all() const;
  /// Whose work has lost the device: that of the only session with kernels there; without any, that
  /// of the session whose turn it is. 0: not known. A session may have come, and be at work, before
  /// those that may be the cause: then its turn makes none of them the cause.
  std::uint64_t culprit(std::span<const std::uint64_t> with_kernels) const;

 private:
  mutable Mutex mutex_;
  mutable CondVar changed_;
  std::set<std::uint64_t> expected_ SLATE_GUARDED_BY(mutex_);  // that have not ended
  std::uint64_t present_ SLATE_GUARDED_BY(mutex_) = 0;
};

}  // namespace slate::daemon
