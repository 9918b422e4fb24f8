// BoundedCopy: the copy of a fenced kernel that has no checks for what its launch shows
// (injector/fence/access_bounds.h). It remembers the last launch: programs repeat theirs. Thread:
// the session's.
#pragma once

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "device/device.h"
#include "injector/fence/access_bounds.h"

namespace slate::daemon {

class BoundedCopy {
 public:
  BoundedCopy(device::Function function, injector::AccessBounds bounds)
      : function_(function), bounds_(std::move(bounds)) {}

  device::Function function() const { return function_; }

  /// Whether it may stand in for the kernel in this launch.
  bool serves(const injector::LaunchValues& launch) {
    const bool is_same = has_last_ && launch.low == last_.low && launch.bytes == last_.bytes &&
                         launch.shared_bytes == last_.shared_bytes &&
                         std::ranges::equal(launch.grid, last_.grid) &&
                         std::ranges::equal(launch.block, last_.block) &&
                         std::ranges::equal(launch.parameters, last_parameters_);
    if (is_same) return holds_;
    holds_ = injector::hold(bounds_, launch);
    last_ = launch;
    last_parameters_.assign(launch.parameters.begin(), launch.parameters.end());
    has_last_ = true;
    return holds_;
  }

 private:
  const device::Function function_;
  const injector::AccessBounds bounds_;
  bool has_last_ = false;
  bool holds_ = false;
  injector::LaunchValues last_;  // without its parameters
  std::vector<std::byte> last_parameters_;
};

}  // namespace slate::daemon
