// Finding, storing, and every way in which an entry can be no good.
#include "tests/unit/injector/cache/cache_fixture.h"

namespace slate::cache {
namespace {

using EntryTest = CacheTest;

TEST_F(EntryTest, WhatWasStoredIsFound) {
  const auto cache = open();
  for (const std::size_t bytes : {0u, 1u, 100'000u}) {
    ASSERT_TRUE(cache->store(key_of(bytes), value_of(bytes, bytes)));
    EXPECT_EQ(cache->find(key_of(bytes)), value_of(bytes, bytes)) << bytes;
  }
}

TEST_F(EntryTest, WhatWasNotStoredIsAbsent) {
  const auto cache = open();
  ASSERT_TRUE(cache->store(key_of(1), value_of(1, 10)));
  EXPECT_FALSE(cache->find(key_of(2)));
  EXPECT_EQ(cache->statistics().damaged, 0u);
}

TEST_F(EntryTest, AnEntryOutlivesTheCacheThatStoredIt) {
  ASSERT_TRUE(open()->store(key_of(1), value_of(1, 1000)));
  EXPECT_EQ(open()->find(key_of(1)), value_of(1, 1000));
}

TEST_F(EntryTest, StoringAgainReplaces) {
  const auto cache = open();
  ASSERT_TRUE(cache->store(key_of(1), value_of(1, 1000)));
  ASSERT_TRUE(cache->store(key_of(1), value_of(2, 10)));
  EXPECT_EQ(cache->find(key_of(1)), value_of(2, 10));
  EXPECT_EQ(files().size(), 1u);
}

TEST_F(EntryTest, AnEntryIsItsOwnersAlone) {
  const mode_t old = ::umask(0);
  const auto cache = open();
  EXPECT_TRUE(cache->store(key_of(1), value_of(1, 1000)));
  ::umask(old);
  struct stat facts {};
  ASSERT_EQ(::stat(file_of(key_of(1)).c_str(), &facts), 0);
  EXPECT_EQ(facts.st_mode & 0777, 0600u);
}

TEST_F(EntryTest, StatisticsCountWhatHappened) {
  const auto cache = open();
  ASSERT_TRUE(cache->store(key_of(1), value_of(1, 10)));
  (void)cache->find(key_of(1));
  (void)cache->find(key_of(1));
  (void)cache->find(key_of(2));
  write(file_of(key_of(1)), "rubbish");
  (void)cache->find(key_of(1));
  const Statistics statistics = cache->statistics();
  EXPECT_EQ(statistics.hits, 2u);
  EXPECT_EQ(statistics.misses, 2u);
  EXPECT_EQ(statistics.stores, 1u);
  EXPECT_EQ(statistics.damaged, 1u);
  EXPECT_EQ(statistics.evicted, 0u);
}

TEST_F(EntryTest, ADamagedEntryIsAbsentAndRemoved) {
  const auto cache = open();
  const Key key = key_of(1);
  ASSERT_TRUE(cache->store(key, value_of(1, 200)));
  const std::string good = read(file_of(key));
  ASSERT_EQ(good.size(), kHeaderBytes + 200);
  std::uint64_t damaged = 0;
  const auto expect_absent = [&](const std::string& text, const std::string& what) {
    write(file_of(key), text);
    EXPECT_FALSE(cache->find(key)) << what;
    EXPECT_FALSE(std::filesystem::exists(file_of(key))) << what;
    EXPECT_EQ(cache->statistics().damaged, ++damaged) << what;
  };
  for (std::size_t at = 0; at < good.size(); ++at) {
    std::string bad = good;
    bad[at] = static_cast<char>(bad[at] ^ 0x10);
    expect_absent(bad, "byte " + std::to_string(at));
  }
  for (const std::size_t bytes : {std::size_t{0}, std::size_t{1}, kHeaderBytes - 1, kHeaderBytes,
                                  kHeaderBytes + 1, good.size() - 1}) {
    expect_absent(good.substr(0, bytes), "cut to " + std::to_string(bytes));
  }
  expect_absent(good + "x", "longer");
  expect_absent(std::string(good.size(), '\0'), "zeros");
  write(file_of(key), good);
  EXPECT_EQ(cache->find(key), value_of(1, 200));
}

TEST_F(EntryTest, TheEntryOfAnotherKeyIsDamaged) {
  const auto cache = open();
  ASSERT_TRUE(cache->store(key_of(1), value_of(1, 200)));
  std::filesystem::rename(file_of(key_of(1)), file_of(key_of(2)));
  EXPECT_FALSE(cache->find(key_of(2)));
  EXPECT_EQ(cache->statistics().damaged, 1u);
  EXPECT_TRUE(files().empty());
}

TEST_F(EntryTest, WhatIsNoFileIsDamagedAndNotFollowed) {
  const auto cache = open();
  ASSERT_TRUE(cache->store(key_of(1), value_of(1, 200)));
  std::filesystem::rename(file_of(key_of(1)), root_ / "elsewhere");
  std::filesystem::create_symlink(root_ / "elsewhere", file_of(key_of(1)));
  EXPECT_FALSE(cache->find(key_of(1)));
  EXPECT_TRUE(std::filesystem::exists(root_ / "elsewhere"));
  ASSERT_EQ(::mkfifo(file_of(key_of(1)).c_str(), 0600), 0);
  EXPECT_FALSE(cache->find(key_of(1)));
  EXPECT_TRUE(files().empty());
}

TEST_F(EntryTest, ADamagedEntryCanBeStoredAgain) {
  const auto cache = open();
  write(file_of(key_of(1)), "rubbish");
  EXPECT_FALSE(cache->find(key_of(1)));
  ASSERT_TRUE(cache->store(key_of(1), value_of(1, 200)));
  EXPECT_EQ(cache->find(key_of(1)), value_of(1, 200));
}

TEST_F(EntryTest, StoringWhereTheDirectoryHasGoneIsAnIoErrorAndFindingAMiss) {
  const auto cache = open();
  std::filesystem::remove_all(path_);
  const auto stored = cache->store(key_of(1), value_of(1, 200));
  ASSERT_FALSE(stored);
  EXPECT_EQ(stored.error().code, ErrorCode::kIo);
  EXPECT_FALSE(cache->find(key_of(1)));
}

}  // namespace
}  // namespace slate::cache
