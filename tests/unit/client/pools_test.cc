#include "client/session/pools.h"

#include <gtest/gtest.h>

namespace slate::client {
namespace {

TEST(PoolsTest, APoolGivesNoMoreThanItsMost) {
  Pools pools(1);
  const std::uint64_t pool = pools.create(100);
  EXPECT_EQ(pools.take(pool, 60), Pools::Take::kTaken);
  EXPECT_EQ(pools.take(pool, 60), Pools::Take::kFull);
  pools.allocated(pool, 0x1000, 60);
  pools.freed(0x1000);
  EXPECT_EQ(pools.take(pool, 60), Pools::Take::kTaken);
}

TEST(PoolsTest, TheDefaultPoolCannotBeDestroyed) {
  Pools pools(1);
  EXPECT_FALSE(pools.destroy(pools.default_pool()));
  const std::uint64_t pool = pools.create(0);
  ASSERT_TRUE(pools.set_current(pool));
  EXPECT_TRUE(pools.destroy(pool));
  EXPECT_EQ(pools.current_pool(), pools.default_pool());
  EXPECT_EQ(pools.take(pool, 1), Pools::Take::kNoPool);
}

TEST(PoolsTest, PoolsOfAnotherSessionAreUnknown) {
  Pools one(1), other(2);
  EXPECT_EQ(other.take(one.default_pool(), 1), Pools::Take::kNoPool);
}

TEST(PoolsTest, HighWaterMarksStay) {
  Pools pools(1);
  const std::uint64_t pool = pools.default_pool();
  ASSERT_EQ(pools.take(pool, 60), Pools::Take::kTaken);
  pools.allocated(pool, 0x1000, 60);
  pools.freed(0x1000);
  EXPECT_TRUE(pools.with(pool, [](const Pools::Pool& its) {
    EXPECT_EQ(its.used, 0u);
    EXPECT_EQ(its.used_high, 60u);
  }));
}

}  // namespace
}  // namespace slate::client
