// One kernel of a module as a module of its own, with the functions and variables that it needs:
// what its forms are made from, so that the assembler sees nothing else. The program's own module
// keeps the variables: .global ones are reached by their addresses there (tabulate_variables()),
// .const ones are copies that are refreshed before each launch. Text in, text out, any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "injector/ptx/module.h"

namespace slate::injector {

struct ConstantCopy {
  std::string name;
  std::uint64_t bytes = 0;
};

struct ExtractedKernel {
  std::string ptx;                      // lines keep their numbers
  std::vector<ConstantCopy> constants;  // zeros until the first copy
};

/// More constants of a kernel would cost its launches more time than a form saves.
inline constexpr std::size_t kMostConstantCopies = 8;

/// kSymbolNotFound when the module has no such entry. kNotSupported, with the reason, for a kernel
/// that would not do the same outside of its module: it calls functions by their addresses, takes
/// the generic address of a constant, or uses textures, external variables or aliases.
Result<ExtractedKernel> extract_kernel(const ptx::Module& module, std::string_view entry);

}  // namespace slate::injector
