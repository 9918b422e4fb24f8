// Which instances of __global__ templates the host's code makes: "scale<float><<<...>>>", or the
// same without a launch. Arguments of host templates around it are filled in from the calls of
// those. What cannot be told by reading (deduced arguments) is left out. One thread.
#pragma once

#include <string>
#include <vector>

#include "injector/source/selection.h"
#include "injector/source/unit.h"

namespace slate::source {

/// Name expressions, each once, as NVRTC takes them.
std::vector<std::string> launched_instances(const Unit& unit, const Selection& selection);

}  // namespace slate::source
