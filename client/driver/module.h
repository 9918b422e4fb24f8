// The kernels of a module, for the driver's private tables. Any thread.
#pragma once

#ifndef __CUDA_API_VERSION_INTERNAL
#define __CUDA_API_VERSION_INTERNAL  // NOLINT: as front.h
#endif
#include <cuda.h>

#include <cstddef>

namespace slate::driver {

/// Calls back once for each kernel of the module. Returns their number; 0 for no module.
std::size_t enumerate_functions(CUmodule module, void (*callback)(void* user, CUfunction function),
                                void* user);

}  // namespace slate::driver
