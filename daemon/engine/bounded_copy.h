// BoundedCopy: the copy of a fenced kernel that has no checks for what its launch shows
// (injector/fence/access_bounds.h). Thread: the session's.
#pragma once

#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "daemon/engine/constant_copies.h"
#include "device/device.h"
#include "injector/fence/bound_answers.h"

namespace slate::daemon {

class BoundedCopy {
 public:
  /// `constants`: its own; null: it has none.
  BoundedCopy(device::Function function, injector::AccessBounds bounds,
              std::shared_ptr<OwnConstantSet> constants = nullptr)
      : function_(function),
        limits_(bounds.passed),
        answers_(std::move(bounds)),
        constants_(std::move(constants)) {}

  device::Function function() const { return function_; }
  /// They have to be current for a launch that it stands in for. May be null.
  OwnConstantSet* constants() const { return constants_.get(); }

  /// Whether it may stand in for the kernel in this launch.
  bool serves(const injector::LaunchValues& launch) { return answers_.hold(launch); }
  /// The parameters with which the launch takes it, until the next call.
  std::span<const std::byte> parameters(const injector::LaunchValues& launch) {
    return injector::passed_parameters(limits_, launch, parameters_);
  }

 private:
  const device::Function function_;
  const injector::PassedLimits limits_;
  injector::BoundAnswers answers_;
  const std::shared_ptr<OwnConstantSet> constants_;
  std::vector<std::byte> parameters_;  // of the last launch, with its limits
};

}  // namespace slate::daemon
