// ManagedAdvice: the program's advice and prefetches of managed memory, by range, for later
// queries. They are hints: nothing here moves memory. Thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <map>

#include "base/mutex.h"

namespace slate::client {

/// A place for pages; by default none. The numbers are the same in all of CUDA's APIs.
struct PagePlace {
  enum class Kind : int { kNone = 0, kDevice = 1, kHost = 2, kHostNode = 3 };
  static constexpr int kHostId = -1, kNoId = -2;

  Kind kind = Kind::kNone;
  int id = kNoId;
  bool operator==(const PagePlace&) const = default;
};

struct PageAdvice {
  bool read_mostly = false;
  bool by_device = false, by_host = false;  // whether device or host are said to use them
  PagePlace preferred, prefetched;
  bool operator==(const PageAdvice&) const = default;
};

class ManagedAdvice {
 public:
  /// Changes the advice of [begin, end).
  void change(std::uint64_t begin, std::uint64_t end,
              const std::function<void(PageAdvice&)>& change);
  void forget(std::uint64_t begin, std::uint64_t end);
  /// Advice of the whole range; none where its parts differ.
  PageAdvice common(std::uint64_t begin, std::uint64_t end);

 private:
  struct Part {
    std::uint64_t end;
    PageAdvice advice;
  };
  void cut(std::uint64_t at) SLATE_REQUIRES(mutex_);

  Mutex mutex_;
  // By beginning, disjoint; other memory has no advice.
  std::map<std::uint64_t, Part> parts_ SLATE_GUARDED_BY(mutex_);
};

}  // namespace slate::client
