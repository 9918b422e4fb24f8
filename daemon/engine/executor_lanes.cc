// Resizable launches: changes their placements, calls them back, puts them on the device again, and
// reads how far they have come. The executor's thread does so once a millisecond while there are
// any. A resize is carried out at once, by the thread of the launch that led to it.
#include <algorithm>
#include <cstring>
#include <utility>

#include "base/clock.h"
#include "base/log.h"
#include "daemon/engine/executor.h"
#include "daemon/engine/executor_client.h"

namespace slate::daemon {
namespace {

using Clock = std::chrono::steady_clock;
using injector::ControlBlock;

constexpr auto kTick = std::chrono::milliseconds(1);
constexpr auto kProbeLimit = std::chrono::milliseconds(100);
constexpr std::chrono::milliseconds kLongestLetThroughWait{10};

}  // namespace

/// A control block's words, as read.
struct Executor::LaneState {
  std::uint32_t next_task = 0;
  std::uint64_t signal = 0;
  std::uint32_t ended = 0;      // workers that have left
  std::uint32_t room_left = 0;  // for more workers
  /// Whether no worker that was added before these words were read still comes. It would not know
  /// the workers that resume() starts, and could take itself for the last one.
  bool nobody_joins = false;
  /// Where the dispatch kernel starts the workers.
  std::optional<DispatchProgress> dispatch;
};

/// Makes what resizing needs, with the first resizable launch. False if that fails.
bool Executor::set_up_lanes() {
  std::call_once(lanes_set_up_, [this] {
    const auto stream = device_.create_stream(device_.stream_priorities().second);
    if (!stream) return log_warning("kernels cannot be resized: {}", stream.error().message);
    control_ = *stream;
    // Without it looking at a lane only takes longer.
    probe_.resize((ControlBlock::bytes(machine().sm_count) + sizeof(DispatchState)) / 4);
    probe_registered_ = device_.register_host(probe_.data(), probe_.size() * 4).has_value();
  });
  return control_ != device::Stream{};
}

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
    if (const auto done = apply(*client, lane, change.placement); !done) {
      log_warning("a kernel keeps its SMs: {}", done.error().message);
      return;
    }
    lane.batch->completion.resized = true;
    lane.batch->completion.placement = lane.batch->trace.placement = change.placement;
    if (!has_begun(lane)) continue;
    if (change.placement.empty()) {
      trace_.retreated(lane.batch->trace, now);
    } else if (!was_away) {
      trace_.resized(lane.batch->trace, now);
    }
  }
}

/// Whether the work before it on its stream has ended, as far as is known now.
bool Executor::has_begun(ActiveLane& lane) {
  if (!lane.begun) {
    const auto begun = device_.query(lane.begin->get());
    lane.begun = begun && *begun;
  }
  return lane.begun;
}

/// Writes the table. For an empty one a dispatch kernel must leave, too, as others wait for that.
Result<void> Executor::show(ActiveLane& lane, const scheduler::Placement& placement) {
  WorkerQueue& queue = *lane.lane->queue;
  lane.emptied = false;
  const auto done = queue.resize(partitions_.table(placement), control_);
  if (!done || !placement.empty() || !queue.by_device()) return done;
  return queue.stop(control_);
}

// The count changes before any lane is looked at, so that one that begins meanwhile either is in
// the list by then or begins with an empty table.
void Executor::begin_rest() {
  const MutexLock lock(mutex_);
  if (rests_.fetch_add(1) > 0) return;
  for (const auto& client : clients_) {
    const MutexLock lanes(client->mutex);
    for (ActiveLane& lane : client->lanes) {
      if (lane.placement.empty()) continue;
      lane.batch->completion.resized = true;
      if (const auto done = show(lane, {}); !done)
        log_warning("a kernel stays while others wait: {}", done.error().message);
    }
  }
}

