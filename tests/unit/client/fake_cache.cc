#include "tests/unit/client/fake_cache.h"

#include <functional>

namespace slate::test {

FakeCache& fake_cache() {
  static FakeCache cache;
  return cache;
}

}  // namespace slate::test

namespace slate::cache {

struct KeyBuilder::State {
  std::string text;
};
KeyBuilder::KeyBuilder() : state_(std::make_unique<State>()) {}
KeyBuilder::~KeyBuilder() = default;
KeyBuilder& KeyBuilder::add(std::string_view label, std::string_view part) {
  for (const std::string_view item : {label, part}) {
    state_->text += std::to_string(item.size()) + ':' + std::string(item);
  }
  return *this;
}
KeyBuilder& KeyBuilder::add(std::string_view label, std::span<const std::byte> part) {
  return add(label, std::string_view(reinterpret_cast<const char*>(part.data()), part.size()));
}
Key KeyBuilder::finish() {
  Key key{};
  for (std::size_t i = 0; i < key.size(); ++i) {
    const std::string salted = std::to_string(i) + state_->text;
    key[i] = static_cast<std::uint8_t>(std::hash<std::string>()(salted));
  }
  return key;
}

struct CompileCache::State {};
Result<std::unique_ptr<CompileCache>> CompileCache::open(std::filesystem::path, std::uint64_t) {
  if (!test::fake_cache().opens) return fail(ErrorCode::kPermission, "the cache does not open");
  return std::unique_ptr<CompileCache>(new CompileCache);
}
CompileCache::~CompileCache() = default;
std::optional<std::vector<std::byte>> CompileCache::find(const Key& key) {
  const auto& entries = test::fake_cache().entries;
  const auto at = entries.find(key);
  if (at == entries.end()) return std::nullopt;
  return at->second;
}
Result<void> CompileCache::store(const Key& key, std::span<const std::byte> value) {
  if (!test::fake_cache().stores) return fail(ErrorCode::kIo, "no space is left");
  test::fake_cache().entries[key].assign(value.begin(), value.end());
  return {};
}

std::filesystem::path default_directory(std::string_view) {
  return "cache";
}

}  // namespace slate::cache
