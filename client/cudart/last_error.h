// The thread's last error, for the functions that read and clear it.
#pragma once

#include <cuda_runtime_api.h>

namespace slate::cudart {

cudaError_t& last_error() noexcept;

}  // namespace slate::cudart
