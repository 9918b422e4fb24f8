// FenceChoice: when kernels run behind the fence (`fence`). UnfencedChoice: what becomes of kernels
// that have to be fenced, and cannot be (`unfenced`).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>

namespace slate::daemon {

/// kAuto: while sessions of several users share the engine.
enum class FenceChoice : std::uint8_t { kAuto, kNever, kAlways };

inline constexpr std::pair<std::string_view, FenceChoice> kFenceChoices[] = {
    {"auto", FenceChoice::kAuto},
    {"never", FenceChoice::kNever},
    {"always", FenceChoice::kAlways},
};

inline constexpr std::string_view fence_choice_name(FenceChoice choice) {
  return kFenceChoices[static_cast<std::size_t>(choice)].first;
}

/// kMove: their session moves to an engine of its user's own. One that cannot move runs them.
enum class UnfencedChoice : std::uint8_t { kMove, kRun, kRefuse };

inline constexpr std::pair<std::string_view, UnfencedChoice> kUnfencedChoices[] = {
    {"move", UnfencedChoice::kMove},
    {"run", UnfencedChoice::kRun},
    {"refuse", UnfencedChoice::kRefuse},
};

}  // namespace slate::daemon
