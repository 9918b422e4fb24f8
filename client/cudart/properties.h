// cudaDeviceProp of CUDA 13.0 from the device's description.
#pragma once

#include <cuda_runtime_api.h>

#include "base/device_info.h"

namespace slate::cudart {

void fill_properties(const DeviceInfo& info, cudaDeviceProp& properties);

}  // namespace slate::cudart
