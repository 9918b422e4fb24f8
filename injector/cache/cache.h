// CompileCache: results of slow compilations in a directory, found again by what they were made
// from. One file an entry, written beside and renamed, so that readers see whole entries or none;
// an entry that is damaged in any way counts as absent and is removed. Several processes may share
// a directory.
//
// Safe between users because a directory is only used if its owner is the caller's own effective
// user and nobody else may write to it; users share machine code through slated, never through
// files.
//
// Any thread.
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

/// SHA-256 over labelled parts; the order of the calls matters.
class KeyBuilder {
 public:
  KeyBuilder();
  ~KeyBuilder();
  KeyBuilder(KeyBuilder&& other) noexcept;
  KeyBuilder(const KeyBuilder&) = delete;
  KeyBuilder& operator=(const KeyBuilder&) = delete;
  /// Parts are framed by their lengths: ("ab", "c") and ("a", "bc") differ.
  KeyBuilder& add(std::string_view label, std::string_view part);
  KeyBuilder& add(std::string_view label, std::span<const std::byte> part);
  std::array<std::uint8_t, 32> finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

using Key = std::array<std::uint8_t, 32>;

struct Statistics {
  std::uint64_t hits = 0, misses = 0, stores = 0, damaged = 0, evicted = 0;
};

class CompileCache {
 public:
  /// Makes the directory (0700) where there is none. `most_bytes`: the size that the entries are
  /// kept under, least recently used first out. kIo or kPermission when it cannot be used.
  static Result<std::unique_ptr<CompileCache>> open(std::filesystem::path directory,
                                                    std::uint64_t most_bytes);
  ~CompileCache();

  std::optional<std::vector<std::byte>> find(const Key& key);
  /// Failing to store is no failure of the caller's work: callers log the error and go on.
  Result<void> store(const Key& key, std::span<const std::byte> value);
  Statistics statistics() const;

 private:
  CompileCache() = default;
  struct State;
  std::unique_ptr<State> state_;
};

/// $SLATE_CACHE_DIR, else `system_directory` for root (may be empty), else $XDG_CACHE_HOME/slate,
/// else
/// ~/.cache/slate; empty when none of them can be told.
std::filesystem::path default_directory(std::string_view system_directory);

}  // namespace slate::cache
