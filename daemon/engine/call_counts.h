// CallCounts: how often each function that slate does not have was called, by name. Clients choose
// the names, so that the number of names is limited. Thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "base/mutex.h"

namespace slate::daemon {

class CallCounts {
 public:
  static constexpr std::size_t kMostNames = 512;  // cudart has 422 functions
  /// The name under which names beyond kMostNames are counted.
  static constexpr std::string_view kOthers = "(others)";

  void count(std::string_view function) {
    const MutexLock lock(mutex_);
    auto at = counts_.find(function);
    if (at == counts_.end()) {
      const bool full = counts_.size() >= kMostNames;
      at = counts_.try_emplace(std::string(full ? kOthers : function)).first;
    }
    ++at->second;
  }
  std::map<std::string, std::uint64_t> snapshot() const {
    const MutexLock lock(mutex_);
    return {counts_.begin(), counts_.end()};
  }

 private:
  mutable Mutex mutex_;
  std::map<std::string, std::uint64_t, std::less<>> counts_ SLATE_GUARDED_BY(mutex_);
};

}  // namespace slate::daemon
