// The one table from slate's errors to CUDA's error numbers. They are cudaError_t's and, as both
// enums agree, CUresult's, so that the core needs no CUDA header.
#pragma once

#include "base/result.h"

namespace slate::client {

/// The cudaError_t of `code`; 999 (unknown) for a code that this version does not know.
int cuda_error_number(ErrorCode code) noexcept;

}  // namespace slate::client
