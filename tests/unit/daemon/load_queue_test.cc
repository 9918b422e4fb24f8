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

class LoadQueueTest : public testing::Test {
 protected:
  /// Two users begin with images of such sizes.
  void begin_two(std::uint64_t first_bytes, std::uint64_t second_bytes) {
    first_ = queue_.join(1, first_bytes);
    second_ = queue_.join(2, second_bytes);
    ASSERT_TRUE(queue_.try_begin(first_) && queue_.try_begin(second_));
  }

  LoadQueue queue_;
  LoadQueue::Ticket first_{}, second_{};
};

TEST_F(LoadQueueTest, ImagesOfOneUserComeInOrderOfArrival) {
  const auto first = queue_.join(kUser, kLarge), second = queue_.join(kUser, kLarge);
  EXPECT_FALSE(queue_.try_begin(second));
  EXPECT_TRUE(queue_.try_begin(first));
  EXPECT_FALSE(queue_.try_begin(second));
  queue_.leave(first);
  EXPECT_TRUE(queue_.try_begin(second));
}

TEST_F(LoadQueueTest, LargeImagesOfOneUserLeaveOthersTheirPart) {
  std::vector<LoadQueue::Ticket> files;
  for (int i = 0; i < 3; ++i) files.push_back(queue_.join(kAttacker, 13 << 20));
  EXPECT_TRUE(queue_.try_begin(files[0]));
  EXPECT_FALSE(queue_.try_begin(files[1])) << "it is beyond his part";
  const auto image = queue_.join(kUser, kLarge);
  EXPECT_TRUE(queue_.try_begin(image));
}

TEST_F(LoadQueueTest, AnImageOfAnySizeBegins) {
  EXPECT_TRUE(queue_.try_begin(queue_.join(kUser, ~std::uint64_t{0})));
}

TEST_F(LoadQueueTest, UsersTakeTurnsHoweverMuchOneOfThemWants) {
  // Two users fill it, so that all the others wait.
  begin_two(kLarge, kLarge);
  std::vector<LoadQueue::Ticket> flood;
  for (int i = 0; i < 10; ++i) flood.push_back(queue_.join(kAttacker, kMedium));
  const auto one = queue_.join(kUser, kMedium), other = queue_.join(kOther, kMedium);
  queue_.leave(first_);
  EXPECT_FALSE(queue_.try_begin(one)) << "it is the attacker's turn";
  EXPECT_TRUE(queue_.try_begin(flood[0]));
  EXPECT_FALSE(queue_.try_begin(flood[1]));
  EXPECT_TRUE(queue_.try_begin(one));
  queue_.leave(second_);
  EXPECT_FALSE(queue_.try_begin(flood[1]));
  EXPECT_TRUE(queue_.try_begin(other));
  EXPECT_TRUE(queue_.try_begin(flood[1]));
}

TEST_F(LoadQueueTest, AUserWithNothingUnderWayNeverWaitsWithALittle) {
  begin_two(kLarge, kLarge);
  const auto small = queue_.join(kUser, 1000), another = queue_.join(kUser, 1000);
  EXPECT_TRUE(queue_.try_begin(small));
  EXPECT_FALSE(queue_.try_begin(another)) << "one at a time";
  queue_.leave(small);
  EXPECT_TRUE(queue_.try_begin(another));
}

TEST_F(LoadQueueTest, SmallImagesDoNotStarveALargeOne) {
  begin_two(kLarge, kMedium);
  const auto large = queue_.join(kUser, kLarge);
  const auto medium = queue_.join(kOther, kMedium);
  EXPECT_FALSE(queue_.try_begin(large)) << "no room yet";
  EXPECT_FALSE(queue_.try_begin(medium)) << "its user is behind";
  queue_.leave(second_);
  EXPECT_FALSE(queue_.try_begin(medium));
  EXPECT_TRUE(queue_.try_begin(large));
}

TEST_F(LoadQueueTest, WhatIsNoLongerWantedHoldsNobodyUp) {
  begin_two(kLarge, kMedium);
  const auto waits = queue_.join(kAttacker, kLarge);
  const auto next = queue_.join(kUser, kMedium);
  EXPECT_FALSE(queue_.try_begin(next));
  queue_.leave(waits);
  EXPECT_TRUE(queue_.try_begin(next));
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
