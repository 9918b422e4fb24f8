// Options of the calls that load or link code. None of them changes what the code does; logs are
// written where the caller wants them. Any thread.
#pragma once

#ifndef __CUDA_API_VERSION_INTERNAL
#define __CUDA_API_VERSION_INTERNAL  // NOLINT: as front.h
#endif
#include <cuda.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace slate::driver {

/// Whether the lists are there.
inline bool are_options(const void* options, const void* values, unsigned count) {
  return count == 0 || (options != nullptr && values != nullptr);
}

/// The caller's lists.
struct JitOptions {
  unsigned count = 0;
  CUjit_option* options = nullptr;
  void** values = nullptr;

  void* value_of(CUjit_option wanted) const {
    for (unsigned i = 0; i < count; ++i) {
      if (options[i] == wanted) return values[i];
    }
    return nullptr;
  }
  /// Writes into the caller's buffer for this log, and its size into the option for that.
  void write_log(CUjit_option buffer, CUjit_option size, std::string_view text) const {
    for (unsigned i = 0; i < count; ++i) {
      if (options[i] != size) continue;
      const auto room = static_cast<std::size_t>(
          static_cast<unsigned>(reinterpret_cast<std::uintptr_t>(values[i])));
      auto* const to = static_cast<char*>(value_of(buffer));
      std::size_t length = 0;
      if (to != nullptr && room > 0) {
        length = std::min(text.size(), room - 1);
        std::ranges::copy(text.substr(0, length), to);
        to[length] = '\0';
      }
      values[i] = reinterpret_cast<void*>(static_cast<std::uintptr_t>(length));
    }
  }
  void write_logs(std::string_view error) const {
    write_log(CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES, error);
    write_log(CU_JIT_INFO_LOG_BUFFER, CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES, {});
  }
};

}  // namespace slate::driver
