// BoundedCopy: the copy of a fenced kernel that has no checks for what its launch shows
// (injector/fence/access_bounds.h). It remembers the answers for earlier launches, as programs
// repeat theirs and finding an answer takes up to 10 us. Thread: the session's.
#pragma once

#include <cstddef>
#include <string>
#include <unordered_map>
#include <utility>

#include "device/device.h"
#include "injector/fence/access_bounds.h"

namespace slate::daemon {

class BoundedCopy {
 public:
  BoundedCopy(device::Function function, injector::AccessBounds bounds)
      : function_(function), bounds_(std::move(bounds)) {}

  device::Function function() const { return function_; }

  /// Whether it may stand in for the kernel in this launch.
  bool serves(const injector::LaunchValues& launch) {
    key_.clear();
    add(launch.grid, sizeof(launch.grid));
    add(launch.block, sizeof(launch.block));
    add(&launch.shared_bytes, sizeof(launch.shared_bytes));
    add(&launch.low, sizeof(launch.low));
    add(&launch.bytes, sizeof(launch.bytes));
    add(launch.parameters.data(), launch.parameters.size());
    if (const auto known = answers_.find(key_); known != answers_.end()) return known->second;
    if ((answers_.size() + 1) * key_.size() > kMostBytes) answers_.clear();
    return answers_.emplace(key_, injector::hold(bounds_, launch)).first->second;
  }

 private:
  static constexpr std::size_t kMostBytes = 64 << 10;  // of keys

  void add(const void* bytes, std::size_t count) {
    key_.append(static_cast<const char*>(bytes), count);
  }

  const device::Function function_;
  const injector::AccessBounds bounds_;
  std::string key_;  // all values of the present launch
  std::unordered_map<std::string, bool> answers_;
};

}  // namespace slate::daemon
