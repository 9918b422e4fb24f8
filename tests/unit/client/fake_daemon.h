// FakeDaemon: a rendezvous and one engine thread a session, with host memory for a device: enough
// for libslate to connect and for copies and fills to work. Kernels are described but do nothing.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "ipc/channel.h"
#include "ipc/rendezvous.h"

namespace slate::test {

class FakeDaemon {
 public:
  explicit FakeDaemon(const std::string& directory);
  /// Hangs up on every client, as a killed daemon does.
  ~FakeDaemon();
  FakeDaemon(const FakeDaemon&) = delete;
  FakeDaemon& operator=(const FakeDaemon&) = delete;

  int sessions() const { return sessions_; }
  std::vector<ipc::Launch> launches() const;
  /// Sent to the client of every session at its next synchronisation.
  void print(const std::string& text);
  /// Makes the next command without a reply fail every session for good.
  void fault_next() { fault_next_ = true; }

  static constexpr std::uint64_t kMemoryBytes = 64 << 20;

 private:
  struct Served;
  void accept(const ipc::Hello& hello);
  void listen();
  void serve(Served& served);
  void execute(Served& served, const ipc::Command& command);
  void answer(Served& served, const ipc::Command& command);

  std::string directory_;
  std::unique_ptr<ipc::RendezvousPoint> rendezvous_;
  std::atomic<bool> stop_{false};
  std::atomic<bool> fault_next_{false};
  std::atomic<int> sessions_{0};
  mutable std::mutex mutex_;
  std::vector<ipc::Launch> launches_;
  std::string text_;
  std::vector<std::unique_ptr<Served>> served_;
  std::thread thread_;
};

}  // namespace slate::test
