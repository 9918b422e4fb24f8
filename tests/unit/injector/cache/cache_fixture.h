// CacheTest: a cache in a directory of the test's own, and its files in the test's hands.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "injector/cache/cache.h"
#include "injector/cache/entry.h"

namespace slate::cache {

using Bytes = std::vector<std::byte>;

inline Key key_of(std::uint64_t number) {
  return KeyBuilder().add("number", std::to_string(number)).finish();
}

/// Bytes that tell which number they were made from.
inline Bytes value_of(std::uint64_t number, std::size_t bytes) {
  Bytes value(bytes);
  for (std::size_t i = 0; i < bytes; ++i) {
    value[i] = static_cast<std::byte>((number * 0x9e3779b97f4a7c15u + i * i) >> 7);
  }
  return value;
}

class CacheTest : public testing::Test {
 protected:
  static constexpr std::uint64_t kRoomy = 64 << 20;

  void SetUp() override {
    std::string name = testing::TempDir() + "slate-cache-XXXXXX";
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    root_ = name;
    path_ = root_ / "cache";
  }
  void TearDown() override { std::filesystem::remove_all(root_); }

  std::unique_ptr<CompileCache> open(std::uint64_t most_bytes = kRoomy) {
    auto cache = CompileCache::open(path_, most_bytes);
    EXPECT_TRUE(cache) << cache.error().message;
    return cache ? std::move(*cache) : nullptr;
  }

  std::filesystem::path file_of(const Key& key) const { return path_ / entry_name(key); }

  std::vector<std::string> files() const {
    std::vector<std::string> names;
    for (const auto& each : std::filesystem::directory_iterator(path_)) {
      names.push_back(each.path().filename().string());
    }
    std::ranges::sort(names);
    return names;
  }

  std::string read(const std::filesystem::path& file) const {
    std::ostringstream text;
    text << std::ifstream(file, std::ios::binary).rdbuf();
    return text.str();
  }
  void write(const std::filesystem::path& file, const std::string& text) const {
    std::ofstream(file, std::ios::binary | std::ios::trunc) << text;
  }

  /// Puts a file's time of use `seconds` into the past.
  void age(const std::filesystem::path& file, std::int64_t seconds) const {
    const timespec then{std::time(nullptr) - seconds, 0};
    const timespec times[2] = {then, then};
    ASSERT_EQ(::utimensat(AT_FDCWD, file.c_str(), times, 0), 0);
  }
  std::int64_t age_of(const std::filesystem::path& file) const {
    struct stat facts {};
    EXPECT_EQ(::stat(file.c_str(), &facts), 0);
    return std::time(nullptr) - facts.st_mtim.tv_sec;
  }

  std::filesystem::path root_, path_;
};

}  // namespace slate::cache
