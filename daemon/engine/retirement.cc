#include "daemon/engine/retirement.h"

namespace slate::daemon {

bool Retirement::join_last_batch(Action& action) {
  if (!last_ || last_at_ != streams_.total_submitted()) return false;
  const MutexLock lock(last_->mutex);
  if (last_->done) return false;
  last_->actions.push_back(std::move(action));
  return true;
}

Result<void> Retirement::after_present_work(Action action) {
  if (join_last_batch(action)) return {};
  const auto unfinished = streams_.unfinished(nullptr);
  if (unfinished.empty()) {
    action();
    return {};
  }
  auto batch = std::make_shared<Batch>(unfinished.size(), std::move(action));
  for (const LogicalStream* stream : unfinished) {
    const auto placed =
        completer_.watch(group_, stream->device,
                         [batch](const Result<void>& outcome) { watch_reached(*batch, outcome); });
    // The count can then never reach zero: the actions die with the batch.
    if (!placed) return placed;
  }
  last_ = std::move(batch);
  last_at_ = streams_.total_submitted();
  return {};
}

Result<void> Retirement::in_two_steps(Action first, Action then) {
  if (streams_.unfinished(nullptr).empty()) {
    first();
    then();
    return {};
  }
  return after_present_work([this, first = std::move(first), then = std::move(then)] {
    first();
    {
      const MutexLock lock(next_mutex_);
      next_.push_back(then);
    }
    has_next_.store(true);
    if (wake_) wake_();
  });
}

Result<void> Retirement::go_on() {
  if (!has_next_.exchange(false)) return {};
  std::vector<Action> next;
  {
    const MutexLock lock(next_mutex_);
    next.swap(next_);
  }
  for (Action& each : next) {
    if (auto ordered = after_present_work(std::move(each)); !ordered) return ordered;
  }
  return {};
}

void Retirement::watch_reached(Batch& batch, const Result<void>& outcome) {
  std::vector<Action> actions;
  {
    const MutexLock lock(batch.mutex);
    if (!outcome) batch.failed = true;
    if (--batch.outstanding > 0) return;
    batch.done = true;
    actions.swap(batch.actions);
    if (batch.failed) return;
  }
  for (const Action& action : actions) action();
}

}  // namespace slate::daemon
