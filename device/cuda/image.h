// Checks a client's code image before the driver sees it. The driver is given no length: it reads
// PTX up to a NUL and finds its way through a cubin by the offsets in it, so both must be known to
// stay inside. Pure.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "base/result.h"
#include "device/device.h"

namespace slate::cuda {

/// A private copy, NUL behind its end, whose kind is what it claims to be. kInvalidPtx for PTX that
/// is not text, kNoKernelImage for a cubin whose tables or standard sections reach beyond its end.
Result<std::string> checked_image(device::ImageKind kind, std::span<const std::byte> image);

/// Whether kernels of it may launch others: it has functions of the device's runtime, or calls
/// them.
bool has_device_launches(std::span<const std::byte> image);

}  // namespace slate::cuda
