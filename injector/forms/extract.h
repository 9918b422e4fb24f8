// One kernel of a module as a module of its own, with the functions and variables that it needs:
// what its forms are made from, so that the assembler sees nothing else. The program's own module
// keeps the variables, which are reached by their addresses there (tabulate_variables()). Text in,
// text out, any thread.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "injector/ptx/module.h"

namespace slate::injector {

/// The kernel's module; lines keep their numbers. kSymbolNotFound when there is no such entry.
/// kNotSupported, with the reason, for a kernel that would not do the same outside of its module:
/// it calls functions by their addresses, or uses textures, external variables or aliases.
Result<std::string> extract_kernel(const ptx::Module& module, std::string_view entry);

}  // namespace slate::injector
