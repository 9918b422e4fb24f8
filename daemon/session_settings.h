// SessionSettings: a session's weight and priority, which the scheduler goes by, and their bounds.
#pragma once

#include <cstdint>

namespace slate::daemon {

inline constexpr double kLeastWeight = 0.01;
inline constexpr double kMostWeight = 100;
inline constexpr std::int32_t kLeastPriority = -10;
inline constexpr std::int32_t kMostPriority = 10;

struct SessionSettings {
  double weight = 1;          // shares of the device are as the weights
  std::int32_t priority = 0;  // higher goes first
  bool operator==(const SessionSettings&) const = default;
};

/// False also for a weight that is no number.
inline bool is_weight(double weight) {
  return weight >= kLeastWeight && weight <= kMostWeight;
}
inline bool is_priority(std::int64_t priority) {
  return priority >= kLeastPriority && priority <= kMostPriority;
}

}  // namespace slate::daemon
