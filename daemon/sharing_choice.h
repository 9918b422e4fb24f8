// SharingChoice: which sessions share an engine (`sharing`).
#pragma once

#include <cstdint>
#include <string_view>
#include <utility>

namespace slate::daemon {

/// - kDefault: in a table of a user or group, as for everybody; for everybody, kFenced.
/// - kFenced: all users, behind the fence.
/// - kUser: the sessions of one user.
/// - kTrusted: all users, or the members of the group, without a fence.
enum class SharingChoice : std::uint8_t { kDefault, kFenced, kUser, kTrusted };

inline constexpr std::pair<std::string_view, SharingChoice> kSharingChoices[] = {
    {"default", SharingChoice::kDefault},
    {"fenced", SharingChoice::kFenced},
    {"user", SharingChoice::kUser},
    {"trusted", SharingChoice::kTrusted},
};

}  // namespace slate::daemon
