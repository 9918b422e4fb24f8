// CopyCrew: the caller's thread, and a few helpers while a large copy lasts on a machine with spare
// cores. Helpers take no signals, and none is left when run() returns.
#pragma once

#include <cstdint>
#include <functional>

namespace slate::client {

class CopyCrew {
 public:
  static constexpr int kMost = 8;

  /// Number of threads for a copy of `bytes` where `cores` may be used.
  static int size_for(std::uint64_t bytes, unsigned cores);
  /// The cores that this process may use.
  static unsigned cores();

  /// Runs `body` on `count` threads, with the caller's, or on fewer if no more can start.
  /// Requires: `body` can run on fewer threads, and does not throw.
  static void run(int count, const std::function<void()>& body);
};

}  // namespace slate::client
