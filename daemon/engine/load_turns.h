// LoadTurns: limits how much PTX an engine's sessions parse and rewrite at a time. That takes many
// times the text's size: a few large images at once would leave the engine no memory. Further
// images wait, in order of arrival. Thread-safe.
#pragma once

#include <algorithm>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>

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
    std::unique_lock lock(mutex_);
    const std::uint64_t ticket = next_++;
    changed_.wait(lock, [&] { return ticket == served_ && used_ + bytes <= kBytes; });
    ++served_;
    used_ += bytes;
    lock.unlock();
    changed_.notify_all();
    return Turn(this, End{bytes});
  }

 private:
  void end(std::uint64_t bytes) {
    {
      const std::lock_guard lock(mutex_);
      used_ -= bytes;
    }
    changed_.notify_all();
  }

  std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  std::uint64_t next_ = 0, served_ = 0;  // tickets
  std::uint64_t used_ = 0;
};

}  // namespace slate::daemon
