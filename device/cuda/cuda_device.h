// Opens a GPU through the CUDA driver: the entrance to device/cuda for the rest of slate. It needs
// no CUDA header and no CUDA library to build or start: libcuda.so.1 is opened when one of these
// functions is called. Thread: any.
#pragma once

#include <memory>

#include "base/result.h"
#include "device/device.h"

namespace slate::cuda {

/// Opens GPU number `ordinal` in the driver's order. Takes about a third of a second, as it creates
/// the context. Requires: the process does not use CUDA after a fork; the environment is as for
/// device::open_device(). Errors:
/// - kNotSupported: no libcuda.so.1, or one that is too old;
/// - kUnavailable: the driver finds no GPU;
/// - kInvalidValue: there is no GPU of that number.
Result<std::unique_ptr<device::Device>> open_cuda_device(int ordinal,
                                                         const device::OpenSettings& settings = {});

/// Whether libcuda.so.1 is there, new enough, and finds at least one GPU. Creates no context.
bool driver_finds_a_gpu(const device::OpenSettings& settings = {});

}  // namespace slate::cuda
