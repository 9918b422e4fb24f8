// A limit of registers for all kernels of a module, as part of the text, as ptxas takes it from its
// -maxrregcount. So a later assembler, and the forms of a kernel, need not know the option. Text
// in, text out; a pure function. Thread: any.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace slate::ptx {

/// Adds `.maxnreg most` to each entry without `.maxnreg`, `.maxntid` or `.reqntid`: for entries
/// with one of these ptxas (13.0) ignores the option. Errors: kInvalidPtx when the module does not
/// parse.
Result<std::string> limit_registers(std::string_view module, std::uint32_t most);

}  // namespace slate::ptx
