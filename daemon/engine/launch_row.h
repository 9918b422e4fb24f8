// LaunchRow: launches of one stream that the device takes in one go, which costs less than one by
// one. Session thread only.
#pragma once

#include <cstddef>
#include <vector>

#include "device/device.h"

namespace slate::daemon {

class LaunchRow {
 public:
  static constexpr std::size_t kMost = 16;

  bool empty() const { return specs_.empty(); }
  bool is_full() const { return specs_.size() == kMost; }
  /// Keeps a copy of the launch and its parameters. Requires: not full.
  void add(const device::LaunchSpec& spec);
  /// As Device::launch_row() of all; the row is empty afterwards.
  Result<void> submit(device::Device& device, device::Stream stream);

 private:
  std::vector<device::LaunchSpec> specs_;
  std::vector<std::byte> parameters_;  // parameters of all launches, one behind the other
};

}  // namespace slate::daemon
