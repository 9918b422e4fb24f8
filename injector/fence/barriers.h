// Barriers: how the barriers of the block that are `.aligned` stay safe behind the fence. A part of
// a warp that comes to such a barrier is a fault of the device. Pure functions. Thread: any.
#pragma once

#include <vector>

#include "injector/ptx/module.h"
#include "injector/ptx/printer.h"

namespace slate::injector {

/// What is to change in a function that is no worker. Its aligned barriers stay as they are, wait
/// for the warp's lanes first, or lose `.aligned`. Of workers the injector knows that they need
/// none of it.
std::vector<ptx::Edit> make_barriers_safe(const ptx::Module& module, const ptx::Function& function);

}  // namespace slate::injector
