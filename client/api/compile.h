// Source to PTX through the user's cache; without the cache only slower. Any thread; takes as long
// as the compiler does.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "injector/cache/cache.h"
#include "injector/source/source.h"

namespace slate::api {

/// As source::compile(). `cache` may be null.
Result<source::CompiledSource> compile_cached(std::string_view text,
                                              const source::SourceOptions& options,
                                              cache::CompileCache* cache);

/// The cache in the user's own directory, opened at the first call; null when it cannot be used.
cache::CompileCache* user_cache();

/// Compiled source as bytes for the cache, and back. Nothing for bytes that encode() did not write.
std::vector<std::byte> encode(const source::CompiledSource& compiled);
std::optional<source::CompiledSource> decode(std::span<const std::byte> bytes);

}  // namespace slate::api
