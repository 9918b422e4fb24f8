// Tensor maps on the driver, which alone knows their format. It keeps no state. Thread: any.
#pragma once

#include "base/result.h"
#include "base/tensor_map.h"
#include "device/cuda/context.h"

namespace slate::cuda {

/// As the method of device::Device of the same name. kNotSupported also on an older driver.
Result<TensorMap> encode_tensor_map(Context& context, const TensorMapSpec& spec);

}  // namespace slate::cuda
