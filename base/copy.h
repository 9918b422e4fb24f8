// Copies as plain values: how much is copied, and where it begins. What a program asks for, what
// crosses to the engine and what a device does are the same two types. Sizes, pitches and offsets
// are in bytes. Any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <type_traits>

namespace slate {

/// `depth` planes of `height` rows of `width` bytes.
struct Box {
  std::uint64_t width = 0;
  std::uint64_t height = 1, depth = 1;

  bool empty() const { return width == 0 || height == 0 || depth == 0; }
  /// One row: neither pitch nor slice says anything.
  bool is_line() const { return height == 1 && depth == 1; }
  /// Of a box in memory, whose bytes have addresses. See also packed_bytes().
  std::uint64_t bytes() const { return width * height * depth; }
  bool operator==(const Box&) const = default;
};

/// Whether `count` from `first` on lie within `size`. Any values: no sum overflows.
constexpr bool is_inside(std::uint64_t first, std::uint64_t count, std::uint64_t size) {
  return first <= size && count <= size - first;
}

/// What a fill writes again and again: a number of 1, 2 or 4 bytes. Where it is more than one, the
/// rows of the fill begin at multiples of it, and have whole numbers.
struct FillValue {
  std::uint32_t bits = 0;   // the low `bytes` bytes count
  std::uint32_t bytes = 1;  // 1, 2 or 4

  FillValue(std::uint8_t byte) : bits(byte) {}  // NOLINT: a byte is the plainest value
  FillValue(std::uint32_t number, std::uint32_t size) : bits(number), bytes(size) {}
  /// The value over and over, in four bytes.
  std::uint32_t word() const {
    return bytes == 1   ? 0x0101'0101U * (bits & 0xff)
           : bytes == 2 ? 0x0001'0001U * (bits & 0xffff)
                        : bits;
  }
  /// Whether these are numbers of 1, 2 or 4 bytes that begin where they may.
  bool fits(std::uint64_t address, std::uint64_t pitch, const Box& box) const {
    if (bytes != 1 && bytes != 2 && bytes != 4) return false;
    return address % bytes == 0 && box.width % bytes == 0 &&
           (box.height <= 1 || pitch % bytes == 0);
  }
};

/// What a box lies in. Programs and devices have kArray, kDevice and kHost. On the wire kHost
/// becomes kBlock or kSlot, because the engine has other addresses than the program.
enum class PlaceKind : std::uint32_t {
  kArray = 1,   // a CUDA array
  kDevice = 2,  // memory at an address of the device
  kHost = 3,    // memory of this process; never on the wire
  kBlock = 4,   // host memory that the device reaches, of kHostAllocate
  kSlot = 5,    // a staging slot of the segment, in which rows and planes lie packed
};

/// Where a box begins. Made by the functions below, which say the fields that their kind has.
struct Place {
  PlaceKind kind = PlaceKind::kDevice;
  std::uint32_t part = 0;    // kArray: the level; kSlot: the number of the slot
  std::uint64_t object = 0;  // kArray: id on the wire, else handle; kBlock: id; kSlot: its turn
  // Memory: address, or offset in the block or slot. Array: bytes, which may cut elements.
  union {
    std::uint64_t address = 0;
    std::uint64_t x;
  };
  // Memory: bytes from row to row. Array: rows.
  union {
    std::uint64_t pitch = 0;
    std::uint64_t y;
  };
  // Memory: bytes from plane to plane. Array: planes.
  union {
    std::uint64_t slice = 0;
    std::uint64_t z;
  };

  bool is(PlaceKind other) const { return kind == other; }
  /// The place so far into a box that begins here: bytes, rows and planes.
  Place at(std::uint64_t width, std::uint64_t rows, std::uint64_t planes) const {
    if (is(PlaceKind::kArray)) return in_array(object, part, x + width, y + rows, z + planes);
    return make(kind, part, object, address + planes * slice + rows * pitch + width, pitch, slice);
  }
  /// Requires: kHost. Not written when it is what a copy reads.
  std::byte* memory() const { return reinterpret_cast<std::byte*>(address); }

  /// `array`: a number, or a device::Array.
  template <typename Id>
  static Place in_array(Id array, std::uint32_t level = 0, std::uint64_t x = 0, std::uint64_t y = 0,
                        std::uint64_t z = 0) {
    return make(PlaceKind::kArray, level, static_cast<std::uint64_t>(array), x, y, z);
  }
  static Place on_device(std::uint64_t address, std::uint64_t pitch = 0, std::uint64_t slice = 0) {
    return make(PlaceKind::kDevice, 0, 0, address, pitch, slice);
  }
  static Place on_host(const void* memory, std::uint64_t pitch = 0, std::uint64_t slice = 0) {
    return make(PlaceKind::kHost, 0, 0, reinterpret_cast<std::uintptr_t>(memory), pitch, slice);
  }
  static Place in_block(std::uint64_t block, std::uint64_t offset, std::uint64_t pitch = 0,
                        std::uint64_t slice = 0) {
    return make(PlaceKind::kBlock, 0, block, offset, pitch, slice);
  }
  static Place in_slot(std::uint32_t slot, std::uint64_t turn, std::uint64_t offset = 0) {
    return make(PlaceKind::kSlot, slot, turn, offset, 0, 0);
  }

 private:
  static Place make(PlaceKind kind, std::uint32_t part, std::uint64_t object, std::uint64_t first,
                    std::uint64_t second, std::uint64_t third) {
    Place place;
    place.kind = kind;
    place.part = part;
    place.object = object;
    place.address = first;
    place.pitch = second;
    place.slice = third;
    return place;
  }
};
static_assert(sizeof(Place) == 40 && std::is_trivially_copyable_v<Place>);

/// Bytes of the box without gaps; nothing when there are more than an address can count.
std::optional<std::uint64_t> packed_bytes(const Box& box);
/// Bytes from the first to the last one of the box in memory with these distances. A distance that
/// the box does not need is not looked at. Nothing when rows or planes overlap, or the bytes are
/// more than an address can count. Requires: the box is not empty.
std::optional<std::uint64_t> extent_of(const Box& box, std::uint64_t pitch, std::uint64_t slice);
/// The same bytes in fewer rows and planes, where those touch one another on both sides.
/// Requires: neither side is an array.
Box flattened(const Box& box, const Place& to, const Place& from);

}  // namespace slate
