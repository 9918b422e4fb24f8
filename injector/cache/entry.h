// One entry of the cache as a file: a header, then the value. Its name is its key in hexadecimal; a
// file that is not finished yet has a name of another kind. Names are relative to a directory that
// is held open, so that nobody can put another in its place. Pure but for the files; any thread.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "injector/cache/cache.h"

namespace slate::cache {

inline constexpr std::size_t kHeaderBytes = 88;

std::string entry_name(const Key& key);
bool is_entry_name(std::string_view name);
bool is_temporary_name(std::string_view name);

enum class Found { kGood, kAbsent, kDamaged };

struct ReadEntry {
  Found found = Found::kAbsent;
  std::vector<std::byte> value;  // kGood only
};

/// Reads and checks everything. A good entry's time of use is brought up to date, but at most once
/// an hour, to spare the disk.
ReadEntry read_entry(int directory, const Key& key);

/// Whole or not at all; replaces an entry of the same key. Leaves no temporary file behind.
Result<void> write_entry(int directory, const Key& key, std::span<const std::byte> value);

}  // namespace slate::cache
