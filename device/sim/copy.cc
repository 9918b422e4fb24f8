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

#ifdef __SANITIZE_THREAD__
// A copy beside a running kernel is the program's affair, as on a GPU: no data race of sim's own.
// So the sanitizer is shown relaxed atomic accesses, as the interpreter's are.
void move_bytes(char* to, const char* from, std::uint64_t bytes) {
  const bool backwards = to > from;
  for (std::uint64_t i = 0; i < bytes; ++i) {
    const std::uint64_t at = backwards ? bytes - 1 - i : i;
    __atomic_store_n(to + at, __atomic_load_n(from + at, __ATOMIC_RELAXED), __ATOMIC_RELAXED);
  }
}

void set_bytes(char* to, std::uint8_t value, std::uint64_t bytes) {
  for (std::uint64_t i = 0; i < bytes; ++i) {
    __atomic_store_n(to + i, static_cast<char>(value), __ATOMIC_RELAXED);
  }
}
#else
void move_bytes(char* to, const char* from, std::uint64_t bytes) {
  std::memmove(to, from, bytes);
}
void set_bytes(char* to, std::uint8_t value, std::uint64_t bytes) {
  std::memset(to, value, bytes);
}
#endif

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
    move_bytes(row(to, 0), row(from, 0), shape.width * shape.height);
  } else if (apart || (to.pitch == from.pitch && to.address <= from.address)) {
    for (std::uint64_t i = 0; i < shape.height; ++i) {
      move_bytes(row(to, i), row(from, i), shape.width);
    }
  } else if (to.pitch == from.pitch) {
    for (std::uint64_t i = shape.height; i-- > 0;) {
      move_bytes(row(to, i), row(from, i), shape.width);
    }
  } else {
    // Overlapping with different pitches: no order of rows is right for every case.
    std::vector<char> rows(shape.width * shape.height);
    for (std::uint64_t i = 0; i < shape.height; ++i) {
      move_bytes(rows.data() + i * shape.width, row(from, i), shape.width);
    }
    for (std::uint64_t i = 0; i < shape.height; ++i) {
      move_bytes(row(to, i), rows.data() + i * shape.width, shape.width);
    }
  }
}

void fill_rows(Rows to, std::uint8_t value, Shape shape) {
  if (empty(shape)) return;
  for (std::uint64_t i = 0; i < shape.height; ++i) set_bytes(row(to, i), value, shape.width);
}

}  // namespace slate::sim
