// The names in PTX, and how users write them. A light scan of the text, no parser: the daemon
// checks the PTX. Pure functions, any thread.
#pragma once

#include <expected>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace slate::api {

/// Pairs of a name in the source and its name in the PTX.
using WrittenNames = std::vector<std::pair<std::string, std::string>>;

/// Whether the first word of `text`, after comments, is PTX's ".version".
bool is_ptx(std::string_view text);

struct PtxNames {
  std::vector<std::string> kernels, variables;  // in the order of the text
};
PtxNames names_in(std::string_view ptx);

/// The form in which names are compared: "scale<float,4>" for " scale< float, 4 >" and for
/// "::scale<float, 4>".
std::string spelling(std::string_view name);

/// "ns::scale<float>" for a mangled kernel or variable; `name` itself when it is not mangled.
std::string demangled_name(const std::string& name);

/// Finds the name of `candidates`, all of them the PTX's, that a user means by `wanted`. The first
/// rule that fits counts:
/// - `wanted` itself,
/// - the name that `written` gives for it,
/// - the name that demangles to it, with or without its parameters.
/// The error lists all names, or the several that match (`ambiguous`).
struct NoName {
  bool ambiguous = false;
  std::string message;
};
std::expected<std::string, NoName> resolve(std::string_view wanted,
                                           const std::vector<std::string>& candidates,
                                           const WrittenNames& written);

}  // namespace slate::api
