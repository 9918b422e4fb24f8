// Copies and fills. What the device reaches goes straight: arrays, its memory, pinned memory of the
// host. Few bytes of other host memory travel inside the command; more go in chunks through the
// staging slots of the segment, by the caller's thread and its helpers.
#include "client/session/copies.h"

#include <algorithm>

#include "client/session/session.h"
#include "client/session/staged.h"

namespace slate::client {
namespace {

using ipc::CommandType;

/// A pinned part of less is not worth a copy of its own.
constexpr std::uint64_t kLeastPinnedPart = 64 << 10;

/// Copies a chunk between the host's memory, from the chunk's place in it on, and a slot.
template <typename Move>
void move_chunk(const Place& host, const Chunk& chunk, const Move& move) {
  for (std::uint64_t z = 0; z < chunk.box.depth; ++z) {
    move(host.at(chunk.x, chunk.y, chunk.z + z).memory(), z * chunk.box.width * chunk.box.height);
  }
}

/// An array's elements are not cut, so only lines of memory are sent in parts.
bool may_be_cut(const Place& place, const Box& box) {
  return box.is_line() && !place.is(PlaceKind::kArray);
}

}  // namespace

Copies::Copies(Session& session)
    : session_(session),
      streams_(session.streams()),
      host_blocks_(session.host_memory().blocks()) {}

bool Copies::covers(const Place& place, const Box& box) const {
  const auto extent = extent_of(place.pitch, box.width, box.height);
  return extent && (*extent == 0 || session_.memory().table().covers(place.address, *extent));
}

/// Sends the part of a copy that lies in pinned memory straight, and gives the parts before and
/// behind it to `other(offset, bytes)`. Only a line is sent in parts. False when nothing was sent.
template <typename Other>
Result<bool> Copies::copy_pinned(const HostBlock& block, const Place& to, const Place& from,
                                 const Box& box, std::uint64_t stream, const Other& other) {
  const bool to_host = to.is(PlaceKind::kHost);
  const Place& host = to_host ? to : from;
  const std::uint64_t end = host.address + *extent_of(box, host.pitch, host.slice);
  const std::uint64_t first = std::max(host.address, block.address);
  const std::uint64_t last = std::min(end, block.address + block.bytes);
  const bool whole = first == host.address && last == end;
  if (!whole && (!may_be_cut(to_host ? from : to, box) || last - first < kLeastPinnedPart))
    return false;
  const std::uint64_t skipped = first - host.address;
  const Place pinned = Place::in_block(block.id, first - block.address, host.pitch, host.slice);
  ipc::Copy copy{to, from, box, stream};
  if (!whole) copy = {to.at(skipped, 0, 0), from.at(skipped, 0, 0), {last - first}, stream};
  (to_host ? copy.to : copy.from) = pinned;
  if (auto ok = streams_.post(CommandType::kCopy, copy, stream); !ok)
    return std::unexpected(ok.error());
  for (const auto& [start, stop] : {std::pair(host.address, first), std::pair(last, end)}) {
    if (start == stop) continue;
    if (auto ok = other(start - host.address, stop - start); !ok)
      return std::unexpected(ok.error());
  }
  return true;
}

/// The pinned block that some of the box lies in.
std::optional<HostBlock> Copies::pinned_block(const Place& host, const Box& box) const {
  const auto extent = extent_of(box, host.pitch, host.slice);
  return extent ? host_blocks_.touching(host.address, *extent) : std::nullopt;
}

/// Before this side reads host memory that earlier work of the stream may still write: the
/// program's own functions, and pinned memory, if anything is `under_way`, copies and kernels.
Result<void> Copies::settle_host_memory(bool under_way, std::uint64_t stream) {
  if (!under_way && !session_.host_functions().busy()) return {};
  return session_.waiting().wait_for_turn(stream);
}

Result<void> Copies::copy(const Place& to, const Place& from, const Box& box,
                          std::uint64_t stream) {
  if (box.empty()) return {};
  const bool array = to.is(PlaceKind::kArray) || from.is(PlaceKind::kArray);
  const Box flat = array ? box : flattened(box, to, from);
  if (from.is(PlaceKind::kHost)) return copy_in(to, from, flat, stream);
  if (to.is(PlaceKind::kHost)) return copy_out(to, from, flat, stream);
  return streams_.post(CommandType::kCopy, ipc::Copy{to, from, flat, stream}, stream);
}

Result<void> Copies::copy_in(const Place& to, const Place& from, const Box& box,
                             std::uint64_t stream) {
  const bool small = may_be_cut(to, box) && box.width <= ipc::kMostInlineBytes;
  const auto block = pinned_block(from, box);
  // What few bytes of it hold now is what the device would find only if nothing is under way.
  const bool under_way =
      block && !(small && streams_.progress().finished_all(false).value_or(false));
  if (under_way) {
    const auto sent = copy_pinned(*block, to, from, box, stream,
                                  [&](std::uint64_t offset, std::uint64_t bytes) -> Result<void> {
                                    if (auto ok = settle_host_memory(false, stream); !ok) return ok;
                                    return stage_to_device(to.at(offset, 0, 0),
                                                           from.at(offset, 0, 0), {bytes}, stream);
                                  });
    if (!sent) return std::unexpected(sent.error());
    if (*sent) return {};
  }
  if (auto ok = settle_host_memory(under_way, stream); !ok) return ok;
  if (small) return write(to.address, std::span(from.memory(), box.width), stream);
  return stage_to_device(to, from, box, stream);
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
  // A stream made since, or another session, may have looked too early. And work that another
  // thread has sent in between would be left out, with this copy, by the next copy of this kind.
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
    return stage_to_device(Place::on_device(to), Place::on_host(bytes.data()), {size}, stream,
                           sent);
  return streams_.post(CommandType::kCopyInline, ipc::CopyInline{to, stream}, stream, bytes, sent);
}

Result<void> Copies::stage_to_device(const Place& to, const Place& from, const Box& box,
                                     std::uint64_t stream, Sent* sent) {
  const int threads = CopyCrew::size_for(box.bytes(), CopyCrew::cores());
  return stage_in(
      session_.wire().channel(), stream, threads, ChunkWalk(box, chunk_limit(box.bytes(), threads)),
      [&](std::byte* memory, const Chunk& chunk) {
        move_chunk(from, chunk, [&](const std::byte* host, std::uint64_t offset) {
          move_rows(memory + offset, chunk.box.width, host, from.pitch, chunk.box.width,
                    chunk.box.height);
        });
      },
      [&](const Chunk& chunk, const ipc::ClientChannel::Staging& staging) {
        return streams_.post(
            CommandType::kCopy,
            ipc::Copy{to.at(chunk.x, chunk.y, chunk.z),
                      Place::in_slot(staging.slot, staging.sequence), chunk.box, stream},
            stream, {}, sent);
      });
}

Result<void> Copies::copy_out(const Place& to, const Place& from, const Box& box,
                              std::uint64_t stream) {
  if (const auto block = pinned_block(to, box)) {
    const auto sent =
        copy_pinned(*block, to, from, box, stream, [&](std::uint64_t offset, std::uint64_t bytes) {
          return stage_to_host(to.at(offset, 0, 0), from.at(offset, 0, 0), {bytes}, stream);
        });
    if (!sent) return std::unexpected(sent.error());
    if (*sent) return {};
  }
  return stage_to_host(to, from, box, stream);
}

Result<void> Copies::stage_to_host(const Place& to, const Place& from, const Box& box,
                                   std::uint64_t stream) {
  const int threads = CopyCrew::size_for(box.bytes(), CopyCrew::cores());
  const auto last = stage_out(
      session_.wire().channel(), stream, threads, ChunkWalk(box, chunk_limit(box.bytes(), threads)),
      [&](const Chunk& chunk, const ipc::ClientChannel::Staging& staging, Sent& sent) {
        return streams_.post(CommandType::kCopy,
                             ipc::Copy{Place::in_slot(staging.slot, staging.sequence),
                                       from.at(chunk.x, chunk.y, chunk.z), chunk.box, stream},
                             stream, {}, &sent);
      },
      [&](const std::byte* memory, const Chunk& chunk) {
        move_chunk(to, chunk, [&](std::byte* host, std::uint64_t offset) {
          move_rows(host, to.pitch, memory + offset, chunk.box.width, chunk.box.width,
                    chunk.box.height);
        });
      });
  if (!last) return std::unexpected(last.error());
  // The data is there, so is what the stream had before: a query must not say less.
  streams_.progress().confirm(streams_.progress_of(stream), *last);
  session_.host_memory().guard().open_if_done();
  return {};
}

Result<void> Copies::fill(const Place& to, FillValue value, const Box& box, std::uint64_t stream) {
  if (box.empty()) return {};
  const Box flat = flattened(box, to, to);
  return streams_.post(
      CommandType::kFill,
      ipc::Fill{to.address, to.pitch, flat.width, flat.height, stream, value.bits, value.bytes},
      stream);
}

}  // namespace slate::client
