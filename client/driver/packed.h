// The packed buffer of a launch's arguments, as programs pass it in `extra`.
#pragma once

#include <cstddef>
#include <span>

#include "client/driver/front.h"

namespace slate::driver {

/// The buffer in `extra`, which lists options in pairs up to an end. CUDA_ERROR_INVALID_VALUE for
/// other options, and without a buffer. Requires: `extra` is not null.
inline Maybe<std::span<const std::byte>> packed_arguments(void* const* extra) {
  const std::byte* buffer = nullptr;
  std::size_t bytes = 0;
  for (; *extra != CU_LAUNCH_PARAM_END; extra += 2) {
    if (*extra == CU_LAUNCH_PARAM_BUFFER_POINTER) {
      buffer = static_cast<const std::byte*>(extra[1]);
    } else if (*extra == CU_LAUNCH_PARAM_BUFFER_SIZE) {
      bytes = *static_cast<const std::size_t*>(extra[1]);
    } else {
      return deny(CUDA_ERROR_INVALID_VALUE);
    }
  }
  if (buffer == nullptr) return deny(CUDA_ERROR_INVALID_VALUE);
  return std::span(buffer, bytes);
}

}  // namespace slate::driver
