// PollSet: what the supervisor's loop sleeps on. Before each sleep its parts add their descriptors
// and deadlines. After it every part looks at its own descriptors again; none of them block.
#pragma once

#include <poll.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <vector>

namespace slate::daemon {

using Clock = std::chrono::steady_clock;

class PollSet {
 public:
  void add(int fd, short events) { fds_.push_back({fd, events, 0}); }
  void add_deadline(Clock::time_point deadline) {
    deadline_ = deadline_ ? std::min(*deadline_, deadline) : deadline;
  }
  /// Until the nearest deadline; of those that are far away the longest time there is.
  Clock::duration time_left() const {
    return deadline_ ? *deadline_ - Clock::now() : Clock::duration::max();
  }
  /// Sleeps until something happened or the nearest deadline has passed.
  void sleep() {
    int timeout = -1;
    if (deadline_) {
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(*deadline_ - Clock::now());
      timeout = static_cast<int>(std::clamp<long>(left.count(), 0, 60'000));
    }
    ::poll(fds_.data(), fds_.size(), timeout);
  }

 private:
  std::vector<pollfd> fds_;
  std::optional<Clock::time_point> deadline_;
};

/// What poll() says of one descriptor now.
inline short poll_now(int fd, short events) {
  pollfd poller{fd, events, 0};
  return ::poll(&poller, 1, 0) > 0 ? poller.revents : short{0};
}

}  // namespace slate::daemon
