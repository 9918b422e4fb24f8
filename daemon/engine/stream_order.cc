#include "daemon/engine/stream_order.h"

namespace slate::daemon {

Result<void> StreamOrder::wait_for(LogicalStream& waiter, LogicalStream& earlier) {
  const std::uint64_t now = earlier.submitted.load();
  if (!earlier.order_event) {
    auto event = SharedEvent::make(device_, false);
    if (!event) return std::unexpected(event.error());
    earlier.order_event = std::move(*event);
  }
  if (earlier.order_event_at != now) {
    if (const auto done = device_.record(earlier.order_event->get(), earlier.device); !done)
      return done;
    earlier.order_event_at = now;
  }
  return device_.wait(waiter.device, earlier.order_event->get());
}

Result<void> StreamOrder::before_work(LogicalStream& target, LogicalStream& default_stream,
                                      std::span<const std::shared_ptr<LogicalStream>> others) {
  if (&target != &default_stream) {
    const std::uint64_t latest = default_stream.submitted.load();
    if (!target.blocking || target.default_seen == latest) return {};
    if (default_stream.busy()) {
      if (const auto done = wait_for(target, default_stream); !done) return done;
    }
    target.default_seen = latest;
    return {};
  }
  for (const auto& other : others) {
    const std::uint64_t latest = other->submitted.load();
    if (!other->blocking || other->joined == latest) continue;
    if (other->busy()) {
      if (const auto done = wait_for(default_stream, *other); !done) return done;
    }
    other->joined = latest;
  }
  return {};
}

}  // namespace slate::daemon
