#include "daemon/engine/commands/copy_commands.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/log.h"

namespace slate::daemon {

using ipc::CommandType;

namespace {

using device::Box;

bool is_inside(std::uint64_t first, std::uint64_t count, std::uint64_t size) {
  return first <= size && count <= size - first;
}

bool is_empty(Box box) {
  return box.width == 0 || box.height == 0 || box.depth == 0;
}

/// How far rows and planes of memory are apart, and bytes from the first to the last.
struct Layout {
  std::uint64_t pitch, slice, extent;
};

/// Requires: the box is not empty.
Result<Layout> layout_of(const ipc::BoxPlace& place, Box box) {
  Layout layout{box.height > 1 ? place.pitch : box.width, 0, 0};
  std::uint64_t plane = 0;
  bool fine =
      layout.pitch >= box.width && !__builtin_mul_overflow(layout.pitch, box.height, &plane);
  layout.slice = box.depth > 1 ? place.slice : plane;
  // A single row may be followed by planes at any distance.
  if (box.depth > 1 && box.height == 1) layout.pitch = layout.slice;
  fine = fine && layout.slice >= plane && layout.pitch > 0 && layout.slice % layout.pitch == 0;
  std::uint64_t before_last = 0, rows = 0;
  fine = fine && !__builtin_mul_overflow(layout.slice, box.depth - 1, &before_last) &&
         !__builtin_mul_overflow(layout.pitch, box.height - 1, &rows) &&
         !__builtin_add_overflow(before_last, rows, &layout.extent) &&
         !__builtin_add_overflow(layout.extent, box.width, &layout.extent);
  if (fine) return layout;
  return fail(ErrorCode::kInvalidValue,
              fmt::format("{} bytes x {} x {} in rows {} and planes {} bytes apart", box.width,
                          box.height, box.depth, place.pitch, place.slice));
}

/// Bytes from the first to the last one of `height` rows; false on overflow.
bool extent_of(std::uint64_t pitch, std::uint64_t width, std::uint64_t height,
               std::uint64_t& extent) {
  std::uint64_t before_last_row = 0;
  return !__builtin_mul_overflow(pitch, height - 1, &before_last_row) &&
         !__builtin_add_overflow(before_last_row, width, &extent);
}

}  // namespace

/// Requires: width and height are not 0.
Result<void> CopyCommands::check_range(std::uint64_t address, std::uint64_t pitch,
                                       std::uint64_t width, std::uint64_t height) const {
  std::uint64_t extent = 0;
  if (height > 1 && pitch < width) {
    return fail(ErrorCode::kInvalidValue, fmt::format("pitch {} below width {}", pitch, width));
  }
  if (!extent_of(pitch, width, height, extent)) {
    return fail(ErrorCode::kInvalidValue, "a copy longer than the address space");
  }
  return ranges_.check(address, extent);
}

Result<void> CopyCommands::on(const Call<CommandType::kCopyToDevice>& call) {
  return staged_copy(call.body, *call.stream, true);
}

Result<void> CopyCommands::on(const Call<CommandType::kCopyToHost>& call) {
  return staged_copy(call.body, *call.stream, false);
}

Result<void> CopyCommands::staged_copy(const ipc::StagedCopy& copy, LogicalStream& target,
                                       bool to_device) {
  std::uint64_t packed = 0;
  if (__builtin_mul_overflow(copy.width, copy.height, &packed)) packed = ~std::uint64_t{0};
  const SlotUse use{copy.slot, copy.slot_offset, copy.slot_sequence, target, to_device, packed};
  return use_slot(use, [&](std::byte* host, device::Stream stream) -> Result<void> {
    if (const auto ok = check_range(copy.address, copy.pitch, copy.width, copy.height); !ok)
      return ok;
    const device::Shape shape{copy.width, copy.height};
    return to_device ? context_.device.copy_to_device(copy.address, copy.pitch, host, copy.width,
                                                      shape, stream)
                     : context_.device.copy_to_host(host, copy.width, copy.address, copy.pitch,
                                                    shape, stream);
  });
}

Result<void> CopyCommands::use_slot(const SlotUse& use, const SlotCopy& copy) {
  if (use.slot >= ipc::kStagingSlots || use.offset > ipc::kStagingSlotBytes ||
      use.bytes > ipc::kStagingSlotBytes - use.offset) {
    return fail(ErrorCode::kProtocol, "a copy outside its staging slot");
  }
  Result<void> done;
  if (use.bytes > 0) done = submit_slot(use, copy);
  if (done && use.bytes > 0) return {};
  staging_.give_back(use.slot, use.sequence, done ? ErrorCode::kNone : done.error().code);
  if (done || use.to_device) return done;
  // A copy to the host is waited for, so its own call is told.
  log_debug("session {}: {}", context_.session, done.error().message);
  return {};
}

Result<void> CopyCommands::submit_slot(const SlotUse& use, const SlotCopy& copy) {
  const auto target = context_.streams.begin_work(use.stream);
  if (!target) return context_.checked(std::unexpected(target.error()));
  const auto memory = staging_.begin(use.slot);
  if (!memory) return std::unexpected(memory.error());
  const auto submitted = copy(*memory + use.offset, *target);
  if (!submitted) {
    staging_.cancel(use.slot);
    return context_.checked(submitted);
  }
  context_.streams.work_submitted(use.stream);
  count_copy(use.to_device, use.bytes);
  // A slot that went to the device is waited for when the others are used up, hardly ever.
  const auto notice = use.to_device ? Completer::Notice::kCheap : Completer::Notice::kSoon;
  const auto watched = context_.streams.watch(
      use.stream,
      [this, slot = use.slot, sequence = use.sequence](const Result<void>& outcome) {
        // First the error, then the slot: the client must not take what is in it for data.
        if (!outcome) context_.faults.on_device_error(outcome.error());
        staging_.finish(slot, sequence);
      },
      notice);
  // The transfer may still run, and nothing tells its end: the slot stays taken.
  if (!watched) context_.faults.on_device_error(watched.error());
  return {};
}

void CopyCommands::count_copy(bool to_device, std::uint64_t bytes) {
  counts_.copies.fetch_add(1, std::memory_order_relaxed);
  (to_device ? counts_.bytes_to_device : counts_.bytes_to_host)
      .fetch_add(bytes, std::memory_order_relaxed);
}

Result<void> CopyCommands::on(const Call<CommandType::kCopyInline>& call) {
  if (call.tail.empty() || call.tail.size() > ipc::kMostInlineBytes)
    return fail(ErrorCode::kProtocol, "a copy inside its command of a size that none has");
  if (const auto ok = check_range(call.body.address, call.tail.size(), call.tail.size(), 1); !ok)
    return ok;
  const auto target = context_.streams.begin_work(*call.stream);
  if (!target) return context_.checked(std::unexpected(target.error()));
  const std::byte* from = small_copies_->put(call.tail, context_.streams.share(*call.stream));
  std::shared_ptr<std::vector<std::byte>> own;
  if (from == nullptr) {
    own = std::make_shared<std::vector<std::byte>>(call.tail.begin(), call.tail.end());
    from = own->data();
  }
  const auto done = context_.device.copy_to_device(
      call.body.address, call.tail.size(), from, call.tail.size(), {call.tail.size(), 1}, *target);
  if (!done) return context_.checked(done);
  context_.streams.work_submitted(*call.stream);
  count_copy(true, call.tail.size());
  if (!own) return {};
  const auto watched = context_.streams.watch(*call.stream, [own](const Result<void>&) {});
  if (!watched) context_.faults.on_device_error(watched.error());
  return {};
}

/// Straight between the program's memory and the device's: complete with the stream, like a launch.
Result<void> CopyCommands::on(const Call<CommandType::kCopyPinned>& call) {
  if (call.body.width == 0 || call.body.height == 0) return {};
  if (const auto ok =
          check_range(call.body.address, call.body.pitch, call.body.width, call.body.height);
      !ok)
    return ok;
  std::uint64_t extent = 0;
  if ((call.body.height > 1 && call.body.host_pitch < call.body.width) ||
      !extent_of(call.body.host_pitch, call.body.width, call.body.height, extent)) {
    return fail(ErrorCode::kInvalidValue, "rows of host memory that overlap");
  }
  const auto host = host_.blocks().find(call.body.host, call.body.host_offset, extent);
  if (!host) return std::unexpected(host.error());
  const auto target = context_.streams.begin_work(*call.stream);
  if (!target) return context_.checked(std::unexpected(target.error()));
  const device::Shape shape{call.body.width, call.body.height};
  const bool to_device = call.body.to_device != 0;
  const auto done =
      to_device ? context_.device.copy_to_device(call.body.address, call.body.pitch, *host,
                                                 call.body.host_pitch, shape, *target)
                : context_.device.copy_to_host(*host, call.body.host_pitch, call.body.address,
                                               call.body.pitch, shape, *target);
  if (!done) return context_.checked(done);
  context_.streams.work_submitted(*call.stream);
  count_copy(to_device, call.body.width * call.body.height);
  return {};
}

Result<void> CopyCommands::on(const Call<CommandType::kCopyOnDevice>& call) {
  if (call.body.width == 0 || call.body.height == 0) return {};
  if (const auto ok =
          check_range(call.body.to, call.body.to_pitch, call.body.width, call.body.height);
      !ok)
    return ok;
  if (const auto ok =
          check_range(call.body.from, call.body.from_pitch, call.body.width, call.body.height);
      !ok) {
    return ok;
  }
  const auto target = context_.streams.begin_work(*call.stream);
  if (!target) return context_.checked(std::unexpected(target.error()));
  const auto done = context_.executor.let_through(context_.client, *target, [&] {
    return context_.device.copy_on_device(call.body.to, call.body.to_pitch, call.body.from,
                                          call.body.from_pitch, {call.body.width, call.body.height},
                                          *target);
  });
  if (!done) return context_.checked(done);
  context_.streams.work_submitted(*call.stream);
  counts_.copies.fetch_add(1, std::memory_order_relaxed);
  return {};
}

Result<void> CopyCommands::on(const Call<CommandType::kFill>& call) {
  if (call.body.width == 0 || call.body.height == 0) return {};
  if (const auto ok = check_range(call.body.to, call.body.pitch, call.body.width, call.body.height);
      !ok) {
    return ok;
  }
  const auto target = context_.streams.begin_work(*call.stream);
  if (!target) return context_.checked(std::unexpected(target.error()));
  const auto done = context_.executor.let_through(context_.client, *target, [&] {
    return context_.device.fill(call.body.to, call.body.pitch,
                                static_cast<std::uint8_t>(call.body.value),
                                {call.body.width, call.body.height}, *target);
  });
  if (!done) return context_.checked(done);
  context_.streams.work_submitted(*call.stream);
  return {};
}

/// Requires: the box is not empty.
Result<device::Place> CopyCommands::place_in_array(const ipc::BoxPlace& place, Box box) const {
  const auto array = arrays_.find(place.id);
  if (!array) return std::unexpected(array.error());
  const ArraySpec& spec = (*array)->spec;
  if (place.level >= std::max(1u, spec.levels)) {
    return fail(ErrorCode::kInvalidValue, "a copy of a level that is not there");
  }
  const ArrayExtent whole = level_box(spec, place.level);
  const std::uint64_t element = spec.format.bytes();
  if (!is_inside(place.x, box.width, whole.width * element) ||
      !is_inside(place.y, box.height, whole.height) ||
      !is_inside(place.z, box.depth, whole.depth)) {
    return fail(ErrorCode::kInvalidValue,
                fmt::format("{} bytes x {} x {} at ({}, {}, {}) are not in the array", box.width,
                            box.height, box.depth, place.x, place.y, place.z));
  }
  return device::ArrayPlace{(*array)->handle, place.level, place.x, place.y, place.z};
}

Result<device::Place> CopyCommands::place_of(const ipc::BoxPlace& place, Box box) const {
  if (place.kind == ipc::BoxKind::kArray) return place_in_array(place, box);
  const auto layout = layout_of(place, box);
  if (!layout) return std::unexpected(layout.error());
  if (place.kind == ipc::BoxKind::kHost) {
    const auto memory = host_.blocks().find(place.id, place.address, layout->extent);
    if (!memory) return std::unexpected(memory.error());
    return device::HostPlace{*memory, layout->pitch, layout->slice};
  }
  if (place.kind != ipc::BoxKind::kDevice) {
    return fail(ErrorCode::kProtocol, "a copy of a kind of memory that there is not");
  }
  if (const auto ok = check_range(place.address, layout->extent, layout->extent, 1); !ok) {
    return std::unexpected(ok.error());
  }
  return device::DevicePlace{place.address, layout->pitch, layout->slice};
}

Result<void> CopyCommands::on(const Call<CommandType::kCopyBox>& call) {
  const Box box{call.body.width, call.body.height, call.body.depth};
  if (is_empty(box)) return {};
  if (call.body.to.kind != ipc::BoxKind::kArray && call.body.from.kind != ipc::BoxKind::kArray) {
    return fail(ErrorCode::kProtocol, "a copy of arrays without an array");
  }
  const auto to = place_of(call.body.to, box);
  if (!to) return std::unexpected(to.error());
  const auto from = place_of(call.body.from, box);
  if (!from) return std::unexpected(from.error());
  const auto target = context_.streams.begin_work(*call.stream);
  if (!target) return context_.checked(std::unexpected(target.error()));
  const bool with_host =
      call.body.from.kind == ipc::BoxKind::kHost || call.body.to.kind == ipc::BoxKind::kHost;
  const auto submit = [&] { return context_.device.copy_box(*to, *from, box, *target); };
  const auto done =
      with_host ? submit() : context_.executor.let_through(context_.client, *target, submit);
  if (!done) return context_.checked(done);
  context_.streams.work_submitted(*call.stream);
  const std::uint64_t bytes = box.width * box.height * box.depth;
  if (call.body.from.kind == ipc::BoxKind::kHost) {
    count_copy(true, bytes);
  } else if (call.body.to.kind == ipc::BoxKind::kHost) {
    count_copy(false, bytes);
  } else {
    counts_.copies.fetch_add(1, std::memory_order_relaxed);
  }
  return {};
}

Result<void> CopyCommands::on(const Call<CommandType::kStagedBox>& call) {
  const Box box{call.body.width, call.body.height, call.body.depth};
  std::uint64_t packed = 0;
  if (__builtin_mul_overflow(box.width, box.height, &packed) ||
      __builtin_mul_overflow(packed, box.depth, &packed)) {
    packed = ~std::uint64_t{0};
  }
  const bool to_device = call.body.to_device != 0;
  const SlotUse use{
      call.body.slot, call.body.slot_offset, call.body.slot_sequence, *call.stream, to_device,
      packed};
  return use_slot(use, [&](std::byte* host, device::Stream stream) -> Result<void> {
    const auto array = place_in_array(call.body.array, box);
    if (!array) return std::unexpected(array.error());
    const device::Place memory = device::HostPlace{host, box.width, box.width * box.height};
    return to_device ? context_.device.copy_box(*array, memory, box, stream)
                     : context_.device.copy_box(memory, *array, box, stream);
  });
}

}  // namespace slate::daemon
