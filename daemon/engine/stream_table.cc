#include "daemon/engine/stream_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace slate::daemon {
namespace {

// A stream that waits may hold up others that share its way into the hardware. Those of another
// priority have ways of their own, so that a lane's workers and those added to them get through.
constexpr int kLanePriority = -3;
// Watching costs calls of the driver: of a launch in a row of many, a tenth with 16 here. A waiting
// client does not notice: the session's thread watches all before it waits itself.
constexpr std::uint32_t kMostUnwatched = 64;

/// Whether nothing uses the control blocks of `stream` any more, neither late workers, which would
/// join the next owner's launch, nor copies of tables.
bool control_blocks_at_rest(device::Device& device, const LogicalStream& stream) {
  const auto copied = [](const std::unique_ptr<WorkerQueue>& queue) {
    return queue == nullptr || queue->tables_copied();
  };
  return copied(stream.workers) && copied(stream.lane.queue) &&
         std::ranges::all_of(stream.lane.sides, [&device](const WorkerLane::Side& side) {
           return device.query(side.end->get()).value_or(true);  // what has failed is over, too
         });
}

}  // namespace

StreamTable::StreamTable(device::Device& device, Completer& completer, Completer::Group& group,
                         OnFault on_fault)
    : device_(device),
      completer_(completer),
      group_(group),
      on_fault_(std::move(on_fault)),
      order_(device),
      default_(std::make_shared<LogicalStream>()) {
  default_->progress = 0;
}

StreamTable::~StreamTable() {
  SLATE_CHECK(others_.empty() && by_id_.empty() && default_->device == device::Stream{});
}

Result<void> StreamTable::create(std::uint64_t id, bool blocking, int priority,
                                 std::uint32_t progress) {
  reap();
  if (id == 0 || by_id_.contains(id)) {
    return fail(ErrorCode::kProtocol, fmt::format("stream id {} is not a new one", id));
  }
  if (others_.size() >= kMostStreams) return fail(ErrorCode::kLimit, "too many streams");
  auto stream = std::make_shared<LogicalStream>();
  stream->id = id;
  stream->blocking = blocking;
  stream->priority = priority;
  stream->progress = progress;
  // Only work that comes after now concerns it.
  stream->default_seen = 0;
  const MutexLock lock(mutex_);
  others_.push_back(stream);
  by_id_.emplace(id, std::move(stream));
  return {};
}

Result<void> StreamTable::destroy(std::uint64_t id) {
  submit_rows();
  {
    const MutexLock lock(mutex_);
    if (by_id_.erase(id) == 0) return fail(ErrorCode::kInvalidHandle, "no such stream");
  }
  reap();
  return {};
}

/// Frees the destroyed streams whose work has ended.
void StreamTable::reap() {
  Leftovers leftovers;
  const MutexLock lock(mutex_);
  std::erase_if(others_, [&](const StreamPointer& stream) SLATE_REQUIRES(mutex_) {
    if (by_id_.contains(stream->id) || stream->busy() || stream->watches.load() > 0) return false;
    if (!control_blocks_at_rest(device_, *stream)) return false;
    close(*stream, leftovers);
    launches_of_reaped_ += stream->launches.load();
    last_kernels_.erase(stream.get());
    if (last_kernel_.first == stream.get()) last_kernel_ = {};
    return true;
  });
}

Result<LogicalStream*> StreamTable::find(std::uint64_t id) {
  if (id == 0) return default_.get();
  const auto found = by_id_.find(id);
  if (found == by_id_.end()) return fail(ErrorCode::kInvalidHandle, "no such stream");
  return found->second.get();
}

std::shared_ptr<LogicalStream> StreamTable::share(const LogicalStream& stream) const {
  return &stream == default_.get() ? default_ : by_id_.at(stream.id);
}

/// Under the mutex, so that a watch placed meanwhile sees the new device stream only with the wait
/// for the old one on it.
Result<void> StreamTable::move_to(LogicalStream& stream, device::Partition partition) {
  const auto found = std::ranges::find(stream.homes, partition, &LogicalStream::Home::partition);
  device::Stream target{};
  if (found != stream.homes.end()) {
    if (found->stream == stream.device) return {};
    target = found->stream;
  } else {
    // On SMs given to this session, before blocks of those that have all: these wait for no others.
    const bool whole = partition == device::kWholeDevice;
    const auto made = device_.create_stream(stream.priority - (whole ? 0 : 1), partition);
    if (!made) return std::unexpected(made.error());
    target = *made;
  }
  const MutexLock lock(mutex_);
  if (found == stream.homes.end()) stream.homes.push_back({partition, target});
  if (stream.device != device::Stream{}) {
    if (!stream.hop_event) {
      auto event = SharedEvent::make(device_, false);
      if (!event) return std::unexpected(event.error());
      stream.hop_event = std::move(*event);
    }
    if (const auto done = device_.record(stream.hop_event->get(), stream.device); !done)
      return done;
    if (const auto done = device_.wait(target, stream.hop_event->get()); !done) return done;
  }
  stream.device = target;
  return {};
}

