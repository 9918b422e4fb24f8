// What becomes of #include lines whose file is not the user's: CUDA's own headers that NVRTC can
// read stay, headers of the host are replaced by stand-ins with what device code takes from them
// (types, limits, assert, std::min), all others go. Any thread.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "injector/source/files.h"

namespace slate::source {

struct StandIn {
  std::string_view name;  // as in #include <name>
  std::string_view text;
};

/// All of them; NVRTC gets them as headers of these names.
std::span<const StandIn> stand_ins();
const StandIn* stand_in_for(std::string_view name);

/// Is included before everything else.
inline constexpr std::string_view kPrelude = "slate/prelude.h";

inline constexpr std::string_view kStandardCoreName = "slate/standard_core.h";
inline constexpr std::string_view kStandardName = "slate/standard.h";

/// True when std::`name` needs no more than the prelude.
bool is_in_core(std::string_view name);

enum class Fate { kKeep, kDrop };

/// `whole_std`: whether the device code takes more of std than the prelude has. `toolkit`: CUDA's
/// include directories.
Fate fate_of(const Include& include, bool whole_std, const std::vector<std::string>& toolkit);

}  // namespace slate::source
