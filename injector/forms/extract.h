// One kernel of a module as a module of its own, with the functions and variables that it needs.
// Its forms are made from that module, so that the assembler sees nothing else. The program's own
// module keeps the variables, which are reached by their addresses there (tabulate_variables()).
// Text in, text out. Thread: any.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "injector/ptx/module.h"

namespace slate::injector {

/// Returns the kernel's module; lines keep their numbers. Errors:
/// - kSymbolNotFound: there is no such entry;
/// - kNotSupported, with the reason: the kernel would behave otherwise outside of its module, as it
///   calls functions by their addresses, or uses textures, external variables or aliases.
Result<std::string> extract_kernel(const ptx::Module& module, std::string_view entry);

}  // namespace slate::injector
