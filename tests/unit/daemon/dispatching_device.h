// DispatchingDevice: a sim that has dispatch kernels, which it cannot run itself. A host thread
// does what dispatch.cu does, while a kernel that spins keeps the dispatch's stream waiting.
#pragma once

#include <atomic>
#include <map>
#include <mutex>
#include <thread>

#include "daemon/dispatch/dispatch_state.h"
#include "tests/unit/daemon/forwarding_device.h"

namespace slate::daemon {

class DispatchingDevice : public ForwardingDevice {
 public:
  /// `inner`: a sim.
  explicit DispatchingDevice(std::unique_ptr<device::Device> inner);
  ~DispatchingDevice() override;

  /// From now on the dispatch kernels' launches of workers fail.
  void refuse_workers() { refuses_workers_ = true; }
  /// Whether dispatch kernels that have begun wait before their next epoch.
  void hold_epochs(bool held) { epochs_held_ = held; }
  /// Dispatch kernels launched so far, and epochs that they began.
  int dispatches() const { return dispatches_; }
  int epochs() const { return epochs_; }

  Result<device::Function> find_function(device::Module module, const std::string& name) override;
  Result<void> launch(const device::LaunchSpec& spec, device::Stream stream) override;
  Result<void> cancel(device::Stream stream) override;

 private:
  /// One run of a dispatch kernel, from its launch to its end.
  struct Dispatch {
    device::Function worker{};
    device::LaunchSpec spec;
    device::Address state = 0, gate = 0;
    device::Stream on{}, own{}, workers{};
    std::atomic<bool> cancelled{false};
    bool faulted = false;  // its workers have
    std::thread thread;
  };

  void run(Dispatch& dispatch);
  bool has_begun(Dispatch& dispatch);
  std::uint32_t end_of(Dispatch& dispatch);
  bool wait_for_room(Dispatch& dispatch, const DispatchState& state);
  Result<void> launch_workers(Dispatch& dispatch, const DispatchState& state);
  bool reach_end(device::Stream stream, Dispatch& dispatch);
  void read(Dispatch& dispatch, device::Address from, void* to, std::uint64_t bytes);
  void write(Dispatch& dispatch, device::Address to, const void* from, std::uint64_t bytes);

  device::AddressRange gates_{};
  device::Function gate_{};
  device::Module module_{};
  std::mutex mutex_;                                      // guards what follows
  std::map<device::Function, device::Function> workers_;  // by dispatch kernel
  std::vector<std::unique_ptr<Dispatch>> runs_;
  std::atomic<bool> refuses_workers_{false}, epochs_held_{false};
  std::atomic<int> dispatches_{0}, epochs_{0};
};

}  // namespace slate::daemon
