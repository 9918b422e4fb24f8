// StreamTable: the streams of one session, and how far each has come. Used by the session thread,
// except where a method says otherwise.
//
// Progress: a watch is placed behind every so many pieces of work, and behind the last one before
// the session's thread pauses (watch_all). When it is reached, everything submitted before it
// counts as completed.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "daemon/engine/completer.h"
#include "daemon/engine/stream_order.h"

namespace slate::daemon {

class StreamTable {
 public:
  static constexpr std::size_t kMostStreams = 4096;
  static constexpr std::size_t kMostLater = 8;
  using OnFault = std::function<void(const Error&)>;
  /// Told of a stream's progress entry, and up to which command its work is done.
  using OnProgress = std::function<void(std::uint32_t progress, std::uint64_t position)>;

  /// `on_fault` is called by the completer when work ended with a fault. All outlive the
  /// table.
  StreamTable(device::Device& device, Completer& completer, Completer::Group& group,
              OnFault on_fault);
  /// Requires: destroy_all() was called.
  ~StreamTable();

  /// From now on `tell` hears of every stream's progress, on the session's or the completer's
  /// thread. Before the first command.
  void publish(OnProgress tell) { on_progress_ = std::move(tell); }

  /// From now on `tell` hears of launches that the device refused when it was given their row. The
  /// session's thread. Before the first command.
  void report_refusals(OnFault tell) { on_refusal_ = std::move(tell); }

  /// kProtocol for an id that is 0 or taken, kLimit beyond kMostStreams.
  Result<void> create(std::uint64_t id, bool blocking, int priority,
                      std::uint32_t progress = ipc::kNoProgress);
  /// Its unfinished work goes on and keeps its place in the default stream's order.
  Result<void> destroy(std::uint64_t id);
  /// kInvalidHandle if there is none. The default stream always is.
  Result<LogicalStream*> find(std::uint64_t id);
  /// Keeps it alive beyond its end. Requires: `stream` came from find() just now.
  std::shared_ptr<LogicalStream> share(const LogicalStream& stream) const;

  /// Makes `stream` ready to take one more piece of work: its device stream exists and waits for
  /// what it must. With `partition` it is one of that partition, else the one it was on.
  Result<device::Stream> begin_work(LogicalStream& stream,
                                    std::optional<device::Partition> partition = {});
  /// One more launch on the whole device, which it gets soon: with others of the same stream,
  /// before anything that must come behind it, and before the session's thread pauses (watch_all).
  /// Work was submitted with it.
  Result<void> launch_in_row(LogicalStream& stream, const device::LaunchSpec& spec,
                             const std::shared_ptr<const std::string>& kernel);
  /// Now, if there are such launches of this stream.
  void submit_row(LogicalStream& stream);
  /// The device stream of a lane, made at the first call.
  Result<device::Stream> lane_stream(WorkerLane& lane);
  /// A side of the lane on which nothing runs, made if need be. Any thread that keeps the lane
  /// alive and is the only one to use its sides.
  Result<WorkerLane::Side*> idle_side(WorkerLane& lane);
  /// Makes `later`, another session's stream, wait for all work on ours; for launches that can be
  /// resized only until their workers have left, be it that they were called back. Any thread that
  /// keeps the lanes as they are.
  Result<void> wait_for_all(device::Stream later);
  /// The command at `position` is about to be carried out.
  void begin_command(std::uint64_t position) { position_ = position; }
  std::uint64_t position() const { return position_; }
  /// After the piece of work was submitted. `kernel` is its name if it is a launch.
  void work_submitted(LogicalStream& stream, const std::shared_ptr<const std::string>& kernel = {});
  /// Lets everybody see, and has the completer call `then`, when what was submitted so far
  /// is done. When it fails, `then` is not called.
  Result<void> watch(LogicalStream& stream, Completer::Callback then = {},
                     Completer::Notice notice = Completer::Notice::kSoon);
  /// The same, with the next watch of the stream, which costs less in a row of many. It comes
  /// before the session's thread pauses, or after kMostLater of these. The watch's failure is
  /// reported.
  void watch_later(LogicalStream& stream, Completer::Callback then);
  /// As watch(), where `event` was just recorded there anyway. It is not to be recorded again while
  /// anybody else has it.
  void watch_event(LogicalStream& stream, std::shared_ptr<SharedEvent> event,
                   Completer::Callback then = {});
  /// Before the session's thread may wait: for every stream with work behind its last watch, but
  /// for those with a launch in a lane.
  void watch_all();
  /// The present command was about `stream` and has put no work on it, or all it will.
  void end_command(LogicalStream& stream);
  /// True when the present command has put work on a stream.
  bool command_submitted() const { return submitted_at_ == position_; }
  /// Pieces of work submitted on all streams.
  std::uint64_t total_submitted() const { return total_submitted_; }

