// Repair: reads a failed compilation's errors and changes the selection so that the next one may
// succeed: what is missing and exists comes in, what the device does not need and does not compile
// goes out. Kernels and device variables are never dropped. One thread.
#pragma once

#include <string>
#include <vector>

#include "injector/source/messages.h"
#include "injector/source/selection.h"
#include "injector/source/unit.h"

namespace slate::source {

/// What errors say is missing and the unit declares is asked for. True when that changes anything:
/// decide, print and compile again. So for the others.
bool fetch_missing(const Unit& unit, Selection& selection, const std::vector<Message>& errors);

/// Declarations with errors in them are forbidden.
bool drop_broken(const Unit& unit, Selection& selection, const std::vector<Message>& errors);

/// Takes instances out that only reading had found and that NVRTC does not accept as expressions.
bool drop_invalid(std::vector<std::string>& instances, const std::vector<Message>& errors);

/// Takes those out in which the errors arose; not exactly: all of the templates concerned.
bool drop_blamed(std::vector<std::string>& instances, const std::vector<Message>& errors,
                 bool exactly);

}  // namespace slate::source
