// For the generated stubs of functions that slate does not have (generate_functions.py).
#pragma once

#ifndef __CUDA_API_VERSION_INTERNAL
#define __CUDA_API_VERSION_INTERNAL  // NOLINT: as front.h
#endif
#include <cuda.h>

namespace slate::driver {

/// Says once for each process and name that the function is missing, and why (may be empty). The
/// daemon counts the calls if there is a session; none is made for it. Returns
/// CUDA_ERROR_NOT_SUPPORTED, or CUDA_ERROR_DEINITIALIZED once the program ends.
CUresult absent(const char* name, const char* reason) noexcept;

}  // namespace slate::driver
