// The cache's directory: making it, checking that only its owner may write to it, and keeping it
// under its size. Not the entries (entry.h). Thread: any; any number of processes.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string_view>

#include "base/result.h"
#include "base/unique_fd.h"

namespace slate::cache {

/// Opens the directory, and makes it (0700) if there is none. Errors: kPermission if it is a link,
/// no directory, another user's, or writable by others; kIo if the system refuses.
Result<UniqueFd> open_directory(const std::filesystem::path& path);

/// What sweep() has done.
struct Swept {
  std::uint64_t bytes = 0;    // bytes of the entries that are left
  std::uint64_t evicted = 0;  // entries that this call removed
};

/// Removes temporary files that a crash left. When the entries take more than `most_bytes`, removes
/// the least recently used ones until they take at most 7/8 of it, but never `keep` (a name, or
/// empty).
Swept sweep(int directory, std::uint64_t most_bytes, std::string_view keep);

}  // namespace slate::cache
