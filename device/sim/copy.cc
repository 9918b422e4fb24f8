#include "device/sim/copy.h"

#include <fmt/format.h>

#include <cstring>
#include <optional>
#include <vector>

namespace slate::sim {
namespace {

using device::Shape;

bool empty(Shape shape) {
  return shape.width == 0 || shape.height == 0;
}

// Bytes from the first to the last byte of the rows; nullopt if the pitch is too small or it
// overflows.
std::optional<std::uint64_t> extent(Rows rows, Shape shape) {
  std::uint64_t bytes = 0;
  std::uint64_t end = 0;
  if (shape.height > 1 && rows.pitch < shape.width) return std::nullopt;
  if (__builtin_mul_overflow(shape.height - 1, rows.pitch, &bytes) ||
      __builtin_add_overflow(bytes, shape.width, &bytes) ||
      __builtin_add_overflow(rows.address, bytes, &end)) {
    return std::nullopt;
  }
  return bytes;
}

std::string text(Rows rows, Shape shape) {
  return fmt::format("{} rows of {} bytes, {} apart, at {:#x}", shape.height, shape.width,
                     rows.pitch, rows.address);
}

char* row(Rows rows, std::uint64_t i) {
  return reinterpret_cast<char*>(rows.address + i * rows.pitch);
}

}  // namespace

Result<void> check_host_rows(Rows rows, Shape shape) {
  if (empty(shape)) return {};
  if (rows.address != 0 && extent(rows, shape)) return {};
  return fail(ErrorCode::kInvalidValue,
              fmt::format("host memory: bad shape: {}", text(rows, shape)));
}

Result<void> check_device_rows(const Memory& memory, Rows rows, Shape shape, ErrorCode code) {
  if (empty(shape)) return {};
  const auto bytes = extent(rows, shape);
  if (!bytes) {
    return fail(ErrorCode::kInvalidValue,
                fmt::format("device memory: bad shape: {}", text(rows, shape)));
  }
  if (memory.is_mapped(rows.address, *bytes)) return {};
  return fail(code, fmt::format("device memory: not mapped: {}", text(rows, shape)));
}

void copy_rows(Rows to, Rows from, Shape shape) {
  if (empty(shape)) return;
  const std::uint64_t to_end = to.address + *extent(to, shape);
  const std::uint64_t from_end = from.address + *extent(from, shape);
  const bool apart = to_end <= from.address || from_end <= to.address;
  const bool dense = to.pitch == shape.width && from.pitch == shape.width;
  if (dense || shape.height == 1) {
    std::memmove(row(to, 0), row(from, 0), shape.width * shape.height);
  } else if (apart || (to.pitch == from.pitch && to.address <= from.address)) {
    for (std::uint64_t i = 0; i < shape.height; ++i) {
      std::memmove(row(to, i), row(from, i), shape.width);
    }
  } else if (to.pitch == from.pitch) {
    for (std::uint64_t i = shape.height; i-- > 0;) {
      std::memmove(row(to, i), row(from, i), shape.width);
    }
  } else {
    // Overlapping with different pitches: no order of rows is right for every case.
    std::vector<char> rows(shape.width * shape.height);
    for (std::uint64_t i = 0; i < shape.height; ++i) {
      std::memcpy(rows.data() + i * shape.width, row(from, i), shape.width);
    }
    for (std::uint64_t i = 0; i < shape.height; ++i) {
      std::memcpy(row(to, i), rows.data() + i * shape.width, shape.width);
    }
  }
}

void fill_rows(Rows to, std::uint8_t value, Shape shape) {
  if (empty(shape)) return;
  for (std::uint64_t i = 0; i < shape.height; ++i) std::memset(row(to, i), value, shape.width);
}

}  // namespace slate::sim
