// Modules and functions on the driver: loading, with the assembler's words in the error, and what
// the driver says about a function. It keeps no state: a handle is the driver's own pointer.
// Thread: any.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "device/cuda/context.h"
#include "device/device.h"

namespace slate::cuda {

// As the methods of device::Device of the same names.
Result<CUmodule> load_module(Context& context, device::ImageKind kind,
                             std::span<const std::byte> image);
Result<CUfunction> find_function(Context& context, CUmodule module, const std::string& name);
Result<device::FunctionInfo> function_info(Context& context, CUfunction function);
Result<std::uint32_t> max_blocks_per_sm(Context& context, CUfunction function,
                                        std::uint32_t threads_per_block,
                                        std::uint32_t dynamic_shared_bytes);
Result<void> set_attribute(Context& context, CUfunction function, FunctionAttribute attribute,
                           std::int32_t value);
Result<device::AddressRange> find_global(Context& context, CUmodule module,
                                         const std::string& name);

}  // namespace slate::cuda
