// CompileCache: results of slow compilations in a directory, found again by what they were made
// from. An entry is one file, written beside and renamed, so that readers see whole entries or
// none. A damaged entry counts as absent and is removed. Several processes may share a directory.
//
// Safe between users: a directory is used only if its owner is the caller's effective user and no
// other user may write to it. Users share machine code through slated, never through files.
//
// Thread: any.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace slate::cache {

/// Makes a key: SHA-256 over labelled parts. The order of the calls matters. Thread: one at a time.
class KeyBuilder {
 public:
  KeyBuilder();
  ~KeyBuilder();
  KeyBuilder(KeyBuilder&& other) noexcept;
  KeyBuilder(const KeyBuilder&) = delete;
  KeyBuilder& operator=(const KeyBuilder&) = delete;
  /// Adds a part. Parts are framed by their lengths: ("ab", "c") and ("a", "bc") differ.
  KeyBuilder& add(std::string_view label, std::string_view part);
  KeyBuilder& add(std::string_view label, std::span<const std::byte> part);
  /// Returns the key. Requires: called once, as the last call.
  std::array<std::uint8_t, 32> finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

using Key = std::array<std::uint8_t, 32>;

/// Counts since open().
struct Statistics {
  std::uint64_t hits = 0, misses = 0, stores = 0, damaged = 0, evicted = 0;
};

class CompileCache {
 public:
  /// Opens the directory, and makes it (0700) if there is none. Entries are kept under
  /// `most_bytes`, least recently used first out. Errors: kIo or kPermission when the directory
  /// cannot be used.
  static Result<std::unique_ptr<CompileCache>> open(std::filesystem::path directory,
                                                    std::uint64_t most_bytes);
  ~CompileCache();

  /// The value of a good entry; nullopt if there is none.
  std::optional<std::vector<std::byte>> find(const Key& key);
  /// Stores an entry. A failure does not fail the caller's work: callers log it and go on.
  Result<void> store(const Key& key, std::span<const std::byte> value);
  Statistics statistics() const;

 private:
  CompileCache() = default;
  struct State;
  std::unique_ptr<State> state_;
};

/// Returns $SLATE_CACHE_DIR, else `system_directory` for root (may be empty), else
/// $XDG_CACHE_HOME/slate, else ~/.cache/slate; empty when none of them is known.
std::filesystem::path default_directory(std::string_view system_directory);

}  // namespace slate::cache
