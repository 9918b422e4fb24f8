// HostPool: host memory for contents of device memory that is not on the device. It is taken in
// large chunks that stay, as pinning takes thirty times as long as a copy. A chunk is pinned, or
// pageable, or a file without a name. Other processes may hold a chunk's descriptor, and find
// contents there when this process has gone. Thread-safe.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/mutex.h"
#include "base/result.h"
#include "base/unique_fd.h"
#include "device/device.h"

namespace slate::daemon {

class HostPool {
 public:
  struct Settings {
    std::uint64_t pinned = 0;       // the most bytes that are pinned
    std::string directory;          // folder for what is beyond; empty: pageable memory
    std::uint64_t chunk = 1 << 30;  // bytes of a chunk, unless more is wanted at once
  };
  struct Counts {
    std::uint64_t bytes = 0, pinned = 0, used = 0;
  };

  class Chunk;
  /// A part of a chunk. It belongs to whoever took it.
  struct Extent {
    std::shared_ptr<Chunk> chunk;
    std::uint64_t offset = 0, bytes = 0;

    bool is_there() const { return chunk != nullptr; }
    std::byte* memory() const;
    int fd() const;
  };

  /// `device` outlives it.
  HostPool(device::Device& device, Settings settings);
  ~HostPool();
  HostPool(const HostPool&) = delete;
  HostPool& operator=(const HostPool&) = delete;

  /// Makes chunks until there are so many bytes in all. May take seconds. Errors: kOutOfMemory when
  /// the host, or the folder, has no room; kIo.
  Result<void> grow_to(std::uint64_t bytes);
  /// The same later, by a thread of the pool. Errors are left to grow_to().
  void grow_ahead(std::uint64_t bytes);
  /// Whether the host has memory for so many bytes in all, pinned or pageable, and half as much
  /// again for others.
  bool can_grow_to(std::uint64_t bytes) const;
  /// Bytes that take() gives at once; all there can be while the pool does not grow by itself.
  std::uint64_t ready() const;
  /// Errors: those of grow_to().
  Result<Extent> take(std::uint64_t bytes);
  void give(Extent extent);
  /// Somebody else may hold the contents by the descriptor: the bytes are not used again here.
  void leave(Extent extent);
  /// Memory that another process's pool has given out. Errors: kIo; kOutOfMemory.
  static Result<Extent> adopt(int fd, std::uint64_t offset, std::uint64_t bytes);
  /// Gives chunks back that nothing uses.
  void trim();

  Counts counts() const;

 private:
  Result<std::shared_ptr<Chunk>> make_chunk(std::uint64_t bytes);
  Result<void> grow(std::uint64_t bytes, std::uint64_t chunk_bytes);
  void run();

  device::Device& device_;
  const Settings settings_;
  Mutex growing_;  // held by the thread that makes chunks
  mutable Mutex mutex_;
  std::vector<std::shared_ptr<Chunk>> chunks_ SLATE_GUARDED_BY(mutex_);
  std::uint64_t bytes_ SLATE_GUARDED_BY(mutex_) = 0;
  std::uint64_t pinned_ SLATE_GUARDED_BY(mutex_) = 0;
  std::uint64_t used_ SLATE_GUARDED_BY(mutex_) = 0;
  std::uint64_t ahead_ SLATE_GUARDED_BY(mutex_) = 0;  // wish of grow_ahead()
  bool ending_ SLATE_GUARDED_BY(mutex_) = false;
  CondVar wishes_, grown_;
  std::thread thread_;  // last, as it uses all of the above
};

}  // namespace slate::daemon
