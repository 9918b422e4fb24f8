// The door to device/cuda: opens a GPU through the CUDA driver. Needs no CUDA header and no CUDA
// library to build or start against; libcuda.so.1 is looked for when one of these is called. Any
// thread.
#pragma once

#include <memory>

#include "base/result.h"
#include "device/device.h"

namespace slate::cuda {

/// Opens GPU number `ordinal` as the driver counts them. kNotSupported without a (new enough)
/// libcuda.so.1, kUnavailable when the driver finds no GPU, kInvalidValue when there is none of
/// that number. As device::open_device() about threads. Takes about a third of a second: the
/// context is created here. The process must not use CUDA after a fork.
Result<std::unique_ptr<device::Device>> open_cuda_device(int ordinal,
                                                         const device::OpenSettings& settings = {});

/// Whether libcuda.so.1 is there, new enough, and sees at least one GPU. Creates no context.
bool driver_finds_a_gpu(const device::OpenSettings& settings = {});

}  // namespace slate::cuda
