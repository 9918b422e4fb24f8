// Copies in three dimensions as programs describe them: between memory and CUDA arrays, with a
// position on each side. Values only: array_copy.h and address_copy.h do the copies.
#pragma once

#include <cstddef>
#include <cstdint>

#include "client/session/allocation_table.h"
#include "client/session/numbers.h"
#include "client/session/refused.h"

namespace slate::client {

/// Which sides of a copy should be on the device. Programs pass any number.
enum class Direction : int {
  kHostToHost = 0,
  kHostToDevice = 1,
  kDeviceToHost = 2,
  kDeviceToDevice = 3,
  kByAddress = 4,  // decided by the addresses
};

/// The unit of a copy's width and of x in array positions. The functions that count bytes copy
/// parts of elements, and between arrays with elements of different sizes.
enum class CopyUnit { kElement, kByte };

/// The size of a copy; the width is in units for arrays, else in bytes.
struct BoxExtent {
  std::size_t width = 0, height = 0, depth = 0;

  bool empty() const { return width == 0 || height == 0 || depth == 0; }
  bool operator==(const BoxExtent&) const = default;
};

/// One side of a copy: a position in an array, or in memory with rows `pitch` bytes apart.
struct BoxSide {
  std::uint64_t array = 0;  // an id of Session::arrays(); 0: memory
  void* memory = nullptr;
  std::size_t pitch = 0;
  std::size_t width = 0;  // of a row; kept, without effect
  std::size_t rows = 0;
  std::size_t x = 0, y = 0, z = 0;

  /// Where the box's slice `slice` begins in memory.
  std::byte* slice_at(std::size_t slice) const {
    return static_cast<std::byte*>(memory) + ((z + slice) * rows + y) * pitch + x;
  }
};

struct BoxCopy {
  BoxSide to, from;
  BoxExtent extent;
  Direction direction = Direction::kByAddress;
  CopyUnit unit = CopyUnit::kElement;

  bool has_array() const { return to.array != 0 || from.array != 0; }
};

/// A copy of one row of memory.
BoxCopy line_copy(void* to, const void* from, std::size_t bytes, Direction direction);

/// Whether the box lies within the rows and slices of the memory, as far as their lengths are
/// known. Requires: the box is not empty.
/// - kInvalidPitch: rows or slices are too short for any such box.
/// - kInvalidValue: they are too short for a box at this position, or for its only row or slice.
/// - kInvalidValue: the box does not end within the address space.
Allowed<void> check_box(const BoxSide& side, const BoxExtent& extent);

}  // namespace slate::client
