// Copies between host and device: of few bytes inside the command, of pinned memory straight, of
// all other memory in chunks through the staging slots of the segment, by the caller's thread and
// its helpers. And the two commands that need none of that.
#include <algorithm>
#include <array>
#include <cstring>
#include <mutex>

#include "client/session/copy_crew.h"
#include "client/session/session.h"
#include "client/session/session_calls.h"

namespace slate::client {
namespace {

using ipc::CommandType;

/// What one staging slot takes: whole rows, or a piece of one row that is longer than a slot.
struct Chunk {
  std::uint64_t row = 0;
  std::uint64_t column = 0;
  Shape shape;
};

/// Walks a shape in chunks of at most `limit` bytes.
class ChunkWalk {
 public:
  ChunkWalk(Shape shape, std::uint64_t limit) : shape_(shape), limit_(limit) {}

  bool next(Chunk& chunk) {
    if (row_ == shape_.height) return false;
    chunk.row = row_;
    chunk.column = column_;
    if (shape_.width > limit_) {
      chunk.shape = {std::min(limit_, shape_.width - column_), 1};
      column_ += chunk.shape.width;
      if (column_ < shape_.width) return true;
      column_ = 0;
      ++row_;
    } else {
      chunk.shape = {shape_.width, std::min(limit_ / shape_.width, shape_.height - row_)};
      row_ += chunk.shape.height;
    }
    return true;
  }

 private:
  const Shape shape_;
  const std::uint64_t limit_;
  std::uint64_t row_ = 0;
  std::uint64_t column_ = 0;
};

/// Rows that touch each other on both sides are one long row.
void flatten(Shape& shape, std::uint64_t pitch, std::uint64_t other_pitch) {
  if (shape.height > 1 && pitch == shape.width && other_pitch == shape.width) {
    shape = {shape.width * shape.height, 1};
  }
}

ipc::StagedCopy staged_copy(DeviceRows rows, const Chunk& chunk, std::uint64_t stream,
                            const ipc::ClientChannel::Staging& staging) {
  ipc::StagedCopy copy{};
  copy.address = rows.address + chunk.row * rows.pitch + chunk.column;
  copy.pitch = chunk.shape.height > 1 ? rows.pitch : chunk.shape.width;
  copy.width = chunk.shape.width;
  copy.height = chunk.shape.height;
  copy.stream = stream;
  copy.slot = staging.slot;
  copy.slot_sequence = staging.sequence;
  return copy;
}

/// Few chunks would leave the device waiting for the first one, small ones cost a command each.
std::uint64_t chunk_limit(std::uint64_t bytes, int threads) {
  constexpr std::uint64_t kLeast = 128 << 10;
  const std::uint64_t parts = 4 * static_cast<std::uint64_t>(threads);
  return std::clamp((bytes / parts + kLeast - 1) / kLeast * kLeast, kLeast, ipc::kStagingSlotBytes);
}

/// Walks one copy's chunks for several threads, until one of them fails.
class SharedWalk {
 public:
  SharedWalk(Shape shape, int threads)
      : walk_(shape, chunk_limit(shape.width * shape.height, threads)) {}

  bool next(Chunk& chunk) {
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
  ChunkWalk walk_;
  Result<void> result_;
  std::uint64_t last_ = 0;
};

/// Slots that one thread of a copy to the host keeps in flight.
constexpr std::size_t kInFlight = 4;

struct InFlight {
  ipc::ClientChannel::Staging staging;
  Chunk chunk;
};

/// The chunks of one thread that are on their way, oldest first.
class Flight {
 public:
  bool empty() const { return count_ == 0; }
  bool full() const { return count_ == slots_.size(); }
  void push(const InFlight& one) { slots_[(first_ + count_++) % slots_.size()] = one; }
  InFlight pop() {
    const InFlight one = slots_[first_];
    first_ = (first_ + 1) % slots_.size();
    --count_;
    return one;
  }

