// Copies between host and device: of few bytes inside the command, of pinned memory straight, of
// all other memory in chunks through the staging slots of the segment, by the caller's thread and
// its helpers. And the two commands that need none of that.
#include "client/session/copies.h"

#include <algorithm>

#include "client/session/session.h"
#include "client/session/staged.h"

namespace slate::client {
namespace {

using ipc::CommandType;

/// Walks a shape in chunks of at most `limit` bytes.
class ChunkWalk {
 public:
  /// What one staging slot takes: whole rows, or a piece of one row that is longer than a slot.
  struct Chunk {
    std::uint64_t row = 0;
    std::uint64_t column = 0;
    Shape shape;
  };

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

using Chunk = ChunkWalk::Chunk;

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

/// A pinned part of less is not worth a copy of its own.
constexpr std::uint64_t kLeastPinnedPart = 64 << 10;

}  // namespace

Copies::Copies(Session& session)
    : session_(session),
      streams_(session.streams()),
      host_blocks_(session.host_memory().blocks()) {}

bool Copies::covers(DeviceRows rows, Shape shape) const {
  const auto extent = extent_of(rows.pitch, shape.width, shape.height);
  return extent && (*extent == 0 || session_.memory().table().covers(rows.address, *extent));
}

/// Sends the part of one row that lies in pinned memory straight, and gives the parts before and
/// behind it to `other(offset, bytes)`. Rows that are all pinned go straight as they are.
/// False when nothing of it was done.
template <typename Other>
Result<bool> Copies::copy_pinned(const HostBlock& block, DeviceRows device_rows, std::uint64_t host,
                                 std::uint64_t host_pitch, Shape shape, std::uint64_t stream,
                                 bool to_device, const Other& other) {
  const std::uint64_t end = host + *extent_of(host_pitch, shape.width, shape.height);
  const std::uint64_t block_end = block.address + block.bytes;
  std::uint64_t first = std::max(host, block.address);
  std::uint64_t last = std::min(end, block_end);
  if ((first != host || last != end) && (shape.height > 1 || last - first < kLeastPinnedPart))
    return false;
  ipc::CopyPinned copy{};
  copy.host = block.id;
  copy.host_offset = first - block.address;
  copy.host_pitch = host_pitch;
  copy.address = device_rows.address + (first - host);
  copy.pitch = device_rows.pitch;
  copy.width = shape.height > 1 ? shape.width : last - first;
  copy.height = shape.height;
  copy.stream = stream;
  copy.to_device = to_device ? 1 : 0;
  if (auto ok = streams_.post(CommandType::kCopyPinned, copy, stream); !ok)
    return std::unexpected(ok.error());
  for (const auto& [from, to] : {std::pair(host, first), std::pair(last, end)}) {
    if (from == to) continue;
    if (auto ok = other(from - host, to - from); !ok) return std::unexpected(ok.error());
  }
  return true;
}

/// The pinned block that some of these rows lie in.
std::optional<HostBlock> Copies::pinned_block(std::uint64_t host, std::uint64_t pitch,
                                              Shape shape) const {
  const auto extent = extent_of(pitch, shape.width, shape.height);
  return extent ? host_blocks_.touching(host, *extent) : std::nullopt;
}

/// Before this side reads host memory that earlier work of the stream may still write: the
/// program's own functions, and pinned memory, if anything is `under_way`, copies and kernels.
Result<void> Copies::settle_host_memory(bool under_way, std::uint64_t stream) {
  if (!under_way && !session_.host_functions().busy()) return {};
  return session_.waiting().wait_for_turn(stream);
}

Result<void> Copies::copy_to_device(DeviceRows to, const std::byte* from, std::uint64_t from_pitch,
                                    Shape shape, std::uint64_t stream) {
  if (shape.width == 0 || shape.height == 0) return {};
  flatten(shape, to.pitch, from_pitch);
  const auto host = reinterpret_cast<std::uintptr_t>(from);
  const bool small = shape.height == 1 && shape.width <= ipc::kMostInlineBytes;
  const auto block = pinned_block(host, from_pitch, shape);
  // What few bytes of it hold now is what the device would find only if nothing is under way.
  const bool under_way =
      block && !(small && streams_.progress().finished_all(false).value_or(false));
  if (under_way) {
    const auto sent =
        copy_pinned(*block, to, host, from_pitch, shape, stream, true,
                    [&](std::uint64_t offset, std::uint64_t bytes) -> Result<void> {
                      if (auto ok = settle_host_memory(false, stream); !ok) return ok;
                      return stage_to_device({to.address + offset, bytes}, from + offset, bytes,
                                             {bytes, 1}, stream);
                    });
    if (!sent) return std::unexpected(sent.error());
    if (*sent) return {};
  }
  if (auto ok = settle_host_memory(under_way, stream); !ok) return ok;
  if (small) return write(to.address, std::span(from, shape.width), stream);
  return stage_to_device(to, from, from_pitch, shape, stream);
}

Result<bool> Copies::take_to_device(std::uint64_t to, std::span<const std::byte> from,
                                    std::uint64_t stream) {
  constexpr std::uint64_t kMostTaken = 64 << 10;  // more is read quicker by the device
  const auto all_wait_for_it = [this] {
    return streams_.all_ordered() && !session_.memory().is_shared();
  };
  if (stream != 0 || from.size() > kMostTaken || !all_wait_for_it()) return false;
  // What it holds now is what the device would find only if nothing is under way that may write it,
  // as copies like this one do not.
  const std::uint64_t newest = streams_.progress().sent(ProgressTable::kDefaultStream);
  const auto settled = streams_.progress().finished_all_but(taken_at_.load(), newest);
  if (session_.host_functions().busy() || !settled.value_or(false)) return false;
  Sent sent;
  if (auto ok = write(to, from, stream, &sent); !ok) return std::unexpected(ok.error());
  const bool nothing_between = sent.before == newest;
  if (nothing_between) taken_at_.store(sent.position);
  // Who has come since may have looked for it too early. And what another thread has sent in
  // between would be left out with this copy by the next of its kind.
  if (nothing_between && all_wait_for_it()) return true;
  if (auto ok = session_.waiting().synchronize(ipc::TargetKind::kStream, 0); !ok)
    return std::unexpected(ok.error());
  return true;
}

Result<void> Copies::settle_taken() {
  std::uint64_t taken = taken_at_.load();
  if (taken == 0) return {};
  if (auto ok = session_.waiting().synchronize(ipc::TargetKind::kStream, 0); !ok) return ok;
  // Only now, as another thread may come to wait for the same.
  taken_at_.compare_exchange_strong(taken, 0);
  return {};
}

Result<void> Copies::write(std::uint64_t to, std::span<const std::byte> bytes, std::uint64_t stream,
                           Sent* sent) {
  const std::uint64_t size = bytes.size();
  if (size > ipc::kMostInlineBytes)
    return stage_to_device({to, size}, bytes.data(), size, {size, 1}, stream, sent);
  return streams_.post(CommandType::kCopyInline, ipc::CopyInline{to, stream}, stream, bytes, sent);
}

Result<void> Copies::stage_to_device(DeviceRows to, const std::byte* from, std::uint64_t from_pitch,
                                     Shape shape, std::uint64_t stream, Sent* sent) {
  const std::uint64_t bytes = shape.width * shape.height;
  const int threads = CopyCrew::size_for(bytes, CopyCrew::cores());
  return stage_in(
      session_.wire().channel(), stream, threads, ChunkWalk(shape, chunk_limit(bytes, threads)),
      [&](std::byte* memory, const Chunk& chunk) {
        move_rows(memory, chunk.shape.width, from + chunk.row * from_pitch + chunk.column,
                  from_pitch, chunk.shape.width, chunk.shape.height);
      },
      [&](const Chunk& chunk, const ipc::ClientChannel::Staging& staging) {
        return streams_.post(CommandType::kCopyToDevice, staged_copy(to, chunk, stream, staging),
                             stream, {}, sent);
      });
}

Result<void> Copies::copy_to_host(std::byte* to, std::uint64_t to_pitch, DeviceRows from,
                                  Shape shape, std::uint64_t stream) {
  if (shape.width == 0 || shape.height == 0) return {};
  flatten(shape, from.pitch, to_pitch);
  const auto host = reinterpret_cast<std::uintptr_t>(to);
  if (const auto block = pinned_block(host, to_pitch, shape)) {
    const auto sent =
        copy_pinned(*block, from, host, to_pitch, shape, stream, false,
                    [&](std::uint64_t offset, std::uint64_t bytes) {
                      return stage_to_host(to + offset, bytes, {from.address + offset, bytes},
                                           {bytes, 1}, stream);
                    });
    if (!sent) return std::unexpected(sent.error());
    if (*sent) return {};
  }
  return stage_to_host(to, to_pitch, from, shape, stream);
}

Result<void> Copies::stage_to_host(std::byte* to, std::uint64_t to_pitch, DeviceRows from,
                                   Shape shape, std::uint64_t stream) {
  const std::uint64_t bytes = shape.width * shape.height;
  const int threads = CopyCrew::size_for(bytes, CopyCrew::cores());
  const auto last = stage_out(
      session_.wire().channel(), stream, threads, ChunkWalk(shape, chunk_limit(bytes, threads)),
      [&](const Chunk& chunk, const ipc::ClientChannel::Staging& staging, Sent& sent) {
        return streams_.post(CommandType::kCopyToHost, staged_copy(from, chunk, stream, staging),
                             stream, {}, &sent);
      },
      [&](const std::byte* memory, const Chunk& chunk) {
        move_rows(to + chunk.row * to_pitch + chunk.column, to_pitch, memory, chunk.shape.width,
                  chunk.shape.width, chunk.shape.height);
      });
  if (!last) return std::unexpected(last.error());
  // The data is there, so is what the stream had before: a query must not say less.
  streams_.progress().confirm(streams_.progress_of(stream), *last);
  session_.host_memory().guard().open_if_done();
  return {};
}

Result<void> Copies::copy_on_device(DeviceRows to, DeviceRows from, Shape shape,
                                    std::uint64_t stream) {
  if (shape.width == 0 || shape.height == 0) return {};
  flatten(shape, to.pitch, from.pitch);
  return streams_.post(CommandType::kCopyOnDevice,
                       ipc::CopyOnDevice{to.address, to.pitch, from.address, from.pitch,
                                         shape.width, shape.height, stream},
                       stream);
}

Result<void> Copies::fill(DeviceRows to, std::uint8_t value, Shape shape, std::uint64_t stream) {
  if (shape.width == 0 || shape.height == 0) return {};
  flatten(shape, to.pitch, to.pitch);
  return streams_.post(CommandType::kFill,
                       ipc::Fill{to.address, to.pitch, shape.width, shape.height, stream, value, 0},
                       stream);
}

}  // namespace slate::client
