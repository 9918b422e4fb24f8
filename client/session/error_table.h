// The one table from slate's errors to CUDA's error numbers, and the texts of these. The numbers
// are cudaError_t's and, as both enums agree, CUresult's, so that the core needs no CUDA header.
#pragma once

#include "base/result.h"

namespace slate::client {

/// The cudaError_t of `code`; 999 (unknown) for a code that this version does not know.
int cuda_error_number(ErrorCode code) noexcept;

/// What CUDA's APIs say of an error number; null for a number that CUDA does not have.
const char* error_text(int number) noexcept;

}  // namespace slate::client
