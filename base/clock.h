// Monotonic time for timeouts and statistics, in nanoseconds. Never for dates, and not the device's
// clock. Thread: any.
#pragma once

#include <chrono>
#include <cstdint>

namespace slate {

/// Nanoseconds since an unspecified start.
inline std::int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

}  // namespace slate