Result<device::Stream> StreamTable::begin_work(LogicalStream& stream,
                                               std::optional<device::Partition> partition) {
  submit_rows_before(stream);
  if (partition || stream.device == device::Stream{}) {
    const auto moved = move_to(stream, partition.value_or(device::kWholeDevice));
    if (!moved) return std::unexpected(moved.error());
  }
  if (const auto ordered = order_.before_work(stream, *default_, others_); !ordered) {
    return std::unexpected(ordered.error());
  }
  return stream.device;
}

Result<void> StreamTable::launch_in_row(LogicalStream& stream, const device::LaunchSpec& spec,
                                        const std::shared_ptr<const std::string>& kernel) {
  // Nothing has come since the first one that those behind it had to wait for.
  if (stream.row.empty()) {
    const auto begun = begin_work(stream, device::kWholeDevice);
    if (!begun) return std::unexpected(begun.error());
    rows_.push_back(&stream);
  }
  stream.row.add(spec);
  work_submitted(stream, kernel);
  if (stream.row.is_full()) {
    submit_row(stream);
    watch_now_and_then(stream);
  }
  return {};
}

void StreamTable::submit_row(LogicalStream& stream) {
  if (stream.row.empty()) return;
  std::erase(rows_, &stream);
  const auto done = stream.row.submit(device_, stream.device);
  if (done) return;
  stream.refused = true;
  if (on_refusal_) on_refusal_(done.error());
}

void StreamTable::submit_rows() {
  while (!rows_.empty()) submit_row(*rows_.back());
}

/// What work on `stream` may have to wait for.
void StreamTable::submit_rows_before(LogicalStream& stream) {
  if (&stream == default_.get()) return submit_rows();
  submit_row(stream);
  submit_row(*default_);
}

void StreamTable::work_submitted(LogicalStream& stream,
                                 const std::shared_ptr<const std::string>& kernel) {
  ++total_submitted_;
  if (kernel) {
    if (const decltype(last_kernel_) newest{&stream, kernel.get()}; newest != last_kernel_) {
      const MutexLock lock(mutex_);
      last_kernels_[&stream] = kernel;
      last_kernel_ = newest;
    }
    stream.launches.fetch_add(1);
  }
  stream.submitted.fetch_add(1);
  stream.position.store(position_);  // in this order: see watch_reached()
  submitted_at_ = position_;
  if (stream.unwatched++ == 0) unwatched_.push_back(stream.shared_from_this());
  if (stream.row.empty()) watch_now_and_then(stream);  // else behind the row
}

void StreamTable::watch_now_and_then(LogicalStream& stream) {
  if (stream.unwatched >= kMostUnwatched && stream.active_lanes.load() == 0) watch_cheaply(stream);
}

void StreamTable::watch_cheaply(LogicalStream& stream) {
  const auto watched = watch(stream, {}, Completer::Notice::kCheap);
  if (!watched) on_fault_(watched.error());
}

/// What the completer is to call for a watch that is about to be placed.
Completer::Callback StreamTable::begin_watch(LogicalStream& stream, Completer::Callback then) {
  submit_row(stream);
  stream.unwatched = 0;
  put_off_ -= stream.later.size();
  auto pointer = stream.shared_from_this();
  std::erase(unwatched_, pointer);
  stream.watches.fetch_add(1);
  const Reached reached{stream.submitted.load(), stream.launches.load(), stream.position.load()};
  return [this, pointer = std::move(pointer), reached, later = std::exchange(stream.later, {}),
          then = std::move(then)](const Result<void>& outcome) {
    watch_reached(*pointer, reached, outcome);
    for (const Completer::Callback& call : later) call(outcome);
    if (then) then(outcome);
    pointer->watches.fetch_sub(1);
  };
}

Result<void> StreamTable::watch(LogicalStream& stream, Completer::Callback then,
                                Completer::Notice notice) {
  auto reach = begin_watch(stream, std::move(then));
  auto watched = completer_.watch(group_, stream.device, std::move(reach), notice);
  if (!watched) {
    stream.watches.fetch_sub(1);
    unwatchable_.push_back(std::move(reach));
  }
  return watched;
}

