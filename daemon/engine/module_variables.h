// How much memory the variables of a module take: they are the device's from the load on, and no
// less of it than what is allocated. Pure functions, any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "injector/ptx/module.h"

namespace slate::daemon {

/// Bytes of the .global and .const variables that the module defines.
std::uint64_t variable_bytes(const ptx::Module& module);
/// The same of machine code; 0 for what is none, which no device loads.
std::uint64_t variable_bytes(std::span<const std::byte> cubin);

}  // namespace slate::daemon
