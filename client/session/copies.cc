// Copies between host and device, in chunks through the staging slots of the segment, and the two
// commands that need none. The caller's thread does the host's half of every copy.
#include <algorithm>
#include <array>
#include <cstring>

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

/// Slots that one copy to the host keeps in flight beyond its first, and that all of them together
/// may: with half of the slots never waited for while holding another, some copy can always go on.
constexpr int kExtraSlots = 3;
constexpr int kExtraSlotsOfAll = ipc::kStagingSlots / 2;

struct InFlight {
  ipc::ClientChannel::Staging staging;
  Chunk chunk;
};

/// The chunks of one copy that are on their way, oldest first.
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
  std::array<InFlight, kExtraSlots + 1> slots_{};
  std::size_t first_ = 0;
  std::size_t count_ = 0;
};

}  // namespace

Result<void> Session::copy_to_device(DeviceRows to, const std::byte* from, std::uint64_t from_pitch,
                                     Shape shape, std::uint64_t stream) {
  if (shape.width == 0 || shape.height == 0) return {};
  flatten(shape, to.pitch, from_pitch);
  ChunkWalk walk(shape, ipc::kStagingSlotBytes);
  Chunk chunk;
  while (walk.next(chunk)) {
    auto staging = channel_->acquire_staging();
    if (!staging) return std::unexpected(staging.error());
    const std::byte* source = from + chunk.row * from_pitch + chunk.column;
    std::byte* slot = staging->memory.data();
    for (std::uint64_t row = 0; row < chunk.shape.height; ++row) {
      std::memcpy(slot + row * chunk.shape.width, source + row * from_pitch, chunk.shape.width);
    }
    auto ok = post(CommandType::kCopyToDevice, staged_copy(to, chunk, stream, *staging));
    channel_->release_staging(*staging, ok.has_value());
    if (!ok) return ok;
  }
  return {};
}

Result<void> Session::copy_to_host(std::byte* to, std::uint64_t to_pitch, DeviceRows from,
                                   Shape shape, std::uint64_t stream) {
  if (shape.width == 0 || shape.height == 0) return {};
  flatten(shape, from.pitch, to_pitch);
  ChunkWalk walk(shape, ipc::kStagingSlotBytes);
  Flight flying;
  Result<void> result;

  // Takes the oldest chunk in: waits for it, copies it out (unless something failed), gives its
  // slot back.
  const auto land = [&] {
    const InFlight oldest = flying.pop();
    if (!flying.empty()) extra_slots_.fetch_sub(1);
    if (auto ok = channel_->wait_staging(oldest.staging); !ok && result) result = ok;
    if (result) {
      const Chunk& chunk = oldest.chunk;
      std::byte* target = to + chunk.row * to_pitch + chunk.column;
      for (std::uint64_t row = 0; row < chunk.shape.height; ++row) {
        std::memcpy(target + row * to_pitch, oldest.staging.memory.data() + row * chunk.shape.width,
                    chunk.shape.width);
      }
    }
    channel_->release_staging(oldest.staging, true);
  };
  const auto may_take_extra = [&] {
    if (flying.full()) return false;
    if (extra_slots_.fetch_add(1) < kExtraSlotsOfAll) return true;
    extra_slots_.fetch_sub(1);
    return false;
  };

  Chunk chunk;
  while (result && walk.next(chunk)) {
    while (!flying.empty() && result && !may_take_extra()) land();
    if (!result) break;
    auto staging = channel_->acquire_staging();
    if (staging) {
      result = post(CommandType::kCopyToHost, staged_copy(from, chunk, stream, *staging));
      if (result) {
        flying.push({*staging, chunk});
        continue;
      }
      channel_->release_staging(*staging, false);
    } else {
      result = std::unexpected(staging.error());
    }
    if (!flying.empty()) extra_slots_.fetch_sub(1);
  }
  while (!flying.empty()) land();
  return result;
}

Result<void> Session::copy_on_device(DeviceRows to, DeviceRows from, Shape shape,
                                     std::uint64_t stream) {
  if (shape.width == 0 || shape.height == 0) return {};
  flatten(shape, to.pitch, from.pitch);
  return post(CommandType::kCopyOnDevice,
              ipc::CopyOnDevice{to.address, to.pitch, from.address, from.pitch, shape.width,
                                shape.height, stream});
}

Result<void> Session::fill(DeviceRows to, std::uint8_t value, Shape shape, std::uint64_t stream) {
  if (shape.width == 0 || shape.height == 0) return {};
  flatten(shape, to.pitch, to.pitch);
  return post(CommandType::kFill,
              ipc::Fill{to.address, to.pitch, shape.width, shape.height, stream, value, 0});
}

}  // namespace slate::client
