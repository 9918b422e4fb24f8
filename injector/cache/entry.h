// One entry of the cache as a file: a header, then the value. Its name is its key in hexadecimal;
// an unfinished file has another kind of name. Names are relative to a directory that is held open,
// so that no other directory can take its place. Thread: any.
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

/// Reads and checks an entry. Updates a good entry's time of use at most once an hour, to spare the
/// disk.
ReadEntry read_entry(int directory, const Key& key);

/// Writes an entry whole or not at all, in place of one of the same key. Leaves no temporary file.
Result<void> write_entry(int directory, const Key& key, std::span<const std::byte> value);

}  // namespace slate::cache
