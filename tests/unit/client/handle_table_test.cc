#include "client/session/handle_table.h"

#include <gtest/gtest.h>

#include <set>
#include <thread>

namespace slate::client {
namespace {

TEST(HandleTableTest, AnIdIsKnownUntilItIsRemoved) {
  std::atomic<std::uint64_t> counter{0};
  HandleTable table(counter);
  const auto id = table.add({3, -2});
  ASSERT_TRUE(table.contains(id));
  EXPECT_EQ(table.find(id)->flags, 3u);
  EXPECT_EQ(table.find(id)->priority, -2);
  table.mark(id, 8);
  EXPECT_EQ(table.find(id)->flags, 11u);
  EXPECT_TRUE(table.remove(id));
  EXPECT_FALSE(table.contains(id));
  EXPECT_FALSE(table.remove(id));
}

TEST(HandleTableTest, IdsAreNeverUsedAgain) {
  std::atomic<std::uint64_t> counter{0};
  HandleTable streams(counter), events(counter);
  std::set<std::uint64_t> seen;
  for (int i = 0; i < 5000; ++i) {
    const auto stream = streams.add({});
    const auto event = events.add({});
    EXPECT_TRUE(seen.insert(stream).second);
    EXPECT_TRUE(seen.insert(event).second);
    EXPECT_FALSE(events.contains(stream));
    EXPECT_TRUE(streams.remove(stream));
    EXPECT_TRUE(events.remove(event));
  }
}

TEST(HandleTableTest, NeitherZeroNorTheDefaultStreamsAreIds) {
  std::atomic<std::uint64_t> counter{0};
  HandleTable table(counter);
  const auto first = table.add({});
  EXPECT_GT(first, 2u);
  for (const std::uint64_t id : {0, 1, 2}) {
    EXPECT_FALSE(table.contains(id));
    EXPECT_FALSE(table.remove(id));
  }
  EXPECT_FALSE(table.contains(~std::uint64_t{0}));
}

TEST(HandleTableTest, AFullTableSaysSoAndRecovers) {
  std::atomic<std::uint64_t> counter{0};
  HandleTable table(counter);
  std::uint64_t last = 0;
  for (std::uint32_t i = 0; i < HandleTable::kMost; ++i) {
    last = table.add({});
    ASSERT_NE(last, 0u);
  }
  EXPECT_EQ(table.add({}), 0u);
  EXPECT_TRUE(table.remove(last));
  EXPECT_NE(table.add({}), 0u);
}

TEST(HandleTableTest, ThreadsMayAddFindAndRemove) {
  std::atomic<std::uint64_t> counter{0};
  HandleTable table(counter);
  std::vector<std::thread> threads;
  std::atomic<int> lost{0};
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 2000; ++i) {
        const auto id = table.add({});
        if (!table.contains(id) || !table.remove(id) || table.contains(id)) ++lost;
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(lost, 0);
}

}  // namespace
}  // namespace slate::client
