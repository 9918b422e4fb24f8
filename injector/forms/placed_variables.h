// Variables that lie outside the module: each use of one becomes its address, and its declaration
// goes away. CUDA's managed variables are such: the address is known, and host and kernels reach
// one copy. The variables of a kernel's forms are such, too: they are those of the program's own
// module, whose addresses are known only after loading. Text in, text out, any thread.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "injector/ptx/module.h"

namespace slate::injector {

struct PlacedVariable {
  std::string name;
  std::uint64_t address = 0;  // in every space that the kernels read it from: generic and global
};

/// The module's text without these variables. Their initial contents are the caller's to write.
/// kSymbolNotFound when the module has no .global variable of that name; kInvalidValue for an
/// address that is not aligned as the variable wants; kNotSupported when a variable begins with the
/// address of a placed one, or a placed one with that of another, as nothing then knows in time
/// what that is.
Result<std::string> place_variables(const ptx::Module& module,
                                    std::span<const PlacedVariable> placed);

/// Name of the table of tabulate_variables(), a constant of 64-bit addresses.
inline constexpr std::string_view kVariableTable = "__slate_variables";

/// The module's text without its .global and .const variables. Their uses read their addresses from
/// the table, which the loader of the module fills in; `names` gets the variables in the table's
/// order. Their initial contents go. Constants are read as global memory that does not change while
/// a kernel runs. kNotSupported for a variable that is managed, extern or a texture, and for
/// instructions that tell constants from other memory.
Result<std::string> tabulate_variables(const ptx::Module& module, std::vector<std::string>& names);

}  // namespace slate::injector
