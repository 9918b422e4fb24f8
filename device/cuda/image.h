// Checks a client's code image before the driver sees it. The driver is given no length: it reads
// PTX up to a NUL, and a cubin by the offsets in it. So both must be known to stay inside. Pure
// functions. Thread: any.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "base/result.h"
#include "device/device.h"

namespace slate::cuda {

/// A private copy of the image, with a NUL behind its end. Errors: kInvalidPtx for PTX that is not
/// text, kNoKernelImage for a cubin whose tables or standard sections reach beyond its end.
Result<std::string> checked_image(device::ImageKind kind, std::span<const std::byte> image);

/// Whether kernels of the image may launch others: it has or calls functions of the device's
/// runtime.
bool has_device_launches(std::span<const std::byte> image);

}  // namespace slate::cuda
