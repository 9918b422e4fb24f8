// Copies of three dimensions as programs describe them: between memory and CUDA arrays, each side
// by a position in something larger. Values only: what they copy is in array_copy.h and
// address_copy.h.
#pragma once

#include <cstddef>
#include <cstdint>

#include "client/session/allocation_table.h"
#include "client/session/refused.h"

namespace slate::client {

/// Which sides of a copy are meant to be on the device. Programs give any number for it.
enum class Direction : int {
  kHostToHost = 0,
  kHostToDevice = 1,
  kDeviceToHost = 2,
  kDeviceToDevice = 3,
  kByAddress = 4,  // as the addresses say
};

/// What the width of a copy and the x of its positions in arrays count. The functions that count
/// bytes copy parts of elements, and between arrays whose elements are of different sizes.
enum class CopyUnit { kElement, kByte };

/// The size of a copy; of arrays the width in units, else in bytes.
struct BoxExtent {
  std::size_t width = 0, height = 0, depth = 0;

  bool empty() const { return width == 0 || height == 0 || depth == 0; }
  bool operator==(const BoxExtent&) const = default;
};

/// An array, or memory with rows `pitch` bytes apart and so many rows a slice, and a position in
/// it.
struct BoxSide {
  std::uint64_t array = 0;  // an id of Session::arrays(); 0: memory
  void* memory = nullptr;
  std::size_t pitch = 0;
  std::size_t width = 0;  // of a row; told, and without effect
  std::size_t rows = 0;
  std::size_t x = 0, y = 0, z = 0;

  /// Where the slice `slice` of a box in memory begins.
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

/// Whether the box lies within the rows and slices of the memory, as far as it says how long they
/// are. Errors: kInvalidPitch when they are too short for any such box. Also kInvalidValue when they
/// are so for one at this position, or for the only row or slice, or when the box does not end
/// within the address space. Requires: the box is not empty.
Allowed<void> check_box(const BoxSide& side, const BoxExtent& extent);

inline std::uint64_t address_of(const void* pointer) {
  return reinterpret_cast<std::uintptr_t>(pointer);
}
inline void* pointer_to(std::uint64_t address) {
  return reinterpret_cast<void*>(static_cast<std::uintptr_t>(address));
}

}  // namespace slate::client
