// A limit of registers for all kernels of a module, as ptxas takes it from its -maxrregcount, as
// part of the text: who assembles the text later, or a form of a kernel, need not know of the
// option. Text in, text out; pure function, any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace slate::ptx {

/// `.maxnreg most` for each entry that has no `.maxnreg`, `.maxntid` or `.reqntid` of its own: for
/// those ptxas (13.0) ignores the option. kInvalidPtx when the module does not parse.
Result<std::string> limit_registers(std::string_view module, std::uint32_t most);

}  // namespace slate::ptx
