#include "daemon/engine/stream_table.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"

namespace slate::daemon {

StreamTable::StreamTable(device::Device& device, Completer& completer, Completer::Group& group,
                         OnFault on_fault)
    : device_(device),
      completer_(completer),
      group_(group),
      on_fault_(std::move(on_fault)),
      order_(device),
      default_(std::make_shared<LogicalStream>()) {}

StreamTable::~StreamTable() {
  SLATE_CHECK(others_.empty() && by_id_.empty() && default_->device == device::Stream{});
}

Result<void> StreamTable::create(std::uint64_t id, bool blocking, int priority) {
  reap();
  if (id == 0 || by_id_.contains(id)) {
    return fail(ErrorCode::kProtocol, fmt::format("stream id {} is not a new one", id));
  }
  if (others_.size() >= kMostStreams) return fail(ErrorCode::kLimit, "too many streams");
  auto stream = std::make_shared<LogicalStream>();
  stream->id = id;
  stream->blocking = blocking;
  stream->priority = priority;
  // Only work that comes after now concerns it.
  stream->default_seen = 0;
  const std::lock_guard lock(mutex_);
  others_.push_back(stream);
  by_id_.emplace(id, std::move(stream));
  return {};
}

Result<void> StreamTable::destroy(std::uint64_t id) {
  {
    const std::lock_guard lock(mutex_);
    if (by_id_.erase(id) == 0) return fail(ErrorCode::kInvalidHandle, "no such stream");
  }
  reap();
  return {};
}

/// Frees the streams that were destroyed and have come to their end since.
void StreamTable::reap() {
  const std::lock_guard lock(mutex_);
  std::erase_if(others_, [this](const StreamPointer& stream) {
    if (by_id_.contains(stream->id) || stream->busy() || stream->watched.load()) return false;
    if (stream->device != device::Stream{}) device_.destroy_stream(stream->device);
    launches_of_reaped_ += stream->launches.load();
    last_kernels_.erase(stream.get());
    return true;
  });
}

Result<LogicalStream*> StreamTable::find(std::uint64_t id) {
  if (id == 0) return default_.get();
  const auto found = by_id_.find(id);
  if (found == by_id_.end()) return fail(ErrorCode::kInvalidHandle, "no such stream");
  return found->second.get();
}

Result<void> StreamTable::open(LogicalStream& stream) {
  if (stream.device != device::Stream{}) return {};
  const auto made = device_.create_stream(stream.priority);
  if (!made) return std::unexpected(made.error());
  const std::lock_guard lock(mutex_);
  stream.device = *made;
  return {};
}

Result<device::Stream> StreamTable::begin_work(LogicalStream& stream) {
  if (const auto opened = open(stream); !opened) return std::unexpected(opened.error());
  if (const auto ordered = order_.before_work(stream, *default_, others_); !ordered) {
    return std::unexpected(ordered.error());
  }
  return stream.device;
}

void StreamTable::work_submitted(LogicalStream& stream,
                                 const std::shared_ptr<const std::string>& kernel) {
  ++total_submitted_;
  if (kernel) {
    const std::lock_guard lock(mutex_);
    last_kernels_[&stream] = kernel;
    stream.launches.fetch_add(1);
  }
  stream.submitted.fetch_add(1);
  if (stream.watched.exchange(true)) return;
  place_watch(&stream == default_.get() ? default_ : by_id_.at(stream.id));
}

void StreamTable::place_watch(const StreamPointer& stream) {
  // Read before the event is recorded: the event then covers at least so much.
  const std::uint64_t launches = stream->launches.load();
  const std::uint64_t submitted = stream->submitted.load();
  const auto placed = completer_.watch(
      group_, stream->device, [this, stream, submitted, launches](const Result<void>& outcome) {
        watch_reached(stream, submitted, launches, outcome);
      });
  if (placed) return;
  stream->watched.store(false);
  on_fault_(placed.error());
}

void StreamTable::watch_reached(const StreamPointer& stream, std::uint64_t submitted,
                                std::uint64_t launches, const Result<void>& outcome) {
  if (!outcome) {
    on_fault_(outcome.error());
    return;
  }
  stream->launches_done.store(launches);
  stream->completed.store(submitted);
  if (!stream->busy()) {
    stream->watched.store(false);
    // Work may have come between the two looks, and have left the watching to us.
    if (!stream->busy() || stream->watched.exchange(true)) return;
  }
  place_watch(stream);
}

std::vector<LogicalStream*> StreamTable::unfinished(const LogicalStream* target) const {
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
  const std::lock_guard lock(mutex_);
  visit(*default_);
  for (const auto& stream : others_) visit(*stream);
}

bool StreamTable::cancel_all() {
  bool cancelled = true;
  visit_all([&](const LogicalStream& stream) {
    if (stream.device == device::Stream{}) return;
    if (!device_.cancel(stream.device)) cancelled = false;
  });
  return cancelled;
}

void StreamTable::watch_ends() {
  visit_all([&](const LogicalStream& stream) {
    if (stream.device == device::Stream{}) return;
    // Refused only by a device that is lost, where nothing runs any more.
    (void)completer_.watch(group_, stream.device, [](const Result<void>&) {});
  });
}

void StreamTable::destroy_all() {
  const auto close = [this](LogicalStream& stream) {
    if (stream.device != device::Stream{}) device_.destroy_stream(stream.device);
    stream.device = device::Stream{};
    stream.order_event.reset();
    stream.tail_event.reset();
  };
  const std::lock_guard lock(mutex_);
  close(*default_);
  for (const auto& stream : others_) {
    close(*stream);
    launches_of_reaped_ += stream->launches.load();
  }
  others_.clear();
  by_id_.clear();
  last_kernels_.clear();
}

std::size_t StreamTable::count() const {
  const std::lock_guard lock(mutex_);
  return by_id_.size();
}

std::uint64_t StreamTable::launches() const {
  const std::lock_guard lock(mutex_);
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
  visit_all([&](const LogicalStream& stream) {
    const auto last = last_kernels_.find(&stream);
    const bool running = stream.launches_done.load() < stream.launches.load();
    if (running && last != last_kernels_.end()) names.push_back(*last->second);
  });
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

}  // namespace slate::daemon
