// Repair: reads the errors of a failed compilation and changes the selection so that the next one
// may succeed. Missing declarations that exist come in. Declarations that do not compile and that
// the device does not need go out. Kernels and device variables are never dropped. Thread: one.
#pragma once

#include <string>
#include <vector>

#include "injector/source/messages.h"
#include "injector/source/selection.h"
#include "injector/source/unit.h"

namespace slate::source {

/// Selects declarations of names that errors report as missing. Returns whether that changed
/// anything: then decide, print and compile again. So for the other functions.
bool fetch_missing(const Unit& unit, Selection& selection, const std::vector<Message>& errors);

/// Forbids declarations with errors in them.
bool drop_broken(const Unit& unit, Selection& selection, const std::vector<Message>& errors);

/// Removes instances that only reading had found and that NVRTC does not accept as expressions.
bool drop_invalid(std::vector<std::string>& instances, const std::vector<Message>& errors);

/// Removes the instances in which the errors arose; without `exactly`, all instances of the
/// templates concerned.
bool drop_blamed(std::vector<std::string>& instances, const std::vector<Message>& errors,
                 bool exactly);

}  // namespace slate::source
