// StreamOrder: the rule of CUDA's legacy default stream, made of events. Work on the default stream
// waits for all earlier work of the session's blocking streams, and their later work waits for it.
// Non-blocking streams take no part.
//
// Session thread only.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>

#include "daemon/engine/completer.h"
#include "device/device.h"

namespace slate::daemon {

/// A stream as the client sees it. The device stream behind it is made by its first work.
struct LogicalStream {
  std::uint64_t id = 0;
  bool blocking = true;  // takes part in the default stream's order
  int priority = 0;
  device::Stream device{};  // 0: no work yet. Session thread, under the table's mutex

  // Counts of pieces of work. Writer: session thread (submitted), completer (completed).
  std::atomic<std::uint64_t> submitted{0};
  std::atomic<std::uint64_t> completed{0};  // the first so many are done, perhaps more
  std::atomic<std::uint64_t> launches{0};
  std::atomic<std::uint64_t> launches_done{0};
  std::atomic<bool> watched{false};  // a progress watch is outstanding

  // Session thread only.
  std::uint64_t joined = 0;        // `submitted` when the default stream last waited for it
  std::uint64_t default_seen = 0;  // the default stream's `submitted` that it last waited for
  std::shared_ptr<SharedEvent> order_event;
  std::uint64_t order_event_at = 0;         // `submitted` when order_event was recorded
  std::shared_ptr<SharedEvent> tail_event;  // for queries
  std::uint64_t tail_event_at = 0;

  bool busy() const { return completed.load() < submitted.load(); }
};

class StreamOrder {
 public:
  explicit StreamOrder(device::Device& device) : device_(device) {}

  /// To be called before work goes to `target`, which has its device stream. `others`: all streams
  /// of the session but the default one, also those destroyed that have unfinished work.
  Result<void> before_work(LogicalStream& target, LogicalStream& default_stream,
                           std::span<const std::shared_ptr<LogicalStream>> others);

 private:
  Result<void> wait_for(LogicalStream& waiter, LogicalStream& earlier);

  device::Device& device_;
};

}  // namespace slate::daemon
