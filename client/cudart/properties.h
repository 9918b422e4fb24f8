// cudaDeviceProp of CUDA 13.0 from what the device tells of itself.
#pragma once

#include <cuda_runtime_api.h>

#include "base/device_info.h"

namespace slate::cudart {

void fill_properties(const DeviceInfo& info, cudaDeviceProp& properties);

}  // namespace slate::cudart
