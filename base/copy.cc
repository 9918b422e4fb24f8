#include "base/copy.h"

namespace slate {

std::optional<std::uint64_t> packed_bytes(const Box& box) {
  std::uint64_t bytes = 0;
  if (__builtin_mul_overflow(box.width, box.height, &bytes) ||
      __builtin_mul_overflow(bytes, box.depth, &bytes)) {
    return std::nullopt;
  }
  return bytes;
}

std::optional<std::uint64_t> extent_of(const Box& box, std::uint64_t pitch, std::uint64_t slice) {
  std::uint64_t plane = box.width, extent = 0;
  if (box.height > 1 &&
      (pitch < box.width || __builtin_mul_overflow(pitch, box.height - 1, &plane) ||
       __builtin_add_overflow(plane, box.width, &plane))) {
    return std::nullopt;
  }
  if (box.depth <= 1) return plane;
  if (slice < plane || __builtin_mul_overflow(slice, box.depth - 1, &extent) ||
      __builtin_add_overflow(extent, plane, &extent)) {
    return std::nullopt;
  }
  return extent;
}

Box flattened(const Box& box, const Place& to, const Place& from) {
  Box flat = box;
  if (flat.depth > 1) {
    const auto touch = [&](const Place& place) {
      return place.slice == (flat.height > 1 ? place.pitch * flat.height : flat.width);
    };
    if (!touch(to) || !touch(from)) return flat;
    // The pitch of single rows was not looked at so far: it is their width.
    if (flat.height == 1 && (to.pitch != flat.width || from.pitch != flat.width)) return flat;
    flat = {flat.width, flat.height * flat.depth, 1};
  }
  if (flat.height > 1 && to.pitch == flat.width && from.pitch == flat.width)
    flat = {flat.width * flat.height, 1, 1};
  return flat;
}

}  // namespace slate
