// Copies of memory that is not pinned, through the staging slots, by the caller's thread and its
// helpers. Private to client/session.
#pragma once

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "base/mutex.h"
#include "client/session/copies.h"
#include "client/session/copy_crew.h"
#include "ipc/channel.h"

namespace slate::client {

/// The part of a box that one staging slot takes, and where in the box it begins: bytes, rows,
/// planes.
struct Chunk {
  std::uint64_t x = 0, y = 0, z = 0;
  Box box;
};

/// Walks a box in chunks of at most `limit` bytes: whole planes, rows of one plane, or a piece of a
/// row. Requires: `limit` is a multiple of 16 bytes, the largest element of arrays.
class ChunkWalk {
 public:
  ChunkWalk(const Box& box, std::uint64_t limit) : box_(box), limit_(limit) {}

  bool next(Chunk& chunk) {
    if (z_ == box_.depth) return false;
    chunk = {x_, y_, z_, {box_.width, 1, 1}};
    const std::uint64_t plane = box_.width * box_.height;
    if (plane <= limit_) {
      chunk.box = {box_.width, box_.height, std::min(limit_ / plane, box_.depth - z_)};
    } else if (box_.width <= limit_) {
      chunk.box.height = std::min(limit_ / box_.width, box_.height - y_);
    } else {
      chunk.box.width = std::min(limit_, box_.width - x_);
    }
    advance(chunk.box);
    return true;
  }

 private:
  void advance(const Box& done) {
    x_ += done.width;
    if (x_ < box_.width) return;
    x_ = 0;
    y_ += done.height;
    if (y_ < box_.height) return;
    y_ = 0;
    z_ += done.depth;
  }

  const Box box_;
  const std::uint64_t limit_;
  std::uint64_t x_ = 0, y_ = 0, z_ = 0;
};

/// A limit for chunks. With too few chunks the device waits for the first one; each small one costs
/// a command.
inline std::uint64_t chunk_limit(std::uint64_t bytes, int threads) {
  constexpr std::uint64_t kLeast = 128 << 10;
  const std::uint64_t parts = 4 * static_cast<std::uint64_t>(threads);
  return std::clamp((bytes / parts + kLeast - 1) / kLeast * kLeast, kLeast, ipc::kStagingSlotBytes);
}

inline void move_rows(std::byte* to, std::uint64_t to_pitch, const std::byte* from,
                      std::uint64_t from_pitch, std::uint64_t width, std::uint64_t height) {
  for (std::uint64_t row = 0; row < height; ++row) {
    std::memcpy(to + row * to_pitch, from + row * from_pitch, width);
  }
}

/// Walks one copy's chunks for several threads, until one thread fails.
class SharedWalk {
 public:
  explicit SharedWalk(const ChunkWalk& walk) : walk_(walk) {}

  bool next(Chunk& chunk) {
    MutexLock lock(mutex_);
    return result_ && walk_.next(chunk);
  }
  void fail(const Result<void>& failure) {
    MutexLock lock(mutex_);
    if (result_ && !failure) result_ = failure;
  }
  bool failed() {
    MutexLock lock(mutex_);
    return !result_;
  }
  void sent(std::uint64_t position) {
    MutexLock lock(mutex_);
    last_ = std::max(last_, position);
  }
  // Requires: all threads are done.
  Result<void> result() const SLATE_NO_THREAD_SAFETY_ANALYSIS { return result_; }
  std::uint64_t last() const SLATE_NO_THREAD_SAFETY_ANALYSIS { return last_; }

 private:
  Mutex mutex_;
  ChunkWalk walk_ SLATE_GUARDED_BY(mutex_);
  Result<void> result_ SLATE_GUARDED_BY(mutex_);
  std::uint64_t last_ SLATE_GUARDED_BY(mutex_) = 0;
};

/// The chunks of one thread that are under way, oldest first.
class Flight {
 public:
  struct One {
    ipc::ClientChannel::Staging staging;
    Chunk chunk;
  };

  bool empty() const { return count_ == 0; }
  bool full() const { return count_ == slots_.size(); }
  void push(const One& one) { slots_[(first_ + count_++) % slots_.size()] = one; }
  One pop() {
    const One one = slots_[first_];
    first_ = (first_ + 1) % slots_.size();
    --count_;
    return one;
  }

 private:
  /// Slots that one thread of a copy to the host keeps in flight.
  static constexpr std::size_t kInFlight = 4;
  std::array<One, kInFlight> slots_{};
  std::size_t first_ = 0;
  std::size_t count_ = 0;
};

/// Copies to the device. `fill(memory, chunk)` writes a slot, `send(chunk, staging)` its command.
template <typename Fill, typename Send>
Result<void> stage_in(ipc::ClientChannel& channel, std::uint64_t stream, int threads,
                      const ChunkWalk& chunks, const Fill& fill, const Send& send) {
  SharedWalk walk(chunks);
  CopyCrew::run(threads, [&] {
    Chunk chunk;
    while (walk.next(chunk)) {
      auto staging = channel.acquire_staging(stream);
      if (!staging) return walk.fail(std::unexpected(staging.error()));
      fill(staging->memory.data(), chunk);
      const Result<void> ok = send(chunk, *staging);
      channel.release_staging(*staging, ok.has_value());
      walk.fail(ok);
    }
  });
  return walk.result();
}

/// Copies to the host. `send(chunk, staging, sent)` sends a command and stores its place (Sent),
/// `take(memory, chunk)` reads a slot. Returns the position of the last command.
template <typename Send, typename Take>
Result<std::uint64_t> stage_out(ipc::ClientChannel& channel, std::uint64_t stream, int threads,
                                const ChunkWalk& chunks, const Send& send, const Take& take) {
  SharedWalk walk(chunks);
  const auto work = [&] {
    Flight flying;
    // Takes in the oldest chunk: waits for it, copies it out, and gives its slot back. After a
    // failure it copies nothing: a refused copy's slot has another copy's bytes.
    const auto land = [&] {
      const auto oldest = flying.pop();
      walk.fail(channel.wait_staging(oldest.staging));
      if (!walk.failed()) take(oldest.staging.memory.data(), oldest.chunk);
      channel.release_staging(oldest.staging, true);
    };
    // A thread that holds slots waits for none, so that some thread can always go on.
    const auto slot = [&]() -> Result<ipc::ClientChannel::Staging> {
      while (!flying.empty()) {
        if (!flying.full()) {
          if (const auto free = channel.try_acquire_staging(stream)) return *free;
        }
        land();
      }
      return channel.acquire_staging(stream);
    };
    Chunk chunk;
    while (walk.next(chunk)) {
      const auto staging = slot();
      if (!staging) {
        walk.fail(std::unexpected(staging.error()));
        break;
      }
      Sent sent;
      const Result<void> ok = send(chunk, *staging, sent);
      walk.sent(sent.position);
      walk.fail(ok);
      if (ok) {
        flying.push({*staging, chunk});
      } else {
        channel.release_staging(*staging, false);
      }
    }
    while (!flying.empty()) land();
  };
  CopyCrew::run(threads, work);
  if (auto result = walk.result(); !result) return std::unexpected(result.error());
  return walk.last();
}

}  // namespace slate::client
