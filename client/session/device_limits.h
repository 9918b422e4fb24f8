// DeviceLimits: what programs set of stacks, heaps and the like, by the numbers that CUDA's APIs
// share. The stack is the device's, which all sessions share: kernels have at least what was asked
// for. The printf buffer and the heap of malloc are the session's own. The rest are hints.
// Thread-safe.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>

#include "client/session/refused.h"

namespace slate::client {

class Session;

class DeviceLimits {
 public:
  /// The limits' numbers: 0 to kCount - 1.
  enum Limit : int {
    kStack = 0,
    kPrintf = 1,
    kHeap = 2,
    kSyncDepth = 3,
    kPendingLaunches = 4,
    kCount = 7,
  };

  /// kInvalidValue for an unknown number; kUnsupportedLimit for one that the device does not have.
  Allowed<std::size_t> get(Session& session, int limit) const;
  Allowed<void> set(Session& session, int limit, std::size_t value);
  /// Makes them a fresh device's.
  void reset();

 private:
  /// Of a fresh H200.
  static constexpr std::array<std::size_t, kCount> kFresh{1024, 8650752, 8388608, 0, 2048, 64, 0};

  std::array<std::atomic<std::size_t>, kCount> values_{kFresh[0], kFresh[1], kFresh[2], kFresh[3],
                                                       kFresh[4], kFresh[5], kFresh[6]};
};

}  // namespace slate::client
