// ManagedMemory: memory with one address in the program, in the engine and on the device (managed
// memory). Large pieces are blocks of shared host memory; small ones share blocks. Thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <vector>

#include "base/mutex.h"
#include "base/result.h"

namespace slate::client {

class ManagedMemory {
 public:
  static constexpr std::uint64_t kAlign = 512;
  /// Larger pieces get a block of their own.
  static constexpr std::uint64_t kLargestShared = 256 << 10;
  static constexpr std::uint64_t kSharedBlockBytes = 2 << 20;

  /// Gets a block of so many bytes, a multiple of 4096, and returns its address; gives one back.
  using Get = std::function<Result<std::uint64_t>(std::uint64_t bytes)>;
  using GiveBack = std::function<Result<void>(std::uint64_t address)>;
  ManagedMemory(Get get, GiveBack give_back)
      : get_(std::move(get)), give_back_(std::move(give_back)) {}

  /// kOutOfMemory, or the error of getting a block. Requires: bytes > 0.
  Result<std::uint64_t> allocate(std::uint64_t bytes);
  /// Does not wait for work. kInvalidValue when no piece begins there. Requires: nothing uses the
  /// piece.
  Result<void> free(std::uint64_t address);

 private:
  struct SharedBlock {
    std::uint64_t address;
    std::map<std::uint64_t, std::uint64_t> free;  // bytes by address, neighbours merged
  };

  static std::uint64_t take(SharedBlock& block, std::uint64_t bytes);
  static void put(SharedBlock& block, std::uint64_t address, std::uint64_t bytes);

  const Get get_;
  const GiveBack give_back_;
  Mutex mutex_;
  // Bytes of the pieces in use, by address.
  std::map<std::uint64_t, std::uint64_t> pieces_ SLATE_GUARDED_BY(mutex_);
  std::vector<SharedBlock> shared_ SLATE_GUARDED_BY(mutex_);
};

}  // namespace slate::client
