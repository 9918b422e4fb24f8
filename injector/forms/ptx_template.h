// PTX written with short names: in a template, `~x` stands for the register %__slate_x, `$x` for
// the label $__slate_x, and `<x>` for a number or a parameter's address from the table in the .cc
// file
// (`[<tasks>]` is where LaunchParameters::tasks lies, `<NEXT>` an offset into the control block).
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>

namespace slate::injector {

/// The name of the last parameter of a rewritten kernel, a LaunchParameters (of the profile form, a
/// ProfileParameters).
inline constexpr std::string_view kParameterName = "__slate_p";

/// Requires: every <x> is in the table (a broken template aborts).
std::string expand(std::string_view text);

/// The same with `{}` for what goes in as it is: a kernel's own names and constants may hold any of
/// the characters above.
template <typename... Args>
std::string filled(std::string_view text, const Args&... args) {
  return fmt::vformat(expand(text), fmt::make_format_args(args...));
}

}  // namespace slate::injector
