#include "daemon/engine/staging.h"

#include <gtest/gtest.h>

#include <cstring>
#include <thread>

#include "tests/unit/daemon/fake_device.h"
#include "tests/unit/ipc/channel_pair.h"

namespace slate::daemon {
namespace {

TEST(StagingBudgetTest, SessionsThatCopyShareEquallyAndEachHasAFew) {
  StagingBudget budget(100);
  const auto user = budget.join(1000);
  EXPECT_EQ(budget.share(*user), ipc::kStagingSlots) << "alone, as much as there is room for";
  for (int i = 0; i < 9; ++i) EXPECT_EQ(budget.join(1000), user);
  EXPECT_EQ(budget.share(*user), 10u);
  for (int i = 0; i < 90; ++i) budget.join(1000);
  EXPECT_EQ(budget.share(*user), ipc::kLeastStagingSlots);
  for (int i = 0; i < 90; ++i) budget.leave(user);
  EXPECT_EQ(budget.share(*user), 10u);
}

TEST(StagingBudgetTest, ManySessionsOfOneUserTakeNothingFromAnother) {
  StagingBudget budget(100);
  const auto one = budget.join(1000);
  std::shared_ptr<StagingBudget::Active> many;
  for (int i = 0; i < 10; ++i) many = budget.join(1001);
  EXPECT_EQ(budget.share(*one), std::min(50u, ipc::kStagingSlots));
  EXPECT_EQ(budget.share(*many), std::max(5u, ipc::kLeastStagingSlots));
  for (int i = 0; i < 10; ++i) budget.leave(many);
  EXPECT_EQ(budget.share(*one), std::min(100u, ipc::kStagingSlots));
}

class StagingTest : public testing::Test {
 protected:
  ~StagingTest() override {
    staging_.release();
    EXPECT_TRUE(device_.holds_nothing());
  }
  /// One copy from beginning to end.
  void copy(std::byte value) {
    const auto slot = *pair_.client->acquire_staging();
    std::memset(slot.memory.data(), static_cast<int>(value), slot.memory.size());
    EXPECT_EQ(staging_.begin(slot.slot)[77], value);
    pair_.client->release_staging(slot, true);
    staging_.finish(slot.slot, slot.sequence);
  }

  FakeDevice device_;
  ipc::ChannelPair pair_ = ipc::make_channel_pair();
  StagingBudget budget_{16};
  Staging staging_{device_, *pair_.engine, budget_};
};

TEST_F(StagingTest, ASessionThatCopiesNothingHoldsNothing) {
  EXPECT_FALSE(staging_.active());
  EXPECT_TRUE(device_.holds_nothing());
}

TEST_F(StagingTest, WhatIsIdleIsGivenBackAndCanBeUsedAgain) {
  copy(std::byte{1});
  EXPECT_TRUE(staging_.active());
  ASSERT_TRUE(staging_.reclaim());
  EXPECT_FALSE(staging_.active());
  EXPECT_TRUE(device_.holds_nothing());
  EXPECT_EQ(pair_.raw->staging[0][77], std::byte{0}) << "the pages are gone";
  copy(std::byte{2});
  EXPECT_TRUE(staging_.active());
}

TEST_F(StagingTest, NothingIsTakenWhileEitherSideUsesIt) {
  copy(std::byte{1});
  const auto held = *pair_.client->acquire_staging();
  EXPECT_FALSE(staging_.reclaim()) << "the client fills a slot";
  staging_.begin(held.slot);
  pair_.client->release_staging(held, true);
  EXPECT_FALSE(staging_.reclaim()) << "the device copies";
  staging_.finish(held.slot, held.sequence);
  EXPECT_TRUE(staging_.reclaim());
}

TEST_F(StagingTest, ACommandUnderWayKeepsItsSlot) {
  copy(std::byte{1});
  const auto slot = *pair_.client->acquire_staging();
  ASSERT_TRUE(pair_.client->post(ipc::CommandType::kCopy, {}));
  pair_.client->release_staging(slot, true);
  EXPECT_FALSE(staging_.reclaim());
  ipc::Command command;
  ASSERT_TRUE(*pair_.engine->try_pop(command));
  EXPECT_TRUE(staging_.reclaim());
}

TEST_F(StagingTest, AnotherSessionsCopiesTakeFromItsShare) {
  copy(std::byte{1});
  EXPECT_EQ(pair_.client->staging_slots(), 16u);
  const auto other = budget_.join(1);
  copy(std::byte{2});
  EXPECT_EQ(pair_.client->staging_slots(), 8u);
  budget_.leave(other);
}

TEST_F(StagingTest, CopiesWhileMemoryIsTakenBackLoseNothing) {
  std::atomic<bool> done{false};
  std::mutex one;  // of the session's thread, which begins and reclaims
  std::thread reclaimer([&] {
    while (!done) {
      const std::lock_guard lock(one);
      (void)staging_.reclaim();
    }
  });
  for (int i = 0; i < 300; ++i) {
    const auto slot = *pair_.client->acquire_staging();
    std::memset(slot.memory.data(), i, 100);
    {
      const std::lock_guard lock(one);
      ASSERT_EQ(staging_.begin(slot.slot)[99], static_cast<std::byte>(i));
    }
    pair_.client->release_staging(slot, true);
    staging_.finish(slot.slot, slot.sequence);
  }
  done = true;
  reclaimer.join();
}

}  // namespace
}  // namespace slate::daemon
