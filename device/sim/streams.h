// Streams and events: which work may start when, and what a fault ends. A stream is a queue whose
// front runs on the Gpu; an event is a mark in such a queue.
//
// A fault poisons its stream: what is queued or comes later is dropped, and every mark on it
// carries the Error. A stream that waits for such a mark goes on: its own work did not fault.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <unordered_map>
#include <variant>
#include <vector>

#include "base/result.h"
#include "device/device.h"
#include "device/sim/gpu.h"

namespace slate::sim {

/// Thread-safe. Implements the methods of Device of the same names, whose contracts hold here.
class Streams {
 public:
  /// A copy or fill: runs on a host thread of the Gpu; its error faults the stream.
  using Job = std::function<Result<void>()>;
  explicit Streams(const Settings& settings);
  /// Cancels what is unfinished and joins all threads.
  ~Streams();
  Streams(const Streams&) = delete;
  Streams& operator=(const Streams&) = delete;

  /// Kernels of the stream run on `sms`, which are those of `partition`.
  device::Stream create_stream(int priority, device::Partition partition, const SmSet& sms);
  void destroy_stream(device::Stream stream);
  Result<void> cancel(device::Stream stream);
  /// True while a stream of this partition is not destroyed.
  bool uses(device::Partition partition);

  device::Event create_event(bool timing);
  void destroy_event(device::Event event);
  Result<void> record(device::Event event, device::Stream stream);
  Result<void> wait(device::Stream stream, device::Event event);
  Result<bool> query(device::Event event);
  Result<float> elapsed_ms(device::Event start, device::Event stop);
  void wait_for_progress(std::chrono::microseconds timeout);

  Result<void> launch(device::Stream stream, std::shared_ptr<KernelRun> run);
  Result<void> enqueue(device::Stream stream, Job job);

 private:
  struct Queue;
  /// One record() of an event, reached when the work before it has ended.
  struct Mark {
    bool reached = false;
    std::int64_t reached_ns = 0;
    std::optional<Error> error;
    std::vector<std::shared_ptr<Queue>> waiters;  // streams whose front waits for it
  };
  struct Event {
    bool timing = false;
    std::shared_ptr<Mark> last;  // of the latest record(); null before
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

  Result<std::shared_ptr<Queue>> find(device::Stream stream);
  Result<Event*> find(device::Event event);
  Result<void> push(device::Stream stream, Operation operation);
  void advance(std::shared_ptr<Queue> first);
  bool run_front(const std::shared_ptr<Queue>& queue, Queues& ready);
  bool must_wait(const std::shared_ptr<Queue>& queue);
  void reach(Mark& mark, std::optional<Error> error, Queues& ready);
  void cancel_locked(const std::shared_ptr<Queue>& queue);
  void start_kernel(const std::shared_ptr<Queue>& queue, std::shared_ptr<KernelRun> run);
  void start_job(const std::shared_ptr<Queue>& queue, Job job);
  void finished(const std::shared_ptr<Queue>& queue, std::optional<Error> fault);

  std::mutex mutex_;  // taken before the Gpu's
  std::condition_variable progress_changed_;
  std::uint64_t progress_ = 0;       // marks reached so far
  std::uint64_t progress_seen_ = 0;  // by wait_for_progress
  std::condition_variable became_idle_;
  std::uint64_t next_handle_ = 1;
  std::unordered_map<device::Stream, std::shared_ptr<Queue>> streams_;
  std::unordered_map<device::Event, Event> events_;
  std::set<std::shared_ptr<Queue>> queues_;  // also those destroyed that have work left
  Gpu gpu_;                                  // last: its threads end before the rest goes
};

}  // namespace slate::sim
