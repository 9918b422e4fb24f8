// Rectangular copies and fills between host and device memory: bounds and the moving of bytes.
// Device addresses are host addresses here. Any thread.
#pragma once

#include "base/result.h"
#include "device/device.h"
#include "device/sim/memory.h"

namespace slate::sim {

/// Rows of shape.width bytes, `pitch` bytes apart, from `address` on.
struct Rows {
  device::Address address = 0;
  std::uint64_t pitch = 0;
};

/// Fails with `code` unless every byte of the rows is mapped device memory; kInvalidValue if the
/// pitch is smaller than a row or the size overflows. An empty shape is always well.
Result<void> check_device_rows(const Memory& memory, Rows rows, device::Shape shape,
                               ErrorCode code);
/// The same for host memory, of which only the arithmetic can be checked.
Result<void> check_host_rows(Rows rows, device::Shape shape);

/// Right also when `to` and `from` overlap. Requires: both checked.
void copy_rows(Rows to, Rows from, device::Shape shape);
void fill_rows(Rows to, std::uint8_t value, device::Shape shape);

}  // namespace slate::sim
