// Copies and fills of one plane between host and device memory: checks of bounds, and the moving of
// bytes. Device addresses are host addresses here. Thread: any.
#pragma once

#include "base/result.h"
#include "device/device.h"
#include "device/sim/memory.h"

namespace slate::sim {

/// Rows of Box::width bytes, `pitch` bytes apart, from `address` on.
struct Rows {
  device::Address address = 0;
  std::uint64_t pitch = 0;
};

/// Checks that every byte of the rows is mapped device memory; an empty box always passes.
/// Errors: `code` if one is not; kInvalidValue if the pitch is smaller than a row or the size
/// overflows.
Result<void> check_device_rows(const Memory& memory, Rows rows, const Box& box, ErrorCode code);
/// As check_device_rows() for host memory, of which only the arithmetic can be checked.
Result<void> check_host_rows(Rows rows, const Box& box);

/// Copies the rows, also when they overlap. Requires: both were checked.
void copy_rows(Rows to, Rows from, const Box& box);
/// Requires: as device::Device::fill().
void fill_rows(Rows to, FillValue value, const Box& box);

}  // namespace slate::sim