void Executor::end_rest() {
  const MutexLock lock(mutex_);
  if (rests_.fetch_sub(1) > 1) return;
  for (const auto& client : clients_) {
    const MutexLock lanes(client->mutex);
    for (ActiveLane& lane : client->lanes) {
      if (lane.placement.empty()) continue;
      if (const auto done = show(lane, lane.placement); !done)
        log_warning("a kernel stays away: {}", done.error().message);
      // Its workers may have left, or be on their way: tend() sees.
      lane.added = 0;
      lane.add_again = {};
      lane.grows = true;
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

/// Writes the table, and adds workers where it has more room than before.
Result<void> Executor::apply(Client& client, ActiveLane& lane,
                             const scheduler::Placement& placement) {
  const scheduler::Placement before = std::exchange(lane.placement, placement);
  if (rests_.load() > 0) return {};  // shown at its end
  // Nor before the last worker has left, as all workers start anew then.
  if (lane.emptied && !placement.empty()) return {};
  if (const auto done = show(lane, placement); !done) return done;
  const bool within = placement.first >= before.first && placement.end() <= before.end() &&
                      placement.blocks_per_sm == before.blocks_per_sm;
  // Put back after a retreat: by tend(), when the last worker has left, or if some stay after all.
  if (placement.empty() || within) return {};
  lane.added = 0;
  lane.add_again = {};
  lane.grows = true;
  if (before.empty() || !lane.begun || lane.lane->queue->by_device()) return {};
  return supplement(client, lane, lane.lane->queue->room_gained());
}

/// Adds the missing workers. If some are still missing later, the workers had come to SMs without
/// room, and left again. So the next try adds twice as many, after twice the time.
Result<void> Executor::supplement(Client& client, ActiveLane& lane, std::uint32_t missing) {
  const scheduler::Time now = Clock::now();
  if (missing == 0 || now < lane.add_again) return {};
  const auto side = client.streams.idle_side(*lane.lane);
  if (!side) return std::unexpected(side.error());
  if (*side == nullptr) return {};  // tend() tries again
  // They could be there before the launch's own.
  const auto waited = device_.wait((*side)->stream, lane.begin->get());
  if (!waited) return waited;
  constexpr std::uint32_t kMostDoublings = 8;
  const std::uint32_t doublings = std::min(lane.added++, kMostDoublings);
  lane.add_again = now + (kTick * (1 << doublings));
  const auto added = lane.lane->queue->supplement(missing << doublings, (*side)->stream);
  if (!added) return added;
  if (const auto done = device_.record((*side)->end->get(), (*side)->stream); !done) return done;
  return watch_lane(client, (*side)->stream, lane.batch);
}

void Executor::run() {
  std::vector<std::shared_ptr<Client>> clients;
  MutexLock lock(mutex_);
  while (!ending_) {
    scheduler::Time until = again_;
    if (lanes_active_.load()) until = std::min(until, scheduler::Time(Clock::now() + kTick));
    if (until == scheduler::kNever) {
      tick_.wait(lock);
    } else {
      tick_.wait_until(lock, until);
    }
    if (ending_) return;
    const auto now = Clock::now();
    if (now >= again_) {
      again_ = scheduler::kNever;
      decide(now);
    }
    if (!lanes_active_.exchange(false)) continue;
    clients = clients_;
    lock.unlock();
    for (const auto& client : clients) look_after(client);
    clients.clear();
    lock.lock();
  }
}

/// Reads a control block, beside the work on the device.
Result<Executor::LaneState> Executor::state_of(const WorkerLane& lane) {
  LaneState state;
  state.nobody_joins = std::ranges::all_of(lane.sides, [this](const WorkerLane::Side& side) {
    const auto idle = device_.query(side.end->get());
    return idle && *idle;
  });
  const std::uint64_t bytes = lane.queue->watched_bytes();
  const auto copied = device_.copy(Place::on_host(probe_.data()),
                                   Place::on_device(lane.queue->control().base), {bytes}, control_);
  if (!copied) return std::unexpected(copied.error());
  const auto event = SharedEvent::make(device_, false);
  if (!event) return std::unexpected(event.error());
  if (const auto done = device_.record((*event)->get(), control_); !done) {
    return std::unexpected(done.error());
  }
  const auto limit = Clock::now() + kProbeLimit;
  while (true) {
    const auto done = device_.query((*event)->get());
    if (!done) return std::unexpected(done.error());
    if (*done) break;
    if (Clock::now() > limit) return fail(ErrorCode::kUnavailable, "the device does not answer");
    device_.wait_for_progress(std::chrono::microseconds(20));
  }
  state.next_task = probe_[ControlBlock::kNextOffset / 4];
  state.ended = probe_[ControlBlock::kStateOffset / 4 + 1];
  std::memcpy(&state.signal, &probe_[ControlBlock::kSignalOffset / 4], sizeof(state.signal));
  if (lane.queue->by_device()) state.dispatch = lane.queue->dispatch_progress(probe_);
  state.room_left = lane.queue->room_left(probe_);
  return state;
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

void Executor::look_after(const std::shared_ptr<Client>& client) {
  std::optional<scheduler::Progress> progress;
  std::vector<std::shared_ptr<LaunchBatch>> over;
  {
    const MutexLock lanes(client->mutex);
    if (client->gone) return;
    if (!client->lanes.empty()) lanes_active_.store(true);
    for (ActiveLane& lane : client->lanes) {
      if (!has_begun(lane)) continue;
      const auto state = state_of(*lane.lane);
      if (!state) return;
      const bool finished = state->signal == lane.finished;
      if (finished && has_ended(lane)) {
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

/// For a lane whose workers have finished: its launch's own end follows at once, and is its time's.
bool Executor::has_ended(const ActiveLane& lane) {
  if (!lane.batch->end) return true;
  const auto ended = device_.query(lane.batch->end->get());
  return ended && *ended;
}

/// Does what a lane needs that has begun and not finished. Requires: the client's mutex is held.
Result<void> Executor::tend(Client& client, ActiveLane& lane, const LaneState& state) {
  // The signal alone may be that of a retreat before the last resume.
  const bool retreated =
      state.signal == lane.retreated && state.ended == lane.lane->queue->exit_target();
  if (client.abandoned.load()) {
    // Nobody wants the rest. The control block, which is not clean then, is given back with the
    // lane and cleaned by its next user.
    if (!lane.placement.empty()) return apply(client, lane, {});
    return state.dispatch ? lane.lane->queue->stop(control_) : Result<void>();
  }
  if (rests_.load() > 0) return {};
  if (state.dispatch) return tend_dispatched(client, lane, state);
  if (retreated && state.nobody_joins && !lane.placement.empty()) {
    trace_.resumed(lane.batch->trace);
    if (const auto done = lane.lane->queue->resume(); !done) return done;
    return watch_lane(client, lane.lane->stream, lane.batch);
  }
  return retreated ? Result<void>() : supplement(client, lane, state.room_left);
}

/// As tend(), for a lane whose workers the dispatch kernel starts.
Result<void> Executor::tend_dispatched(Client& client, ActiveLane& lane, const LaneState& state) {
  const DispatchProgress& dispatch = *state.dispatch;
  WorkerQueue& queue = *lane.lane->queue;
  if (lane.placement.empty() || !dispatch.begun) return {};
  const bool stopped = dispatch.outcome == kDispatchStopped;
  const bool failed = dispatch.outcome == kDispatchFailed && dispatch.nobody;
  if (stopped || failed) {
    lane.grows = false;
    if (lane.emptied) {
      if (const auto done = show(lane, lane.placement); !done) return done;
    }
    if (failed) {
      log_info("the device refuses to launch a kernel's workers (error {}): the host does",
               dispatch.error);
      queue.take_over(dispatch);
    }
    trace_.resumed(lane.batch->trace);
    const auto again = failed ? queue.resume() : queue.dispatch_again(control_);
    if (!again) return again;
    return watch_lane(client, lane.lane->stream, lane.batch);
  }
  if (lane.emptied) return dispatch.nobody ? show(lane, lane.placement) : Result<void>();
  // The workers that are there know of more room only when all have left.
  if (!std::exchange(lane.grows, false) || state.room_left == 0) return {};
  lane.emptied = true;
  return queue.resize(partitions_.table(scheduler::Placement{}), control_);
}

}  // namespace slate::daemon
