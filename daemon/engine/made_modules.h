// load_made(): code that was made of a kernel, as a module on the device. Its variables are those
// of the program's own module. Thread: the session's.
#pragma once

#include "daemon/dispatch/kernel_forms.h"
#include "daemon/engine/loaded_modules.h"
#include "daemon/engine/variable_homes.h"
#include "device/device.h"

namespace slate::daemon {

/// Loads the code with the addresses of the variables of `own`, and adds it to `loaded`, which is
/// charged. Errors: those of the device; kOutOfMemory, kLimit.
Result<device::Module> load_made(device::Device& device, LoadedModules& loaded,
                                 const MadeForms& made, const ProgramModule& own);

}  // namespace slate::daemon