 private:
  std::array<InFlight, kInFlight> slots_{};
  std::size_t first_ = 0;
  std::size_t count_ = 0;
};

void move_rows(std::byte* to, std::uint64_t to_pitch, const std::byte* from,
               std::uint64_t from_pitch, Shape shape) {
  for (std::uint64_t row = 0; row < shape.height; ++row) {
    std::memcpy(to + row * to_pitch, from + row * from_pitch, shape.width);
  }
}

/// A pinned part of less is not worth a copy of its own.
constexpr std::uint64_t kLeastPinnedPart = 64 << 10;

}  // namespace

/// Sends the part of one row that lies in pinned memory straight, and gives the parts before and
/// behind it to `other(offset, bytes)`. Rows that are all pinned go straight as they are.
/// False when nothing of it was done.
template <typename Other>
Result<bool> Session::copy_pinned(DeviceRows device_rows, std::uint64_t host,
                                  std::uint64_t host_pitch, Shape shape, std::uint64_t stream,
                                  bool to_device, const Other& other) {
  const auto extent = extent_of(host_pitch, shape.width, shape.height);
  if (!extent) return false;
  const auto block = host_blocks_.touching(host, *extent);
  if (!block) return false;
  const std::uint64_t end = host + *extent, block_end = block->address + block->bytes;
  std::uint64_t first = std::max(host, block->address);
  std::uint64_t last = std::min(end, block_end);
  if ((first != host || last != end) && (shape.height > 1 || last - first < kLeastPinnedPart))
    return false;
  ipc::CopyPinned copy{};
  copy.host = block->id;
  copy.host_offset = first - block->address;
  copy.host_pitch = host_pitch;
  copy.address = device_rows.address + (first - host);
  copy.pitch = device_rows.pitch;
  copy.width = shape.height > 1 ? shape.width : last - first;
  copy.height = shape.height;
  copy.stream = stream;
  copy.to_device = to_device ? 1 : 0;
  if (auto ok = post_work(CommandType::kCopyPinned, copy, stream); !ok)
    return std::unexpected(ok.error());
  for (const auto& [from, to] : {std::pair(host, first), std::pair(last, end)}) {
    if (from == to) continue;
    if (auto ok = other(from - host, to - from); !ok) return std::unexpected(ok.error());
  }
  return true;
}

Result<void> Session::copy_to_device(DeviceRows to, const std::byte* from, std::uint64_t from_pitch,
                                     Shape shape, std::uint64_t stream) {
  if (shape.width == 0 || shape.height == 0) return {};
  flatten(shape, to.pitch, from_pitch);
  if (shape.height == 1 && shape.width <= ipc::kMostInlineBytes) {
    return post_work(CommandType::kCopyInline, ipc::CopyInline{to.address, stream}, stream,
                     std::span(from, shape.width));
  }
  const auto pinned =
      copy_pinned(to, reinterpret_cast<std::uintptr_t>(from), from_pitch, shape, stream, true,
                  [&](std::uint64_t offset, std::uint64_t bytes) {
                    return stage_to_device({to.address + offset, bytes}, from + offset, bytes,
                                           {bytes, 1}, stream);
                  });
  if (!pinned) return std::unexpected(pinned.error());
  if (*pinned) return {};
  return stage_to_device(to, from, from_pitch, shape, stream);
}

Result<void> Session::stage_to_device(DeviceRows to, const std::byte* from,
                                      std::uint64_t from_pitch, Shape shape, std::uint64_t stream) {
  const int threads = CopyCrew::size_for(shape.width * shape.height, CopyCrew::cores());
  SharedWalk walk(shape, threads);
  CopyCrew::run(threads, [&] {
    Chunk chunk;
    while (walk.next(chunk)) {
      auto staging = channel_->acquire_staging();
      if (!staging) return walk.fail(std::unexpected(staging.error()));
      move_rows(staging->memory.data(), chunk.shape.width,
                from + chunk.row * from_pitch + chunk.column, from_pitch, chunk.shape);
      auto ok =
          post_work(CommandType::kCopyToDevice, staged_copy(to, chunk, stream, *staging), stream);
      channel_->release_staging(*staging, ok.has_value());
      walk.fail(ok);
    }
  });
  return walk.result();
}

Result<void> Session::copy_to_host(std::byte* to, std::uint64_t to_pitch, DeviceRows from,
                                   Shape shape, std::uint64_t stream) {
  if (shape.width == 0 || shape.height == 0) return {};
  flatten(shape, from.pitch, to_pitch);
  const auto pinned =
      copy_pinned(from, reinterpret_cast<std::uintptr_t>(to), to_pitch, shape, stream, false,
                  [&](std::uint64_t offset, std::uint64_t bytes) {
                    return stage_to_host(to + offset, bytes, {from.address + offset, bytes},
                                         {bytes, 1}, stream);
                  });
  if (!pinned) return std::unexpected(pinned.error());
  if (*pinned) return {};
  return stage_to_host(to, to_pitch, from, shape, stream);
}

Result<void> Session::stage_to_host(std::byte* to, std::uint64_t to_pitch, DeviceRows from,
                                    Shape shape, std::uint64_t stream) {
  const int threads = CopyCrew::size_for(shape.width * shape.height, CopyCrew::cores());
  SharedWalk walk(shape, threads);
  const auto work = [&] {
    Flight flying;
    // Takes the oldest chunk in: waits for it, copies it out (unless something failed), gives its
    // slot back.
    const auto land = [&] {
      const InFlight oldest = flying.pop();
      walk.fail(channel_->wait_staging(oldest.staging));
      const Chunk& chunk = oldest.chunk;
      if (!walk.failed()) {
        move_rows(to + chunk.row * to_pitch + chunk.column, to_pitch, oldest.staging.memory.data(),
                  chunk.shape.width, chunk.shape);
      }
      channel_->release_staging(oldest.staging, true);
    };
    // Who holds slots waits for none, so that some thread can always go on.
    const auto slot = [&]() -> Result<ipc::ClientChannel::Staging> {
      while (!flying.empty()) {
        if (!flying.full()) {
          if (const auto free = channel_->try_acquire_staging()) return *free;
        }
        land();
      }
      return channel_->acquire_staging();
    };
    Chunk chunk;
    while (walk.next(chunk)) {
      const auto staging = slot();
      if (!staging) {
        walk.fail(std::unexpected(staging.error()));
        break;
      }
      std::uint64_t position = 0;
      auto ok = post_work(CommandType::kCopyToHost, staged_copy(from, chunk, stream, *staging),
                          stream, {}, &position);
      walk.sent(position);
      walk.fail(ok);
      if (ok) {
        flying.push({*staging, chunk});
      } else {
        channel_->release_staging(*staging, false);
      }
    }
    while (!flying.empty()) land();
  };
  CopyCrew::run(threads, work);
  // The data is there, so is what the stream had before: a query must not say less.
  if (walk.result()) progress_.confirm(progress_of(stream), walk.last());
  return walk.result();
}

Result<void> Session::copy_on_device(DeviceRows to, DeviceRows from, Shape shape,
                                     std::uint64_t stream) {
  if (shape.width == 0 || shape.height == 0) return {};
  flatten(shape, to.pitch, from.pitch);
  return post_work(CommandType::kCopyOnDevice,
                   ipc::CopyOnDevice{to.address, to.pitch, from.address, from.pitch, shape.width,
                                     shape.height, stream},
                   stream);
}

Result<void> Session::fill(DeviceRows to, std::uint8_t value, Shape shape, std::uint64_t stream) {
  if (shape.width == 0 || shape.height == 0) return {};
  flatten(shape, to.pitch, to.pitch);
  return post_work(CommandType::kFill,
                   ipc::Fill{to.address, to.pitch, shape.width, shape.height, stream, value, 0},
                   stream);
}

}  // namespace slate::client
