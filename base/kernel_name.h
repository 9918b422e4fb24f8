// Names of kernels for people: C++ names out of their mangled form, and which kernel a name on a
// command line means. Any thread.
#pragma once

#include <string>
#include <string_view>

namespace slate {

/// The C++ name with its parameters; `name` itself where it is no mangled one.
std::string demangle(const std::string& name);

/// A part of `demangled`: without the parameters and the "void" before names of templates.
std::string_view short_kernel_name(std::string_view demangled);

/// True if `wanted` is the kernel's name in the PTX, or demangled: whole, without the parameters,
/// or without template arguments either ("ns::scale").
bool selects(std::string_view wanted, std::string_view name, std::string_view demangled);

}  // namespace slate
