// BlockedEngine: what becomes of an engine with work that keeps other users waiting and cannot be
// stopped (`blocked_engine`).
#pragma once

#include <cstdint>
#include <string_view>
#include <utility>

namespace slate::daemon {

enum class BlockedEngine : std::uint8_t { kReplace, kKeep };

inline constexpr std::pair<std::string_view, BlockedEngine> kBlockedEngines[] = {
    {"replace", BlockedEngine::kReplace},
    {"keep", BlockedEngine::kKeep},
};

}  // namespace slate::daemon
