// Copies of arrays. As other copies: on the device and of pinned memory straight, of all other
// memory through the staging slots of the segment.
#include <algorithm>

#include "client/session/session.h"
#include "client/session/staged.h"

namespace slate::client {
namespace {

using ipc::CommandType;

/// Walks a box in chunks of at most `limit` bytes: whole planes, rows of one plane, or a piece of a
/// row. Requires: limit is a multiple of the largest element, 16 bytes.
class BoxWalk {
 public:
  struct Chunk {
    std::uint64_t x = 0, y = 0, z = 0;
    Box box;
  };

  BoxWalk(Box box, std::uint64_t limit) : box_(box), limit_(limit) {}

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

ipc::BoxPlace wire(const ArrayPlace& place) {
  ipc::BoxPlace wire{};
  wire.kind = ipc::BoxKind::kArray;
  wire.level = place.array.level;
  wire.id = place.array.array;
  wire.x = place.x;
  wire.y = place.y;
  wire.z = place.z;
  return wire;
}

ipc::BoxPlace wire(const DevicePlanes& planes) {
  ipc::BoxPlace wire{};
  wire.kind = ipc::BoxKind::kDevice;
  wire.address = planes.address;
  wire.pitch = planes.pitch;
  wire.slice = planes.slice;
  return wire;
}

ipc::StagedBox staged_box(const ArrayPlace& array, const BoxWalk::Chunk& chunk,
                          std::uint64_t stream, const ipc::ClientChannel::Staging& staging,
                          bool to_device) {
  ipc::StagedBox copy{};
  copy.array =
      wire(ArrayPlace{array.array, array.x + chunk.x, array.y + chunk.y, array.z + chunk.z});
  copy.width = chunk.box.width;
  copy.height = chunk.box.height;
  copy.depth = chunk.box.depth;
  copy.stream = stream;
  copy.slot = staging.slot;
  copy.slot_sequence = staging.sequence;
  copy.to_device = to_device ? 1 : 0;
  return copy;
}

std::byte* at(const HostPlanes& planes, const BoxWalk::Chunk& chunk, std::uint64_t plane) {
  return planes.memory + (chunk.z + plane) * planes.slice + chunk.y * planes.pitch + chunk.x;
}

std::uint64_t bytes_of(Box box) {
  return box.width * box.height * box.depth;
}

}  // namespace

Result<void> Copies::post_box(const ipc::BoxPlace& to, const ipc::BoxPlace& from, Box box,
                              std::uint64_t stream) {
  if (box.empty()) return {};
  return streams_.post(CommandType::kCopyBox,
                       ipc::CopyBox{to, from, box.width, box.height, box.depth, stream}, stream);
}

/// The planes as pinned memory; nothing when they are not. What is so in part only is copied as
/// plain memory, but not before work that may still write it.
Result<std::optional<ipc::BoxPlace>> Copies::pinned_planes(const HostPlanes& planes, Box box,
                                                           std::uint64_t stream) {
  const auto first = reinterpret_cast<std::uintptr_t>(planes.memory);
  const std::uint64_t extent =
      (box.depth - 1) * planes.slice + (box.height - 1) * planes.pitch + box.width;
  const auto block = host_blocks_.touching(first, extent);
  if (!block) return std::nullopt;
  if (first < block->address || first + extent > block->address + block->bytes) {
    if (auto ok = session_.waiting().wait_for_turn(stream); !ok) return std::unexpected(ok.error());
    return std::nullopt;
  }
  ipc::BoxPlace place{};
  place.kind = ipc::BoxKind::kHost;
  place.id = block->id;
  place.address = first - block->address;
  place.pitch = planes.pitch;
  place.slice = planes.slice;
  return place;
}

Result<void> Copies::copy_box(const ArrayPlace& to, const ArrayPlace& from, Box box,
                              std::uint64_t stream) {
  return post_box(wire(to), wire(from), box, stream);
}

Result<void> Copies::copy_box(const ArrayPlace& to, const DevicePlanes& from, Box box,
                              std::uint64_t stream) {
  return post_box(wire(to), wire(from), box, stream);
}

Result<void> Copies::copy_box(const DevicePlanes& to, const ArrayPlace& from, Box box,
                              std::uint64_t stream) {
  return post_box(wire(to), wire(from), box, stream);
}

Result<void> Copies::copy_box(const ArrayPlace& to, const HostPlanes& from, Box box,
                              std::uint64_t stream) {
  if (box.empty()) return {};
  const auto pinned = pinned_planes(from, box, stream);
  if (!pinned) return std::unexpected(pinned.error());
  if (*pinned) return post_box(wire(to), **pinned, box, stream);
  if (auto ok = settle_host_memory(false, stream); !ok) return ok;
  const int threads = CopyCrew::size_for(bytes_of(box), CopyCrew::cores());
  return stage_in(
      session_.wire().channel(), stream, threads, BoxWalk(box, chunk_limit(bytes_of(box), threads)),
      [&](std::byte* memory, const BoxWalk::Chunk& chunk) {
        const Box& its = chunk.box;
        for (std::uint64_t z = 0; z < its.depth; ++z) {
          move_rows(memory + z * its.width * its.height, its.width, at(from, chunk, z), from.pitch,
                    its.width, its.height);
        }
      },
      [&](const BoxWalk::Chunk& chunk, const ipc::ClientChannel::Staging& staging) {
        return streams_.post(CommandType::kStagedBox, staged_box(to, chunk, stream, staging, true),
                             stream);
      });
}

Result<void> Copies::copy_box(const HostPlanes& to, const ArrayPlace& from, Box box,
                              std::uint64_t stream) {
  if (box.empty()) return {};
  const auto pinned = pinned_planes(to, box, stream);
  if (!pinned) return std::unexpected(pinned.error());
  if (*pinned) return post_box(**pinned, wire(from), box, stream);
  const int threads = CopyCrew::size_for(bytes_of(box), CopyCrew::cores());
  const auto last = stage_out(
      session_.wire().channel(), stream, threads, BoxWalk(box, chunk_limit(bytes_of(box), threads)),
      [&](const BoxWalk::Chunk& chunk, const ipc::ClientChannel::Staging& staging, Sent& sent) {
        return streams_.post(CommandType::kStagedBox,
                             staged_box(from, chunk, stream, staging, false), stream, {}, &sent);
      },
      [&](const std::byte* memory, const BoxWalk::Chunk& chunk) {
        const Box& its = chunk.box;
        for (std::uint64_t z = 0; z < its.depth; ++z) {
          move_rows(at(to, chunk, z), to.pitch, memory + z * its.width * its.height, its.width,
                    its.width, its.height);
        }
      });
  if (!last) return std::unexpected(last.error());
  streams_.progress().confirm(streams_.progress_of(stream), *last);
  return {};
}

}  // namespace slate::client
