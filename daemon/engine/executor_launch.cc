// Carries out a decision: the session's thread launches in the form and on the SMs decided, or
// repeats an earlier decision.
#include "base/spin.h"
#include "daemon/engine/executor.h"
#include "daemon/engine/executor_client.h"
#include "scheduler/forms.h"

namespace slate::daemon {
namespace {

using scheduler::Form;
using Clock = std::chrono::steady_clock;

// Batches that begin without a decision, one after the other.
constexpr std::uint32_t kMostAgain = 32;
// Kernels that take longer go one by one. Between the kernels of a row the device pauses 0.6 us
// longer (H100), and the row saves time of the processor only.
constexpr double kMostInRowMs = 0.006;

injector::Form to_injector(Form form) {
  switch (form) {
    case Form::kWorker:
      return injector::Form::kWorker;
    case Form::kSlice:
      return injector::Form::kSlice;
    case Form::kNative:
      break;
  }
  return injector::Form::kNative;
}

Form from_injector(injector::Form form) {
  switch (form) {
    case injector::Form::kWorker:
      return Form::kWorker;
    case injector::Form::kSlice:
      return Form::kSlice;
    default:
      return Form::kNative;
  }
}

/// Null before the first launch of that shape.
ProfileRecord* known_profile(FunctionRecord& kernel, const device::LaunchSpec& spec) {
  const std::uint32_t bucket = scheduler::grid_bucket(spec.grid.count());
  for (ProfileRecord& known : kernel.profiles) {
    if (known.grid_bucket == bucket && known.block == spec.block) return &known;
  }
  return nullptr;
}

/// Tells the threads that wait for a start that it was carried out, also after an exception.
class Told {
 public:
  Told(std::atomic<std::uint64_t>& newest, std::uint64_t number)
      : newest_(newest), number_(number) {}
  ~Told() {
    newest_.store(number_);
    newest_.notify_all();
  }
  Told(const Told&) = delete;
  Told& operator=(const Told&) = delete;

