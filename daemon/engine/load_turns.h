// LoadTurns: limits how much PTX an engine's sessions parse and rewrite at a time. That takes many
// times the text's size: a few large images at once would leave the engine no memory. Further
// images wait, in order of arrival. Thread-safe.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>

#include "base/mutex.h"

namespace slate::daemon {

class LoadTurns {
 public:
  /// Text at a time. Nearly all images are far smaller and do not wait; a larger one takes it all.
  static constexpr std::uint64_t kBytes = 32 << 20;

  struct End {
    std::uint64_t bytes = 0;
    void operator()(LoadTurns* turns) const { turns->end(bytes); }
  };
  using Turn = std::unique_ptr<LoadTurns, End>;  // ends the turn at its own end

  /// Waits for a turn. Requires: the thread has none.
  Turn begin(std::uint64_t bytes) {
    // However small: it has its tree and its passes.
    bytes = std::clamp<std::uint64_t>(bytes, kBytes / 64, kBytes);
    MutexLock lock(mutex_);
    const std::uint64_t ticket = next_++;
    changed_.wait(lock, [&]() SLATE_REQUIRES(mutex_) {
      return ticket == served_ && used_ + bytes <= kBytes;
    });
    ++served_;
    used_ += bytes;
    lock.unlock();
    changed_.notify_all();
    return Turn(this, End{bytes});
  }

 private:
  void end(std::uint64_t bytes) {
    {
      const MutexLock lock(mutex_);
      used_ -= bytes;
    }
    changed_.notify_all();
  }

  Mutex mutex_;
  CondVar changed_;
  std::uint64_t next_ SLATE_GUARDED_BY(mutex_) = 0;    // ticket of the next caller
  std::uint64_t served_ SLATE_GUARDED_BY(mutex_) = 0;  // ticket whose turn is next
  std::uint64_t used_ SLATE_GUARDED_BY(mutex_) = 0;
};

}  // namespace slate::daemon
