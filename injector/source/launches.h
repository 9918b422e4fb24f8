// Which instances of __global__ templates the host's code makes: "scale<float><<<...>>>", or the
// same without a launch. Arguments of host templates around it are filled in from calls of those.
// Deduced arguments, which cannot be known by reading, are left out. Thread: one.
#pragma once

#include <string>
#include <vector>

#include "injector/source/selection.h"
#include "injector/source/unit.h"

namespace slate::source {

/// Name expressions as NVRTC takes them, each once.
std::vector<std::string> launched_instances(const Unit& unit, const Selection& selection);

}  // namespace slate::source
