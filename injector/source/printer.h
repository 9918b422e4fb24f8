// Prints the selected items as one text, with #line directives so that messages name the user's own
// files and lines. Thread: one.
#pragma once

#include <string>
#include <vector>

#include "injector/source/selection.h"
#include "injector/source/unit.h"

namespace slate::source {

/// `toolkit`: CUDA's include directories, which tell its headers from others.
std::string print(const Unit& unit, const Selection& selection,
                  const std::vector<std::string>& toolkit);

}  // namespace slate::source
