// The one table from slate's errors to CUDA's error numbers. The numbers are those of cudaError_t
// and, as both enums agree on them, of CUresult too, so the core needs no CUDA header.
#pragma once

#include "base/result.h"

namespace slate::client {

/// The cudaError_t of `code`; 999 (unknown) for a code that this version does not know.
int cuda_error_number(ErrorCode code) noexcept;

}  // namespace slate::client
