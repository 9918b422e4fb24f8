// DispatchQueue: worker-form launches of one stream that the dispatch kernel of kernels/ drives
// from the device; what WorkerQueue is for launches driven by the host. One thread at a time.
#pragma once

#include <cstdint>
#include <memory>

#include "daemon/dispatch/worker_launch.h"
#include "device/device.h"
#include "kernels/dispatch.h"

namespace slate::bench {

class DispatchQueue {
 public:
  static constexpr std::size_t kStates = 256;  // launches between two waits at most

  struct Options {
    bool static_first_tasks = true;  // where blocks are independent
    bool wait_for_room = true;
    std::uint32_t most_epochs = 0;
  };

  DispatchQueue(device::Device& device, daemon::ControlMemory& memory, device::Stream stream);
  /// Requires: its launches have finished.
  ~DispatchQueue();
  DispatchQueue(const DispatchQueue&) = delete;
  DispatchQueue& operator=(const DispatchQueue&) = delete;

  /// `dispatch`: slate_dispatch of the module that `launch.spec.function` is linked into.
  Result<void> launch(const daemon::FormLaunch& launch, device::Function dispatch,
                      const Options& options);
  /// After a stop: the same launch again, in its epochs where it was.
  Result<void> go_on(const Options& options);
  /// Tells the last launch to end with the epoch under way.
  Result<void> stop(device::Stream control);
  /// Writes the number of workers allowed on each SM.
  Result<void> resize(const daemon::WorkerTable& placement, device::Stream stream);
  /// Forgets a table that was written when the launch had ended. In stream order.
  Result<void> clear_table();

  /// Copies of what the device has: the state without parameters, the control block's state word.
  Result<void> look(kernels::DispatchState& state, std::uint64_t& ends, device::Stream control);
  device::Address control() const { return control_; }
  std::uint32_t generation() const { return current().generation; }

 private:
  kernels::DispatchState& current() const { return states_[last_]; }
  device::Address on_device(const void* member) const;
  Result<void> start();

  device::Device& device_;
  daemon::ControlMemory& memory_;
  daemon::ControlMemory::Share share_;
  const device::Stream stream_;
  device::Address control_ = 0;
  device::AddressRange range_{};                      // of the states on the device
  std::unique_ptr<kernels::DispatchState[]> states_;  // registered: copies read them later
  std::vector<std::uint16_t> table_;
  std::size_t last_ = 0;
  std::uint32_t next_generation_ = 0;
  device::Function dispatch_{};
};

}  // namespace slate::bench
