// SessionSettings: a session's weight and priority for the scheduler, and their bounds.
#pragma once

#include <cstdint>

namespace slate::daemon {

inline constexpr double kLeastWeight = 0.01;
inline constexpr double kMostWeight = 100;
inline constexpr std::int32_t kLeastPriority = -10;
inline constexpr std::int32_t kMostPriority = 10;

struct SessionSettings {
  double weight = 1;          // share of the device, relative to other sessions'
  std::int32_t priority = 0;  // higher goes first
  bool operator==(const SessionSettings&) const = default;
};

/// Whether a session may have this weight; false also for a NaN.
inline bool is_weight(double weight) {
  return weight >= kLeastWeight && weight <= kMostWeight;
}
inline bool is_priority(std::int64_t priority) {
  return priority >= kLeastPriority && priority <= kMostPriority;
}

}  // namespace slate::daemon
