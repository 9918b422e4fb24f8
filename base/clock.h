// Monotonic time in nanoseconds, for timeouts and statistics. Never for dates.
#pragma once

#include <chrono>
#include <cstdint>

namespace slate {

inline std::int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

}  // namespace slate
