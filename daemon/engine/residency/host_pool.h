// HostPool: host memory for contents of device memory that is not on the device. It is taken in
// large chunks that stay, as pinning takes thirty times as long as a copy. A chunk is pinned, or
// pageable, or a file without a name. Other processes may hold a chunk's descriptor, and find
// contents there when this process has gone.
//
// What nothing else needs may hold copies of what is on the device (keep()). The oldest of them go
// as soon as somebody takes memory. Thread-safe.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
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
    std::uint64_t ready = 0;        // bytes that get_ready() makes and trim() keeps
    std::string directory;          // folder for what is beyond; empty: pageable memory
    std::uint64_t chunk = 1 << 30;  // bytes of a chunk, unless more is wanted at once
    std::uint64_t most = 0;         // bytes up to which it grows for the sake of copies
  };
  struct Counts {
    std::uint64_t bytes = 0, pinned = 0, used = 0;
    std::uint64_t kept = 0;  // bytes of copies; not among those that are used
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
  /// Begins to make what should be there before it is needed.
  void get_ready() { grow_ahead(settings_.ready); }
  /// Whether the host has memory for so many bytes in all, pinned or pageable, and half as much
  /// again for others.
  bool can_grow_to(std::uint64_t bytes) const;
  /// Bytes that take() gives at once; all there can be while the pool does not grow by itself.
  std::uint64_t ready() const;
  /// Errors: those of grow_to().
  Result<Extent> take(std::uint64_t bytes);
  void give(Extent extent);
  /// A copy that its owner can do without.
  enum class Ticket : std::uint64_t { kNone };
  /// Keeps the contents until somebody else needs the memory. kNone: they are gone at once.
  Ticket keep(Extent extent);
  /// Takes a copy back; nullopt when it is gone.
  std::optional<Extent> reclaim(Ticket ticket);
  /// Ends a copy, if it is still there.
  void forget(Ticket ticket);
  /// Somebody else may hold the contents by the descriptor: the bytes are not used again here.
  void leave(Extent extent);
  /// Memory that another process's pool has given out. Errors: kIo; kOutOfMemory.
  static Result<Extent> adopt(int fd, std::uint64_t offset, std::uint64_t bytes);
  /// Gives chunks back that nothing uses, but for what should be ready.
  void trim();

  Counts counts() const;

 private:
  bool owns(const Extent& extent) const SLATE_REQUIRES(mutex_);
  std::optional<Extent> take_present(std::uint64_t bytes) SLATE_REQUIRES(mutex_);
  std::optional<Extent> take_kept(std::uint64_t bytes) SLATE_REQUIRES(mutex_);
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
  std::map<Ticket, Extent> kept_ SLATE_GUARDED_BY(mutex_);  // the oldest first
  std::uint64_t kept_bytes_ SLATE_GUARDED_BY(mutex_) = 0;
  std::uint64_t last_ticket_ SLATE_GUARDED_BY(mutex_) = 0;
  std::uint64_t ahead_ SLATE_GUARDED_BY(mutex_) = 0;  // wish of grow_ahead()
  bool is_full_ SLATE_GUARDED_BY(mutex_) = false;     // whether it no longer grows for copies
  bool ending_ SLATE_GUARDED_BY(mutex_) = false;
  CondVar wishes_, grown_;
  std::thread thread_;  // last, as it uses all of the above
};

}  // namespace slate::daemon