void StreamTable::watch_later(LogicalStream& stream, Completer::Callback then) {
  stream.later.push_back(std::move(then));
  ++put_off_;
  // Its last work may have been watched a moment ago, and no watch would follow.
  if (stream.unwatched == 0 || stream.later.size() == kMostLater) watch_cheaply(stream);
}

void StreamTable::watch_streams_put_off() {
  for (std::size_t i = unwatched_.size(); i > 0; --i) {
    if (!unwatched_[i - 1]->later.empty()) watch_cheaply(*unwatched_[i - 1]);
  }
}

void StreamTable::watch_event(LogicalStream& stream, std::shared_ptr<SharedEvent> event,
                              Completer::Callback then) {
  auto reach = begin_watch(stream, std::move(then));
  completer_.watch(group_, stream.device, std::move(event), std::move(reach));
}

void StreamTable::watch_all(Watched which) {
  for (std::size_t i = unwatched_.size(); i > 0; --i) {
    LogicalStream& stream = *unwatched_[i - 1];
    // The lane's work is not on the stream; when it has ended the stream is watched.
    if (stream.active_lanes.load() > 0) continue;
    if (which == Watched::kDue && stream.watches.load() > 0) {
      submit_row(stream);
    } else if (const auto watched = watch(stream); !watched) {
      on_fault_(watched.error());
    }
  }
}

void StreamTable::end_command(LogicalStream& stream) {
  stream.position.store(position_);
  if (!stream.busy() && on_progress_) on_progress_(stream.progress, position_);
}

Result<device::Stream> StreamTable::lane_stream(WorkerLane& lane) {
  if (lane.stream == device::Stream{}) {
    const auto made = device_.create_stream(kLanePriority);
    if (!made) return std::unexpected(made.error());
    const MutexLock lock(mutex_);
    lane.stream = *made;
  }
  return lane.stream;
}

Result<WorkerLane::Side*> StreamTable::idle_side(WorkerLane& lane) {
  for (WorkerLane::Side& side : lane.sides) {
    const auto idle = device_.query(side.end->get());
    if (idle && *idle) return &side;
  }
  constexpr std::size_t kMostSides = 4;
  if (lane.sides.size() == kMostSides) return nullptr;
  auto end = SharedEvent::make(device_, false);
  if (!end) return std::unexpected(end.error());
  const auto made = device_.create_stream(kLanePriority);
  if (!made) return std::unexpected(made.error());
  const MutexLock lock(mutex_);
  lane.sides.reserve(kMostSides);
  lane.sides.push_back({*made, std::move(*end)});
  return &lane.sides.back();
}

Result<void> StreamTable::wait_for_all(device::Stream later) {
  const MutexLock lock(mutex_);
  if (!all_event_) {
    auto event = SharedEvent::make(device_, false);
    if (!event) return std::unexpected(event.error());
    all_event_ = std::move(*event);
  }
  const auto wait_for_tail = [&, event = all_event_->get()](device::Stream tail) -> Result<void> {
    if (tail == device::Stream{}) return {};
    if (const auto done = device_.record(event, tail); !done) return done;
    return device_.wait(later, event);
  };
  const auto wait_for = [&](const LogicalStream& stream) -> Result<void> {
    if (stream.active_lanes.load() == 0) {
      return stream.busy() ? wait_for_tail(stream.device) : Result<void>();
    }
    if (const auto done = wait_for_tail(stream.lane.stream); !done) return done;
    for (const auto& side : stream.lane.sides) {
      if (const auto done = wait_for_tail(side.stream); !done) return done;
    }
    return {};
  };
  if (const auto done = wait_for(*default_); !done) return done;
  for (const auto& stream : others_) {
    if (const auto done = wait_for(*stream); !done) return done;
  }
  return {};
}

/// Called by the completer. Watches of one stream may be reached out of order, as it can have
/// moved from one device stream to another.
void StreamTable::watch_reached(LogicalStream& stream, const Reached& reached,
                                const Result<void>& outcome) {
  if (!outcome) {
    on_fault_(outcome.error());
    return;
  }
  if (reached.submitted <= stream.completed.load()) return;
  stream.launches_done.store(reached.launches);
  stream.completed.store(reached.submitted);
  if (on_progress_) {
    // A submission is counted before its position is set, so an idle stream has passed its own.
    const std::uint64_t newest = stream.position.load();
    on_progress_(stream.progress, stream.busy() ? reached.position : newest);
  }
}

