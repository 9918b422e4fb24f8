// The device memory of a module's variables. They take it from the load on, like allocations. Pure
// functions, any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "injector/ptx/module.h"

namespace slate::daemon {

/// Bytes of the .global and .const variables that the module defines.
std::uint64_t variable_bytes(const ptx::Module& module);
/// The same of machine code; 0 for anything else, which no device loads.
std::uint64_t variable_bytes(std::span<const std::byte> cubin);

}  // namespace slate::daemon