  /// The streams with unfinished work that waiting for `target` means: itself, or for the default
  /// stream also the blocking ones, or (null) all.
  std::vector<LogicalStream*> unfinished(const LogicalStream* target);
  /// True when all work submitted on `stream` is done; its fault if it ended so.
  Result<bool> query(LogicalStream& stream);

  /// Any thread. Drops all work where the device can; false where it cannot.
  bool cancel_all();
  /// Lets the group wait for whatever still runs, also after a cancel.
  void watch_ends();
  /// Requires: no unfinished work.
  void destroy_all();

  // Any thread.
  /// Work that is on none of the streams' own device streams has ended with a fault.
  void report(const Error& fault) const { on_fault_(fault); }
  std::size_t count() const;
  std::uint64_t launches() const;
  std::uint64_t launches_running() const;
  /// Names of the kernels that may be running now.
  std::vector<std::string> running_kernels() const;

 private:
  using StreamPointer = std::shared_ptr<LogicalStream>;
  /// What a stream had been given when a watch was placed on it.
  struct Reached {
    std::uint64_t submitted, launches, position;
  };

  void watch_now_and_then(LogicalStream& stream);
  void watch_cheaply(LogicalStream& stream);
  void submit_rows();
  void submit_rows_before(LogicalStream& stream);
  Result<void> move_to(LogicalStream& stream, device::Partition partition);
  Completer::Callback begin_watch(LogicalStream& stream, Completer::Callback then);
  void watch_reached(LogicalStream& stream, const Reached& reached, const Result<void>& outcome);
  /// What is destroyed without the mutex: it gives registered memory back, which may begin a rest
  /// (Device::StallHooks), and who resizes lanes waits for the mutex.
  using Leftovers = std::vector<std::unique_ptr<WorkerQueue>>;

  void reap();
  void close(LogicalStream& stream, Leftovers& leftovers);
  template <typename Visit>
  void visit_all(Visit visit) const;

  device::Device& device_;
  Completer& completer_;
  Completer::Group& group_;
  const OnFault on_fault_;
  OnProgress on_progress_;
  OnFault on_refusal_;
  StreamOrder order_;
  std::uint64_t total_submitted_ = 0;
  std::uint64_t position_ = 0;  // of the present command
  std::uint64_t submitted_at_ = 0;
  std::vector<StreamPointer> unwatched_;  // with work behind their last watch
  /// Of watches that failed: kept until no work runs, as work may use what they own.
  std::vector<Completer::Callback> unwatchable_;
  std::vector<LogicalStream*> rows_;  // with launches in their row
  const StreamPointer default_;
  // Guards changes of the containers and of the streams' device streams, and last_kernels_.
  mutable std::mutex mutex_;
  std::unordered_map<std::uint64_t, StreamPointer> by_id_;
  std::vector<StreamPointer>
      others_;  // all but the default one, also destroyed ones with unfinished work
  std::unordered_map<const LogicalStream*, std::shared_ptr<const std::string>> last_kernels_;
  /// What was last put there; session thread only.
  std::pair<const LogicalStream*, const std::string*> last_kernel_{};
  std::uint64_t launches_of_reaped_ = 0;
  std::shared_ptr<SharedEvent> all_event_;  // of wait_for_all()
};

}  // namespace slate::daemon
