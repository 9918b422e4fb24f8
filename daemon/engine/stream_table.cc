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
                         StreamWatches::OnFault on_fault)
    : device_(device),
      order_(device),
      rows_(device),
      watches_(completer, group, rows_, std::move(on_fault)),
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
  rows_.submit_all();
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
  // Launches that this work may have to wait for.
  if (&stream == default_.get()) {
    rows_.submit_all();
  } else {
    rows_.submit(stream);
    rows_.submit(*default_);
  }
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
  }
  rows_.add(stream, spec);
  work_submitted(stream, kernel);
  if (stream.row.is_full()) {
    rows_.submit(stream);
    watches_.watch_now_and_then(stream);
  }
  return {};
}

void StreamTable::work_submitted(LogicalStream& stream,
                                 const std::shared_ptr<const std::string>& kernel) {
  if (kernel) {
    if (const decltype(last_kernel_) newest{&stream, kernel.get()}; newest != last_kernel_) {
      const MutexLock lock(mutex_);
      last_kernels_[&stream] = kernel;
      last_kernel_ = newest;
    }
    stream.launches.fetch_add(1);
  }
  submitted_at_ = position_;
  ++total_submitted_;
  watches_.work_submitted(stream, position_);
}

void StreamTable::piece_submitted(LogicalStream& stream) {
  ++total_submitted_;
  watches_.work_submitted(stream, stream.position.load());
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

bool StreamTable::others_are_idle(const LogicalStream& stream) const {
  const auto is_idle = [&stream](const auto& other) {
    return other.get() == &stream || !other->busy();
  };
  return is_idle(default_) && std::ranges::all_of(others_, is_idle);
}

std::vector<LogicalStream*> StreamTable::unfinished(const LogicalStream* target) {
  rows_.submit_all();
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
  rows_.submit(stream);
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
  visit_all([&](const LogicalStream& stream) {
    if (stream.device != device::Stream{}) watches_.watch_end(stream.device);
    if (stream.lane.stream != device::Stream{}) watches_.watch_end(stream.lane.stream);
    for (const auto& side : stream.lane.sides) watches_.watch_end(side.stream);
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
  if (give_row_) give_row_(stream.book_row);
  stream.order_event.reset();
  stream.tail_event.reset();
  stream.hop_event.reset();
}

void StreamTable::destroy_all() {
  Leftovers leftovers;
  const auto unwatchable = watches_.end();  // likewise
  const MutexLock lock(mutex_);
  all_event_.reset();
  close(*default_, leftovers);
  for (const auto& stream : others_) {
    close(*stream, leftovers);
    launches_of_reaped_ += stream->launches.load();
  }
  others_.clear();
  by_id_.clear();
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

bool StreamTable::runs_unfenced() const {
  bool runs = false;
  visit_all([&runs](const LogicalStream& stream) { runs |= stream.runs_unfenced(); });
  return runs;
}

void StreamTable::mark_unfenced() {
  visit_all([](LogicalStream& stream) { stream.mark_unfenced(); });
}

bool StreamTable::runs_marked() const {
  bool runs = false;
  visit_all([&runs](const LogicalStream& stream) { runs |= stream.runs_marked(); });
  return runs;
}

}  // namespace slate::daemon
