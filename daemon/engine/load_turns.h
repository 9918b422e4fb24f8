// LoadTurns: limits how much PTX an engine's sessions parse and rewrite at a time. That takes many
// times the text's size: a few large images at once would leave the engine no memory. Further
// images wait, their users in turn (LoadQueue), and those of programs that have gone leave.
// Thread-safe.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>

#include "base/mutex.h"
#include "base/result.h"
#include "daemon/engine/load_queue.h"

namespace slate::daemon {

/// For whom text is read.
struct Loader {
  uid_t uid = 0;
  /// Whether nobody waits for it any more. May be a system call. Null: it is wanted to the end.
  std::function<bool()> is_over = nullptr;
};

class LoadTurns {
 public:
  /// How often an image that waits asks whether it is still wanted.
  static constexpr std::chrono::milliseconds kAskAgain{20};

  struct End {
    LoadQueue::Ticket ticket = 0;
    void operator()(LoadTurns* turns) const { turns->end(ticket); }
  };
  using Turn = std::unique_ptr<LoadTurns, End>;  // ends the turn at its own end

  /// Waits for a turn. Requires: the thread has none. kIo if the image is no longer wanted.
  Result<Turn> begin(const Loader& loader, std::uint64_t bytes);

 private:
  void end(LoadQueue::Ticket ticket);

  Mutex mutex_;
  CondVar changed_;
  LoadQueue queue_ SLATE_GUARDED_BY(mutex_);
};

}  // namespace slate::daemon