 private:
  std::atomic<std::uint64_t>& newest_;
  const std::uint64_t number_;
};

}  // namespace

Result<void> Executor::launch(Client& client, FunctionRecord& kernel,
                              const device::LaunchSpec& spec, LogicalStream& stream) {
  ProfileRecord* const known = known_profile(kernel, spec);
  if (known != nullptr &&
      (may_repeat(stream, *known, spec) || may_begin_again(client, stream, *known, spec)))
    return repeat(client, kernel, *known, spec, stream);
  if (!is_within_limits(device_.info(), spec))
    return fail(ErrorCode::kInvalidConfiguration, "a grid or block beyond the device's limits");
  ProfileRecord& profile = known != nullptr ? *known : add_profile(client, kernel, spec);
  LaunchShape shape = shape_of(device_, forms_, kernel, spec);
  if (shape.worker && !may_have_control(client, stream)) shape.worker = shape.worker_likely = false;
  if (kernel.made != nullptr && !profile.shows_forms) show_forms(kernel, profile);
  if (!kernel.trace_name) kernel.trace_name = trace_.name(*kernel.name);
  std::uint64_t started = 0;
  do {
    auto grant = wait_for_grant(client, kernel, shape, profile.kernel, started, !stream.busy());
    if (!grant) return fail(ErrorCode::kUnavailable, "the session is ending");
    const auto form = [&] {
      const Told told(client.carried_out, grant->number);
      return carry_out(client, kernel, spec, stream, *grant, shape);
    }();
    if (!form) return std::unexpected(form.error());
    const bool repeats = grant->repeats && !grant->is_long && is_plain(spec) &&
                         *form == injector::Form::kNative &&
                         machine().is_whole(grant->start.placement);
    profile.repeats_at = repeats ? grant->changes : 0;
    profile.ahead = grant->start.placement.ahead;
    profile.shares_sms = shares_sms(*grant);
    profile.expected_ms = grant->expected_ms;
    profile.alone_ms = grant->alone_ms;
    client.again = repeats && grant->by_itself && grant->settled ? kMostAgain : 0;
    if (client.again > 0) client.settled = *grant;
    started = *form == injector::Form::kSlice ? grant->first + grant->count : shape.blocks;
  } while (started < shape.blocks);
  return {};
}

void Executor::show_forms(const FunctionRecord& kernel, ProfileRecord& profile) {
  profile.shows_forms = true;
  std::string forms = describe(*kernel.made);
  const MutexLock lock(mutex_);
  profiles_.kernel(profile.kernel).forms = std::move(forms);
}

/// Whether the policy would only repeat its decision for the launches before this one.
bool Executor::may_repeat(const LogicalStream& stream, const ProfileRecord& profile,
                          const device::LaunchSpec& spec) const {
  const LaunchBatch* const open = stream.batch.get();
  if (open == nullptr || !is_plain(spec)) return false;
  const std::uint64_t changes = changes_.load(std::memory_order_relaxed);
  if (open->repeats_at != changes || profile.repeats_at != changes) return false;
  return open->completion.kernel == profile.kernel || open->mixes;
}

/// Whether the policy would only repeat its decision for the batches before this one, as there is
/// no other session. Now and then it is asked all the same.
bool Executor::may_begin_again(const Client& client, const LogicalStream& stream,
                               const ProfileRecord& profile, const device::LaunchSpec& spec) const {
  if (client.again == 0 || stream.batch != nullptr || !is_plain(spec)) return false;
  const std::uint64_t changes = changes_.load(std::memory_order_relaxed);
  return client.settled->changes == changes && profile.repeats_at == changes;
}

/// Opens a batch that goes as the one before it, with its first launch, which is about to be made.
Result<void> Executor::begin_again(Client& client, const FunctionRecord& kernel,
                                   const ProfileRecord& profile, std::uint64_t blocks,
                                   LogicalStream& stream, device::Stream target) {
  --client.again;
  Grant& grant = *client.settled;
  grant.kernel = profile.kernel;
  grant.expected_ms = profile.expected_ms;
  grant.alone_ms = profile.alone_ms;
  client.waiting.launch = next_launch_.fetch_add(1);
  client.waiting.kernel = *kernel.trace_name;
  client.waiting.blocks = blocks;
  const auto opened = open_batch(client, stream, grant, blocks, target);
  if (!opened) return opened;
  stream.batch->repeats_at = grant.changes;
  stream.batch->add_counted(grant.kernel, grant.expected_ms, grant.alone_ms);
  stream.batch->filled += grant.filled;
  const MutexLock lock = lock_soon(mutex_);
  client.kernel = kernel.name;
  const auto now = Clock::now();
  show_start(client, grant, blocks, now);
  stream.batch->serials.push_back(grant.serial);
  if (time_ != nullptr) look_at_time(now);
  return {};
}

/// Makes one more native launch of a batch, or the first one of a batch that needs no decision. The
/// first one goes at once, as the device may be idle.
Result<void> Executor::repeat(Client& client, FunctionRecord& kernel, const ProfileRecord& profile,
                              device::LaunchSpec spec, LogicalStream& stream) {
  spec.ahead = profile.ahead;
  if (profile.shares_sms) spec.carveout = common_carveout(device_, kernel, spec);
  const bool first = stream.batch == nullptr;
  if (!first && profile.expected_ms <= kMostInRowMs && !spec.overlaps) {
    const auto done = client.streams.launch_in_row(stream, spec, kernel.name);
    if (!done) return done;
  } else {
    const auto target = client.streams.begin_work(stream, device::kWholeDevice);
    if (!target) return std::unexpected(target.error());
    if (first) {
      const auto begun = begin_again(client, kernel, profile, spec.grid.count(), stream, *target);
      if (!begun) return begun;
    }
    if (const auto done = device_.launch(spec, *target); !done) {
      stream.refused = true;
      close_batch(client, stream);
      return done;
    }
    client.streams.work_submitted(stream, kernel.name);
  }
  if (!first) {
    LaunchBatch& batch = *stream.batch;
    if (batch.completion.launches == batch.counted) client.repeated.push_back(stream.batch);
    batch.add(profile.kernel, profile.expected_ms, profile.alone_ms);
  }
  forms_.count(injector::Form::kNative);
  if (stream.batch->is_full()) close_batch(client, stream);
  return {};
}

/// Whether blocks of other programs may be on its SMs.
bool Executor::shares_sms(const Grant& grant) const {
  return machine().has_all_units(grant.start.placement) && !grant.by_itself && !grant.start.alone;
}

/// Whether the launch may share a batch with other kernels'.
bool Executor::may_mix(const Grant& grant) {
  return grant.known && !grant.is_long && grant.start.form != Form::kSlice;
}

/// Whether the stream's workers have a control block, or its session can get one. Otherwise the
/// policy must not choose them and then measure how quick they are.
bool Executor::may_have_control(const Client& client, const LogicalStream& stream) const {
  const auto has = [](const auto& queue) { return queue && queue->control().bytes != 0; };
  return has(stream.workers) || has(stream.lane.queue) || forms_.has_control_for(*client.control);
}

/// Whether the launch gets a lane. A short one ends before anything could resize it.
bool Executor::may_resize(Client& client, const LogicalStream& stream, const Grant& grant) {
  const bool starves =
      scheduler::may_starve(grant.start.placement, scheduler::Milliseconds(grant.expected_ms));
  if (grant.start.form != Form::kWorker || (!grant.is_long && !starves)) return false;
  if (!steering_.set_up()) return false;
  const MutexLock lanes(client.mutex);
  return stream.active_lanes.load() == 0;
}

/// Whether these SMs have room for all blocks that must be there at once: those of a cooperative
/// launch. A partition need not have room for any cluster.
bool Executor::has_room(const FunctionRecord& kernel, const device::LaunchSpec& spec,
                        const LaunchShape& shape, const scheduler::Placement& placement) const {
  if (kernel.info.has_clusters || spec.cluster.count() > 1) return false;
  if (!spec.cooperative) return true;
  const std::uint64_t sms = machine().sms(machine().whole());
  return sms > 0 && shape.blocks <= shape.wave / sms * machine().sms(placement);
}

/// The partition to launch on. If it is still being made, this launch gets the whole device, and
/// its time counts for nothing.
device::Partition Executor::partition_for(scheduler::Start& start) {
  if (const auto made = partitions_.find(start.placement)) return *made;
  start.placement = machine().whole();
  start.tag = 0;
  return device::kWholeDevice;
}

/// The stream is ready and the launch has a batch, whose start is marked.
Result<void> Executor::prepare(Client& client, LogicalStream& stream, const Grant& grant,
                               const LaunchShape& shape, device::Partition partition) {
  const auto& others = grant.others;
  // Time that is spent waiting for others is not the batch's.
  if (!others.empty()) close_batch(client, stream);
  const auto target = client.streams.begin_work(stream, partition);
  if (!target) return std::unexpected(target.error());
  if (const auto done = wait_for(others, *target); !done) return done;
  if (stream.batch == nullptr) {
    if (const auto opened = open_batch(client, stream, grant, shape.blocks, *target); !opened)
      return opened;
  }
  stream.batch->add_counted(grant.kernel, grant.expected_ms, grant.alone_ms);
  stream.batch->filled += grant.filled;
  stream.batch->serials.push_back(grant.serial);
  return {};
}

/// Whether the launch may join the stream's open batch, which then knows of it; true without one.
bool Executor::join_batch(LogicalStream& stream, const Grant& grant) {
  LaunchBatch* const open = stream.batch.get();
  if (open == nullptr) return true;
  const scheduler::Start& start = grant.start;
  const scheduler::Completion& last = open->completion;
  const bool same = last.kernel == grant.kernel && last.part == grant.part &&
                    last.task_size == start.task_size && last.form == start.form;
  const bool mixes = open->mixes && may_mix(grant);
  const bool joins = (same || mixes) && last.tag == start.tag && last.placement == start.placement;
  if (joins && !same) open->completion.mixed = true;
  return joins;
}

/// Ends a granted launch that the device could not be prepared for.
void Executor::never_begun(Client& client, const Grant& grant, const Result<void>& why) {
  auto nothing = std::make_shared<LaunchBatch>();
  nothing->completion.session = client.spec.session;
  nothing->trace = client.waiting;
  nothing->counted = 1;
  nothing->counted_ms = grant.expected_ms;
  nothing->filled = grant.filled;
  nothing->serials = {grant.serial};
  batch_ended(nothing, why);
}

Result<injector::Form> Executor::carry_out(Client& client, FunctionRecord& kernel,
                                           const device::LaunchSpec& spec, LogicalStream& stream,
                                           Grant grant, const LaunchShape& shape) {
  scheduler::Start& start = grant.start;
  const bool plain = is_plain(spec);
  const bool profiled =
      grant.profiled && plain && profiled_.take(grant.kernel, kernel, spec, shape);
  if (profiled) {
    start.form = Form::kNative;
    grant.part = 1;
  }
  const bool resizable = may_resize(client, stream, grant);
  if (start.placement != machine().whole() && !has_room(kernel, spec, shape, start.placement)) {
    start.placement = machine().whole();
    start.tag = 0;
  }
  // What has to be loaded first is not to be taken for the launch's time.
  find_forms(device_, forms_, kernel, to_injector(start.form));
  const device::Partition partition = resizable ? device::kWholeDevice : partition_for(start);
  if (resizable || profiled || !join_batch(stream, grant)) close_batch(client, stream);
  if (const auto prepared = prepare(client, stream, grant, shape, partition); !prepared) {
    never_begun(client, grant, prepared);
    if (profiled) profiled_.drop();
    return std::unexpected(prepared.error());
  }
  auto done = resizable  ? launch_lane(client, kernel, spec, stream, grant)
              : profiled ? launch_profiled(client, kernel, spec, stream, grant)
                         : launch_plain(client, kernel, spec, stream, grant);
  if (!done && start.form == Form::kWorker && done.error().code == ErrorCode::kLimit) {
    // No control block is left: others have just taken them, or this lane would need a second one.
    start.form = Form::kNative;
    done = launch_plain(client, kernel, spec, stream, grant);
  }
  LaunchBatch& batch = *stream.batch;
  if (done && batch.completion.launches == 1 && from_injector(*done) != batch.completion.form) {
    batch.completion.form = batch.trace.form = from_injector(*done);
    batch.completion.part = 1;
    batch.completion.task_size = 0;
  }
  const bool in_lane = resizable && done && *done == injector::Form::kWorker;
  if (in_lane) show_lane(client, grant);
  if (!done) {
    stream.refused = true;
  } else if (*done != injector::Form::kSlice || grant.first + grant.count == shape.blocks) {
    client.streams.work_submitted(stream, kernel.name);
  } else {
    client.streams.piece_submitted(stream);
  }
  const bool native = done && *done == injector::Form::kNative;
  if (grant.repeats && native && plain && partition == device::kWholeDevice)
    batch.repeats_at = grant.changes;
  if (in_lane) {
    // It ends when the lane does.
    stream.batch.reset();
    std::erase(client.open, &stream);
  } else if (resizable || profiled || !done || batch.is_full()) {
    close_batch(client, stream);
  }
  return done;
}

/// To the policy, and to the thread that looks after lanes.
void Executor::show_lane(Client& client, const Grant& grant) {
  {
    const MutexLock lock(mutex_);
    client.unended.make_lane(grant.serial, Clock::now());
    client.unended.show(views_[client.index].running);
    // Under the lock, or the executor's thread could have looked already, and sleep after all.
    lanes_active_.store(true);
  }
  tick_.notify_one();
}

/// The launch's time says nothing of the kernel's time, like that of a resized launch.
Result<injector::Form> Executor::launch_profiled(const Client& client, FunctionRecord& kernel,
                                                 const device::LaunchSpec& spec,
                                                 LogicalStream& stream, const Grant& grant) {
  stream.batch->profiled = true;
  stream.batch->completion.resized = true;
  if (profiled_.launch(kernel, spec, stream.device)) return injector::Form::kNative;
  return launch_plain(client, kernel, spec, stream, grant);
}

Result<injector::Form> Executor::launch_plain(const Client& client, FunctionRecord& kernel,
                                              const device::LaunchSpec& spec, LogicalStream& stream,
                                              const Grant& grant) {
  const scheduler::Start& start = grant.start;
  LaunchTarget target;
  target.stream = stream.device;
  target.sms = machine().sms(start.placement);
  target.most_per_sm = start.placement.blocks_per_sm;
  target.ahead = start.placement.ahead;
  target.shares_sms = shares_sms(grant);
  target.task_size = start.task_size;
  target.prefetch = start.prefetch;
  if (start.form == Form::kSlice && (start.slice_blocks != 0 || grant.first > 0)) {
    target.slice_first = grant.first;
    target.slice_count = grant.count;
  }
  WorkerTable table;
  if (start.form == Form::kWorker) {
    target.queue = queue_of(client, stream.workers, forms_.control_memory());
    if (start.placement.blocks_per_sm != 0) {
      table = partitions_.table(start.placement);
      target.table = &table;
    }
  }
  return launch_in_form(device_, forms_, kernel, spec, to_injector(start.form), target);
}

Result<injector::Form> Executor::launch_lane(Client& client, FunctionRecord& kernel,
                                             const device::LaunchSpec& spec, LogicalStream& stream,
                                             const Grant& grant) {
  const scheduler::Start& start = grant.start;
  ControlMemory* const memory = forms_.control_memory();
  const MutexLock lanes(client.mutex);
  WorkerLane* const lane = &stream.lane;
  const auto lane_stream = client.streams.lane_stream(*lane);
  if (!lane_stream) return std::unexpected(lane_stream.error());
  WorkerQueue* const queue = queue_of(client, lane->queue, memory);
  if (queue == nullptr) return fail(ErrorCode::kLimit, "no control block is left");
  auto begin = SharedEvent::make(device_, false);
  if (!begin) return std::unexpected(begin.error());
  if (const auto done = device_.record((*begin)->get(), stream.device); !done) {
    return std::unexpected(done.error());
  }
  for (const WorkerLane::Side& side : lane->sides) {
    const auto waited = device_.wait(*lane_stream, side.end->get());
    if (!waited) return std::unexpected(waited.error());
  }
  const WorkerTable table = steering_.first_table(start.placement);
  LaunchTarget target;
  target.stream = *lane_stream;
  target.most_per_sm = start.placement.blocks_per_sm;
  target.shares_sms = shares_sms(grant);
  target.queue = queue;
  target.table = &table;
  target.after = (*begin)->get();
  target.control = steering_.control();
  target.dispatches = forms_.dispatch() == DispatchChoice::kDevice;
  target.task_size = start.task_size;
  target.prefetch = start.prefetch;
  const auto done = launch_in_form(device_, forms_, kernel, spec, to_injector(start.form), target);
  if (!done) return done;
  const bool natively = *done != injector::Form::kWorker;
  // Natively after all, on the lane: an event brings the stream behind it.
  auto marked = natively ? device_.record((*begin)->get(), *lane_stream)
                         : mark_end(*stream.batch, *lane_stream);
  if (marked && natively) marked = device_.wait(stream.device, (*begin)->get());
  if (!marked) return std::unexpected(marked.error());
  if (const auto watched = watch_lane(client, *lane_stream, stream.batch); !watched) {
    return std::unexpected(watched.error());
  }
  if (natively) return done;
  ++stream.active_lanes;
  ++lanes_;
  client.lanes.push_back({.lane = lane,
                          .stream = &stream,
                          .batch = stream.batch,
                          .begin = std::move(*begin),
                          .placement = start.placement,
                          .finished = queue->expected_signal(injector::kFinished),
                          .retreated = queue->expected_signal(injector::kRetreated),
                          .begun = false,
                          .added = 0,
                          .add_again = {}});
  return done;
}

/// Null without memory for it.
WorkerQueue* Executor::queue_of(const Client& client, std::unique_ptr<WorkerQueue>& queue,
                                ControlMemory* memory) {
  if (queue == nullptr && memory != nullptr) {
    queue = std::make_unique<WorkerQueue>(device_, *memory, client.control);
  }
  return queue.get();
}

/// Returns when the other session's thread has carried out that start, which it is about to do. A
/// session waits only for starts before its own, so no two wait for each other.
void Executor::wait_until_carried_out(const Earlier& other) {
  const auto& newest = other.client->carried_out;
  for (;;) {
    const std::uint64_t seen = newest.load();
    if (seen >= other.start) return;
    newest.wait(seen);
  }
}

/// Makes `stream` wait for the others' work on the device.
Result<void> Executor::wait_for(const std::vector<Earlier>& others, device::Stream stream) {
  for (const Earlier& other : others) {
    wait_until_carried_out(other);
    const MutexLock lock(other.client->mutex);
    if (other.client->gone) continue;
    if (const auto done = other.client->streams.wait_for_all(stream); !done) return done;
  }
  return {};
}

}  // namespace slate::daemon
