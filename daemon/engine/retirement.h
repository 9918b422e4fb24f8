// Retirement: runs an action once all work that its session has submitted so far is done. So memory
// and modules outlive the work that may still use them. Actions that come close together share
// their watches.
//
// Thread: the session's. Actions run there or on the completer's. After a cancel they are dropped,
// as the work may still be stopping. The session's end releases the memory and modules instead.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <vector>

#include "base/mutex.h"
#include "daemon/engine/stream_table.h"

namespace slate::daemon {

class Retirement {
 public:
  using Action = std::function<void()>;

  /// `wake`: makes the session's thread call go_on() soon.
  Retirement(StreamTable& streams, Completer& completer, Completer::Group& group, Action wake = {})
      : streams_(streams), completer_(completer), group_(group), wake_(std::move(wake)) {}

  /// The error is the device's; the action is then dropped.
  Result<void> after_present_work(Action action);
  /// `first` once all work submitted so far is done, `then` once all that was submitted until that
  /// is. So `first` can forbid later work what `then` takes away. Errors: as above.
  Result<void> in_two_steps(Action first, Action then);
  /// Orders the second steps whose first ones are done.
  Result<void> go_on();
  bool can_go_on() const { return has_next_.load(std::memory_order_relaxed); }

 private:
  struct Batch {
    Batch(std::size_t streams, Action first) : outstanding(streams) {
      actions.push_back(std::move(first));
    }

    Mutex mutex;
    std::size_t outstanding SLATE_GUARDED_BY(mutex);
    bool failed SLATE_GUARDED_BY(mutex) = false;
    bool done SLATE_GUARDED_BY(mutex) = false;
    std::vector<Action> actions SLATE_GUARDED_BY(mutex);
  };

  static void watch_reached(Batch& batch, const Result<void>& outcome);
  bool join_last_batch(Action& action);

  StreamTable& streams_;
  Completer& completer_;
  Completer::Group& group_;
  const Action wake_;  // may be empty
  std::shared_ptr<Batch> last_;
  std::uint64_t last_at_ = 0;  // StreamTable::total_submitted() of the last batch
  Mutex next_mutex_;
  std::vector<Action> next_ SLATE_GUARDED_BY(next_mutex_);  // second steps that can be ordered
  std::atomic<bool> has_next_{false};
};

}  // namespace slate::daemon
