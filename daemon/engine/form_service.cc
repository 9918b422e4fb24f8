#include "daemon/engine/form_service.h"

#include "base/log.h"

namespace slate::daemon {
ControlMemory* FormService::control_memory() {
  const std::lock_guard lock(mutex_);
  if (!tried_) {
    tried_ = true;
    auto memory = ControlMemory::create(device_);
    if (memory) {
      memory_ = std::move(*memory);
    } else {
      log_warning("no memory for control blocks, all kernels run natively: {}",
                  memory.error().message);
    }
  }
  return memory_.get();
}

}  // namespace slate::daemon
