// CopyCrew: the caller's thread and, for large copies on machines with cores to spare, a few
// helpers for as long as the copy lasts. The program's threads are its own: helpers take no
// signals, and none is left when run() returns.
#pragma once

#include <cstdint>
#include <functional>

namespace slate::client {

class CopyCrew {
 public:
  static constexpr int kMost = 8;

  /// How many threads a copy of `bytes` is worth where `cores` may be used.
  static int size_for(std::uint64_t bytes, unsigned cores);
  /// The cores that this process may use.
  static unsigned cores();

  /// Runs `body` on `count` threads, the caller's among them, or on as many as there are to be had.
  /// `body` must cope with fewer, and throw nothing.
  static void run(int count, const std::function<void()>& body);
};

}  // namespace slate::client
