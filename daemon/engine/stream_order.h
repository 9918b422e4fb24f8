// StreamOrder: the rule of CUDA's legacy default stream, made of events. Work on the default stream
// waits for all earlier work of the session's blocking streams, and their later work waits for it.
// Non-blocking streams take no part.
//
// Session thread only.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "daemon/dispatch/worker_launch.h"
#include "daemon/engine/completer.h"
#include "daemon/engine/launch_row.h"
#include "device/device.h"
#include "ipc/commands.h"

namespace slate::daemon {

struct LaunchBatch;

/// A resizable worker-form launch has a device stream of its own, over the whole device: its lane.
/// When its workers have been called back, that stream has passed it. The logical stream is held
/// until the launch's end.
struct WorkerLane {
  struct Side {  // stream for workers that join a running launch
    device::Stream stream{};
    std::shared_ptr<SharedEvent> end;  // event behind its last launch
  };
  device::Stream stream{};
  std::unique_ptr<WorkerQueue> queue;
  std::vector<Side> sides;
};

/// A stream as the client sees it. Its device stream is made by its first work. It can be another
/// one for each launch, as every partition of the device has its own streams.
struct LogicalStream : std::enable_shared_from_this<LogicalStream> {
  std::uint64_t id = 0;
  bool blocking = true;  // whether it takes part in the default stream's order
  int priority = 0;
  std::uint32_t progress = ipc::kNoProgress;  // index of its entry in the client's status page
  std::uint32_t book_row = 0;                 // its row in the session's book
  /// The stream of the newest work; all earlier work is waited for there. 0: no work yet. Writer:
  /// session thread, under the table's mutex.
  device::Stream device{};
  struct Home {
    device::Partition partition;
    device::Stream stream;
  };
  std::vector<Home> homes;  // `device` is one of them; written as `device`

  // Counts of work. Writers: session thread (submitted), completer (completed).
  std::atomic<std::uint64_t> submitted{0};
  /// Pieces that were seen to be done; more may be.
  std::atomic<std::uint64_t> completed{0};
  std::atomic<std::uint64_t> launches{0};
  std::atomic<std::uint64_t> launches_done{0};
  std::atomic<std::uint64_t> launches_gone{0};      // with those that were dropped
  std::atomic<std::uint64_t> launches_unfenced{0};  // `launches` with its last one without a fence
  std::atomic<std::uint64_t> unfenced_mark{0};      // as mark_unfenced() found that
  std::atomic<std::uint32_t> watches{0};            // outstanding watches of its progress
  /// Position in the client's commands of the last one whose work `submitted` counts whole.
  std::atomic<std::uint64_t> position{0};

  // Session thread only.
  std::uint32_t unwatched = 0;             // pieces of work behind its last watch
  std::vector<Completer::Callback> later;  // for its next watch
  std::uint64_t joined = 0;                // `submitted` when the default stream last waited for it
  std::uint64_t default_seen = 0;  // the default stream's `submitted` that it last waited for
  std::shared_ptr<SharedEvent> order_event;
  std::uint64_t order_event_at = 0;         // `submitted` when order_event was recorded
  std::shared_ptr<SharedEvent> tail_event;  // event for queries
  std::uint64_t tail_event_at = 0;
  std::shared_ptr<SharedEvent> hop_event;  // event from one device stream to the next
  /// Its worker-form launches that are not resized; null before the first one.
  std::unique_ptr<WorkerQueue> workers;
  /// Its resizable launches. Guarded by the executor's client.
  WorkerLane lane;
  std::atomic<int> active_lanes{0};    // 1: its launch has not been seen to end
  std::shared_ptr<LaunchBatch> batch;  // launches whose end is not marked yet
  LaunchRow row;                       // launches that the device does not have yet
  bool refused = false;                // whether the device refused a launch of the batch

  bool busy() const { return completed.load() < submitted.load(); }
  /// The next launch is without a fence. Session thread.
  void expect_unfenced() {
    launches_unfenced.store(launches.load(std::memory_order_relaxed) + 1,
                            std::memory_order_release);
  }
  /// Also while it is being submitted: it may fault before it is counted.
  bool runs_unfenced() const { return launches_done.load() < launches_unfenced.load(); }
  /// Any thread, also the next one.
  void mark_unfenced() { unfenced_mark.store(launches_unfenced.load()); }
  /// Whether a launch without a fence from before the mark may run. One that was refused is none.
  bool runs_marked() const {
    return launches_gone.load() < std::min(unfenced_mark.load(), launches.load());
  }
};

class StreamOrder {
 public:
  explicit StreamOrder(device::Device& device) : device_(device) {}

  /// Must be called before work goes to `target`, which has its device stream. `others`: all
  /// streams of the session but the default one, with destroyed ones that have unfinished work.
  Result<void> before_work(LogicalStream& target, LogicalStream& default_stream,
                           std::span<const std::shared_ptr<LogicalStream>> others);

 private:
  Result<void> wait_for(LogicalStream& waiter, LogicalStream& earlier);

  device::Device& device_;
};

}  // namespace slate::daemon
