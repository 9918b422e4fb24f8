// The size that the entries are kept under, and who has to go.
#include "tests/unit/injector/cache/cache_fixture.h"

namespace slate::cache {
namespace {

class EvictionTest : public CacheTest {
 protected:
  static constexpr std::size_t kValue = 1000 - kHeaderBytes;  // a file of 1000 bytes

  void store(CompileCache& cache, std::uint64_t number) {
    const auto stored = cache.store(key_of(number), value_of(number, kValue));
    ASSERT_TRUE(stored) << stored.error().message;
  }
  std::uint64_t bytes_on_disk() const {
    std::uint64_t sum = 0;
    for (const auto& each : std::filesystem::directory_iterator(path_)) sum += each.file_size();
    return sum;
  }
  /// The numbers below `count` whose entries are there.
  std::vector<std::uint64_t> present(std::uint64_t count) const {
    std::vector<std::uint64_t> numbers;
    for (std::uint64_t i = 0; i < count; ++i) {
      if (std::filesystem::exists(file_of(key_of(i)))) numbers.push_back(i);
    }
    return numbers;
  }
};

TEST_F(EvictionTest, NothingGoesWhileThereIsRoom) {
  const auto cache = open(10'000);
  for (std::uint64_t i = 0; i < 10; ++i) store(*cache, i);
  EXPECT_EQ(present(10).size(), 10u);
  EXPECT_EQ(cache->statistics().evicted, 0u);
}

TEST_F(EvictionTest, TheSizeIsNeverExceeded) {
  const auto cache = open(10'000);
  for (std::uint64_t i = 0; i < 100; ++i) {
    store(*cache, i);
    ASSERT_LE(bytes_on_disk(), 10'000u) << i;
    ASSERT_EQ(cache->find(key_of(i)), value_of(i, kValue)) << i;
  }
  EXPECT_EQ(cache->statistics().evicted, 100 - present(100).size());
  EXPECT_GE(present(100).size(), 8u);
}

TEST_F(EvictionTest, TheLeastRecentlyUsedGoFirst) {
  const auto cache = open(10'000);
  for (std::uint64_t i = 0; i < 10; ++i) store(*cache, i);
  const std::uint64_t oldest_first[] = {7, 2, 9, 0, 1, 3, 4, 5, 6, 8};
  std::int64_t seconds = 3000;  // less than an hour: finding does not change it
  for (const std::uint64_t number : oldest_first) age(file_of(key_of(number)), seconds -= 100);
  store(*cache, 10);  // 11 of 10: the three oldest make it 8, which is at most 7/8
  EXPECT_EQ(present(11), (std::vector<std::uint64_t>{0, 1, 3, 4, 5, 6, 8, 10}));
  EXPECT_EQ(cache->statistics().evicted, 3u);
}

TEST_F(EvictionTest, AHitKeepsAnEntryFromGoing) {
  const auto cache = open(10'000);
  for (std::uint64_t i = 0; i < 10; ++i) store(*cache, i);
  for (std::uint64_t i = 0; i < 10; ++i) {
    age(file_of(key_of(i)), 100'000 - static_cast<std::int64_t>(i) * 1000);
  }
  ASSERT_TRUE(cache->find(key_of(0)));
  store(*cache, 10);
  EXPECT_EQ(present(11), (std::vector<std::uint64_t>{0, 4, 5, 6, 7, 8, 9, 10}));
}

TEST_F(EvictionTest, AHitIsWrittenDownAtMostOnceAnHour) {
  const auto cache = open();
  store(*cache, 1);
  age(file_of(key_of(1)), 3000);
  ASSERT_TRUE(cache->find(key_of(1)));
  EXPECT_GE(age_of(file_of(key_of(1))), 3000);
  age(file_of(key_of(1)), 4000);
  ASSERT_TRUE(cache->find(key_of(1)));
  EXPECT_LT(age_of(file_of(key_of(1))), 3000);
}

TEST_F(EvictionTest, AnEntryThatIsLargerThanAllIsRefusedAndTheOthersStay) {
  const auto cache = open(10'000);
  store(*cache, 1);
  const auto stored = cache->store(key_of(2), value_of(2, 10'001 - kHeaderBytes));
  ASSERT_FALSE(stored);
  EXPECT_EQ(stored.error().code, ErrorCode::kLimit);
  EXPECT_EQ(present(3), std::vector<std::uint64_t>{1});
}

TEST_F(EvictionTest, ANewEntryMayTakeAllTheRoom) {
  const auto cache = open(10'000);
  store(*cache, 1);
  const std::size_t bytes = 10'000 - kHeaderBytes;
  ASSERT_TRUE(cache->store(key_of(2), value_of(2, bytes)));
  EXPECT_EQ(cache->find(key_of(2)), value_of(2, bytes));
  EXPECT_EQ(present(3), std::vector<std::uint64_t>{2});
}

TEST_F(EvictionTest, OpeningWithASmallerSizeMakesRoom) {
  {
    const auto cache = open(10'000);
    for (std::uint64_t i = 0; i < 10; ++i) store(*cache, i);
  }
  const auto cache = open(4'000);
  EXPECT_EQ(present(10).size(), 3u);
  EXPECT_EQ(cache->statistics().evicted, 7u);
}

TEST_F(EvictionTest, WhatAnotherStoredCounts) {
  const auto one = open(16'000);
  const auto other = open(16'000);
  for (std::uint64_t i = 0; i < 50; ++i) {
    store(i % 2 == 0 ? *one : *other, i);
    ASSERT_LE(bytes_on_disk(), 16'000u) << i;
  }
}

TEST_F(EvictionTest, FilesThatAreNotTheCachesStay) {
  const auto cache = open(2'000);
  write(path_ / "notes", std::string(5000, 'x'));
  age(path_ / "notes", 1'000'000);
  for (std::uint64_t i = 0; i < 10; ++i) store(*cache, i);
  EXPECT_TRUE(std::filesystem::exists(path_ / "notes"));
  EXPECT_FALSE(present(10).empty());
}

}  // namespace
}  // namespace slate::cache
