#include "daemon/engine/form_service.h"

#include "base/log.h"

namespace slate::daemon {
ControlMemory* FormService::control_memory() {
  const MutexLock lock(mutex_);
  if (!tried_) {
    tried_ = true;
    auto memory = ControlMemory::create(device_, dispatch_ == DispatchChoice::kDevice);
    if (memory) {
      memory_ = std::move(*memory);
    } else {
      log_warning("no memory for control blocks, all kernels run natively: {}",
                  memory.error().message);
    }
  }
  return memory_.get();
}

bool FormService::has_control_for(const ControlMemory::Share& share) const {
  const MutexLock lock(mutex_);
  return !tried_ || (memory_ && memory_->has_slot_for(share));
}

}  // namespace slate::daemon
