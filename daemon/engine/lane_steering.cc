#include "daemon/engine/lane_steering.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/log.h"

namespace slate::daemon {
namespace {

using Clock = std::chrono::steady_clock;
using injector::ControlBlock;

constexpr auto kProbeLimit = std::chrono::milliseconds(100);

/// With no stream to watch.
LaneSteering::Launched nothing_launched(const Result<void>& done) {
  if (!done) return std::unexpected(done.error());
  return device::Stream{};
}

}  // namespace

LaneSteering::~LaneSteering() {
  if (probe_registered_) device_.unregister_host(probe_.data());
  if (control_ != device::Stream{}) device_.destroy_stream(control_);
}

bool LaneSteering::set_up() {
  std::call_once(set_up_, [this] {
    const auto stream = device_.create_stream(device_.stream_priorities().second);
    if (!stream) return log_warning("kernels cannot be resized: {}", stream.error().message);
    control_ = *stream;
    // Without it looking at a lane only takes longer.
    const std::uint32_t sms = partitions_.machine().sm_count;
    probe_.resize((ControlBlock::bytes(sms) + sizeof(DispatchState)) / 4);
    probe_registered_ = device_.register_host(probe_.data(), probe_.size() * 4).has_value();
  });
  return control_ != device::Stream{};
}

WorkerTable LaneSteering::first_table(const scheduler::Placement& placement) const {
  return partitions_.table(rests_.load() > 0 ? scheduler::Placement{} : placement);
}

bool LaneSteering::has_begun(ActiveLane& lane) {
  if (!lane.begun) {
    const auto begun = device_.query(lane.begin->get());
    lane.begun = begun && *begun;
  }
  return lane.begun;
}

bool LaneSteering::has_ended(const ActiveLane& lane) {
  if (!lane.batch->end) return true;
  const auto ended = device_.query(lane.batch->end->get());
  return ended && *ended;
}

Result<LaneSteering::State> LaneSteering::state_of(const WorkerLane& lane) {
  State state;
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

/// Writes the table. For an empty one a dispatch kernel must leave, too, as others wait for that.
Result<void> LaneSteering::show(ActiveLane& lane, const scheduler::Placement& placement) {
  WorkerQueue& queue = *lane.lane->queue;
  lane.emptied = false;
  const auto done = queue.resize(partitions_.table(placement), control_);
  if (!done || !placement.empty() || !queue.by_device()) return done;
  return queue.stop(control_);
}

void LaneSteering::note_leaving(ActiveLane& lane, const State& state, bool abandoned) {
  const bool away = lane.placement.empty() || abandoned;
  if (away && !lane.called_off) lane.called_off = Clock::now();
  if (!away) lane.called_off.reset();
  const bool nobody = state.dispatch ? state.dispatch->nobody
                                     : state.signal == lane.retreated &&
                                           state.ended == lane.lane->queue->exit_target();
  lane.left = away && nobody && state.nobody_joins;
}

LaneSteering::Launched LaneSteering::apply(StreamTable& streams, ActiveLane& lane,
                                           const scheduler::Placement& placement) {
  const scheduler::Placement before = std::exchange(lane.placement, placement);
  lane.left = false;
  lane.called_off.reset();
  if (placement.empty()) lane.called_off = Clock::now();
  if (rests_.load() > 0) return device::Stream{};  // shown at its end
  // Nor before the last worker has left, as all workers start anew then.
  if (lane.emptied && !placement.empty()) return device::Stream{};
  if (const auto done = show(lane, placement); !done) return std::unexpected(done.error());
  const bool within = placement.first >= before.first && placement.end() <= before.end() &&
                      placement.blocks_per_sm == before.blocks_per_sm;
  // Put back after a retreat: by tend(), when the last worker has left, or if some stay after all.
  if (placement.empty() || within) return device::Stream{};
  lane.added = 0;
  lane.add_again = {};
  lane.grows = true;
  if (before.empty() || !lane.begun || lane.lane->queue->by_device()) return device::Stream{};
  return supplement(streams, lane, lane.lane->queue->room_gained());
}

/// Adds the missing workers. If some are still missing later, the workers had come to SMs without
/// room, and left again. So the next try adds twice as many, after twice the time.
LaneSteering::Launched LaneSteering::supplement(StreamTable& streams, ActiveLane& lane,
                                                std::uint32_t missing) {
  const scheduler::Time now = Clock::now();
  if (missing == 0 || now < lane.add_again) return device::Stream{};
  const auto side = streams.idle_side(*lane.lane);
  if (!side) return std::unexpected(side.error());
  if (*side == nullptr) return device::Stream{};  // tend() tries again
  // They could be there before the launch's own.
  const auto waited = device_.wait((*side)->stream, lane.begin->get());
  if (!waited) return std::unexpected(waited.error());
  constexpr std::uint32_t kMostDoublings = 8;
  const std::uint32_t doublings = std::min(lane.added++, kMostDoublings);
  lane.add_again = now + (kTick * (1 << doublings));
  const auto added = lane.lane->queue->supplement(missing << doublings, (*side)->stream);
  if (!added) return std::unexpected(added.error());
  if (const auto done = device_.record((*side)->end->get(), (*side)->stream); !done)
    return std::unexpected(done.error());
  return (*side)->stream;
}

LaneSteering::Launched LaneSteering::tend(StreamTable& streams, ActiveLane& lane,
                                          const State& state) {
  if (rests_.load() > 0) return device::Stream{};
  if (state.dispatch) return tend_dispatched(lane, state);
  WorkerQueue& queue = *lane.lane->queue;
  // The signal alone may be that of a retreat before the last resume.
  const bool retreated = state.signal == lane.retreated && state.ended == queue.exit_target();
  if (!retreated) return supplement(streams, lane, state.room_left);
  if (!state.nobody_joins || lane.placement.empty()) return device::Stream{};
  trace_.resumed(lane.batch->trace);
  if (const auto done = queue.resume(); !done) return std::unexpected(done.error());
  return lane.lane->stream;
}

/// As tend(), for a lane whose workers the dispatch kernel starts.
LaneSteering::Launched LaneSteering::tend_dispatched(ActiveLane& lane, const State& state) {
  const DispatchProgress& dispatch = *state.dispatch;
  WorkerQueue& queue = *lane.lane->queue;
  if (lane.placement.empty() || !dispatch.begun) return device::Stream{};
  const bool stopped = dispatch.outcome == kDispatchStopped;
  const bool failed = dispatch.outcome == kDispatchFailed && dispatch.nobody;
  if (stopped || failed) {
    lane.grows = false;
    if (lane.emptied) {
      if (const auto done = show(lane, lane.placement); !done) return std::unexpected(done.error());
    }
    if (failed) {
      log_info("the device refuses to launch a kernel's workers (error {}): the host does",
               dispatch.error);
      queue.take_over(dispatch);
    }
    trace_.resumed(lane.batch->trace);
    const auto again = failed ? queue.resume() : queue.dispatch_again(control_);
    if (!again) return std::unexpected(again.error());
    return lane.lane->stream;
  }
  if (lane.emptied) {
    return nothing_launched(dispatch.nobody ? show(lane, lane.placement) : Result<void>());
  }
  // The workers that are there know of more room only when all have left. Those of the first epoch,
  // while it has not begun, come to the newest table anyway.
  const bool grows = std::exchange(lane.grows, false) && dispatch.epochs > 0;
  if (!grows || state.room_left == 0) return device::Stream{};
  lane.emptied = true;
  return nothing_launched(queue.resize(partitions_.table(scheduler::Placement{}), control_));
}

Result<void> LaneSteering::give_up(ActiveLane& lane) {
  if (lane.placement.empty()) return {};
  lane.placement = {};
  return rests_.load() > 0 ? Result<void>() : show(lane, {});
}

Result<void> LaneSteering::put_back(ActiveLane& lane) {
  auto done = show(lane, lane.placement);
  // Its workers may have left, or be on their way: tend() sees.
  lane.added = 0;
  lane.add_again = {};
  lane.grows = true;
  return done;
}

}  // namespace slate::daemon
