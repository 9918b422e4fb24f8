// Faults: a session's lasting error, and the errors that become it. A fault in a session's kernel
// sticks to that session. A fault that the device does not survive ends the engine. Thread-safe.
#pragma once

#include <atomic>
#include <functional>

#include "base/mutex.h"
#include "base/result.h"
#include "device/device.h"

namespace slate::daemon {

class Faults {
 public:
  using Told = std::function<void(const Error&)>;

  /// `failed` is called once, with the lasting error. `lost` is called when the device is lost, and
  /// does not return in the daemon. Thread of both: the one that saw the error.
  Faults(device::Device& device, Told failed, Told lost)
      : device_(device), on_failure_(std::move(failed)), on_loss_(std::move(lost)) {}

  /// Makes `fault` the lasting error, unless there is one.
  void fail(Error fault);
  /// Handles an error of work that the device carried out.
  void on_device_error(const Error& error);
  /// Returns `result`, after on_device_error() when its error is a fault.
  Result<void> checked(Result<void> result);
  /// Ignores errors of the device's work from now on: the session ends.
  void ignore() { ignored_.store(true); }

  bool failed() const { return failed_.load(); }
  /// kNone while there is no lasting error.
  Error error() const;

 private:
  device::Device& device_;
  const Told on_failure_;
  const Told on_loss_;
  mutable Mutex mutex_;
  Error error_ SLATE_GUARDED_BY(mutex_){ErrorCode::kNone, {}};
  std::atomic<bool> failed_{false};
  std::atomic<bool> ignored_{false};
};

}  // namespace slate::daemon
