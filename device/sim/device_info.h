// What the simulated GPU says of itself: an H200's answers where sim behaves alike, 0 for what it
// lacks.
#pragma once

#include "base/device_info.h"
#include "device/sim/settings.h"

namespace slate::sim {

DeviceInfo make_device_info(const Settings& settings);

}  // namespace slate::sim
