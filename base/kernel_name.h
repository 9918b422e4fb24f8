// Names of kernels for people: C++ names from their mangled form, and which kernel a name on a
// command line means. Thread: any.
#pragma once

#include <string>
#include <string_view>

namespace slate {

/// The C++ name with its parameters; `name` itself if it is not a mangled one.
std::string demangle(const std::string& name);

/// The part of `demangled` without the parameters and the "void" before names of templates.
std::string_view short_kernel_name(std::string_view demangled);

/// Whether `wanted` names the kernel: its name in the PTX, or its demangled name whole, without the
/// parameters, or without template arguments either ("ns::scale").
bool selects(std::string_view wanted, std::string_view name, std::string_view demangled);

}  // namespace slate