std::vector<LogicalStream*> StreamTable::unfinished(const LogicalStream* target) {
  submit_rows();
  std::vector<LogicalStream*> result;
  const bool all = target == nullptr;
  const bool legacy = target == default_.get();
  if ((all || legacy) && default_->busy()) result.push_back(default_.get());
  for (const auto& stream : others_) {
    const bool meant = all || (legacy && stream->blocking) || stream.get() == target;
    if (meant && stream->busy()) result.push_back(stream.get());
  }
  return result;
}

Result<bool> StreamTable::query(LogicalStream& stream) {
  submit_row(stream);
  if (!stream.busy()) return true;
  const std::uint64_t now = stream.submitted.load();
  if (!stream.tail_event) {
    auto event = SharedEvent::make(device_, false);
    if (!event) return std::unexpected(event.error());
    stream.tail_event = std::move(*event);
  }
  if (stream.tail_event_at != now) {
    if (const auto recorded = device_.record(stream.tail_event->get(), stream.device); !recorded) {
      return std::unexpected(recorded.error());
    }
    stream.tail_event_at = now;
  }
  return device_.query(stream.tail_event->get());
}

template <typename Visit>
void StreamTable::visit_all(Visit visit) const {
  const MutexLock lock(mutex_);
  visit(*default_);
  for (const auto& stream : others_) visit(*stream);
}

bool StreamTable::cancel_all() {
  bool cancelled = true;
  visit_all([&](const LogicalStream& stream) {
    for (const auto& home : stream.homes) {
      if (!device_.cancel(home.stream)) cancelled = false;
    }
    const WorkerLane& lane = stream.lane;
    if (lane.stream != device::Stream{} && !device_.cancel(lane.stream)) cancelled = false;
    for (const auto& side : lane.sides) {
      if (!device_.cancel(side.stream)) cancelled = false;
    }
  });
  return cancelled;
}

void StreamTable::watch_ends() {
  // Refused only by a device that is lost, where nothing runs any more.
  const auto watch = [this](device::Stream stream) {
    (void)completer_.watch(group_, stream, [](const Result<void>&) {});
  };
  visit_all([&](const LogicalStream& stream) {
    if (stream.device != device::Stream{}) watch(stream.device);
    if (stream.lane.stream != device::Stream{}) watch(stream.lane.stream);
    for (const auto& side : stream.lane.sides) watch(side.stream);
  });
}

void StreamTable::close(LogicalStream& stream, Leftovers& leftovers) {
  for (const auto& home : stream.homes) device_.destroy_stream(home.stream);
  stream.homes.clear();
  stream.device = device::Stream{};
  leftovers.push_back(std::move(stream.workers));
  leftovers.push_back(std::move(stream.lane.queue));
  if (stream.lane.stream != device::Stream{}) device_.destroy_stream(stream.lane.stream);
  for (const auto& side : stream.lane.sides) device_.destroy_stream(side.stream);
  stream.lane = {};
  stream.order_event.reset();
  stream.tail_event.reset();
  stream.hop_event.reset();
}

void StreamTable::destroy_all() {
  Leftovers leftovers;
  const auto unwatchable = std::exchange(unwatchable_, {});  // likewise
  const MutexLock lock(mutex_);
  all_event_.reset();
  close(*default_, leftovers);
  for (const auto& stream : others_) {
    close(*stream, leftovers);
    launches_of_reaped_ += stream->launches.load();
  }
  others_.clear();
  by_id_.clear();
  unwatched_.clear();
  last_kernels_.clear();
}

std::size_t StreamTable::count() const {
  const MutexLock lock(mutex_);
  return by_id_.size();
}

std::uint64_t StreamTable::launches() const {
  const MutexLock lock(mutex_);
  std::uint64_t sum = launches_of_reaped_ + default_->launches.load();
  for (const auto& stream : others_) sum += stream->launches.load();
  return sum;
}

std::uint64_t StreamTable::launches_running() const {
  std::uint64_t sum = 0;
  visit_all([&](const LogicalStream& stream) {
    const std::uint64_t done = stream.launches_done.load();
    sum += stream.launches.load() - done;
  });
  return sum;
}

std::vector<std::string> StreamTable::running_kernels() const {
  std::vector<std::string> names;
  visit_all([&](const LogicalStream& stream) SLATE_REQUIRES(mutex_) {
    const auto last = last_kernels_.find(&stream);
    const bool running = stream.launches_done.load() < stream.launches.load();
    if (running && last != last_kernels_.end()) names.push_back(*last->second);
  });
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

}  // namespace slate::daemon
