// How copies of memory that is not pinned pass through the staging slots of the segment, by the
// caller's thread and its helpers: the loops, for chunks of whatever shape. A Walk hands out a
// copy's chunks: bool next(Chunk&). Private to client/session.
#pragma once

#include <algorithm>
#include <array>
#include <cstring>
#include <mutex>
#include <utility>

#include "client/session/copies.h"
#include "client/session/copy_crew.h"
#include "ipc/channel.h"

namespace slate::client {

/// Few chunks would leave the device waiting for the first one, small ones cost a command each.
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

/// Walks one copy's chunks for several threads, until one of them fails.
template <typename Walk>
class SharedWalk {
 public:
  explicit SharedWalk(Walk walk) : walk_(std::move(walk)) {}

  bool next(typename Walk::Chunk& chunk) {
    std::lock_guard lock(mutex_);
    return result_ && walk_.next(chunk);
  }
  void fail(const Result<void>& failure) {
    std::lock_guard lock(mutex_);
    if (result_ && !failure) result_ = failure;
  }
  bool failed() {
    std::lock_guard lock(mutex_);
    return !result_;
  }
  void sent(std::uint64_t position) {
    std::lock_guard lock(mutex_);
    last_ = std::max(last_, position);
  }
  // When all threads are done.
  Result<void> result() const { return result_; }
  std::uint64_t last() const { return last_; }

 private:
  std::mutex mutex_;
  Walk walk_;
  Result<void> result_;
  std::uint64_t last_ = 0;
};

/// The chunks of one thread that are on their way, oldest first.
template <typename Chunk>
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

/// To the device: `fill(memory, chunk)` writes a slot, `send(chunk, staging)` its command.
template <typename Walk, typename Fill, typename Send>
Result<void> stage_in(ipc::ClientChannel& channel, std::uint64_t stream, int threads, Walk chunks,
                      const Fill& fill, const Send& send) {
  SharedWalk<Walk> walk(std::move(chunks));
  CopyCrew::run(threads, [&] {
    typename Walk::Chunk chunk;
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

/// To the host: `send(chunk, staging, sent)` sends a command and tells its place (Sent),
/// `take(memory, chunk)` reads a slot. Gives the position of the last command.
template <typename Walk, typename Send, typename Take>
Result<std::uint64_t> stage_out(ipc::ClientChannel& channel, std::uint64_t stream, int threads,
                                Walk chunks, const Send& send, const Take& take) {
  using Chunk = typename Walk::Chunk;
  SharedWalk<Walk> walk(std::move(chunks));
  const auto work = [&] {
    Flight<Chunk> flying;
    // Takes the oldest chunk in: waits for it, copies it out (unless something failed: of a refused
    // copy the slot holds another one's bytes), gives its slot back.
    const auto land = [&] {
      const auto oldest = flying.pop();
      walk.fail(channel.wait_staging(oldest.staging));
      if (!walk.failed()) take(oldest.staging.memory.data(), oldest.chunk);
      channel.release_staging(oldest.staging, true);
    };
    // Who holds slots waits for none, so that some thread can always go on.
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
