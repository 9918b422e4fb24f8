#include "client/api/compile.h"

#include <cstdint>
#include <cstring>
#include <string>

#include "client/session/say.h"

namespace slate::api {
namespace {

constexpr std::uint64_t kCacheBytes = 256ull << 20;

/// Changes with the layout below and with whatever else makes old entries wrong.
constexpr std::string_view kEntryKind = "slate source 1";

void put(std::vector<std::byte>& out, std::string_view text) {
  const std::uint64_t size = text.size();
  const auto length = std::as_bytes(std::span(&size, 1));
  out.insert(out.end(), length.begin(), length.end());
  const auto bytes = std::as_bytes(std::span(text));
  out.insert(out.end(), bytes.begin(), bytes.end());
}

std::optional<std::string> take(std::span<const std::byte>& rest) {
  std::uint64_t size = 0;
  if (rest.size() < sizeof(size)) return std::nullopt;
  std::memcpy(&size, rest.data(), sizeof(size));
  rest = rest.subspan(sizeof(size));
  if (size > rest.size()) return std::nullopt;
  std::string text(reinterpret_cast<const char*>(rest.data()), size);
  rest = rest.subspan(size);
  return text;
}

/// Nothing when something that the result depends on cannot be told: then nothing is cached.
std::optional<cache::Key> key_of(std::string_view text, const source::SourceOptions& options) {
  // Stripped, because that has the local includes in it.
  const auto stripped = source::strip_host_code(text, options);
  const auto compiler = source::compiler_identity(options);
  if (!stripped || !compiler) return std::nullopt;
  cache::KeyBuilder key;
  key.add("kind", kEntryKind).add("compiler", *compiler).add("text", *stripped);
  key.add("architecture", std::to_string(options.architecture)).add("name", options.name);
  for (const std::string& item : options.include_directories) key.add("include", item);
  for (const std::string& item : options.options) key.add("option", item);
  for (const std::string& item : options.instances) key.add("instance", item);
  return key.finish();
}

}  // namespace

std::vector<std::byte> encode(const source::CompiledSource& compiled) {
  std::vector<std::byte> out;
  put(out, compiled.ptx);
  put(out, compiled.log);
  for (const auto& [written, in_ptx] : compiled.kernels) {
    put(out, written);
    put(out, in_ptx);
  }
  return out;
}

std::optional<source::CompiledSource> decode(std::span<const std::byte> bytes) {
  source::CompiledSource compiled;
  auto ptx = take(bytes);
  auto log = take(bytes);
  if (!ptx || !log) return std::nullopt;
  compiled.ptx = std::move(*ptx);
  compiled.log = std::move(*log);
  while (!bytes.empty()) {
    auto written = take(bytes);
    auto in_ptx = take(bytes);
    if (!written || !in_ptx) return std::nullopt;
    compiled.kernels.emplace_back(std::move(*written), std::move(*in_ptx));
  }
  return compiled;
}

Result<source::CompiledSource> compile_cached(std::string_view text,
                                              const source::SourceOptions& options,
                                              cache::CompileCache* cache) {
  const std::optional<cache::Key> key = cache == nullptr ? std::nullopt : key_of(text, options);
  if (key) {
    if (const auto entry = cache->find(*key)) {
      if (auto compiled = decode(*entry)) return std::move(*compiled);
    }
  }
  auto compiled = source::compile(text, options);
  if (compiled && key) {
    const auto stored = cache->store(*key, encode(*compiled));
    if (!stored && client::verbose()) client::say(stored.error().message);
  }
  return compiled;
}

cache::CompileCache* user_cache() {
  // Never destroyed, as other threads may still be compiling at exit.
  static cache::CompileCache* const instance = []() -> cache::CompileCache* {
    const auto directory = cache::default_directory({});
    if (directory.empty()) return nullptr;
    // A folder of its own, as slated may keep machine code in the one above, with its own limit.
    auto opened = cache::CompileCache::open(directory / "source", kCacheBytes);
    if (opened) return opened->release();
    if (client::verbose()) client::say(opened.error().message);
    return nullptr;
  }();
  return instance;
}

}  // namespace slate::api
