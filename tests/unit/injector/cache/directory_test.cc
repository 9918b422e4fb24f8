// Which directories are used, and which are not.
#include "injector/cache/directory.h"

#include "tests/unit/injector/cache/cache_fixture.h"

namespace slate::cache {
namespace {

class DirectoryTest : public CacheTest {
 protected:
  ErrorCode refusal(const std::filesystem::path& path) {
    const auto cache = CompileCache::open(path, kRoomy);
    return cache ? ErrorCode::kNone : cache.error().code;
  }
};

TEST_F(DirectoryTest, IsMadeClosedToOthersWithTheFoldersAboveIt) {
  path_ = root_ / "a" / "b" / "cache";
  const mode_t old = ::umask(0);
  EXPECT_NE(open(), nullptr);
  ::umask(old);
  for (const auto& each : {path_, path_.parent_path(), root_ / "a"}) {
    struct stat facts {};
    ASSERT_EQ(::stat(each.c_str(), &facts), 0) << each;
    EXPECT_EQ(facts.st_mode & 0777, 0700u) << each;
  }
}

TEST_F(DirectoryTest, OneThatOthersMayReadIsUsed) {
  std::filesystem::create_directory(path_);
  ASSERT_EQ(::chmod(path_.c_str(), 0755), 0);
  EXPECT_EQ(refusal(path_), ErrorCode::kNone);
}

TEST_F(DirectoryTest, OneThatOthersMayWriteToIsRefused) {
  std::filesystem::create_directory(path_);
  for (const mode_t mode : {0770u, 0707u, 01777u}) {
    ASSERT_EQ(::chmod(path_.c_str(), mode), 0);
    EXPECT_EQ(refusal(path_), ErrorCode::kPermission) << mode;
  }
}

TEST_F(DirectoryTest, ALinkIsRefused) {
  std::filesystem::create_directory(root_ / "real");
  ASSERT_EQ(::chmod((root_ / "real").c_str(), 0700), 0);
  std::filesystem::create_symlink(root_ / "real", path_);
  EXPECT_EQ(refusal(path_), ErrorCode::kPermission);
}

TEST_F(DirectoryTest, AFileIsRefused) {
  write(path_, "a file");
  EXPECT_EQ(refusal(path_), ErrorCode::kPermission);
}

TEST_F(DirectoryTest, SomebodyElsesIsRefused) {
  if (::geteuid() != 0) {
    EXPECT_EQ(refusal("/usr"), ErrorCode::kPermission);  // root's
    return;
  }
  std::filesystem::create_directory(path_);
  ASSERT_EQ(::chmod(path_.c_str(), 0700), 0);
  ASSERT_EQ(::chown(path_.c_str(), 65534, 65534), 0);
  EXPECT_EQ(refusal(path_), ErrorCode::kPermission);
}

TEST_F(DirectoryTest, NoneIsAnIoError) {
  EXPECT_EQ(refusal(""), ErrorCode::kIo);
  EXPECT_EQ(refusal("/proc/no-such-thing/cache"), ErrorCode::kIo);
}

TEST_F(DirectoryTest, LeftoversOfACrashGoButNotWhatIsBeingWritten) {
  std::filesystem::create_directory(path_);
  ASSERT_EQ(::chmod(path_.c_str(), 0700), 0);
  write(path_ / "new-1-old", "half an ent");
  age(path_ / "new-1-old", 1000);
  write(path_ / "new-2-fresh", "half an ent");
  write(path_ / "README", "not the cache's");
  age(path_ / "README", 100'000);
  open();
  EXPECT_EQ(files(), (std::vector<std::string>{"README", "new-2-fresh"}));
}

/// default_directory() under a few variables; what the test found is put back.
class DefaultDirectoryTest : public testing::Test {
 protected:
  static constexpr const char* kVariables[] = {"SLATE_CACHE_DIR", "XDG_CACHE_HOME", "HOME"};

  void SetUp() override {
    for (const char* variable : kVariables) {
      const char* value = std::getenv(variable);
      before_.push_back(value == nullptr ? std::optional<std::string>() : value);
    }
  }
  void TearDown() override {
    for (std::size_t i = 0; i < before_.size(); ++i) {
      set(kVariables[i], before_[i] ? before_[i]->c_str() : nullptr);
    }
  }
  void set(const char* variable, const char* value) {
    ASSERT_EQ(value == nullptr ? ::unsetenv(variable) : ::setenv(variable, value, 1), 0);
  }
  void set_all(const char* slate, const char* xdg, const char* home) {
    set("SLATE_CACHE_DIR", slate);
    set("XDG_CACHE_HOME", xdg);
    set("HOME", home);
  }

  std::vector<std::optional<std::string>> before_;
};

TEST_F(DefaultDirectoryTest, TheVariableBeatsAll) {
  set_all("/mine", "/xdg", "/home/u");
  EXPECT_EQ(default_directory("/var/cache/slate"), "/mine");
}

TEST_F(DefaultDirectoryTest, TheSystemsIsForRoot) {
  set_all(nullptr, "/xdg", "/home/u");
  EXPECT_EQ(default_directory("/var/cache/slate"),
            ::geteuid() == 0 ? "/var/cache/slate" : "/xdg/slate");
}

TEST_F(DefaultDirectoryTest, ThenXdgThenHome) {
  set_all("", "/xdg", "/home/u");
  EXPECT_EQ(default_directory(""), "/xdg/slate");
  set_all(nullptr, nullptr, "/home/u");
  EXPECT_EQ(default_directory(""), "/home/u/.cache/slate");
}

TEST_F(DefaultDirectoryTest, WhatIsNotAbsoluteCountsAsNone) {
  set_all(nullptr, "relative", "/home/u");
  EXPECT_EQ(default_directory(""), "/home/u/.cache/slate");
  set_all(nullptr, nullptr, "relative");
  EXPECT_TRUE(default_directory("").empty());
  set_all(nullptr, nullptr, nullptr);
  EXPECT_TRUE(default_directory("").empty());
}

}  // namespace
}  // namespace slate::cache
