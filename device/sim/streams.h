// Streams and events: which work may start when, and what a fault ends. A stream is a queue whose
// front runs on the Gpu; an event is a mark in such a queue. It does not place blocks (gpu.h).
//
// A fault poisons its stream: work that is queued or comes later is dropped, and every mark on the
// stream carries the Error. A stream that waits for such a mark goes on, because its own work did
// not fault. With Settings::fault_ends_all a fault poisons all streams, as on a GPU.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <unordered_map>
#include <variant>
#include <vector>

#include "base/mutex.h"
#include "base/result.h"
#include "device/device.h"
#include "device/sim/gpu.h"

namespace slate::sim {

/// Implements the methods of device::Device of the same names, whose contracts hold here. Thread:
/// any.
class Streams {
 public:
  /// A copy or fill: runs on a host thread of the Gpu; its error faults the stream.
  using Job = std::function<Result<void>()>;
  explicit Streams(const Settings& settings);
  /// Cancels unfinished work and joins all threads.
  ~Streams();
  Streams(const Streams&) = delete;
  Streams& operator=(const Streams&) = delete;

  /// Makes a stream whose kernels run on `sms`, the SMs of `partition`.
  device::Stream create_stream(int priority, device::Partition partition, const SmSet& sms);
  void destroy_stream(device::Stream stream);
  Result<void> cancel(device::Stream stream);
  /// Whether a stream of this partition exists.
  bool uses(device::Partition partition);

  device::Event create_event(bool timing);
  void destroy_event(device::Event event);
  Result<void> record(device::Event event, device::Stream stream);
  Result<void> wait(device::Stream stream, device::Event event);
  Result<bool> query(device::Event event);
  Result<float> elapsed_ms(device::Event start, device::Event stop);
  void wait_for_progress(std::chrono::microseconds timeout);
  /// Whether a fault has ended all streams (Settings::fault_ends_all).
  bool lost() const { return lost_.load(); }

  /// Queues a kernel.
  Result<void> launch(device::Stream stream, std::shared_ptr<KernelRun> run);
  /// Queues a copy or fill.
  Result<void> enqueue(device::Stream stream, Job job);

 private:
  struct Queue;
  /// One record() of an event, reached when the work before it has ended.
  struct Mark {
    bool reached = false;
    std::int64_t reached_ns = 0;
    std::optional<Error> error;
    std::vector<std::shared_ptr<Queue>> waiters;  // streams whose front waits for the mark
  };
  struct Event {
    bool timing = false;
    std::shared_ptr<Mark> last;  // mark of the latest record(); null: never recorded
  };
  struct RecordMark {
    std::shared_ptr<Mark> mark;
  };
  struct WaitMark {
    std::shared_ptr<Mark> mark;
    bool registered = false;
  };
  using Operation = std::variant<std::shared_ptr<KernelRun>, Job, RecordMark, WaitMark>;
  using Queues = std::vector<std::shared_ptr<Queue>>;

  Result<std::shared_ptr<Queue>> find(device::Stream stream) SLATE_REQUIRES(mutex_);
  Result<Event*> find(device::Event event) SLATE_REQUIRES(mutex_);
  Result<void> push(device::Stream stream, Operation operation) SLATE_REQUIRES(mutex_);
  /// Runs the fronts of `first` and of all queues that become ready by that.
  void advance(std::shared_ptr<Queue> first) SLATE_REQUIRES(mutex_);
  /// Starts the queue's front. Returns false if the front must wait.
  bool run_front(const std::shared_ptr<Queue>& queue, Queues& ready) SLATE_REQUIRES(mutex_);
  bool must_wait(const std::shared_ptr<Queue>& queue) SLATE_REQUIRES(mutex_);
  /// Marks it as reached, and adds the queues that waited for it to `ready`.
  void reach(Mark& mark, std::optional<Error> error, Queues& ready) SLATE_REQUIRES(mutex_);
  void cancel_locked(const std::shared_ptr<Queue>& queue) SLATE_REQUIRES(mutex_);
  void start_kernel(const std::shared_ptr<Queue>& queue, std::shared_ptr<KernelRun> run)
      SLATE_REQUIRES(mutex_);
  void start_job(const std::shared_ptr<Queue>& queue, Job job) SLATE_REQUIRES(mutex_);
  void finished(const std::shared_ptr<Queue>& queue, std::optional<Error> fault);
  void lose_all(const Error& fault) SLATE_REQUIRES(mutex_);

  const bool fault_ends_all_;
  std::atomic<bool> lost_{false};
  Mutex mutex_;  // locked before the Gpu's
  CondVar progress_changed_;
  std::uint64_t progress_ SLATE_GUARDED_BY(mutex_) = 0;  // marks reached so far
  // Value of progress_ seen by wait_for_progress().
  std::uint64_t progress_seen_ SLATE_GUARDED_BY(mutex_) = 0;
  CondVar became_idle_;
  std::uint64_t next_handle_ SLATE_GUARDED_BY(mutex_) = 1;
  std::unordered_map<device::Stream, std::shared_ptr<Queue>> streams_ SLATE_GUARDED_BY(mutex_);
  std::unordered_map<device::Event, Event> events_ SLATE_GUARDED_BY(mutex_);
  // Also destroyed streams that have work left.
  std::set<std::shared_ptr<Queue>> queues_ SLATE_GUARDED_BY(mutex_);
  Gpu gpu_;  // last: its threads end before the other members go
};

}  // namespace slate::sim
