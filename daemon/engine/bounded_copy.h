// BoundedCopy: the copy of a fenced kernel that has no checks for what its launch shows
// (injector/fence/access_bounds.h). Thread: the session's.
#pragma once

#include <utility>

#include "device/device.h"
#include "injector/fence/bound_answers.h"

namespace slate::daemon {

class BoundedCopy {
 public:
  BoundedCopy(device::Function function, injector::AccessBounds bounds)
      : function_(function), answers_(std::move(bounds)) {}

  device::Function function() const { return function_; }

  /// Whether it may stand in for the kernel in this launch.
  bool serves(const injector::LaunchValues& launch) { return answers_.hold(launch); }

 private:
  const device::Function function_;
  injector::BoundAnswers answers_;
};

}  // namespace slate::daemon
