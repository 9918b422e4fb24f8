// Whose text is read next: users in turn, each with a part, and none who has gone.
#include "daemon/engine/load_queue.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "daemon/engine/load_turns.h"

namespace slate::daemon {
namespace {

constexpr std::uint64_t kLarge = LoadQueue::kBytesOfUser;
constexpr std::uint64_t kMedium = LoadQueue::kBytesOfUser / 2;
constexpr uid_t kAttacker = 7, kUser = 8, kOther = 9;

TEST(LoadQueueTest, ImagesOfOneUserComeInOrderOfArrival) {
  LoadQueue queue;
  const auto first = queue.join(kUser, kLarge), second = queue.join(kUser, kLarge);
  EXPECT_FALSE(queue.try_begin(second));
  EXPECT_TRUE(queue.try_begin(first));
  EXPECT_FALSE(queue.try_begin(second));
  queue.leave(first);
  EXPECT_TRUE(queue.try_begin(second));
}

TEST(LoadQueueTest, LargeImagesOfOneUserLeaveOthersTheirPart) {
  LoadQueue queue;
  std::vector<LoadQueue::Ticket> files;
  for (int i = 0; i < 3; ++i) files.push_back(queue.join(kAttacker, 13 << 20));
  EXPECT_TRUE(queue.try_begin(files[0]));
  EXPECT_FALSE(queue.try_begin(files[1])) << "it is beyond his part";
  const auto image = queue.join(kUser, kLarge);
  EXPECT_TRUE(queue.try_begin(image));
}

TEST(LoadQueueTest, AnImageOfAnySizeBegins) {
  LoadQueue queue;
  EXPECT_TRUE(queue.try_begin(queue.join(kUser, ~std::uint64_t{0})));
}

TEST(LoadQueueTest, UsersTakeTurnsHoweverMuchOneOfThemWants) {
  LoadQueue queue;
  // Two users fill it, so that all the others wait.
  const auto first = queue.join(1, kLarge), second = queue.join(2, kLarge);
  ASSERT_TRUE(queue.try_begin(first) && queue.try_begin(second));
  std::vector<LoadQueue::Ticket> flood;
  for (int i = 0; i < 10; ++i) flood.push_back(queue.join(kAttacker, kMedium));
  const auto one = queue.join(kUser, kMedium), other = queue.join(kOther, kMedium);
  queue.leave(first);
  EXPECT_FALSE(queue.try_begin(one)) << "it is the attacker's turn";
  EXPECT_TRUE(queue.try_begin(flood[0]));
  EXPECT_FALSE(queue.try_begin(flood[1]));
  EXPECT_TRUE(queue.try_begin(one));
  queue.leave(second);
  EXPECT_FALSE(queue.try_begin(flood[1]));
  EXPECT_TRUE(queue.try_begin(other));
  EXPECT_TRUE(queue.try_begin(flood[1]));
}

TEST(LoadQueueTest, AUserWithNothingUnderWayNeverWaitsWithALittle) {
  LoadQueue queue;
  const auto first = queue.join(1, kLarge), second = queue.join(2, kLarge);
  ASSERT_TRUE(queue.try_begin(first) && queue.try_begin(second));
  const auto small = queue.join(kUser, 1000), another = queue.join(kUser, 1000);
  EXPECT_TRUE(queue.try_begin(small));
  EXPECT_FALSE(queue.try_begin(another)) << "one at a time";
  queue.leave(small);
  EXPECT_TRUE(queue.try_begin(another));
}

TEST(LoadQueueTest, SmallImagesDoNotStarveALargeOne) {
  LoadQueue queue;
  const auto first = queue.join(1, kLarge), second = queue.join(2, kMedium);
  ASSERT_TRUE(queue.try_begin(first) && queue.try_begin(second));
  const auto large = queue.join(kUser, kLarge);
  const auto medium = queue.join(kOther, kMedium);
  EXPECT_FALSE(queue.try_begin(large)) << "no room yet";
  EXPECT_FALSE(queue.try_begin(medium)) << "its user is behind";
  queue.leave(second);
  EXPECT_FALSE(queue.try_begin(medium));
  EXPECT_TRUE(queue.try_begin(large));
}

TEST(LoadQueueTest, WhatIsNoLongerWantedHoldsNobodyUp) {
  LoadQueue queue;
  const auto first = queue.join(1, kLarge), second = queue.join(2, kMedium);
  ASSERT_TRUE(queue.try_begin(first) && queue.try_begin(second));
  const auto waits = queue.join(kAttacker, kLarge);
  const auto next = queue.join(kUser, kMedium);
  EXPECT_FALSE(queue.try_begin(next));
  queue.leave(waits);
  EXPECT_TRUE(queue.try_begin(next));
}

TEST(LoadTurnsTest, OnesOwnLargeImagesComeOneAfterTheOther) {
  LoadTurns turns;
  auto first = turns.begin({.uid = kUser}, LoadQueue::kBytes);
  ASSERT_TRUE(first);
  std::atomic<bool> began = false;
  std::thread second([&] {
    const auto turn = turns.begin({.uid = kUser}, LoadQueue::kBytes);
    began = turn.has_value();
  });
  EXPECT_TRUE(turns.begin({.uid = kOther}, LoadQueue::kBytes));
  EXPECT_FALSE(began);
  first->reset();
  second.join();
  EXPECT_TRUE(began);
}

TEST(LoadTurnsTest, AProgramThatHasGoneLeavesTheQueue) {
  LoadTurns turns;
  const auto first = turns.begin({.uid = kUser}, LoadQueue::kBytes);
  int asked = 0;
  const Loader gone{.uid = kUser, .is_over = [&asked] { return ++asked == 2; }};
  const auto turn = turns.begin(gone, LoadQueue::kBytes);
  ASSERT_FALSE(turn);
  EXPECT_EQ(turn.error().code, ErrorCode::kIo);
  EXPECT_EQ(asked, 2);
}

}  // namespace
}  // namespace slate::daemon
