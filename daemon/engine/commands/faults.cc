#include "daemon/engine/commands/faults.h"

namespace slate::daemon {

void Faults::fail(Error fault) {
  {
    const MutexLock lock(mutex_);
    if (error_.code != ErrorCode::kNone) return;
    error_ = fault;
    failed_.store(true);
  }
  on_failure_(fault);
}

void Faults::on_device_error(const Error& error) {
  if (device_.lost()) on_loss_(error);
  if (ignored_.load()) return;
  Error fault = error;
  if (!is_sticky(fault.code)) fault.code = ErrorCode::kLaunchFailed;
  fail(std::move(fault));
}

Result<void> Faults::checked(Result<void> result) {
  if (!result && (is_sticky(result.error().code) || device_.lost()))
    on_device_error(result.error());
  return result;
}

Error Faults::error() const {
  const MutexLock lock(mutex_);
  return error_;
}

}  // namespace slate::daemon
