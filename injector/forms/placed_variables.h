// Variables that lie where the host wants them: each use of one becomes its address, and its
// declaration goes away. What CUDA calls managed variables are such: host and kernels then reach
// one copy, in memory that both have at one address. Text in, text out, any thread.
#pragma once

#include <cstdint>
#include <span>
#include <string>

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

}  // namespace slate::injector
