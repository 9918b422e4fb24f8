#include "client/session/box_copy.h"

namespace slate::client {
namespace {

/// Whether the last byte of the box has an address at all. Requires: the box is not empty.
bool ends_in_memory(const BoxSide& side, const BoxExtent& extent) {
  std::size_t at = 0;
  return !__builtin_add_overflow(side.z, extent.depth - 1, &at) &&
         !__builtin_mul_overflow(at, side.rows, &at) && !__builtin_add_overflow(at, side.y, &at) &&
         !__builtin_add_overflow(at, extent.height - 1, &at) &&
         !__builtin_mul_overflow(at, side.pitch, &at) && !__builtin_add_overflow(at, side.x, &at) &&
         !__builtin_add_overflow(at, extent.width, &at) &&
         !__builtin_add_overflow(at, address_of(side.memory), &at);
}

bool ends_within(std::size_t begin, std::size_t length, std::size_t whole) {
  return whole == 0 || (begin <= whole && length <= whole - begin);
}

}  // namespace

BoxCopy line_copy(void* to, const void* from, std::size_t bytes, Direction direction) {
  BoxCopy copy;
  copy.to = {0, to, bytes, bytes, 1};
  copy.from = {0, const_cast<void*>(from), bytes, bytes, 1};
  copy.extent = {bytes, 1, 1};
  copy.direction = direction;
  return copy;
}

Allowed<void> check_box(const BoxSide& side, const BoxExtent& extent) {
  const bool rows = extent.height > 1 || extent.depth > 1;
  const bool slices = extent.depth > 1;
  if ((rows && extent.width > side.pitch) || (slices && extent.height > side.rows)) {
    return refuse(Refusal::kInvalidPitch);
  }
  if (!ends_within(side.x, extent.width, side.pitch) ||
      !ends_within(side.y, extent.height, side.rows) || !ends_in_memory(side, extent)) {
    return refuse(Refusal::kInvalidValue);
  }
  return {};
}

}  // namespace slate::client
