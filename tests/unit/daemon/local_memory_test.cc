#include "daemon/engine/local_memory.h"

#include <gtest/gtest.h>

#include "tests/unit/daemon/fake_device.h"

namespace slate::daemon {
namespace {

using Sizes = std::vector<std::uint64_t>;

constexpr bool kAlone = true, kOthers = false;

class LocalMemoryTest : public testing::Test {
 protected:
  std::unique_ptr<MemoryManager> session(std::uint64_t limit = ~std::uint64_t{0} >> 1) {
    auto made = MemoryManager::make(device_, limit);
    EXPECT_TRUE(made);
    return std::move(*made);
  }
  /// What frames of so many bytes take of the device.
  std::uint64_t cost(std::uint64_t bytes) {
    return (bytes - LocalMemory::kBase) * resident_threads(device_.info());
  }

  FakeDevice device_;
  LocalMemory pool_{device_};
};

TEST_F(LocalMemoryTest, SmallFramesCostNothing) {
  const auto memory = session();
  LocalMemory::Share share(pool_);
  EXPECT_TRUE(share.has(LocalMemory::kBase));
  EXPECT_TRUE(share.need(LocalMemory::kBase, *memory));
  EXPECT_TRUE(device_.local_sizes().empty());
  EXPECT_EQ(memory->charged(), 0);
  memory->release();
}

TEST_F(LocalMemoryTest, TheSessionThatNeedsMostIsChargedForAll) {
  const auto first = session(), second = session(), third = session();
  LocalMemory::Share one(pool_), two(pool_), three(pool_);
  ASSERT_TRUE(one.need(5000, *first));
  EXPECT_TRUE(one.has(5120)) << "rounded up";
  EXPECT_FALSE(one.has(5121));
  EXPECT_EQ(first->charged(), cost(5120));
  ASSERT_TRUE(two.need(2048, *second));
  EXPECT_EQ(second->charged(), 0);
  ASSERT_TRUE(three.need(8192, *third));
  EXPECT_EQ(first->charged(), 0);
  EXPECT_EQ(third->charged(), cost(8192));
  EXPECT_EQ(device_.local_sizes(), (Sizes{5120, 8192}));
  three.release(kOthers);
  EXPECT_EQ(third->charged(), 0);
  EXPECT_EQ(first->charged(), cost(5120));
  EXPECT_EQ(pool_.excess(), cost(8192) - cost(5120));
  one.release(kAlone);
  EXPECT_EQ(second->charged(), cost(2048));
  EXPECT_EQ(pool_.excess(), 0);
  EXPECT_EQ(device_.local_sizes(), (Sizes{5120, 8192, 2048}));
  two.release(kAlone);
  EXPECT_EQ(device_.local_sizes().back(), LocalMemory::kBase);
  for (const auto* memory : {&first, &second, &third}) (*memory)->release();
}

TEST_F(LocalMemoryTest, WhatNobodyNeedsWaitsUntilItIsWanted) {
  const auto memory = session();
  LocalMemory::Share share(pool_);
  EXPECT_FALSE(pool_.trim());
  ASSERT_TRUE(share.need(4096, *memory));
  EXPECT_FALSE(pool_.trim());
  share.release(kOthers);
  EXPECT_EQ(device_.local_sizes(), Sizes{4096}) << "a change would keep other sessions waiting";
  ASSERT_TRUE(share.need(3072, *memory)) << "it is there still";
  EXPECT_EQ(memory->charged(), cost(3072));
  EXPECT_TRUE(pool_.trim());
  EXPECT_EQ(device_.local_sizes(), (Sizes{4096, 3072}));
  share.release(kOthers);
  EXPECT_TRUE(pool_.trim());
  EXPECT_FALSE(pool_.trim());
  memory->release();
}

TEST_F(LocalMemoryTest, WhatIsRefusedChangesNothing) {
  const auto small = session(cost(2048)), large = session();
  LocalMemory::Share one(pool_), two(pool_);
  EXPECT_EQ(one.need(4096, *small).error().code, ErrorCode::kOutOfMemory) << "beyond its limit";
  EXPECT_TRUE(device_.local_sizes().empty());
  ASSERT_TRUE(one.need(2048, *small));
  device_.limit_local_memory(2048);
  EXPECT_EQ(two.need(4096, *large).error().code, ErrorCode::kOutOfMemory) << "the device is full";
  EXPECT_FALSE(two.has(4096));
  EXPECT_EQ(large->charged(), 0);
  EXPECT_EQ(small->charged(), cost(2048));
  EXPECT_EQ(device_.local_sizes(), Sizes{2048});
  two.release(kAlone);
  one.release(kAlone);
  small->release();
  large->release();
}

TEST_F(LocalMemoryTest, WhoTakesOverTheChargeIsNotRefused) {
  const auto poor = session(cost(2048)), rich = session();
  LocalMemory::Share one(pool_), two(pool_);
  ASSERT_TRUE(two.need(4096, *rich));
  ASSERT_TRUE(one.need(3072, *poor)) << "it is there already";
  two.release(kOthers);
  EXPECT_EQ(poor->charged(), cost(3072)) << "beyond its limit";
  EXPECT_EQ(poor->chargeable(), 0);
  EXPECT_EQ(poor->allocate(1).error().code, ErrorCode::kOutOfMemory);
  one.release(kAlone);
  EXPECT_EQ(poor->charged(), 0);
  poor->release();
  rich->release();
}

}  // namespace
}  // namespace slate::daemon
