#include "daemon/engine/stream_watches.h"

#include <algorithm>
#include <utility>

namespace slate::daemon {

void StreamWatches::end_command(LogicalStream& stream, std::uint64_t position) {
  stream.position.store(position);
  if (!stream.busy() && on_progress_) on_progress_(stream, position);
}

/// Not while a launch of it is in a lane, whose work is not on the stream. It stays in unwatched_
/// then, and is watched when the lane has ended.
void StreamWatches::watch_outside_lanes(LogicalStream& stream, Completer::Notice notice) {
  if (stream.active_lanes.load() > 0) return;
  const auto watched = watch(stream, {}, notice);
  if (!watched) on_fault_(watched.error());
}

/// What the completer is to call for a watch that is about to be placed.
Completer::Callback StreamWatches::begin(LogicalStream& stream, Completer::Callback then,
                                         const EventTimes::Place& place) {
  rows_.submit(stream);
  stream.unwatched = 0;
  put_off_ -= stream.later.size();
  auto pointer = stream.shared_from_this();
  std::erase(unwatched_, pointer);
  stream.watches.fetch_add(1);
  const Given given{stream.submitted.load(), stream.launches.load(), stream.position.load()};
  return [this, pointer = std::move(pointer), given, later = std::exchange(stream.later, {}),
          then = std::move(then), place](const Result<void>& outcome) {
    if (outcome && place.times != nullptr) place.times->reached(place.row, given.position);
    reached(*pointer, given, outcome);
    for (const Completer::Callback& call : later) call(outcome);
    if (then) then(outcome);
    pointer->watches.fetch_sub(1);
  };
}

Result<void> StreamWatches::watch(LogicalStream& stream, Completer::Callback then,
                                  Completer::Notice notice) {
  auto reach = begin(stream, std::move(then));
  auto watched = completer_.watch(group_, stream.device, std::move(reach), notice);
  if (!watched) {
    stream.watches.fetch_sub(1);
    unwatchable_.push_back(std::move(reach));  // NOLINT(bugprone-use-after-move): it is unchanged
  }
  return watched;
}

void StreamWatches::watch_later(LogicalStream& stream, Completer::Callback then) {
  stream.later.push_back(std::move(then));
  ++put_off_;
  // Its last work may have been watched a moment ago, and no watch would follow.
  if (stream.unwatched == 0 || stream.later.size() >= kMostLater)
    watch_outside_lanes(stream, Completer::Notice::kCheap);
}

void StreamWatches::watch_streams_put_off() {
  for (std::size_t i = unwatched_.size(); i > 0; --i) {
    LogicalStream& stream = *unwatched_[i - 1];
    if (!stream.later.empty()) watch_outside_lanes(stream, Completer::Notice::kCheap);
  }
}

void StreamWatches::watch_event(LogicalStream& stream, std::shared_ptr<SharedEvent> event,
                                Completer::Callback then, const EventTimes::Place& place) {
  auto reach = begin(stream, std::move(then), place);
  completer_.watch(group_, stream.device, std::move(event), std::move(reach));
}

void StreamWatches::watch_all(Watched which) {
  for (std::size_t i = unwatched_.size(); i > 0; --i) {
    LogicalStream& stream = *unwatched_[i - 1];
    if (which == Watched::kDue && stream.watches.load() > 0) {
      rows_.submit(stream);
    } else {
      watch_outside_lanes(stream, Completer::Notice::kSoon);
    }
  }
}

void StreamWatches::watch_end(device::Stream stream) {
  // Refused only by a device that is lost, where nothing runs any more.
  (void)completer_.watch(group_, stream, [](const Result<void>&) {});
}

/// Called by the completer. Watches of one stream may be reached out of order, as it can have
/// moved from one device stream to another.
void StreamWatches::reached(LogicalStream& stream, const Given& given,
                            const Result<void>& outcome) {
  if (!outcome) {
    stream.launches_gone.store(std::max(stream.launches_gone.load(), given.launches));
    on_fault_(outcome.error());
    return;
  }
  if (given.submitted <= stream.completed.load()) return;
  // Before anybody can see the stream idle, and tell the client so.
  if (on_progress_) on_progress_(stream, given.position);
  stream.launches_done.store(given.launches);
  stream.launches_gone.store(given.launches);
  stream.completed.store(given.submitted);
  // A submission is counted before its position is set, so an idle stream has passed its own.
  const std::uint64_t newest = stream.position.load();
  if (on_progress_ && !stream.busy()) on_progress_(stream, newest);
}

std::vector<Completer::Callback> StreamWatches::end() {
  unwatched_.clear();
  return std::exchange(unwatchable_, {});
}

}  // namespace slate::daemon
