// The dispatch kernel (dispatch.cu) for a worker form: its text, its name, and whether a device can
// have it. WorkerQueue launches it. Pure functions, any thread.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "device/device.h"

namespace slate::daemon {

/// kInvalidValue, with the reason, where `dispatch = "device"` is not possible: the device does not
/// link, or slated was built without nvcc.
Result<void> check_device_dispatch(const device::Device& device);

/// The name of the dispatch kernel that launches `worker`.
std::string dispatch_name(std::string_view worker);
/// PTX of the dispatch kernel, to be linked with that of `worker` (Device::link()). Requires:
/// check_device_dispatch() succeeds.
std::string dispatch_text(std::string_view worker);

}  // namespace slate::daemon
