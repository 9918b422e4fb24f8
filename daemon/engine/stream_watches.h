// StreamWatches: sees how far the work of one session's streams has come. Session thread, except
// where a method says otherwise.
//
// A watch is placed behind every so many pieces of work, and behind the last one before the
// session's thread pauses (watch_all). When it is reached, all work submitted before it counts as
// completed, and the stream's progress is published.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "daemon/engine/completer.h"
#include "daemon/engine/stream_order.h"
#include "daemon/engine/stream_rows.h"
#include "daemon/event_times.h"

namespace slate::daemon {

class StreamWatches {
 public:
  static constexpr std::size_t kMostLater = 8;
  using OnFault = std::function<void(const Error&)>;
  /// Gets a stream, and the position of the last command whose work on it is done.
  using OnProgress = std::function<void(const LogicalStream& stream, std::uint64_t position)>;

  /// `on_fault` is called when work ended with a fault, mostly by the completer. All outlive it.
  StreamWatches(Completer& completer, Completer::Group& group, StreamRows& rows, OnFault on_fault)
      : completer_(completer), group_(group), rows_(rows), on_fault_(std::move(on_fault)) {}

  /// `tell` gets every stream's progress from now on, on the session's or the completer's thread.
  /// Requires: no work has come yet.
  void publish(OnProgress tell) { on_progress_ = std::move(tell); }

  /// Counts a piece of work that was just put on the stream or in its row. `position`: of the
  /// newest command that has put all its work there. A stream with many such pieces is watched.
  void work_submitted(LogicalStream& stream, std::uint64_t position) {
    stream.submitted.fetch_add(1);
    stream.position.store(position);  // in this order: see reached()
    if (stream.unwatched++ == 0) unwatched_.push_back(stream.shared_from_this());
    if (stream.row.empty()) watch_now_and_then(stream);  // else behind the row
  }
  /// Watches the stream if much work is behind its last watch. To be called when a full row was
  /// submitted.
  void watch_now_and_then(LogicalStream& stream) {
    if (stream.unwatched >= kMostUnwatched) watch_outside_lanes(stream, Completer::Notice::kCheap);
  }
  /// The command at `position` puts no more work on `stream`.
  void end_command(LogicalStream& stream, std::uint64_t position);

  /// When all work so far is done, its progress is published and the completer calls `then`. After
  /// an error `then` is not called.
  Result<void> watch(LogicalStream& stream, Completer::Callback then = {},
                     Completer::Notice notice = Completer::Notice::kSoon);
  /// As watch(), with the next watch of the stream, which costs less in a row of many. That watch
  /// comes with watch_put_off(), before the session's thread pauses, or after kMostLater of these.
  /// Its failure is reported as a fault.
  void watch_later(LogicalStream& stream, Completer::Callback then);
  /// Places the watches that watch_later() has put off. To be called before work that may take long
  /// or wait, behind which they would come late.
  void watch_put_off() {
    if (put_off_ > 0) [[unlikely]]
      watch_streams_put_off();
  }
  /// As watch(), where `event` was just recorded on the stream. `place` hears of it first, as of
  /// the stream's last command. Requires: `event` is not recorded again while anything else holds
  /// it.
  void watch_event(LogicalStream& stream, std::shared_ptr<SharedEvent> event,
                   Completer::Callback then = {}, const EventTimes::Place& place = {});
  /// kDue: a stream whose last watch was not reached yet only gets its row submitted. A watch costs
  /// the device 2 us between two kernels, and the next one tells of all work up to it.
  enum class Watched { kAll, kDue };
  /// Watches every stream with work behind its last watch; streams with a launch in a lane are left
  /// out. kAll is for before the session's thread may wait, kDue for again and again while it waits
  /// awake.
  void watch_all(Watched which = Watched::kAll);

  /// Lets the group wait for all work on a device stream, whose progress is not published. Any
  /// thread.
  void watch_end(device::Stream stream);
  /// Reports a fault of work that was on none of the streams' own device streams. Any thread.
  void report(const Error& fault) const { on_fault_(fault); }
  /// Forgets the streams. Returns what the callbacks own whose watch failed. It may be registered
  /// memory: the caller holds no mutex when it destroys them. Requires: no unfinished work.
  std::vector<Completer::Callback> end();

 private:
  // Watching costs calls of the driver: of a launch in a row of many, a tenth with 16 here. A
  // waiting client does not notice: the session's thread watches all before it waits itself.
  static constexpr std::uint32_t kMostUnwatched = 64;
  /// What a stream had been given when a watch was placed on it.
  struct Given {
    std::uint64_t submitted, launches, position;
  };

  void watch_outside_lanes(LogicalStream& stream, Completer::Notice notice);
  void watch_streams_put_off();
  Completer::Callback begin(LogicalStream& stream, Completer::Callback then,
                            const EventTimes::Place& place = {});
  void reached(LogicalStream& stream, const Given& given, const Result<void>& outcome);

  Completer& completer_;
  Completer::Group& group_;
  StreamRows& rows_;
  const OnFault on_fault_;
  OnProgress on_progress_;
  std::size_t put_off_ = 0;  // callbacks of watch_later() without a watch
  /// Streams with work behind their last watch.
  std::vector<std::shared_ptr<LogicalStream>> unwatched_;
  /// Callbacks of watches that failed: kept until no work runs, as it may use what they own.
  std::vector<Completer::Callback> unwatchable_;
};

}  // namespace slate::daemon
