// What the simulated GPU states about itself: an H200's values where sim behaves alike, 0 for
// abilities that it lacks. A pure function. Thread: any.
#pragma once

#include "base/device_info.h"
#include "device/sim/settings.h"

namespace slate::sim {

DeviceInfo make_device_info(const Settings& settings);

}  // namespace slate::sim
