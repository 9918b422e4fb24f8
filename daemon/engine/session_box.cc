// Copies of three dimensions: between arrays, and between an array and memory of the device, of the
// host, or of a staging slot.
#include <fmt/format.h>

#include <algorithm>

#include "daemon/engine/session.h"

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
  return slate::fail(ErrorCode::kInvalidValue,
                     fmt::format("{} bytes x {} x {} in rows {} and planes {} bytes apart",
                                 box.width, box.height, box.depth, place.pitch, place.slice));
}

}  // namespace

/// Requires: the box is not empty.
Result<device::Place> Session::place_in_array(const ipc::BoxPlace& place, Box box) const {
  const auto array = objects_->find_array(place.id);
  if (!array) return std::unexpected(array.error());
  const ArraySpec& spec = (*array)->spec;
  if (place.level >= std::max(1u, spec.levels)) {
    return slate::fail(ErrorCode::kInvalidValue, "a copy of a level that is not there");
  }
  const ArrayExtent whole = level_box(spec, place.level);
  const std::uint64_t element = spec.format.bytes();
  if (!is_inside(place.x, box.width, whole.width * element) ||
      !is_inside(place.y, box.height, whole.height) ||
      !is_inside(place.z, box.depth, whole.depth)) {
    return slate::fail(ErrorCode::kInvalidValue,
                       fmt::format("{} bytes x {} x {} at ({}, {}, {}) are not in the array",
                                   box.width, box.height, box.depth, place.x, place.y, place.z));
  }
  return device::ArrayPlace{(*array)->handle, place.level, place.x, place.y, place.z};
}

Result<device::Place> Session::place_of(const ipc::BoxPlace& place, Box box) const {
  if (place.kind == ipc::BoxKind::kArray) return place_in_array(place, box);
  const auto layout = layout_of(place, box);
  if (!layout) return std::unexpected(layout.error());
  if (place.kind == ipc::BoxKind::kHost) {
    const auto memory = host_blocks_.find(place.id, place.address, layout->extent);
    if (!memory) return std::unexpected(memory.error());
    return device::HostPlace{*memory, layout->pitch, layout->slice};
  }
  if (place.kind != ipc::BoxKind::kDevice) {
    return slate::fail(ErrorCode::kProtocol, "a copy of a kind of memory that there is not");
  }
  if (const auto ok = check_range(place.address, layout->extent, layout->extent, 1); !ok) {
    return std::unexpected(ok.error());
  }
  return device::DevicePlace{place.address, layout->pitch, layout->slice};
}

Result<void> Session::on(const Call<CommandType::kCopyBox>& call) {
  const Box box{call.body.width, call.body.height, call.body.depth};
  if (is_empty(box)) return {};
  if (call.body.to.kind != ipc::BoxKind::kArray && call.body.from.kind != ipc::BoxKind::kArray) {
    return slate::fail(ErrorCode::kProtocol, "a copy of arrays without an array");
  }
  const auto to = place_of(call.body.to, box);
  if (!to) return std::unexpected(to.error());
  const auto from = place_of(call.body.from, box);
  if (!from) return std::unexpected(from.error());
  const auto target = streams_.begin_work(*call.stream);
  if (!target) return checked(std::unexpected(target.error()));
  const bool with_host =
      call.body.from.kind == ipc::BoxKind::kHost || call.body.to.kind == ipc::BoxKind::kHost;
  const auto submit = [&] { return device_.copy_box(*to, *from, box, *target); };
  const auto done = with_host ? submit() : executor_.let_through(*client_, *target, submit);
  if (!done) return checked(done);
  streams_.work_submitted(*call.stream);
  const std::uint64_t bytes = box.width * box.height * box.depth;
  if (call.body.from.kind == ipc::BoxKind::kHost) {
    count_copy(true, bytes);
  } else if (call.body.to.kind == ipc::BoxKind::kHost) {
    count_copy(false, bytes);
  } else {
    copies_.fetch_add(1, std::memory_order_relaxed);
  }
  return {};
}

Result<void> Session::on(const Call<CommandType::kStagedBox>& call) {
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
    return to_device ? device_.copy_box(*array, memory, box, stream)
                     : device_.copy_box(memory, *array, box, stream);
  });
}

}  // namespace slate::daemon
