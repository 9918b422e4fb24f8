// Batches: launches that are marked, watched and accounted for together. The session's thread opens
// and closes them. Their end is seen by that thread or the completer's.
#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/spin.h"
#include "daemon/engine/executor.h"
#include "daemon/engine/executor_client.h"

namespace slate::daemon {
namespace {

using scheduler::SessionView;
using Clock = std::chrono::steady_clock;

// A batch ends at this time, which keeps the marks' cost below one percent.
constexpr double kBatchMs = 0.25;
constexpr double kSettledBatchMs = 1.0;
// Time that a pair of marks adds to the launches between them (H200).
constexpr double kMarksMs = 0.0023;

}  // namespace

Result<void> Executor::open_batch(Client& client, LogicalStream& stream, const Grant& grant,
                                  std::uint64_t blocks, device::Stream target) {
  const scheduler::Start& start = grant.start;
  auto batch = std::make_shared<LaunchBatch>();
  batch->completion = {.session = client.spec.session,
                       .kernel = grant.kernel,
                       .main = grant.kernel,
                       .form = start.form,
                       .placement = start.placement,
                       .tag = start.tag,
                       .launches = 0,
                       .blocks = blocks,
                       .part = grant.part,
                       .task_size = start.task_size,
                       .device_time = {},
                       .started = Clock::now(),
                       .ended = {},
                       .resized = false};
  batch->trace = client.waiting;
  batch->trace.form = start.form;
  batch->trace.placement = start.placement;
  batch->full_ms = grant.settled ? kSettledBatchMs * client.uneven() : kBatchMs;
  // Of a kernel whose time is known a sample is enough.
  const bool timed = !grant.settled || grant.is_long || client.untimed++ % grant.timed_of == 0;
  // What runs by itself is timed kernel by kernel; of what runs beside others the sum says more.
  batch->mixes = may_mix(grant) && !(timed && start.alone);
  if (timed) {
    auto begin = completer_.take_timer();
    if (!begin) return std::unexpected(begin.error());
    batch->start = std::move(*begin);
    if (const auto done = device_.record(batch->start->get(), target); !done) return done;
  }
  trace_.launch_starts(batch->trace, batch->completion.started);
  stream.batch = std::move(batch);
  client.open.push_back(&stream);
  return {};
}

/// Records the time behind the last launch of a timed batch, which is on `stream`.
Result<void> Executor::mark_end(LaunchBatch& batch, device::Stream stream) {
  if (!batch.start) return {};
  auto end = completer_.take_timer();
  if (!end) return std::unexpected(end.error());
  if (const auto marked = device_.record((*end)->get(), stream); !marked) return marked;
  batch.end = std::move(*end);
  return {};
}

void Executor::close_batch(Client& client, LogicalStream& stream, Completer::Notice notice) {
  const std::shared_ptr<LaunchBatch> batch = std::exchange(stream.batch, nullptr);
  std::erase(client.open, &stream);
  if (batch == nullptr) return;
  client.streams.submit_row(stream);
  // What was refused took no time, which is not the kernel's.
  batch->completion.resized |= std::exchange(stream.refused, false);
  if (const auto marked = mark_end(*batch, stream.device); !marked) {
    return batch_ended(batch, marked);
  }
  const auto ended = [this, batch](const Result<void>& outcome) {
    batch_ended(batch, outcome);
    completer_.give_back_timers(std::move(batch->start), std::move(batch->end));
  };
  if (notice == Completer::Notice::kCheap && batch->end) {
    return client.streams.watches().watch_event(stream, batch->end, ended);
  }
  const auto watched = client.streams.watches().watch(stream, ended, notice);
  if (!watched) batch_ended(batch, watched);
}

void Executor::flush(Client& client, StreamWatches::Watched which) {
  const bool all = which == StreamWatches::Watched::kAll;
  for (std::size_t i = client.open.size(); i > 0; --i) {
    LogicalStream& stream = *client.open[i - 1];
    if (all || stream.batch->start || stream.watches.load() == 0)
      close_batch(client, stream, Completer::Notice::kSoon);
  }
  client.streams.watches().watch_all(which);
}

/// Called by the completer, or on the session's thread when a launch was refused.
void Executor::batch_ended(const std::shared_ptr<LaunchBatch>& batch, const Result<void>& outcome) {
  if (batch->ended.exchange(true)) return;
  scheduler::Completion& completion = batch->completion;
  completion.ended = Clock::now();
  bool timed = false;
  if (outcome && batch->start && batch->end) {
    const auto elapsed = device_.elapsed_ms(batch->start->get(), batch->end->get());
    timed = elapsed.has_value();
    if (timed) {
      const double marks = device_.info().is_simulated != 0 ? 0 : kMarksMs;
      const double ms = std::max(double{*elapsed} - marks, double{*elapsed} / 2);
      completion.device_time = scheduler::Milliseconds(ms / completion.launches);
    }
  }
  const auto work = batch->profiled ? profiled_.end(outcome) : std::nullopt;
  const MutexLock lock = lock_soon(mutex_);
  if (work) {
    scheduler::KernelProfile& row = profiles_.kernel(completion.kernel);
    row.flops = work->flops;
    row.bytes = work->bytes;
    row.instructions = work->instructions;
  }
  Client* const client = find(batch->completion.session);
  if (client == nullptr) return;
  SessionView& view = views_[client->index];
  scheduler::RunningWork& running = view.running;
  SLATE_CHECK(running.launches >= batch->counted);
  running.launches -= batch->counted;
  running.expected -= scheduler::Milliseconds(batch->counted_ms);
  running.filled -= batch->filled;
  client->unended.end(batch->serials, completion.ended);
  client->unended.show(running);
  if (running.launches == 0) {
    running.expected = {};
    running.filled = 0;
    view.idle_since = completion.ended;
  }
  trace_.launch_ends(batch->trace, completion.device_time.count() * completion.launches,
                     completion.launches, completion.ended);
  completion.timed = timed;
  completion.alone = scheduler::Milliseconds(batch->alone_ms / std::max(1U, completion.launches));
  if (outcome) policy_->finished(completion);
  {
    const MutexLock lanes(client->mutex);
    const auto freed = std::erase_if(client->lanes, [&](const ActiveLane& lane) {
      if (lane.batch != batch) return false;
      lane.stream->active_lanes.store(0);
      return true;
    });
    lanes_ -= static_cast<std::uint32_t>(freed);
    if (freed > 0 && client->spec.lane_ended) client->spec.lane_ended();
    if (!client->lanes.empty()) running.blocks_done = 0;
  }
  // A session that is alone asks the policy with its next launch.
  if (awake_ > 1 || view.waiting) {
    decide(completion.ended);
  } else if (time_ != nullptr) {
    look_at_time(completion.ended);
  }
}

}  // namespace slate::daemon
