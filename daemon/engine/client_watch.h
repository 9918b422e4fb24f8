// ClientWatch: whether a session's client is still there, for threads that are too busy to be told.
// Session thread, but for what says otherwise.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/clock.h"
#include "ipc/channel.h"

namespace slate::daemon {

class ClientWatch {
 public:
  explicit ClientWatch(const ipc::EngineChannel& channel) : channel_(channel) {}

  /// Whether the client is gone, or end() was called. Asks the system ten times a second at most.
  bool is_gone() {
    const std::int64_t now = now_ns();
    if (now - asked_ns_ < kApartNs) return ends();
    asked_ns_ = now;
    if (channel_.peer_is_gone()) end();
    return ends();
  }
  /// Whether no more commands are carried out, as far as is known. Any thread.
  bool ends() const { return ends_.load(); }
  void end() { ends_.store(true); }

 private:
  static constexpr std::int64_t kApartNs = 100'000'000;

  const ipc::EngineChannel& channel_;
  std::atomic<bool> ends_{false};
  std::int64_t asked_ns_ = 0;
};

}  // namespace slate::daemon
