// Resizable launches: when LaneSteering resizes and tends them, and what the policy is told. The
// executor's thread tends them once a millisecond while there are any. A resize is carried out at
// once, by the thread of the launch that led to it.
#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "base/log.h"
#include "daemon/engine/executor.h"
#include "daemon/engine/executor_client.h"

namespace slate::daemon {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kLongestLetThroughWait{10};

}  // namespace

void Executor::resize(const scheduler::Resize& change, scheduler::Time now) {
  Client* const client = find(change.session);
  if (client == nullptr || client->abandoned.load()) return;
  const MutexLock lanes(client->mutex);
  if (client->lanes.empty()) return;
  scheduler::Placement& placement = views_[client->index].running.placement;
  if (placement.empty() && !change.placement.empty()) client->last_came = ++starts_;
  placement = change.placement;
  for (ActiveLane& lane : client->lanes) {
    const bool was_away = lane.placement.empty();
    const auto launched = steering_.apply(client->streams, lane, change.placement);
    if (const auto done = watch_launched(*client, lane, launched); !done) {
      log_warning("a kernel keeps its SMs: {}", done.error().message);
      return;
    }
    lane.batch->completion.resized = true;
    lane.batch->completion.placement = lane.batch->trace.placement = change.placement;
    if (!steering_.has_begun(lane)) continue;
    if (change.placement.empty()) {
      trace_.retreated(lane.batch->trace, now);
    } else if (!was_away) {
      trace_.resized(lane.batch->trace, now);
    }
  }
}

// The count changes before any lane is looked at, so that one that begins meanwhile either is in
// the list by then or begins with an empty table.
void Executor::begin_rest() {
  const MutexLock lock(mutex_);
  take_lanes_off();
}

void Executor::end_rest() {
  const MutexLock lock(mutex_);
  put_lanes_back();
}

void Executor::take_lanes_off() {
  if (!steering_.begin_rest()) return;
  for (const auto& client : clients_) {
    const MutexLock lanes(client->mutex);
    for (ActiveLane& lane : client->lanes) {
      if (lane.placement.empty()) continue;
      lane.batch->completion.resized = true;
      if (const auto done = steering_.take_off(lane); !done)
        log_warning("a kernel stays while others wait: {}", done.error().message);
    }
  }
}

void Executor::put_lanes_back() {
  if (!steering_.end_rest()) return;
  for (const auto& client : clients_) {
    const MutexLock lanes(client->mutex);
    for (ActiveLane& lane : client->lanes) {
      if (lane.placement.empty()) continue;
      if (const auto done = steering_.put_back(lane); !done)
        log_warning("a kernel stays away: {}", done.error().message);
      lanes_active_.store(true);
    }
  }
  tick_.notify_one();
}

bool Executor::is_filled_by_others(const Client& client) const {
  return std::ranges::any_of(clients_, [&](const std::shared_ptr<Client>& other) {
    if (other.get() == &client) return false;
    const MutexLock lanes(other->mutex);
    return std::ranges::any_of(
        other->lanes, [&](const ActiveLane& lane) { return lane.placement == machine().whole(); });
  });
}

Result<void> Executor::let_through(Client& client, device::Stream stream,
                                   const std::function<Result<void>()>& submit) {
  const auto has_to = [&] {
    if (lanes_.load() == 0) return false;
    const MutexLock lock(mutex_);
    return is_filled_by_others(client);
  };
  if (!has_to()) return submit();
  const std::int64_t wait = let_through_from_ns_.load() - now_ns();
  if (wait > 0) {
    std::this_thread::sleep_for(
        std::min<std::chrono::nanoseconds>(std::chrono::nanoseconds(wait), kLongestLetThroughWait));
  }
  auto begin = SharedEvent::make(device_, false), over = SharedEvent::make(device_, false);
  if (!begin) return std::unexpected(begin.error());
  if (!over) return std::unexpected(over.error());
  if (const auto marked = device_.record((*begin)->get(), stream); !marked) return marked;
  // One stream's callbacks come in order, one at a time.
  const auto since = std::make_shared<std::int64_t>(0);
  completer_.watch(client.group, stream, *begin, [this, since](const Result<void>& outcome) {
    if (!outcome) return;
    *since = now_ns();
    begin_rest();
  });
  const auto submitted = submit();
  const auto marked = device_.record((*over)->get(), stream);
  const auto end = [this, since](const Result<void>&) {
    if (*since == 0) return;
    end_rest();
    const std::int64_t now = now_ns();
    let_through_from_ns_.store(now + (now - *since));
  };
  // A rest always ends: where its end cannot be marked as soon as it has begun.
  completer_.watch(client.group, stream, marked ? std::move(*over) : std::move(*begin), end);
  return submitted ? marked : submitted;
}

