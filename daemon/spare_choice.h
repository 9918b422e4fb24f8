// SpareChoice: whether an engine is kept ready that takes over after a fault (`spare_engine`).
#pragma once

#include <cstdint>
#include <string_view>
#include <utility>

namespace slate::daemon {

/// kAuto: on a GPU, while its memory is not needed.
enum class SpareChoice : std::uint8_t { kAuto, kNever, kAlways };

inline constexpr std::pair<std::string_view, SpareChoice> kSpareChoices[] = {
    {"auto", SpareChoice::kAuto},
    {"never", SpareChoice::kNever},
    {"always", SpareChoice::kAlways},
};

}  // namespace slate::daemon
