// Device memory of a suspended session, in memory of the host. Thread: any.
#pragma once

#include "base/result.h"
#include "base/unique_fd.h"
#include "device/device.h"

namespace slate::daemon {

/// Copies a mapped range to shared memory of the host, of which it returns the descriptor. Errors:
/// kOutOfMemory when the host has not so much; those of the device. Requires: no work writes it.
Result<UniqueFd> save_memory(device::Device& device, device::AddressRange range);
/// Copies `saved` back to a mapped range of its size. Errors: kIo; those of the device.
Result<void> restore_memory(device::Device& device, device::AddressRange range, int saved);

}  // namespace slate::daemon
