// PTX written with short names. In a template
// - `~x` stands for the register %__slate_x;
// - `$x` stands for the label $__slate_x;
// - `<x>` stands for a number or a parameter's address in the table of the .cc file: `[<tasks>]` is
//   where LaunchParameters::tasks lies, `<NEXT>` an offset into the control block.
// Pure functions. Thread: any.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>

namespace slate::injector {

/// Name of the last parameter of a rewritten kernel, a LaunchParameters (in the profile form a
/// ProfileParameters).
inline constexpr std::string_view kParameterName = "__slate_p";

/// The template's PTX. Requires: every <x> is in the table; a broken template aborts.
std::string expand(std::string_view text);

/// As expand(), with `{}` for text that goes in unchanged: a kernel's own names and constants may
/// hold any of the characters above.
template <typename... Args>
std::string filled(std::string_view text, const Args&... args) {
  return fmt::vformat(expand(text), fmt::make_format_args(args...));
}

}  // namespace slate::injector
