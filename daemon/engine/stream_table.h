// StreamTable: the streams of one session, and what makes them ready for work. Their rows are in
// StreamRows, their progress is seen by StreamWatches. Session thread, except where a method says
// otherwise.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/mutex.h"
#include "daemon/engine/completer.h"
#include "daemon/engine/stream_order.h"
#include "daemon/engine/stream_rows.h"
#include "daemon/engine/stream_watches.h"

namespace slate::daemon {

class StreamTable {
 public:
  static constexpr std::size_t kMostStreams = 4096;

  /// `on_fault` is called when work ended with a fault, mostly by the completer. All outlive the
  /// table.
  StreamTable(device::Device& device, Completer& completer, Completer::Group& group,
              StreamWatches::OnFault on_fault);
  /// Requires: destroy_all() was called.
  ~StreamTable();

  /// As StreamRows::report_refusals().
  void report_refusals(StreamRows::OnRefusal tell) { rows_.report_refusals(std::move(tell)); }
  /// What sees the streams' progress. work_submitted() and end_command() of this class count there.
  StreamWatches& watches() { return watches_; }

  /// kProtocol for an id that is 0 or taken, kLimit beyond kMostStreams.
  Result<void> create(std::uint64_t id, bool blocking, int priority,
                      std::uint32_t progress = ipc::kNoProgress);
  /// `give` gets the book_row of each stream that is gone, on the session's thread.
  void on_gone(std::function<void(std::uint32_t row)> give) { give_row_ = std::move(give); }
  /// The stream's unfinished work goes on and keeps its place in the default stream's order.
  Result<void> destroy(std::uint64_t id);
  /// kInvalidHandle if there is none. The default stream always exists.
  Result<LogicalStream*> find(std::uint64_t id);
  /// Keeps the stream alive beyond its end. Requires: `stream` was just returned by find().
  std::shared_ptr<LogicalStream> share(const LogicalStream& stream) const;

  /// Makes `stream` ready for one more piece of work: its device stream exists, and waits for
  /// earlier work in CUDA's order. The device stream is of `partition`, or without one the last one
  /// used.
  Result<device::Stream> begin_work(LogicalStream& stream,
                                    std::optional<device::Partition> partition = {});
  /// Submits a launch on the whole device with others of the same stream. The device gets them
  /// before any later work that must follow, and before the session's thread pauses
  /// (StreamWatches::watch_all). Counts as work_submitted().
  Result<void> launch_in_row(LogicalStream& stream, const device::LaunchSpec& spec,
                             const std::shared_ptr<const std::string>& kernel);
  /// Gives the device the launches of this stream's row now, if there are any.
  void submit_row(LogicalStream& stream) { rows_.submit(stream); }
  /// The device stream of a lane, made at the first call.
  Result<device::Stream> lane_stream(WorkerLane& lane);
  /// A side of the lane on which nothing runs, made if need be. Any thread. Requires: the caller
  /// keeps the lane alive, and no other thread uses its sides.
  Result<WorkerLane::Side*> idle_side(WorkerLane& lane);
  /// Makes `later`, another session's stream, wait for all work of this session. For resizable
  /// launches it waits until their workers have left, even if called back. Any thread. Requires:
  /// the caller keeps the lanes as they are.
  Result<void> wait_for_all(device::Stream later);
  /// The command at `position` is about to be carried out.
  void begin_command(std::uint64_t position) { position_ = position; }
  std::uint64_t position() const { return position_; }
  /// Counts a submitted piece of work, the last one of the present command. `kernel` is its name if
  /// it is a launch.
  void work_submitted(LogicalStream& stream, const std::shared_ptr<const std::string>& kernel = {});
  /// As work_submitted(), for a piece behind which the present command puts more: the command is
  /// not done with it.
  void piece_submitted(LogicalStream& stream);
  /// The present command puts no more work on `stream`.
  void end_command(LogicalStream& stream) { watches_.end_command(stream, position_); }
  /// Whether the present command has put all its work on a stream.
  bool command_submitted() const { return submitted_at_ == position_; }
  /// Pieces of work submitted on all streams.
  std::uint64_t total_submitted() const { return total_submitted_; }

  /// Whether no stream but this one has unfinished work.
  bool others_are_idle(const LogicalStream& stream) const;
  /// The streams with unfinished work that a wait for `target` waits for: itself; for the default
  /// stream also the blocking ones; for null all.
  std::vector<LogicalStream*> unfinished(const LogicalStream* target);
  /// Whether all work submitted on `stream` is done; its fault if it ended with one.
  Result<bool> query(LogicalStream& stream);

  /// Drops all work; false where the device cannot. Any thread.
  bool cancel_all();
  /// Lets the group wait for all work that still runs, also after a cancel.
  void watch_ends();
  /// Requires: no unfinished work.
  void destroy_all();

  // Any thread.
  std::size_t count() const;
  std::uint64_t launches() const;
  std::uint64_t launches_running() const;
  /// Names of the kernels that may be running now.
  std::vector<std::string> running_kernels() const;
  /// Whether a kernel without a fence may be running now.
  bool runs_unfenced() const;
  /// As LogicalStream::mark_unfenced() and runs_marked(), of all streams.
  void mark_unfenced();
  bool runs_marked() const;

 private:
  using StreamPointer = std::shared_ptr<LogicalStream>;
  /// Queues to be destroyed without the mutex. They free registered memory, which may begin a rest
  /// (Device::StallHooks), while a thread that resizes lanes waits for the mutex.
  using Leftovers = std::vector<std::unique_ptr<WorkerQueue>>;

  Result<void> move_to(LogicalStream& stream, device::Partition partition);
  void reap();
  void close(LogicalStream& stream, Leftovers& leftovers) SLATE_REQUIRES(mutex_);
  template <typename Visit>
  void visit_all(Visit visit) const;

  device::Device& device_;
  StreamOrder order_;
  StreamRows rows_;
  StreamWatches watches_;
  std::uint64_t total_submitted_ = 0;
  std::uint64_t position_ = 0;  // position of the present command
  std::uint64_t submitted_at_ = 0;
  const StreamPointer default_;
  // Guards changes of the containers and of the streams' device streams, too. The session's thread,
  // which alone changes them, reads them without it.
  mutable Mutex mutex_;
  std::unordered_map<std::uint64_t, StreamPointer> by_id_;
  std::vector<StreamPointer>
      others_;  // all but the default one; destroyed ones with unfinished work too
  std::unordered_map<const LogicalStream*, std::shared_ptr<const std::string>> last_kernels_
      SLATE_GUARDED_BY(mutex_);
  /// The last entry of last_kernels_; session thread only.
  std::pair<const LogicalStream*, const std::string*> last_kernel_{};
  std::uint64_t launches_of_reaped_ SLATE_GUARDED_BY(mutex_) = 0;
  std::function<void(std::uint32_t)> give_row_;                      // may be empty
  std::shared_ptr<SharedEvent> all_event_ SLATE_GUARDED_BY(mutex_);  // event of wait_for_all()
};

}  // namespace slate::daemon
