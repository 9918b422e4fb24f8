// The names in PTX, and as whom users know them. A light scan of the text, no parser: what the
// daemon will think of the PTX is the daemon's business. Pure functions, any thread.
#pragma once

#include <expected>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace slate::api {

/// As written in the source, and as in the PTX.
using WrittenNames = std::vector<std::pair<std::string, std::string>>;

/// True when the first word of `text`, after comments, is PTX's ".version".
bool is_ptx(std::string_view text);

struct PtxNames {
  std::vector<std::string> kernels, variables;  // in the order of the text
};
PtxNames names_in(std::string_view ptx);

/// "scale<float,4>" for " scale< float, 4 >" and for "::scale<float, 4>": how names are compared.
std::string spelling(std::string_view name);

/// "ns::scale<float>" for a mangled kernel or variable; `name` itself when it is not mangled.
std::string demangled_name(const std::string& name);

/// The name in `candidates`, all of them the PTX's, that a user means by `wanted`: that itself,
/// else the one that `written` gives for it, else the one that demangles to it, with or without its
/// parameters. The error lists what there is, or the several that match (`ambiguous`).
struct NoName {
  bool ambiguous = false;
  std::string message;
};
std::expected<std::string, NoName> resolve(std::string_view wanted,
                                           const std::vector<std::string>& candidates,
                                           const WrittenNames& written);

}  // namespace slate::api
