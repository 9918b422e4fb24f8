#include "daemon/engine/commands/copy_commands.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <vector>

namespace slate::daemon {

using ipc::CommandType;

namespace {

// Bytes to the device that take less time than a watch of their own.
constexpr std::uint64_t kMostSmall = 128 << 10;

/// The place with a pitch and a slice that fit each other, also where the box needs neither.
Place with_distances(const Place& place, const Box& box) {
  Place full = place;
  if (box.height == 1) full.pitch = box.depth > 1 ? place.slice : box.width;
  if (box.depth == 1) full.slice = full.pitch * box.height;
  return full;
}

std::unexpected<Error> bad_box(const Place& place, const Box& box) {
  return fail(ErrorCode::kInvalidValue,
              fmt::format("{} bytes x {} x {} in rows {} and planes {} bytes apart", box.width,
                          box.height, box.depth, place.pitch, place.slice));
}

}  // namespace

/// Requires: the box is not empty.
Result<Place> CopyCommands::resolve_array(const Place& place, const Box& box) const {
  const auto array = arrays_.find(place.object);
  if (!array) return std::unexpected(array.error());
  const ArraySpec& spec = (*array)->spec;
  if (place.part >= std::max(1u, spec.levels))
    return fail(ErrorCode::kInvalidValue, "a copy of a level that is not there");
  const ArrayExtent whole = level_box(spec, place.part);
  const std::uint64_t element = spec.format.bytes();
  if (!is_inside(place.x, box.width, whole.width * element) ||
      !is_inside(place.y, box.height, whole.height) ||
      !is_inside(place.z, box.depth, whole.depth)) {
    return fail(ErrorCode::kInvalidValue,
                fmt::format("{} bytes x {} x {} at ({}, {}, {}) are not in the array", box.width,
                            box.height, box.depth, place.x, place.y, place.z));
  }
  return Place::in_array((*array)->handle, place.part, place.x, place.y, place.z);
}

/// The place as the device knows it, if the box there is the session's. Not for kSlot.
/// Requires: the box is not empty.
Result<Place> CopyCommands::resolve(const Place& place, const Box& box) const {
  if (place.is(PlaceKind::kArray)) return resolve_array(place, box);
  const auto extent = extent_of(box, place.pitch, place.slice);
  if (!extent) return bad_box(place, box);
  const Place full = with_distances(place, box);
  if (box.depth > 1 && full.slice % full.pitch != 0) return bad_box(place, box);
  if (place.is(PlaceKind::kDevice)) {
    if (const auto ok = ranges_.check(place.address, *extent); !ok)
      return std::unexpected(ok.error());
    return full;
  }
  if (!place.is(PlaceKind::kBlock))
    return fail(ErrorCode::kProtocol, "a copy of a kind of place that there is not");
  const auto memory = host_.blocks().find(place.object, place.address, *extent);
  if (!memory) return std::unexpected(memory.error());
  return Place::on_host(*memory, full.pitch, full.slice);
}

/// Puts the copy on the stream. Within the device it takes SMs, like a kernel.
Result<void> CopyCommands::copy(LogicalStream& stream, const Place& to, const Place& from,
                                const Box& box, Direction direction) {
  ConstantCopies& constants = context_.fence.constants();
  if (!constants.empty() && to.is(PlaceKind::kDevice)) {
    constants.note_write({to.address, *extent_of(box, to.pitch, to.slice)});
    // With distances between rows there are no lists of pointers.
    if (from.is(PlaceKind::kHost))
      constants.note_bytes({reinterpret_cast<const std::byte*>(from.address), box.width});
  }
  const auto done = context_.submit(stream, [&](device::Stream target) {
    const auto start = [&] { return context_.device.copy(to, from, box, target); };
    if (direction != Direction::kOnDevice) return start();
    return context_.executor.let_through(context_.client, target, std::cref(start));
  });
  if (!done) return done;
  counts_.copies.fetch_add(1, std::memory_order_relaxed);
  if (direction == Direction::kToDevice)
    counts_.bytes_to_device.fetch_add(box.bytes(), std::memory_order_relaxed);
  if (direction == Direction::kToHost)
    counts_.bytes_to_host.fetch_add(box.bytes(), std::memory_order_relaxed);
  return done;
}

Result<void> CopyCommands::on(const Call<CommandType::kCopy>& call) {
  const auto& [to, from, box, stream] = call.body;
  if (to.is(PlaceKind::kSlot)) return copy_through_slot(call, to, from);
  if (from.is(PlaceKind::kSlot)) return copy_through_slot(call, from, to);
  if (box.empty()) return {};
  if (box.bytes() > kMostSmall) context_.streams.watches().watch_put_off();
  const bool to_host = to.is(PlaceKind::kBlock), to_device = from.is(PlaceKind::kBlock);
  if (to_host && to_device)
    return fail(ErrorCode::kProtocol, "a copy without a side on the device");
  const auto target = resolve(to, box);
  if (!target) return std::unexpected(target.error());
  const auto source = resolve(from, box);
  if (!source) return std::unexpected(source.error());
  return copy(*call.stream, *target, *source, box,
              to_host     ? Direction::kToHost
              : to_device ? Direction::kToDevice
                          : Direction::kOnDevice);
}

Result<void> CopyCommands::copy_through_slot(const Call<CommandType::kCopy>& call,
                                             const Place& slot, const Place& other) {
  const Box& box = call.body.box;
  const auto bytes = packed_bytes(box);
  if (slot.part >= ipc::kStagingSlots || !bytes ||
      !is_inside(slot.address, *bytes, ipc::kStagingSlotBytes)) {
    return fail(ErrorCode::kProtocol, "a copy outside its staging slot");
  }
  if (!other.is(PlaceKind::kArray) && !other.is(PlaceKind::kDevice))
    return fail(ErrorCode::kProtocol, "a copy without a side on the device");
  if (*bytes == 0) {
    staging_.give_back(slot.part, slot.object, ErrorCode::kNone);
    return {};
  }
  const auto there = resolve(other, box);
  if (!there) return std::unexpected(there.error());
  std::byte* const memory = staging_.begin(slot.part);
  const Place here = Place::on_host(memory + slot.address, box.width, box.width * box.height);
  const bool to_host = &slot == &call.body.to;
  const auto submitted = to_host ? copy(*call.stream, here, *there, box, Direction::kToHost)
                                 : copy(*call.stream, *there, here, box, Direction::kToDevice);
  if (!submitted) {
    staging_.cancel(slot.part);
    return submitted;
  }
  const auto ended = [this, number = slot.part, turn = slot.object](const Result<void>& outcome) {
    // First the error, then the slot: the client must not take what is in it for data.
    if (!outcome) context_.faults.on_device_error(outcome.error());
    staging_.finish(number, turn);
  };
  // A slot that went to the device is waited for when the others are used up, which is rare.
  if (!to_host && *bytes <= kMostSmall) {
    context_.streams.watches().watch_later(*call.stream, ended);
    return {};
  }
  const auto watched = context_.streams.watches().watch(
      *call.stream, ended, to_host ? Completer::Notice::kSoon : Completer::Notice::kCheap);
  // The transfer may still run, and nothing tells its end: the slot stays taken.
  if (!watched) context_.faults.on_device_error(watched.error());
  return {};
}

Result<void> CopyCommands::on(const Call<CommandType::kCopyInline>& call) {
  const std::size_t bytes = call.tail.size();
  if (bytes == 0 || bytes > ipc::kMostInlineBytes)
    return fail(ErrorCode::kProtocol, "a copy inside its command of a size that none has");
  if (const auto ok = ranges_.check(call.body.address, bytes); !ok) return ok;
  const std::byte* from = small_copies_->put(call.tail, context_.streams.share(*call.stream));
  std::shared_ptr<std::vector<std::byte>> own;
  if (from == nullptr) {
    own = std::make_shared<std::vector<std::byte>>(call.tail.begin(), call.tail.end());
    from = own->data();
  }
  const auto done = copy(*call.stream, Place::on_device(call.body.address), Place::on_host(from),
                         {bytes}, Direction::kToDevice);
  if (!done || !own) return done;
  const auto watched =
      context_.streams.watches().watch(*call.stream, [own](const Result<void>&) {});
  if (!watched) context_.faults.on_device_error(watched.error());
  return {};
}

Result<void> CopyCommands::on(const Call<CommandType::kFill>& call) {
  const ipc::Fill& fill = call.body;
  const Box box{fill.width, fill.height, 1};
  const FillValue value(fill.value, fill.element);
  if (fill.element != 1 && fill.element != 2 && fill.element != 4)
    return fail(ErrorCode::kProtocol, "a fill with a value of a size that none has");
  if (box.empty()) return {};
  if (!value.fits(fill.to, fill.pitch, box)) {
    return fail(ErrorCode::kInvalidValue,
                fmt::format("a fill of values of {} bytes that are not aligned", fill.element));
  }
  const auto extent = extent_of(box, fill.pitch, 0);
  if (!extent) return bad_box(Place::on_device(fill.to, fill.pitch), box);
  if (const auto ok = ranges_.check(fill.to, *extent); !ok) return ok;
  context_.fence.constants().note_write({fill.to, *extent});
  return context_.submit(*call.stream, [&](device::Stream target) {
    const auto start = [&] {
      return context_.device.fill(fill.to, fill.pitch, value, box, target);
    };
    return context_.executor.let_through(context_.client, target, std::cref(start));
  });
}

}  // namespace slate::daemon
