#include "device/sim/copy.h"

#include <fmt/format.h>

#include <cstring>
#include <optional>
#include <vector>

namespace slate::sim {
namespace {

// Bytes from the first to the last byte of the rows; nullopt if the pitch is too small or an
// address overflows.
std::optional<std::uint64_t> extent(Rows rows, const Box& box) {
  const auto bytes = extent_of(box, rows.pitch, 0);
  std::uint64_t end = 0;
  if (!bytes || __builtin_add_overflow(rows.address, *bytes, &end)) return std::nullopt;
  return bytes;
}

std::string text(Rows rows, const Box& box) {
  return fmt::format("{} rows of {} bytes, {} apart, at {:#x}", box.height, box.width, rows.pitch,
                     rows.address);
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

void set_bytes(char* to, FillValue value, std::uint64_t bytes) {
  for (std::uint64_t i = 0; i < bytes; ++i) {
    const std::uint64_t shift = 8 * (i % value.bytes);
    __atomic_store_n(to + i, static_cast<char>(value.bits >> shift), __ATOMIC_RELAXED);
  }
}
#else
void move_bytes(char* to, const char* from, std::uint64_t bytes) {
  std::memmove(to, from, bytes);
}
void set_bytes(char* to, FillValue value, std::uint64_t bytes) {
  if (value.bytes == 1) {
    std::memset(to, static_cast<int>(value.bits), bytes);
    return;
  }
  for (std::uint64_t i = 0; i < bytes; i += value.bytes) {
    std::memcpy(to + i, &value.bits, value.bytes);  // the low bytes come first
  }
}
#endif

}  // namespace

Result<void> check_host_rows(Rows rows, const Box& box) {
  if (box.empty()) return {};
  if (rows.address != 0 && extent(rows, box)) return {};
  return fail(ErrorCode::kInvalidValue, fmt::format("host memory: bad shape: {}", text(rows, box)));
}

Result<void> check_device_rows(const Memory& memory, Rows rows, const Box& box, ErrorCode code) {
  if (box.empty()) return {};
  const auto bytes = extent(rows, box);
  if (!bytes) {
    return fail(ErrorCode::kInvalidValue,
                fmt::format("device memory: bad shape: {}", text(rows, box)));
  }
  if (memory.is_mapped(rows.address, *bytes)) return {};
  return fail(code, fmt::format("device memory: not mapped: {}", text(rows, box)));
}

void copy_rows(Rows to, Rows from, const Box& box) {
  if (box.empty()) return;
  const std::uint64_t to_end = to.address + *extent(to, box);
  const std::uint64_t from_end = from.address + *extent(from, box);
  const bool apart = to_end <= from.address || from_end <= to.address;
  const bool dense = to.pitch == box.width && from.pitch == box.width;
  if (dense || box.height == 1) {
    move_bytes(row(to, 0), row(from, 0), box.width * box.height);
  } else if (apart || (to.pitch == from.pitch && to.address <= from.address)) {
    for (std::uint64_t i = 0; i < box.height; ++i) {
      move_bytes(row(to, i), row(from, i), box.width);
    }
  } else if (to.pitch == from.pitch) {
    for (std::uint64_t i = box.height; i-- > 0;) {
      move_bytes(row(to, i), row(from, i), box.width);
    }
  } else {
    // Overlapping with different pitches: no order of rows is right for every case.
    std::vector<char> rows(box.width * box.height);
    for (std::uint64_t i = 0; i < box.height; ++i) {
      move_bytes(rows.data() + i * box.width, row(from, i), box.width);
    }
    for (std::uint64_t i = 0; i < box.height; ++i) {
      move_bytes(row(to, i), rows.data() + i * box.width, box.width);
    }
  }
}

void fill_rows(Rows to, FillValue value, const Box& box) {
  if (box.empty()) return;
  for (std::uint64_t i = 0; i < box.height; ++i) set_bytes(row(to, i), value, box.width);
}

}  // namespace slate::sim
