// StreamTable: the streams of one session, and how far each has come. Used by the session thread,
// except where a method says otherwise.
//
// Progress: while a stream has unfinished work, exactly one watch is outstanding on it; when it is
// reached, everything submitted before it counts as completed, and the next watch is placed.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "daemon/engine/completer.h"
#include "daemon/engine/stream_order.h"

namespace slate::daemon {

class StreamTable {
 public:
  static constexpr std::size_t kMostStreams = 4096;
  using OnFault = std::function<void(const Error&)>;

  /// `on_fault` is called on the completer's thread when work ended with a fault. All outlive the
  /// table.
  StreamTable(device::Device& device, Completer& completer, Completer::Group& group,
              OnFault on_fault);
  /// Requires: destroy_all() was called.
  ~StreamTable();

  /// kProtocol for an id that is 0 or taken, kLimit beyond kMostStreams.
  Result<void> create(std::uint64_t id, bool blocking, int priority);
  /// Its unfinished work goes on and keeps its place in the default stream's order.
  Result<void> destroy(std::uint64_t id);
  /// kInvalidHandle if there is none. The default stream always is.
  Result<LogicalStream*> find(std::uint64_t id);

  /// Makes `stream` ready to take one more piece of work: its device stream exists and waits for
  /// what it must.
  Result<device::Stream> begin_work(LogicalStream& stream);
  /// After the piece of work was submitted. `kernel` is its name if it is a launch.
  void work_submitted(LogicalStream& stream, const std::shared_ptr<const std::string>& kernel = {});
  /// Pieces of work submitted on all streams.
  std::uint64_t total_submitted() const { return total_submitted_; }

  /// The streams with unfinished work that waiting for `target` means: itself, or for the default
  /// stream also the blocking ones, or (null) all.
  std::vector<LogicalStream*> unfinished(const LogicalStream* target) const;
  /// True when all work submitted on `stream` is done; its fault if it ended so.
  Result<bool> query(LogicalStream& stream);

  /// Any thread. Drops all work where the device can; false where it cannot.
  bool cancel_all();
  /// Lets the group wait for whatever still runs, also after a cancel.
  void watch_ends();
  /// Requires: no unfinished work.
  void destroy_all();

  // Any thread.
  std::size_t count() const;
  std::uint64_t launches() const;
  std::uint64_t launches_running() const;
  /// Names of the kernels that may be running now.
  std::vector<std::string> running_kernels() const;

 private:
  using StreamPointer = std::shared_ptr<LogicalStream>;

  Result<void> open(LogicalStream& stream);
  void place_watch(const StreamPointer& stream);
  void watch_reached(const StreamPointer& stream, std::uint64_t submitted, std::uint64_t launches,
                     const Result<void>& outcome);
  void reap();
  template <typename Visit>
  void visit_all(Visit visit) const;

  device::Device& device_;
  Completer& completer_;
  Completer::Group& group_;
  const OnFault on_fault_;
  StreamOrder order_;
  std::uint64_t total_submitted_ = 0;
  const StreamPointer default_;
  mutable std::mutex mutex_;  // guards changes of the containers and last_kernels_
  std::unordered_map<std::uint64_t, StreamPointer> by_id_;
  std::vector<StreamPointer>
      others_;  // all but the default one, also destroyed ones with unfinished work
  std::unordered_map<const LogicalStream*, std::shared_ptr<const std::string>> last_kernels_;
  std::uint64_t launches_of_reaped_ = 0;
};

}  // namespace slate::daemon
