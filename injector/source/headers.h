// What happens to #include lines whose file is not the user's. CUDA's own headers that NVRTC can
// read stay. Headers of the host are replaced by stand-ins with the parts that device code uses
// (types, limits, assert, std::min). All others go. Pure functions. Thread: any.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "injector/source/files.h"

namespace slate::source {

/// A header that replaces one of the host.
struct StandIn {
  std::string_view name;  // as in #include <name>
  std::string_view text;
};

/// All stand-ins; NVRTC gets them as headers of these names.
std::span<const StandIn> stand_ins();
/// Null if there is none of that name.
const StandIn* stand_in_for(std::string_view name);

/// Header that is included before all others.
inline constexpr std::string_view kPrelude = "slate/prelude.h";

inline constexpr std::string_view kStandardCoreName = "slate/standard_core.h";
inline constexpr std::string_view kStandardName = "slate/standard.h";

/// Whether std::`name` needs no more than the prelude.
bool is_in_core(std::string_view name);

enum class Fate { kKeep, kDrop };

/// Whether the #include line stays. `whole_std`: whether device code uses more of std than the
/// prelude has. `toolkit`: CUDA's include directories.
Fate fate_of(const Include& include, bool whole_std, const std::vector<std::string>& toolkit);

}  // namespace slate::source