void Executor::run() {
  std::vector<std::shared_ptr<Client>> clients;
  MutexLock lock(mutex_);
  while (!ending_) {
    scheduler::Time until = again_;
    if (lanes_active_.load())
      until = std::min(until, scheduler::Time(Clock::now() + LaneSteering::kTick));
    if (time_ != nullptr) until = std::min(until, time_->again());
    sleeps_until_ = until;
    if (until == scheduler::kNever) {
      tick_.wait(lock);
    } else {
      tick_.wait_until(lock, until);
    }
    sleeps_until_ = scheduler::Time::min();
    if (ending_) return;
    const auto now = Clock::now();
    if (now >= again_) {
      again_ = scheduler::kNever;
      decide(now);
    } else if (time_ != nullptr && now >= time_->again()) {
      look_at_time(now);
    }
    if (!lanes_active_.exchange(false)) continue;
    clients = clients_;
    lock.unlock();
    for (const auto& client : clients) look_after(client);
    clients.clear();
    lock.lock();
  }
}

/// Has the lane tended as soon as the work on `stream`, its own or a side's, has ended. A fault is
/// the session's: a device may keep it to that stream, so that no other watch tells of it.
Result<void> Executor::watch_lane(Client& client, device::Stream stream,
                                  std::shared_ptr<LaunchBatch> batch) {
  const StreamWatches& watches = client.streams.watches();
  return completer_.watch(client.group, stream,
                          [this, &watches, batch = std::move(batch)](const Result<void>& outcome) {
                            if (!outcome) watches.report(outcome.error());
                            {
                              const MutexLock lock(mutex_);
                              lanes_active_.store(true);
                            }
                            tick_.notify_one();
                            if (!outcome) batch_ended(batch, outcome);
                          });
}

/// Has the lane tended again when the workers that were just launched, if any, have ended.
Result<void> Executor::watch_launched(Client& client, const ActiveLane& lane,
                                      const LaneSteering::Launched& launched) {
  if (!launched) return std::unexpected(launched.error());
  if (*launched == device::Stream{}) return {};
  return watch_lane(client, *launched, lane.batch);
}

void Executor::look_after(const std::shared_ptr<Client>& client) {
  std::optional<scheduler::Progress> progress;
  std::vector<std::shared_ptr<LaunchBatch>> over;
  {
    const MutexLock lanes(client->mutex);
    if (client->gone) return;
    if (!client->lanes.empty()) lanes_active_.store(true);
    for (ActiveLane& lane : client->lanes) {
      if (!steering_.has_begun(lane)) continue;
      const auto state = steering_.state_of(*lane.lane);
      if (!state) return;
      LaneSteering::note_leaving(lane, *state, client->abandoned.load());
      const bool finished = state->signal == lane.finished;
      if (finished && steering_.has_ended(lane)) {
        over.push_back(lane.batch);
        continue;
      }
      if (const auto done = finished ? Result<void>() : tend(*client, lane, *state); !done) {
        log_warning("a kernel cannot be steered: {}", done.error().message);
      }
      if (progress) continue;
      const scheduler::Completion& completion = lane.batch->completion;
      progress = {.session = completion.session,
                  .kernel = completion.kernel,
                  .placement = lane.placement,
                  .tag = completion.tag,
                  .blocks_done = lane.lane->queue->blocks_before(state->next_task),
                  .blocks = completion.blocks,
                  .at = Clock::now()};
    }
  }
  for (const auto& batch : over) {
    batch_ended(batch, {});
    completer_.give_back_timers(std::move(batch->start), std::move(batch->end));
  }
  if (!progress) return;
  const MutexLock lock(mutex_);
  if (find(progress->session) != client.get()) return;
  views_[client->index].running.blocks_done = progress->blocks_done;
  policy_->progressed(*progress);
  decide(progress->at);
}

/// Does what a lane needs that has begun and not finished. Requires: the client's mutex is held.
Result<void> Executor::tend(Client& client, ActiveLane& lane, const LaneSteering::State& state) {
  if (client.abandoned.load()) return steering_.give_up(lane);
  return watch_launched(client, lane, steering_.tend(client.streams, lane, state));
}

}  // namespace slate::daemon
