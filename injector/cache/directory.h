// The cache's directory: finding its place, making it, seeing that it is the caller's alone, and
// keeping it under its size. Any thread, any number of processes at a time.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string_view>

#include "base/result.h"
#include "base/unique_fd.h"

namespace slate::cache {

/// Makes it (0700) where there is none. kPermission if it is a link, no directory, somebody else's,
/// or if others may write to it; kIo if the system says no.
Result<UniqueFd> open_directory(const std::filesystem::path& path);

struct Swept {
  std::uint64_t bytes = 0;    // of the entries that are left
  std::uint64_t evicted = 0;  // entries that this call removed
};

/// Removes temporary files that a crash left and, when the entries take more than `most_bytes`, the
/// least recently used ones until they take at most 7/8 of it; never `keep` (a name, or empty).
Swept sweep(int directory, std::uint64_t most_bytes, std::string_view keep);

}  // namespace slate::cache
