// Variables that lie outside the module: each use of one becomes its address, and its declaration
// goes away. Text in, text out. Thread: any. Such variables are
// - CUDA's managed variables: the address is known, and host and kernels reach one copy;
// - the variables of a kernel's forms: they are those of the program's own module, whose addresses
//   are known only after loading.
#pragma once

#include <cstddef>
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
  /// Address in every space that the kernels read it from: generic and global.
  std::uint64_t address = 0;
};

/// Returns the module's text without these variables. The caller writes their initial contents.
/// Errors:
/// - kSymbolNotFound: the module has no .global variable of that name;
/// - kInvalidValue: the address is not aligned as the variable needs;
/// - kNotSupported: a variable begins with the address of a placed one, or a placed one with that
///   of something that is not placed, which is not known in time.
Result<std::string> place_variables(const ptx::Module& module,
                                    std::span<const PlacedVariable> placed);

/// What a placed variable begins with; zeros follow. Requires: place_variables() has succeeded.
std::vector<std::byte> placed_contents(const ptx::Variable& variable,
                                       std::span<const PlacedVariable> placed);

/// Name of the table of tabulate_variables(), a constant of 64-bit addresses.
inline constexpr std::string_view kVariableTable = "__slate_variables";

/// Returns the module's text without its .global and .const variables. Their uses read addresses
/// from the table, which the loader of the module fills in. `names` receives the variables in the
/// table's order. Their initial contents are dropped. Constants are read as global memory that does
/// not change while a kernel runs. Errors: kNotSupported for a variable that is managed, extern or
/// a texture, and for instructions that distinguish constants from other memory.
Result<std::string> tabulate_variables(const ptx::Module& module, std::vector<std::string>& names);

}  // namespace slate::injector
